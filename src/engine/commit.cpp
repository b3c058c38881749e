// Commit: ranks compare what they registered, the flat space is cut, memory is taken, initial values spread.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/postponed.hpp"
#include "device/available.hpp"
#include "device/pages.hpp"
#include "engine/run.hpp"
#include "engine/turn.hpp"
#include "offload/device_update.hpp"
#include "offload/host_update.hpp"

namespace zero {

partition::layout engine::make_layout(const config::settings& how) const {
    std::vector<partition::item> items;
    for (const auto& t : registry_.all())
        items.push_back({t.count, t.type, t.group, t.library_owned, !config::resolve_group(options_, t.group).frozen});
    return {items, stage::layout_rules(how, ranks_->nodes())};
}

namespace {

std::int64_t largest_slice_bytes(const partition::layout& space) {
    std::int64_t most = 0;
    for (const auto& b : space.buckets())
        if (b.trainable) most = std::max(most, b.slice * size_of(sum_type(b.type)));
    return most;
}

}  // namespace

partition::forecast engine::make_forecast(const partition::layout& space, const config::settings& how) const {
    partition::plan_rules rules;
    rules.stage = how.stage;
    rules.optimizer_states = static_cast<int>(stage::optimizer_states(how).size());
    rules.user_states = static_cast<int>(user_states_.size());
    rules.ring = stage::ring_size;
    rules.running_sums = stage::keeps_running_sums(how);
    const std::int64_t on_host = ranks_->scratch_bytes(largest_slice_bytes(space));
    rules.exchange_bytes = device_ < 0 ? on_host : ranks_->device_scratch_bytes(largest_slice_bytes(space));
    if (device_ >= 0) {
        const auto passing = stage::passing_parts(space, how);
        rules.states_offloaded = how.offload_optimizer ? how.offload_ratio : 0;
        rules.slices_offloaded = how.offload_param;
        rules.offload_bytes = offload::device_bytes(passing.states) + offload::lane_bytes(passing.values, how.sub_group_size);
        rules.host_bytes = on_host + offload::staging_bytes(passing.states, how.sub_group_size) + offload::lane_bytes_on_host(passing.values);
    }
    rules.publish_bytes = stage::publish_bytes(space, how.allgather_bucket_size);
    rules.node_memory = ranks_->shared() != nullptr;
    // What is saved from a device passes through host memory, and behind the caller's back through a copy of that.
    rules.copies_of_save = (options_.boolean("checkpoint.async") ? 1 : 0) + (device_ < 0 ? 0 : 1);
    for (const attachment& one : attachments_)
        if (one.per_rank || ranks_->rank() == 0) rules.attached_bytes += one.count * size_of(one.type) + page_bytes();
    return partition::plan(space, rules);
}

std::pair<std::int64_t, std::int64_t> engine::forecast(place where) const {
    require(!committed(), code::state, "zero_forecast comes before zero_commit; afterwards zero_memory tells what is taken");
    const auto how = resolved();
    const auto all = make_forecast(make_layout(how), how);
    const auto more = all.at(where, device_ < 0 ? place::host : place::device);
    return {ledger_.bytes(where) + more.bytes, std::max(ledger_.peak(where), ledger_.bytes(where) + more.peak)};
}

void engine::commit() {
    config::settings how;
    agreement_->enter(calls::commit(0), [&] {
        require(!committed(), code::state, "zero_commit was called already");
        how = resolved();
        require(device_ < 0 || !how.reproducible, code::unsupported,
                "libzero.reproducible adds in host memory only: set libzero.device to \"host\", or leave the sums in the order of the ranks");
        require(!how.reproducible || ranks_->shared() == nullptr || ranks_->nodes().nodes == 1, code::state,
                "libzero.reproducible was set after zero_init on several nodes: give it in the configuration or in the environment");
    });
    compare_options(calls::commit(4));
    compare_tensors();
    for (const auto& line : options_.doubts()) log_->once(log_level::warning, line);
    for (const auto& line : options_.notices()) log_->once(log_level::info, line);
    for (const auto& line : how.notices) log_->once(log_level::info, line);
    if (!why_plain_.empty()) log_->once(log_level::info, "libzero.node_shared: the ranks talk by plain MPI: " + why_plain_);
    if (!why_staged_.empty()) log_->once(log_level::warning, "libzero.device: gradients and values travel through host memory: " + why_staged_);

    settings_ = how;
    layout_ = make_layout(settings_);
    const int threads = threads_to_use(settings_.threads);
    threads_ = std::make_unique<crew>(threads, cores_to_stay_on(settings_.bind, threads));
    ranks_->employ(threads_.get());
    if (device_ < 0) work_ = compute::make_host(*threads_);
    agreement_->settle(calls::commit(5), [&] {
        expect_memory();
        start_overlap();
    });
    context_ = std::make_unique<stage::context>(stage::context{registry_, layout_, *ranks_, ledger_, *agreement_, *log_, settings_, *threads_,
                                                                *work_});
    auto fresh = stage::make(*context_);
    buffer passage;
    agreement_->settle(calls::commit(1), [&] {
        fresh->take_values();
        passage = fresh->moves().passage_for_all(settings_.broadcast_initial ? 0 : -1);
    });
    stage_ = std::move(fresh);  // from here on a failure must take it back
    try {
        const turn order(*this);
        const postponed spreading = attempt([&] { spread_initial_values(passage); });
        passage = buffer();
        agreement_->settle(calls::commit(2), [&] {
            spreading.rethrow();
            stage_->take_rest(stage::optimizer_states(settings_), user_states_);
            ranks_->reserve(ledger_, largest_slice_bytes(layout_));
            for (int b = 0; b < context_->buckets(); ++b) stage_->moves().refresh_masters(b, {0, context_->bucket(b).padded});
        });
    } catch (...) {
        stage_.reset();
        throw;
    }
    some_in_slices_ = false;
    for (const auto& b : layout_.buckets()) some_in_slices_ |= !b.whole_values && !context_->exists_once(b);
    refresh_groups();
    run_->scale = optimizer::loss_scale(settings_.loss_scaling);
    run_->received.assign(static_cast<std::size_t>(registry_.count()), 0);
    run_->holders.assign(static_cast<std::size_t>(registry_.count()), 0);
    if (ranks_->rank() != 0) return;
    log_->info("stage {}, {} ranks on {} nodes{}, {} threads each; {} elements in {} tensors; {} bytes of host memory and {} of device memory "
               "on this rank", settings_.stage, ranks_->size(), ranks_->nodes().nodes,
               stage_->memory().values_of_node() != nullptr ? " that share memory" : "", threads_->members(), layout_.elements(),
               registry_.count(), ledger_.bytes(place::host), ledger_.bytes(place::device));
}

// Ranks that share memory ask together, before any of them takes some: one after the other, all would be promised the same bytes,
// and the kernel would kill the one that touches the last of them.
void engine::expect_memory() const {
    const int together = ranks_->shared() != nullptr ? ranks_->nodes().per_node() : 1;
    const std::int64_t each = make_forecast(layout_, settings_).at(place::host, device_ < 0 ? place::host : place::device).bytes;
    const std::string lacking = each > INT64_MAX / together ? "more than the address space" : shortage(each * together);
    require(lacking.empty(), code::memory,
            "{} bytes of host memory on each of {} ranks of this node could not be had ({}): use more nodes, a higher stage or smaller buckets",
            each, together, lacking);
}

// A helper takes a core: by itself only where one is idle. Without it, operations move on in the caller's calls.
void engine::start_overlap() {
    const int on_node = ranks_->size() / std::max(1, ranks_->nodes().nodes);
    const bool wanted = settings_.overlap_comm && settings_.overlap_thread != "off" && ranks_->size() > 1;
    if (!wanted || (settings_.overlap_thread == "auto" && !core_to_spare(threads_->members(), on_node))) return;
    if (ranks_->start_helper()) return;
    require(settings_.overlap_thread != "on", code::unsupported, "libzero.overlap_thread is \"on\", but no thread beside the caller may call MPI: "
            "initialise it by MPI_Init_thread with MPI_THREAD_MULTIPLE, or set the option to \"auto\"");
    log_->once(log_level::info, "libzero.overlap_thread: no thread beside the caller may call MPI (MPI_THREAD_MULTIPLE): communication "
               "moves on in the library's calls only");
}

namespace {

// What rank 0 says, where the ranks do not all say the same. Collective.
std::optional<std::string> rank_0_unless_all_agree(comm::communicator& ranks, const std::string& mine) {
    const std::uint64_t whole = digest(mine);
    const std::int64_t half[2] = {static_cast<std::int64_t>(whole >> 33), static_cast<std::int64_t>(whole & 0x1ffffffff)};
    std::vector<std::int64_t> bounds{half[0], -half[0], half[1], -half[1]};
    ranks.all_reduce(bounds, comm::combine::maximum);
    if (bounds[0] == -bounds[1] && bounds[2] == -bounds[3]) return std::nullopt;
    return ranks.broadcast(mine, 0);
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> all;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        all.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return all;
}

}  // namespace

// Here and below a difference is said with the first entry that differs, not as a digest.
void engine::compare_options(const call& what) {
    const std::string mine = options_.as_lines();
    const auto theirs = rank_0_unless_all_agree(*ranks_, mine);
    if (!theirs) return;
    agreement_->settle(what, [&] {
        if (mine == *theirs) return;
        const auto a = lines_of(mine), b = lines_of(*theirs);  // both in the order of their keys
        const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
        const auto key = [](const auto& at, const auto& end) { return at == end ? std::string("~") : at->substr(0, at->find(' ')); };
        const std::string here = key(x, a.end()), there = key(y, b.end());  // "~" comes after every key
        fail(code::mismatch, "the options differ between ranks: {} here and {} on rank 0; give all ranks the same configuration, environment "
             "and zero_set_* calls", there < here ? there + " is not set" : *x, here < there ? here + " is not set" : *y);
    });
}

void engine::compare_tensors() {
    const auto line = [](const tensor& t) {
        return formatted("'{}' {} {} group {}", t.name, name(t.type), shape_text(t.dims), t.group);
    };
    std::string mine;
    for (const auto& t : registry_.all()) mine += line(t) + "\n";
    for (const auto& s : user_states_) mine += "state '" + s + "'\n";
    const auto theirs = rank_0_unless_all_agree(*ranks_, mine);
    if (!theirs) return;
    agreement_->settle(calls::commit(3), [&] {
        if (mine == *theirs) return;
        const auto a = lines_of(mine), b = lines_of(*theirs);
        std::size_t i = 0;
        while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
        fail(code::mismatch, "entry {} of the registered parameters is {} here and {} on rank 0: register the same names, types, shapes and groups "
             "in the same order on all ranks", i, i < a.size() ? a[i] : "missing", i < b.size() ? b[i] : "missing");
    });
}

void engine::spread_initial_values(const buffer& passage) {
    const int root = settings_.broadcast_initial ? 0 : -1;
    postponed each;
    for (int b = 0; b < context_->buckets(); ++b) {
        const auto& bucket = context_->bucket(b);
        if (bucket.library_owned) continue;  // zeros everywhere
        if (bucket.whole_values) {
            each.attempt([&] { stage_->moves().spread_bucket(b, root, passage); });
            continue;
        }
        for (int id : bucket.tensors) each.attempt([&] { stage_->moves().spread(id, root, registry_.at(id).values, passage); });
    }
    each.rethrow();
}

}  // namespace zero
