// Whole values: gather and release, to and from buffers of the caller. See engine.hpp.
#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "core/error.hpp"
#include "engine/run.hpp"
#include "engine/turn.hpp"

namespace zero {

bool engine::gathers_meet() const noexcept {
    if (!committed()) return false;
    return settings_.sanity_checks || some_in_slices_;
}

const tensor& engine::checked(int id, const char* call) const {
    require_committed(call);
    return registry_.at(id);
}

const tensor& engine::checked_root(int id, int root, const char* call) const {
    const auto& t = checked(id, call);
    require(root >= -1 && root < ranks_->size(), code::argument, "{}: root {} is no rank; 0 to {} or ZERO_EVERYONE", call, root, ranks_->size() - 1);
    return t;
}

void engine::received(int id) { run_->received[static_cast<std::size_t>(id)] = 1; }

namespace {

using wish = stage::gathered::wish;

// Votes travel as maxima: the largest lacking, the smallest ahead. When a rank fails, what the others prepared goes again.
template <typename Prepare>
wish agree_on_copies(agreement& over, stage::gathered& copies, const call& what, const Prepare& prepare) {
    std::array<std::int64_t, 2> votes{0, 0};
    try {
        over.enter(what, [&] {
            const wish mine = prepare();
            votes = {mine.lacking ? 1 : 0, -mine.ahead};
        }, votes);
    } catch (...) {
        copies.give_up();
        throw;
    }
    return {votes[0] != 0, -votes[1]};
}

}  // namespace

void* engine::gather(int id) {
    void* whole[1] = {nullptr};
    const int ids[1] = {id};
    gather_list(ids, whole);
    return whole[0];
}

void engine::gather_list(std::span<const int> ids, void** values) {
    std::vector<int> apart;  // those that are not the very array
    const auto prepare = [&] {
        for (int id : ids) checked(id, "zero_gather");
        std::copy_if(ids.begin(), ids.end(), std::back_inserter(apart), [&](int id) { return stage_->gathers_apart(id); });
        return apart.empty() ? wish{false, 0} : stage_->copies().prepare(apart);
    };
    const bool together = gathers_meet();
    wish agreed;
    if (together) {
        agreed = agree_on_copies(*agreement_, stage_->copies(), calls::gather(digest(ids.data(), ids.size_bytes())), prepare);
    } else {
        prepare();
        if (work_ != nullptr) work_->after_caller();
    }
    const turn order(*this);
    if (together) {
        for (int id : apart) stage_->copies().begin(id, agreed);
        if (!apart.empty()) stage_->copies().look_ahead(apart, agreed);
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const int id = ids[i];
        received(id);
        if (stage_->gathers_apart(id)) {
            values[i] = stage_->copies().finish(id);
        } else {
            ++run_->holders[static_cast<std::size_t>(id)];
            values[i] = stage_->whole(id);
        }
    }
}

void engine::prefetch(int id) {
    if (!gathers_meet()) {
        checked(id, "zero_prefetch");
        return;  // whole values are there already
    }
    const wish agreed = agree_on_copies(*agreement_, stage_->copies(), calls::prefetch(digest_of({id})), [&] {
        checked(id, "zero_prefetch");
        return stage_->is_whole(id) ? wish{false, 0} : stage_->copies().prepare_ahead(id);
    });
    const turn order(*this);
    if (!stage_->is_whole(id)) stage_->copies().prefetch(id, agreed);
}

// A local call: its checks are its own, or with enable_sanity_checks everybody's.
void engine::check_alone_or_together(const call& what, const std::function<void()>& check) {
    if (committed() && settings_.sanity_checks) return agreement_->enter(what, check);
    if (work_ != nullptr) work_->after_caller();
    check();
}

void engine::release(int id) {
    const int ids[1] = {id};
    release_list(ids);
}

void engine::release_list(std::span<const int> ids) {
    check_alone_or_together(calls::release(digest(ids.data(), ids.size_bytes())), [&] {
        for (int id : ids) {  // all or nothing: each must have as many gathers as the list has releases
            const auto& t = checked(id, "zero_release");
            const auto wanted = std::count(ids.begin(), ids.end(), id);
            const int held = stage_->gathers_apart(id) ? stage_->copies().holders(id) : run_->holders[static_cast<std::size_t>(id)];
            require(held >= wanted, code::state, "'{}' is released but not gathered: every zero_release needs a zero_gather before it", t.name);
        }
    });
    for (int id : ids) {
        if (stage_->gathers_apart(id)) stage_->copies().release(id);
        else --run_->holders[static_cast<std::size_t>(id)];
    }
}

void engine::scatter(int id, int root, const void* values) {
    std::int64_t open = 0;
    buffer passage;
    agreement_->enter(calls::scatter(digest_of({id, root})), [&] {
        const auto& t = checked_root(id, root, "zero_scatter");
        const bool gives = root < 0 || root == ranks_->rank();
        require(!gives || values != nullptr || t.count == 0, code::argument, "zero_scatter of '{}': this rank gives the values, so they may not be NULL", t.name);
        if (gives) check_any(values, "zero_scatter: the values for", t.name);
        open = stage_->copies().any_open() ? 1 : 0;
        passage = stage_->moves().passage(id, "", root);
    }, {&open, 1});
    const turn order(*this);
    before_renewal(open != 0, [&] { stage_->moves().spread(id, root, values, passage); });
    stage_->values_changed(open != 0);
    if (root < 0 || root == ranks_->rank()) received(id);
}

void engine::gather_to(int id, int root, void* to) {
    buffer passage;
    agreement_->enter(calls::gather_to(digest_of({id, root})), [&] {
        const auto& t = checked_root(id, root, "zero_gather_to");
        const bool takes = root < 0 || root == ranks_->rank();
        require(!takes || to != nullptr || t.count == 0, code::argument, "zero_gather_to of '{}': this rank receives the values, so the buffer may not be NULL", t.name);
        if (takes) check_any(to, "zero_gather_to: the elements of the buffer for", t.name);
        if (!stage_->is_whole(id)) passage = stage_->moves().passage_up(id, "");
    });
    const turn order(*this);
    const bool takes = root < 0 || root == ranks_->rank();
    const void* whole = stage_->whole(id);
    if (whole == nullptr) stage_->moves().collect(id, "", root, to, passage);
    else if (takes && registry_.at(id).count > 0 && to != whole)
        work_->copy(to, whole, registry_.at(id).bytes());
    if (takes) received(id);
}

void engine::check_state(const tensor& t, const std::string& state, const char* call) const {
    const int bucket = layout_.where(t.id).bucket;
    const auto& memory = stage_->memory();
    const auto& names = memory.state_names();
    const bool known = state == "value" || state == "master" || state == "gradient" || std::find(names.begin(), names.end(), state) != names.end();
    require(known, code::argument, "{}: there is no state '{}'; known: value, master, gradient{}{}", call, state, names.empty() ? "" : ", ", fmt::join(names, ", "));
    require(state == "value" || memory.trainable(bucket), code::argument, "{}: '{}' is frozen and has no '{}'", call, t.name, state);
    require(state != "gradient" || run_->gradient_readable, code::state,
            "{}: there is no reduced gradient now; it exists from zero_finish (or zero_step) to the next micro-step", call);
}

void engine::gather_state(int id, const std::string& state, int root, void* to) {
    const std::string vector = state == "master" ? "value" : state;
    buffer passage;
    agreement_->enter(calls::gather_state(digest_of({id, root}, state)), [&] {
        const auto& t = checked_root(id, root, "zero_gather_state");
        check_state(t, state, "zero_gather_state");
        const bool takes = root < 0 || root == ranks_->rank();
        require(!takes || to != nullptr || t.count == 0, code::argument, "zero_gather_state of '{}': this rank receives, so the buffer may not be NULL", t.name);
        if (takes) check_any(to, "zero_gather_state: the elements of the buffer for", t.name);
        passage = stage_->moves().passage_up(id, vector);
    });
    const turn order(*this);
    stage_->moves().collect(id, vector, root, to, passage);
}

void engine::scatter_state(int id, const std::string& state, int root, const void* from) {
    std::int64_t open = 0;
    std::string vector;  // "": the values themselves
    buffer passage;
    agreement_->enter(calls::scatter_state(digest_of({id, root}, state)), [&] {
        const auto& t = checked_root(id, root, "zero_scatter_state");
        check_state(t, state, "zero_scatter_state");
        const bool gives = root < 0 || root == ranks_->rank();
        require(!gives || from != nullptr || t.count == 0, code::argument, "zero_scatter_state of '{}': this rank gives the values, so they may not be NULL", t.name);
        if (gives) check_any(from, "zero_scatter_state: the values for", t.name);
        open = stage_->copies().any_open() ? 1 : 0;
        vector = state != "value" && state != "master" ? state : stage_->memory().has_master(layout_.where(id).bucket) ? "master" : "";
        passage = stage_->moves().passage(id, vector, root);
    }, {&open, 1});
    const turn order(*this);
    const bool values = vector.empty() || vector == "master";
    before_renewal(values && open != 0, [&] {
        if (vector.empty()) return stage_->moves().spread(id, root, from, passage);
        stage_->moves().spread_vector(id, vector, root, from, passage);
        if (vector != "master") return;
        const int bucket = layout_.where(id).bucket;
        stage_->moves().round_masters(bucket);
        stage_->moves().publish(bucket);
    });
    if (vector == "gradient") run_->written.insert(vector);
    if (!values) return;
    stage_->values_changed(open != 0);
}

}  // namespace zero
