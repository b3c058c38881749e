// What the sweeps compare before and after: all that stands in a folder, all that the process holds. And how one call of
// a rank is made to fail, for every call of every rank.
#pragma once
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "checkpoints/directory.hpp"
#include "checkpoints/hdf5.hpp"
#include "there_and_back.hpp"

namespace zero::test {

inline std::map<std::string, std::string> tree(const std::string& folder) {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        all[entry.path().string().substr(folder.size())] = entry.is_directory() ? "/" : read_file(entry.path().string());
    return all;
}

struct holdings {
    std::size_t descriptors = 0, threads = 0;
    std::int64_t hdf5_ids = 0;  // files, groups, datasets, types, attributes: HDF5 counts no others for its callers
};

inline holdings held() {
    const hdf5::session quiet;
    return {open_descriptors(), names_in("/proc/self/task").size(),
            H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_ALL)};
}

// Not more than before? A thread that was joined, or the kernel's of a ring that was closed, is listed for a moment longer.
inline bool holds_no_more_than(const holdings& before) {
    for (int tries = 0; tries < 400; ++tries) {
        const holdings now = held();
        if (now.descriptors <= before.descriptors && now.threads <= before.threads && now.hdf5_ids <= before.hdf5_ids)
            return true;
        ::usleep(5000);
    }
    return false;
}

// Everything that fails on one rank's call n: hooks for all ranks, and whether the call came.
class one_fault {
public:
    one_fault(int culprit, std::int64_t n, files::verdict what) : culprit_(culprit), n_(n), what_(what) {}
    std::function<files::hook(int)> hooks() {
        return [this](int rank) {
            return [this, rank](const files::request& asked) {
                if (rank != culprit_ || asked.number != n_) return files::verdict{};
                at_ = asked.what;
                path_ = asked.path;
                hit_ = true;
                return what_;
            };
        };
    }
    bool hit() const { return hit_; }
    std::string place() const {
        return formatted("rank {}, call {} ({}): {}", culprit_, n_, hit_ ? files::name(at_) : "none",
                         std::strerror(what_.error));
    }
    files::action at() const { return at_; }
    const std::string& path() const { return path_; }

private:
    int culprit_;
    std::int64_t n_;
    files::verdict what_;
    std::string path_;  // written once, before hit_
    std::atomic<bool> hit_{false};
    std::atomic<files::action> at_{files::action::status};
};

// trial(n): n = 0, 1, 2 ... until it answers false (the call did not come); how many came.
inline std::int64_t every_call(const std::function<bool(std::int64_t)>& trial) {
    std::int64_t n = 0;
    while (trial(n)) ++n;
    return n;
}

inline std::vector<whole_tensor> small_model(unsigned seed) {
    return {make_tensor("a", dtype::f32, {13}, false, seed), make_tensor("b/c", dtype::bf16, {5, 3}, false, seed + 10),
            make_tensor("ice", dtype::f16, {6}, true, seed + 20)};
}

inline constexpr std::int64_t old_step = 7, new_step = 8;

// A kind of save, from step 7 to step 8.
struct save_kind {
    const char* name;
    int ranks, model_size;
    save_options how;
    bool first = false;  // there is no old state: the folder itself is made
};

inline std::vector<save_kind> save_kinds() {
    std::vector<save_kind> all;
    for (const bool behind : {false, true}) {
        save_options plain, sharing, retention;
        for (save_options* one : {&plain, &sharing, &retention}) one->behind = behind;
        sharing.ranks_per_file = 2;
        sharing.seed = 5;
        retention.keep_last = 1;
        save_options split = plain;
        split.model_size = 2;
        all.push_back({"2 ranks", 2, 1, plain});
        all.push_back({"3 ranks", 3, 1, plain});
        all.push_back({"3 ranks in 2 files", 3, 1, sharing});
        all.push_back({"2 ranks, the old one removed", 2, 1, retention});
        all.push_back({"2 x 2 ranks", 2, 2, split});
        all.push_back({"3 ranks, the first save", 3, 1, plain, true});
    }
    return all;
}

inline std::vector<std::optional<error>> save_step(const save_kind& what, const std::string& place, std::int64_t step,
                                                   const std::vector<whole_tensor>& all, const save_options& how) {
    save_options mine = how;
    mine.step = step;
    return save_on(what.ranks, all, place, mine);
}

}  // namespace zero::test
