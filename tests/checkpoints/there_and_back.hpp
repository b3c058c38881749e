// Saving and loading a test model by threads, for tests of the layers below the engine.
#pragma once
#include <dirent.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "checkpoints/loading.hpp"
#include "checkpoints/saving.hpp"
#include "crew_of_threads.hpp"
#include "support/temporary_folder.hpp"
#include "world.hpp"

namespace zero::test {

struct save_options {
    std::string tag;
    int ranks_per_file = 1, model_size = 1;
    unsigned seed = 0;
    std::int64_t keep_last = 0, keep_every = 0, step = 7;
    bool behind = false;                      // asynchronously; the state is overwritten as soon as that is allowed
    std::function<files::hook(int)> hook;     // by rank
    std::function<void(share&, int)> change;  // adds attachments ...
    std::vector<std::string>* warnings = nullptr;  // of rank 0; null: as usual
};

inline void save_behind(share& mine, checkpoint::crew& crew, const files::disk& disk, ledger& book, log& said,
                        const checkpoint::save_request& what) {
    buffer kept;
    checkpoint::saving work(mine.state, crew, disk, book, said, what);
    try {
        work.begin();
        work.write_behind(kept);
        mine.scramble();
        work.write();
        work.finish();
    } catch (...) {
        work.abandon();
        throw;
    }
}

inline std::vector<std::optional<error>> save_on(int ranks, const std::vector<whole_tensor>& all,
                                                 const std::string& folder, const save_options& how = {}) {
    return together(ranks, how.model_size, [&](checkpoint::crew& crew) {
        share mine(all, crew.data_rank(), ranks, false, how.seed);
        mine.state.run.step = how.step;
        if (how.change) how.change(mine, crew.rank());
        const files::disk disk(how.hook ? how.hook(crew.rank()) : files::hook());
        ledger book;
        log said(crew.rank());
        if (how.warnings != nullptr && crew.rank() == 0)
            said.redirect([&](log_level, const std::string& text) { how.warnings->push_back(text); });
        const checkpoint::save_request what{folder, how.tag, how.ranks_per_file, how.keep_last, how.keep_every};
        if (how.behind)
            save_behind(mine, crew, disk, book, said, what);
        else
            checkpoint::save(mine.state, crew, disk, book, said, what);
        if (book.bytes(purpose::checkpoint) != 0) fail(code::internal, "bytes are left in the ledger");
    });
}

struct load_result {
    std::vector<std::optional<error>> thrown;
    bool equal = true, untouched = true;  // over all ranks
    std::vector<std::string> warnings;    // of rank 0
    checkpoint::run_state run;            // of rank 0
    std::int64_t bytes_read = 0;          // over all ranks
};

struct load_options {
    std::string tag;
    int model_size = 1;
    unsigned seed = 0;
    checkpoint::taking taking = checkpoint::taking::strict;
    std::function<files::hook(int)> hook;
    std::function<void(share&, int)> change;  // before
    std::function<void(share&, int)> look;    // after success
};

inline load_result load_on(int ranks, const std::vector<whole_tensor>& all, const std::string& folder,
                           const load_options& how = {}) {
    load_result result;
    std::mutex guard;
    result.thrown = together(ranks, how.model_size, [&](checkpoint::crew& crew) {
        share mine(all, crew.data_rank(), ranks, true, how.seed);
        if (how.change) how.change(mine, crew.rank());
        std::atomic<std::int64_t> read{0};
        const files::hook given = how.hook ? how.hook(crew.rank()) : files::hook();
        const files::disk disk([&](const files::request& what) {
            if (what.what == files::action::read) read += what.bytes;
            return given ? given(what) : files::verdict{};
        });
        ledger book;
        log said(crew.rank());
        std::vector<std::string> warnings;
        said.redirect([&](log_level, const std::string& text) { warnings.push_back(text); });
        std::optional<error> problem;
        checkpoint::run_state run;
        try {
            run = checkpoint::load(mine.state, crew, disk, book, said, {folder, how.tag, how.taking});
            if (how.look) how.look(mine, crew.rank());
        } catch (const error& found) {
            problem = found;
        }
        const std::scoped_lock lock(guard);
        if (book.bytes(purpose::checkpoint) != 0) result.equal = result.untouched = false;
        result.equal = result.equal && mine.equals(all);
        result.untouched = result.untouched && mine.untouched();
        result.bytes_read += read;
        if (crew.rank() == 0) {
            result.warnings = warnings;
            result.run = run;
        }
        if (problem) throw *problem;
    });
    return result;
}

// The one code that all ranks answer; ZERO_OK where none threw; internal where they differ.
inline code answer(const std::vector<std::optional<error>>& thrown) {
    std::set<code> found;
    for (const std::optional<error>& one : thrown) found.insert(one ? one->which() : code::ok);
    return found.size() == 1 ? *found.begin() : code::internal;
}

inline std::string text(const std::vector<std::optional<error>>& thrown) {
    for (const std::optional<error>& one : thrown)
        if (one) return one->what();
    return "";
}

inline std::string read_file(const std::string& path) {
    std::ifstream from(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(from), {}};
}

inline void write_file(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

inline std::vector<std::string> parts_of(const std::string& folder) {
    std::vector<std::string> names;
    for (const std::string& name : names_in(folder))
        if (name.starts_with("part-")) names.push_back(folder + "/" + name);
    return names;
}

inline std::size_t open_descriptors() {
    return names_in("/proc/self/fd").size();
}

}  // namespace zero::test
