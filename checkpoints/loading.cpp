// The order of a load. Damage in the newest checkpoint sends a load without a tag to the next older one.
#include "loading.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "core/agreement.hpp"
#include "crc32c.hpp"
#include "device/memory.hpp"
#include "directory.hpp"
#include "message.hpp"
#include "reshard.hpp"
#include "threads.hpp"

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
            const std::string problem = attempt();
            if (problem.empty()) {
                phase("taking over", [&] { take_over(); });
                return saved_.run;
            }
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
            const std::string unlike = differences(state_, saved_, ranks_, what_.weights_only);
            require(unlike.empty(), code::checkpoint, "{} does not fit this context: {}", folder_, unlike);
        });
        return true;
    }

    std::string next_manifest() {
        while (next_ < found_.size()) {
            const candidate& one = found_[next_++];
            const std::string path = files::join(files::join(what_.directory, one.tag), manifest_name);
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

    std::string read_manifest(const std::string& path) const {
        require(disk_.look(path).exists, code::checkpoint, "there is no complete checkpoint \"{}\": {} is missing",
                what_.tag, path);
        return disk_.read_text(path, most_manifest_bytes);
    }

    // Reads into buffers. What is damaged, on any rank, is returned on all; other errors are thrown on all.
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

    void read() {
        demand all;
        std::int64_t bytes = 0;
        for_each_vector([&](const vector_state& vector, const vector_entry*) {
            bytes += room(vector.count * size_of(vector.type));
        });
        for_each_attachment(
            [&](const attached_state& one, const attachment_entry&) { bytes += room(one.count * size_of(one.type)); });
        held_ = buffer();  // that of a checkpoint which turned out damaged
        held_ = buffer(book_, purpose::checkpoint, bytes, memory_kind::untouched);
        std::byte* to = held_.data();
        for_each_vector([&](const vector_state& vector, const vector_entry* from) {
            if (from != nullptr) add_range(all, *from, vector.first, vector.count, vector.type, to);
            to += room(vector.count * size_of(vector.type));
        });
        for_each_attachment([&](const attached_state& one, const attachment_entry& from) {
            if (from.extent >= 0) all[from.extent].push_back({0, one.count, one.type, to});
            to += room(one.count * size_of(one.type));
        });
        sort(all);
        read_all(all);
    }

    // What one request reads of which extent.
    struct task {
        int extent;
        read_run run;
    };

    void read_all(const demand& all) {
        std::map<int, std::vector<task>> files;
        std::int64_t total = 0, largest = 0;
        for (const auto& [number, items] : all) {
            const extent& where = extent_of(number);
            for (const read_run& run : runs_of(where, items, request_bytes)) {
                files[where.file].push_back({number, run});
                total += run.bytes;
                largest = std::max(largest, run.bytes);
            }
        }
        const int lanes = lanes_for(total);
        const std::int64_t room = largest + files::file::direct_unit;
        const buffer scratch(book_, purpose::checkpoint, total == 0 ? 0 : lanes * room);
        for (auto& [file, tasks] : files) {
            std::sort(tasks.begin(), tasks.end(), [&](const task& a, const task& b) { return place(a) < place(b); });
            part_reader part(disk_, folder_, saved_, file);
            if (total >= direct_from) part.go_direct();
            in_turn(lanes, tasks.size(), [&](int lane, std::size_t k) {
                const task& one = tasks[k];
                checkpoint::read(part, extent_of(one.extent), all.at(one.extent), one.run,
                                 scratch.data() + lane * room);
            });
        }
        check_others(all);
    }

    const extent& extent_of(int number) const { return saved_.extents[static_cast<std::size_t>(number)]; }
    std::int64_t place(const task& one) const { return extent_of(one.extent).offset + one.run.first; }

    // A part of which nobody needs a byte may still be missing or another's: each is looked at by some rank.
    void check_others(const demand& all) {
        std::vector<char> seen(saved_.files.size(), 0);
        for (const auto& [number, items] : all)
            seen[static_cast<std::size_t>(extent_of(number).file)] = 1;
        for (std::size_t file = static_cast<std::size_t>(ranks_.rank()); file < seen.size();
             file += static_cast<std::size_t>(ranks_.size()))
            if (seen[file] == 0) part_reader(disk_, folder_, saved_, static_cast<int>(file));
    }

    void take_over() {
        const std::byte* from = held_.data();
        for_each_vector([&](const vector_state& vector, const vector_entry*) {
            const std::int64_t bytes = vector.count * size_of(vector.type);
            // Without stored values (weights alone) the buffer holds zeros: states start anew.
            if (bytes > 0) std::memcpy(vector.data, from, static_cast<std::size_t>(bytes));
            from += room(bytes);
        });
        for_each_attachment([&](const attached_state& one, const attachment_entry&) {
            const std::int64_t bytes = one.count * size_of(one.type);
            if (bytes > 0) std::memcpy(one.data, from, static_cast<std::size_t>(bytes));
            from += room(bytes);
        });
        held_ = buffer();
    }

    template <typename Visit>
    void for_each_vector(Visit visit) const {
        const catalogue tensors(saved_, ranks_.model_rank());
        for (const tensor_state& tensor : state_.tensors) {
            const tensor_entry& from = *tensors.tensor(tensor.name);
            for (const vector_state& vector : tensor.vectors)
                visit(vector,
                      what_.weights_only && vector.state != "value" ? nullptr : find_vector(from, vector.state));
        }
    }

    template <typename Visit>
    void for_each_attachment(Visit visit) const {
        if (what_.weights_only) return;
        for (const attached_state& one : state_.attachments)
            visit(one, *find_attachment(saved_, one.name, ranks_.model_rank(), ranks_.data_rank()));
    }

    static std::int64_t room(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

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
    std::string problems_, tag_, folder_;
    manifest saved_;
    buffer held_;
};

}  // namespace

run_state load(const contents& state, crew& ranks, const files::disk& disk, ledger& book, log& said,
               const load_request& what) {
    return loading(state, ranks, disk, book, said, what).run();
}

}  // namespace zero::checkpoint
