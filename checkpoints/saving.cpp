// The order of a save: everything before the rename leaves nothing behind when it fails, on any rank.
#include "saving.hpp"

#include <algorithm>

#include "core/agreement.hpp"
#include "crc32c.hpp"
#include "directory.hpp"
#include "frame.hpp"
#include "message.hpp"

namespace zero::checkpoint {
namespace {

std::string names_of(const save_request& what) {
    return what.directory + '\0' + what.tag + '\0';
}

}  // namespace

saving::saving(contents state, crew& ranks, const files::disk& disk, ledger& book, log& said, const save_request& what)
    : state_(std::move(state)), ranks_(ranks), disk_(disk), book_(book), said_(said), what_(what) {}

saving::~saving() {
    given_up_.store(true);
}

void saving::phase(const char* doing, const std::function<void()>& local) {
    settle_phase(ranks_, formatted("checkpoint \"{}\" was not saved in {}", what_.tag, what_.directory), doing,
                 digest(named_ + doing), local);  // another folder, tag or phase on another rank is a mismatch
}

std::vector<std::string> saving::gather_all(const std::string& mine) {
    packer all;
    for (const std::string& one : ranks_.gather(mine)) all.put(one);
    const std::string text = ranks_.broadcast(all.take());
    unpacker from(text);
    std::vector<std::string> result;
    while (!from.done()) result.push_back(from.text());
    return result;
}

// From rank 0; agreements compare folders over the data ranks alone, this over all.
std::string saving::same_everywhere(const std::string& uuid) {
    const std::string told = ranks_.broadcast(packer().put(what_.directory).put(what_.tag).put(uuid).take());
    unpacker from(told);
    const std::string directory = from.text(), tag = from.text();
    phase("comparing the arguments", [&] {
        require(directory == what_.directory && tag == what_.tag, code::mismatch, "rank 0 saves \"{}\" in {}", tag,
                directory);
    });
    return from.text();
}

std::string saving::staged(const std::string& name) const {
    return files::join(staging_path(what_.directory, uuid_), name);
}

bool saving::leads() const {
    const std::size_t rank = static_cast<std::size_t>(ranks_.rank());
    return rank == 0 || plan_.file_of_rank[rank - 1] != plan_.file_of_rank[rank];
}

void saving::open_staging() {
    disk_.make_directories(what_.directory);
    const std::string final = files::join(what_.directory, what_.tag);
    if (disk_.look(final).exists)
        fail(code::checkpoint, "{} exists already and is never overwritten: give another tag or remove it", final);
    uuid_ = new_uuid();
    make_staging(disk_, what_.directory, uuid_);
    staging_made_ = true;
}

void saving::begin() {
    if (what_.tag.empty()) what_.tag = default_tag(state_.run.step);
    named_ = names_of(what_);
    phase("checking the arguments", [&] {
        require(!what_.directory.empty(), code::argument, "the directory has no name");
        check_tag(what_.tag);
    });
    phase("making the staging folder", [&] {
        if (ranks_.rank() == 0) open_staging();
    });
    uuid_ = same_everywhere(uuid_);
    std::string packed;
    phase("listing what this rank owns", [&] { packed = pack(mine_ = contribution_of(state_, ranks_)); });
    const std::vector<std::string> told = gather_all(packed);
    phase("planning", [&] {
        std::vector<contribution> all;
        for (const std::string& one : told) all.push_back(unpack(one));
        plan_ = make_plan(all, ranks_.data_size(), what_.ranks_per_file, uuid_);
    });
    part_layout layout;
    phase("making the parts", [&] {
        if (leads()) make_part(layout);
    });
    packer made;
    made.put(scalar_values()).put(layout.bytes).put(layout.identity).put(layout.integrity);
    for (const std::int64_t offset : layout.offsets) made.put(offset);
    const std::vector<std::string> layouts = gather_all(made.take());
    phase("checking the plan", [&] { take_layouts(layouts); });
}

void saving::make_part(part_layout& layout) {
    const std::vector<part_dataset> datasets = datasets_of(plan_, file_number());
    layout = lay_out_part(datasets, uuid_, identity_text(plan_.skeleton, file_number()), part().blocks);
    files::file made = disk_.create(staged(part().name));
    made.reserve(layout.bytes);
    for (const part_layout::run& run : layout.own)
        made.write(run.bytes.data(), static_cast<std::int64_t>(run.bytes.size()), run.offset);
    // HDF5 takes a file that is shorter than it says for truncated.
    if (made.bytes() < layout.bytes) made.write("", 1, layout.bytes - 1);
    made.close();
    layout.own.clear();
}

void saving::take_layouts(const std::vector<std::string>& layouts) {
    manifest& all = plan_.skeleton;
    for (std::size_t rank = 0; rank < layouts.size(); ++rank) {
        unpacker from(layouts[rank]);
        take_scalars(from.text());
        if (rank > 0 && plan_.file_of_rank[rank] == plan_.file_of_rank[rank - 1]) continue;
        const int number = plan_.file_of_rank[rank];
        file_entry& file = all.files[static_cast<std::size_t>(number)];
        file.bytes = from.integer();
        file.identity = from.integer();
        file.integrity = from.integer();
        std::map<std::string, std::int64_t> offsets;
        for (const part_dataset& dataset : datasets_of(plan_, number)) offsets[dataset.path] = from.integer();
        for (extent& part : all.extents)
            if (part.file == number) part.offset = offsets.at(part.dataset) + part.first * size_of(part.type);
    }
    all.run = state_.run;
    all.head.tag = what_.tag;
    all.head.step = state_.run.step;
    all.head.stage = state_.run.stage;
    try {
        check(all, "the plan");
    } catch (const damage& problem) {  // our own fault then, not the disk's
        fail(code::internal, "{}", problem.what());
    }
}

void saving::finish() {
    std::string result;
    phase("summing the frame", [&] { result = packer().put(leads() ? std::int64_t{frame_sum()} : 0).take(); });
    const std::vector<std::string> results = ranks_.gather(result);
    phase("writing the manifest", [&] {
        if (ranks_.rank() != 0) return;
        take_sums(results);
        write_manifest();
    });
    phase("committing", [&] {
        if (ranks_.rank() == 0) commit();
    });
    if (ranks_.rank() == 0) tidy();
}

std::string saving::scalar_values() const {
    packer to;
    std::size_t number = static_cast<std::size_t>(plan_.first_extent_of_rank[static_cast<std::size_t>(ranks_.rank())]);
    for (const stream& run : mine_.streams) {
        std::int64_t offset = 0;
        for (const stream_piece& part : run.pieces) {
            if (part.tensor >= 0 && state_.tensors[static_cast<std::size_t>(part.tensor)].dims.empty())
                to.put(static_cast<std::int64_t>(number))
                    .put(offset)
                    .put(std::string_view(static_cast<const char*>(part.data),
                                          static_cast<std::size_t>(size_of(run.type))));
            offset += part.count;
        }
        ++number;
    }
    return to.take();
}

void saving::take_scalars(const std::string& values) {
    for (unpacker value(values); !value.done();) {
        const int number = static_cast<int>(value.integer());
        const std::int64_t offset = value.integer();
        scalars_[{number, offset}] = value.text();
    }
}

void saving::take_sums(const std::vector<std::string>& results) {
    for (std::size_t rank = 0; rank < results.size(); ++rank) {
        const std::int64_t sum = unpacker(results[rank]).integer();
        const bool leader = rank == 0 || plan_.file_of_rank[rank - 1] != plan_.file_of_rank[rank];
        if (leader)
            plan_.skeleton.files[static_cast<std::size_t>(plan_.file_of_rank[rank])].frame =
                static_cast<std::uint32_t>(sum);
    }
}

void saving::write_index() {
    manifest& all = plan_.skeleton;
    all.head.time = time_text();
    const index_file index = build_index(all, scalars_);
    files::file to = disk_.create(staged(index_name));
    for (const index_file::run& run : index.runs)
        to.write(run.bytes.data(), static_cast<std::int64_t>(run.bytes.size()), run.offset);
    if (to.bytes() < index.bytes) to.write("", 1, index.bytes - 1);
    to.sync();
    const std::string path = to.path();
    to.close();
    const std::string written = disk_.read_text(path, index.bytes);
    all.index_bytes = static_cast<std::int64_t>(written.size());
    require(all.index_bytes == index.bytes, code::io, "{} has {} bytes where {} were written", path, all.index_bytes,
            index.bytes);
    all.index_sum = crc32c::of(written);
}

void saving::write_manifest() {
    plan_.skeleton.head.sequence = highest_sequence(disk_, what_.directory) + 1;
    disk_.write_text(staged(manifest_name), to_text(plan_.skeleton));  // nobody reads what is staged: the commit is the rename
    disk_.sync_directory(staging_path(what_.directory, uuid_));
}

void saving::commit() {
    const std::string final = files::join(what_.directory, what_.tag);
    try {
        disk_.rename_exclusive(staging_path(what_.directory, uuid_), final);
    } catch (const files::failure& problem) {
        if (problem.number() != EEXIST && problem.number() != ENOTEMPTY) throw;
        fail(code::checkpoint, "{} has appeared while it was being saved: another job writes there", final);
    }
    try {
        disk_.sync_directory(what_.directory);
    } catch (const error&) {
        // Nobody may trust what is perhaps not on disk: it becomes a staging folder again, which is then removed.
        disk_.rename(final, staging_path(what_.directory, uuid_));
        throw;
    }
    staging_made_ = false;
}

// After the commit nothing may fail any more; what goes wrong is said, and the rest is done all the same.
void saving::tidy() noexcept {
    const auto attempt = [&](const std::function<void()>& step) {
        try {
            step();
        } catch (const std::exception& problem) {
            said_.warning("checkpoint \"{}\" is saved, but tidying up in {} failed: {}", what_.tag, what_.directory,
                          problem.what());
        }
    };
    attempt([&] {
        // By a temporary name of our own, which our owner's file protects: other jobs may be here too.
        const std::string temporary = staging_path(what_.directory, uuid_);
        disk_.write_text(temporary, what_.tag + "\n");
        disk_.rename(temporary, files::join(what_.directory, latest_name));
    });
    attempt([&] { remove_staging(disk_, what_.directory, uuid_); });
    attempt([&] { retain(disk_, what_.directory, what_.tag, what_.keep_last, what_.keep_every); });
    attempt([&] {
        const std::string final = files::join(what_.directory, what_.tag);
        remove_stale(disk_, what_.directory, disk_.look(files::join(final, manifest_name)).modified);
    });
}

void saving::abandon() noexcept {
    given_up_.store(true);
    behind_.join();
    if (ranks_.rank() != 0 || !staging_made_) return;
    try {
        remove_staging(disk_, what_.directory, uuid_);
    } catch (const std::exception& problem) {
        said_.warning("a failed save left {}: {}", staging_path(what_.directory, uuid_), problem.what());
    }
}

void save(contents state, crew& ranks, const files::disk& disk, ledger& book, log& said, const save_request& what) {
    saving work(std::move(state), ranks, disk, book, said, what);
    try {
        work.begin();
        work.write();
        work.finish();
    } catch (...) {
        work.abandon();
        throw;
    }
}

}  // namespace zero::checkpoint
