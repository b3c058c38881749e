// The order of a load. Damage in the newest checkpoint sends a load without a tag to the next older one.
#include "loading.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "core/agreement.hpp"
#include "crc32c.hpp"
#include "device/memory.hpp"
#include "directory.hpp"
#include "message.hpp"
#include "reshard.hpp"
#include "threads.hpp"
#include "transfers.hpp"
#include "undo.hpp"

namespace zero::checkpoint {
namespace {

class loading {
public:
    loading(const contents& state, crew& ranks, const files::disk& disk, ledger& book, log& said,
            const load_request& what)
        : state_(state), ranks_(ranks), disk_(disk), book_(book), said_(said), what_(what) {}

    run_state run() {
        compare_arguments();
        list();
        while (choose()) {
            std::string problem;
            try {
                problem = attempt();
            } catch (...) {
                kept_.put_back();
                throw;
            }
            if (problem.empty()) {
                phase("taking over", [&] { take_over(); });
                tell_what_stays();
                return saved_.run;
            }
            kept_.put_back();
            report(problem);
        }
        fail_everywhere();
    }

private:
    void phase(const char* doing, const std::function<void()>& local) {
        settle_phase(ranks_, formatted("no checkpoint was loaded from {}", what_.directory), doing,
                     digest(what_.directory + '\0' + what_.tag + '\0' + doing), local);
    }

    // Agreements compare folders over the data ranks alone, this over all.
    void compare_arguments() {
        const std::string mine = packer().put(what_.directory).put(what_.tag).take(), told = ranks_.broadcast(mine);
        phase("comparing the arguments",
              [&] { require(told == mine, code::mismatch, "rank 0 loads from another folder or another tag"); });
    }

    void list() {
        phase("looking for checkpoints", [&] {
            require(!what_.directory.empty(), code::argument, "the directory has no name");
            if (!what_.tag.empty()) check_tag(what_.tag);
            if (ranks_.rank() != 0) return;
            require(disk_.look(what_.directory).directory, code::checkpoint, "there is no folder {}", what_.directory);
            if (what_.tag.empty())
                found_ = candidates(disk_, what_.directory);
            else
                found_.push_back({what_.tag, head{}, ""});
            require(!found_.empty(), code::checkpoint, "there is no complete checkpoint in {}", what_.directory);
        });
    }

    // Rank 0 takes the next one whose manifest is whole; all ranks get its text. False: there is none left.
    bool choose() {
        std::string text;
        phase("reading the manifest", [&] {
            if (ranks_.rank() == 0) text = next_manifest();
        });
        text = ranks_.broadcast(text);
        if (text.empty()) return false;
        phase("reading the manifest", [&] {
            unpacker from(text);
            tag_ = from.text();
            folder_ = files::join(what_.directory, tag_);
            saved_ = from_text(from.text(), files::join(folder_, manifest_name));
            require(saved_.head.model_ranks == ranks_.model_size(), code::checkpoint,
                    "{} does not fit this context: the model was split over {} ranks, and is over {} here", folder_,
                    saved_.head.model_ranks, ranks_.model_size());
            left_out_ = differences(state_, saved_, ranks_, what_.how);
            require(left_out_.empty() || (what_.how == taking::partial && something_fits()), code::checkpoint,
                    "{} does not fit this context: {}", folder_, left_out_);
        });
        return true;
    }

    std::string next_manifest() {
        for (list_again(); next_ < found_.size(); list_again()) {
            const candidate& one = found_[next_++];
            const std::string path = manifest_path(one);
            if (one.disk_failed) fail(code::io, "{}", one.problem);
            try {
                if (!one.head) damaged("{}", one.problem);
                const std::string text = read_manifest(path);
                from_text(text, path);
                return packer().put(one.tag).put(text).take();
            } catch (const damage& problem) {
                note(problem.what());
            }
        }
        return "";
    }

    std::string manifest_path(const candidate& of) const {
        return files::join(files::join(what_.directory, of.tag), manifest_name);
    }

    // Where another job's retention has removed the last one since it was listed, there are newer ones.
    void list_again() {
        constexpr int most_times = 100;
        if (!what_.tag.empty() || next_ == 0 || listed_ >= most_times) return;
        const candidate& last = found_[next_ - 1];
        if (!last.problem.empty() || disk_.look(manifest_path(last)).exists) return;
        ++listed_;
        found_ = candidates(disk_, what_.directory);
        next_ = 0;
    }

    std::string read_manifest(const std::string& path) const {
        try {
            return disk_.read_text(path, most_manifest_bytes);
        } catch (const files::failure& problem) {
            if (problem.number() != ENOENT && problem.number() != ENOTDIR) throw;
            damaged("there is no complete checkpoint in {}: {} is missing", files::parent_of(path), path);
        }
    }

    // What is damaged, on any rank, is returned on all; other errors are thrown on all.
    std::string attempt() {
        std::string problem;
        phase("reading the data", [&] {
            try {
                read();
            } catch (const damage& found) {
                problem = found.what();
            }
        });
        std::string first;
        for (const std::string& one : ranks_.gather(problem))
            if (first.empty()) first = one;
        return ranks_.broadcast(first);
    }

    // Where it is wanted, at once: copying all of it after the agreement took a fifth of the load, memory of its size more.
    // What was there is kept until all ranks agree.
    void read() {
        wanted_.clear();
        for_each_vector([&](const vector_state& vector, const vector_entry* from) {
            if (from != nullptr)
                add_range(wanted_, *from, vector.first, vector.count, vector.type, static_cast<std::byte*>(vector.data));
        });
        for_each_attachment([&](const attached_state& one, const attachment_entry& from) {
            if (from.extent >= 0)
                wanted_[from.extent].push_back({0, one.count, one.type, static_cast<std::byte*>(one.data)});
        });
        sort(wanted_);
        const std::int64_t bytes = list_tasks();
        kept_.expect(wanted_bytes());
        read_all(bytes);
        check_others();
    }

    std::int64_t wanted_bytes() const {
        std::int64_t bytes = 0;
        for (const auto& [number, items] : wanted_)
            for (const wanted& one : items) bytes += one.count * size_of(one.type);
        return bytes;
    }

    // What one request reads of which extent.
    struct task {
        int extent;
        read_run run;
    };

    // By file, and forwards in each. Returns the sum of their bytes.
    std::int64_t list_tasks() {
        tasks_.clear();
        std::int64_t total = 0;
        for (const auto& [number, items] : wanted_)
            for (const read_run& run : runs_of(extent_of(number), items, request_bytes)) {
                tasks_.push_back({number, run});
                total += run.bytes;
            }
        std::sort(tasks_.begin(), tasks_.end(), [&](const task& a, const task& b) {
            return std::pair(extent_of(a.extent).file, place(a)) < std::pair(extent_of(b.extent).file, place(b));
        });
        return total;
    }

    void read_all(std::int64_t total) {
        const int lanes = lanes_for(total);
        std::int64_t most = 0;
        for (const task& one : tasks_) most = std::max(most, one.run.bytes + files::file::direct_unit);
        const buffer scratch(book_, purpose::checkpoint, lanes * most, memory_kind::untouched);
        const auto place_in_memory = [&](int lane, const task& one) {
            return files::file::aligned(scratch.data() + lane * most, place(one));
        };
        for (auto first = tasks_.begin(); first != tasks_.end();) {
            const int file = extent_of(first->extent).file;
            const auto past = std::find_if(first, tasks_.end(),
                                           [&](const task& one) { return extent_of(one.extent).file != file; });
            part_reader part(disk_, folder_, saved_, file);
            if (total >= direct_from) part.file().go_direct();
            const auto next = [&](int lane, std::size_t k) {
                const task& one = first[static_cast<std::ptrdiff_t>(k)];
                return transfer{&part.file(), false, place_in_memory(lane, one), one.run.bytes, place(one)};
            };
            carry_out(lanes, static_cast<std::size_t>(past - first), next, [&](int lane, std::size_t k, std::int64_t had) {
                const task& one = first[static_cast<std::ptrdiff_t>(k)];
                check_and_hand_out(part, extent_of(one.extent), wanted_.at(one.extent), one.run, place_in_memory(lane, one), had,
                                   [&](std::byte* there, std::int64_t bytes) { kept_.keep(there, bytes); });
            });
            first = past;
        }
    }

    const extent& extent_of(int number) const { return saved_.extents[static_cast<std::size_t>(number)]; }
    std::int64_t place(const task& one) const { return extent_of(one.extent).offset + one.run.first; }

    // A part of which nobody needs a byte may still be missing or another's: each is looked at by some rank.
    void check_others() {
        std::vector<char> seen(saved_.files.size(), 0);
        for (const auto& [number, items] : wanted_)
            seen[static_cast<std::size_t>(extent_of(number).file)] = 1;
        for (std::size_t file = static_cast<std::size_t>(ranks_.rank()); file < seen.size();
             file += static_cast<std::size_t>(ranks_.size()))
            if (seen[file] == 0) part_reader(disk_, folder_, saved_, static_cast<int>(file));
    }

    // Without stored values (weights alone) states start anew, as zeros.
    void take_over() {
        for_each_vector([&](const vector_state& vector, const vector_entry* from) {
            const std::int64_t bytes = vector.count * size_of(vector.type);
            if (from == nullptr && bytes > 0) std::memset(vector.data, 0, static_cast<std::size_t>(bytes));
        });
        kept_.forget();
    }

    // Null: vectors that begin anew. What a partial load leaves out is not visited.
    template <typename Visit>
    void for_each_vector(Visit visit) const {
        const catalogue tensors(saved_, ranks_.model_rank());
        const bool values = values_alone(state_.run, saved_.run, what_.how), partial = what_.how == taking::partial;
        for (const tensor_state& tensor : state_.tensors) {
            const tensor_entry* from = tensors.tensor(tensor.name);
            if (partial && !fits(tensor, from)) continue;
            for (const vector_state& vector : tensor.vectors) {
                const vector_entry* same = values && vector.state != "value" ? nullptr : find_vector(*from, vector.state);
                if (!partial || fits(vector, same)) visit(vector, same);
            }
        }
    }

    template <typename Visit>
    void for_each_attachment(Visit visit) const {
        if (what_.how == taking::weights) return;
        for (const attached_state& one : state_.attachments) {
            const attachment_entry* from =
                find_attachment(saved_, one.name, ranks_.model_rank(), ranks_.data_rank());
            if (what_.how != taking::partial || fits(one, from, saved_.head.ranks == ranks_.data_size()))
                visit(one, *from);
        }
    }

    bool something_fits() const {
        const catalogue tensors(saved_, ranks_.model_rank());
        return std::any_of(state_.tensors.begin(), state_.tensors.end(),
                           [&](const tensor_state& one) { return fits(one, tensors.tensor(one.name)); });
    }

    void tell_what_stays() {
        if (ranks_.data_rank() != 0) return;
        if (what_.how == taking::weights)
            said_.info("\"checkpoint.load\" is \"weights\": of {} (step {}, {}) only the values were taken; states, step and "
                       "schedule begin anew", folder_, saved_.run.step, saved_.run.optimizer);
        if (!left_out_.empty())
            said_.warning("\"checkpoint.load\" is \"partial\": {} was taken but for what does not fit, which stays as it is here: {}",
                          folder_, left_out_);
    }

    void report(const std::string& problem) {
        if (ranks_.rank() == 0) note(problem);
    }

    void note(const std::string& problem) {
        if (what_.tag.empty()) said_.warning("a checkpoint is skipped: {}", problem);
        problems_ += (problems_.empty() ? "" : "; ") + problem;
    }

    [[noreturn]] void fail_everywhere() {
        const std::string problems = ranks_.broadcast(problems_);
        fail(code::checkpoint, "no checkpoint was loaded from {}: {}", what_.directory, problems);
    }

    const contents& state_;
    crew& ranks_;
    const files::disk& disk_;
    ledger& book_;
    log& said_;
    const load_request& what_;
    std::vector<candidate> found_;  // on rank 0
    std::size_t next_ = 0;
    int listed_ = 1;
    std::string problems_, tag_, folder_, left_out_;
    manifest saved_;
    demand wanted_;
    std::vector<task> tasks_;
    undo kept_{book_};
};

}  // namespace

run_state load(const contents& state, crew& ranks, const files::disk& disk, ledger& book, log& said,
               const load_request& what) {
    return loading(state, ranks, disk, book, said, what).run();
}

}  // namespace zero::checkpoint
