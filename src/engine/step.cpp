// The life of a step: hand-over, finish, update, publish. Decisions that change control flow are taken on agreed data.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "core/postponed.hpp"
#include "engine/run.hpp"
#include "engine/turn.hpp"
#include "optimizer/optimizer.hpp"
#include "tensor/vector.hpp"

namespace zero {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

// --- hand-over ---

// The mean is one division: by ranks, micro-steps and the loss scale the gradients were produced with.
double engine::divisor(std::int64_t micro_steps) const {
    const double scale = run_->scale.value();
    return settings_.gradient_sum ? scale : scale * static_cast<double>(micro_steps) * ranks_->size();
}

bool engine::trains(const partition::bucket& b) const {
    return b.trainable && !run_->groups[static_cast<std::size_t>(b.group)].frozen;
}

bool engine::frozen(int id) const { return !trains(context_->bucket(layout_.where(id).bucket)); }

std::vector<char> engine::active_buckets() const {
    std::vector<char> active;
    for (const auto& b : layout_.buckets()) active.push_back(trains(b));
    return active;
}

namespace {

std::int64_t digest_of_buckets(const std::vector<char>& active) {
    return static_cast<std::int64_t>(digest(active.data(), active.size()) >> 1);
}

}  // namespace

// Which buckets travel in the open window, or would in one opened now.
std::int64_t engine::window_digest() const {
    if (!committed()) return 0;
    if (run_->now != run::phase::idle) return run_->window_digest;
    return digest_of_buckets(active_buckets());
}

void engine::open_window() {
    if (run_->now == run::phase::open) return;
    auto active = active_buckets();
    run_->window_digest = digest_of_buckets(active);
    std::vector<char> counted;
    for (const auto& b : layout_.buckets()) {
        const auto& group = run_->groups[static_cast<std::size_t>(b.group)];
        counted.push_back(!group.model_replicated || model_ == nullptr || model_->rank() == 0);
    }
    stage_->gradients().begin_window(std::move(active), std::move(counted), settings_.accumulation_steps, divisor(settings_.accumulation_steps));
    run_->now = run::phase::open;
    run_->micro_step = 0;
    run_->gradient_readable = false;
    run_->written.clear();
}

void* engine::gradient(int id) {
    const auto& t = checked(id, "zero_gradient");
    require(!frozen(id), code::state, "'{}' is frozen: there is no buffer for its gradient", t.name);
    const turn order(*this, turn::begins::here);
    open_window();
    run_->micro_step_ended = false;
    return stage_->gradients().buffer_for(id);
}

void engine::reduce(int id, double factor, const void* gradient) {
    const int ids[1] = {id};
    const void* gradients[1] = {gradient};
    reduce_scaled_list(ids, factor, gradients);
}

void engine::reduce_list(std::span<const int> ids, const void* const* gradients) { reduce_scaled_list(ids, 1, gradients); }

void engine::reduce_scaled_list(std::span<const int> ids, double factor, const void* const* gradients) {
    require(std::isfinite(factor), code::argument, "zero_reduce_scaled: the factor must be finite");
    for (std::size_t i = 0; i < ids.size(); ++i) {  // all or nothing: checked before the first is added
        const auto& t = checked(ids[i], "zero_reduce");
        const bool built = run_->now == run::phase::open && stage_->gradients().has_pending(ids[i]);
        require(gradients[i] != nullptr || built || t.count == 0 || factor == 0, code::argument,
                "zero_reduce of '{}': the gradient is NULL and no buffer of zero_gradient is being filled for it", t.name);
        check_reachable(gradients[i], "zero_reduce: the gradient of", t.name);
    }
    const turn order(*this, turn::begins::here);
    open_window();
    run_->micro_step_ended = false;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (frozen(ids[i])) continue;  // accepted and dropped
        stage_->gradients().add(ids[i], factor, gradients[i]);
    }
}

// --- checks before anything changes ---

// Slices that were never fetched since the last update: the gradient cannot belong to the present values.
void engine::check_stale() const {
    if (!settings_.stale_check || settings_.stage != 3 || run_->now != run::phase::open) return;
    for (const auto& t : registry_.all()) {
        if (stage_->is_whole(t.id) || t.count == 0 || run_->received[static_cast<std::size_t>(t.id)]) continue;
        require(!stage_->gradients().handed_in_window(t.id), code::state,
                "'{}' received a gradient but its values were not fetched since the last update, so the gradient was computed from old values: "
                "call zero_gather or zero_gather_to (root ZERO_EVERYONE) before computing, or set libzero.stale_check to false", t.name);
    }
}

// zero_optimization.ignore_unused_parameters = false: a trainable tensor that no rank handed over is an error.
void engine::check_unused() {
    if (settings_.ignore_unused_parameters) return;
    std::vector<std::int64_t> used;
    for (const auto& t : registry_.all()) {
        const bool idle = frozen(t.id) || t.count == 0;
        used.push_back(idle || (run_->now == run::phase::open && stage_->gradients().handed_in_window(t.id)) ? 1 : 0);
    }
    ranks_->all_reduce(used, comm::combine::maximum);
    agreement_->settle(calls::finish(1), [&] {  // the other groups of a split model have other tensors
        for (const auto& t : registry_.all())
            require(used[static_cast<std::size_t>(t.id)] != 0, code::state,
                    "'{}' got no gradient from any rank in this window: hand one over, freeze its group, or set "
                    "zero_optimization.ignore_unused_parameters to true", t.name);
    });
}

call engine::with_phase(call what) const {
    const auto finished = static_cast<std::int64_t>(run_->now == run::phase::finished) + 2 * static_cast<std::int64_t>(run_->micro_step_ended);
    what.digest = digest_of({finished, static_cast<std::int64_t>(run_->options_digest), window_digest()});
    return what;
}

// --- finish ---

struct engine::ballot {
    std::int64_t late = 0, copies_open = 0, written = 0, behind = 0, moved = 0, squared = 0;
    std::span<std::int64_t> votes() { return {&late, 6}; }
};

// Ends a micro-step; true at the end of the window, when the owned slices are complete. `numbers`: of the update that follows, which
// may be made in part, or null.
bool engine::finish_micro_step(bool late_anywhere, stage::update_numbers* numbers) {
    const auto start = std::chrono::steady_clock::now();
    open_window();
    const bool boundary = run_->micro_step + 1 >= settings_.accumulation_steps || settings_.end_window;
    if (boundary) check_unused();
    const postponed sums = attempt([&] {
        if (boundary && numbers != nullptr && !late_anywhere) numbers->applied = stage_->sum_and_update(divisor(run_->micro_step + 1), *numbers);
        else stage_->gradients().finish(boundary, divisor(run_->micro_step + 1), late_anywhere);
    });
    if (!boundary) sums.rethrow();
    if (boundary) agree_on_norm(stage_->gradients().norm(), sums.failure());  // throws where anything failed: not counted then
    ++run_->micro_step;
    if (boundary) {
        run_->now = run::phase::finished;
        run_->gradient_readable = true;
        if (settings_.end_window) set("libzero.end_window", std::int64_t{0});
    }
    run_->seconds_reducing += seconds_since(start);
    return boundary;
}

// Exact sum over all ranks, and over the model's ranks; `finite` becomes the agreement of all. `failed`: what went wrong
// on this rank on the way here; all ranks throw it.
double engine::sum_over_ranks(exact_sum mine, bool& finite, std::exception_ptr failed) {
    if (ranks_->size() == 1 && model_ == nullptr && !failed) return finite ? mine.value() : HUGE_VAL;
    if (!finite) mine.clear();
    mine.normalize();
    std::vector<std::int64_t> numbers(mine.data().begin(), mine.data().end());
    numbers.push_back(finite ? 0 : 1);
    numbers.push_back(failed ? 1 : 0);
    ranks_->all_reduce(numbers, comm::combine::sum);
    std::copy_n(numbers.begin(), exact_sum::limbs, mine.data().begin());
    if (model_ != nullptr) {
        mine.normalize();  // carries first, so that sums over two communicators cannot overflow a limb
        std::copy_n(mine.data().begin(), exact_sum::limbs, numbers.begin());
        model_->all_reduce(numbers, comm::combine::sum);
        std::copy_n(numbers.begin(), exact_sum::limbs, mine.data().begin());
    }
    if (numbers[exact_sum::limbs + 1] != 0)
        agreement_->settle(calls::finish(2), [&] {
            if (failed) std::rethrow_exception(failed);
        });
    finite = numbers[exact_sum::limbs] == 0;
    return finite ? mine.value() : HUGE_VAL;
}

void engine::agree_on_norm(const compute::totals& mine, std::exception_ptr failed) {
    run_->finite = mine.finite;
    run_->grad_norm = std::sqrt(sum_over_ranks(mine.squares, run_->finite, failed));
}

void engine::finish() {
    ballot agreed;
    agreement_->enter(with_phase(calls::finish(0)), [&] {
        require_committed("zero_finish");
        require(run_->now != run::phase::finished, code::state, "zero_finish: the window is finished already; zero_step or zero_publish comes next");
        check_stale();
        agreed.late = run_->now == run::phase::open && stage_->gradients().has_late() ? 1 : 0;
    }, agreed.votes());
    const turn order(*this);
    run_->micro_step_ended = !finish_micro_step(agreed.late != 0, nullptr);
}

// --- update ---

void engine::step() {
    ballot agreed;
    agreement_->enter(with_phase(calls::step(0)), [&] {
        require_committed("zero_step");
        if (run_->now != run::phase::finished) check_stale();
        agreed.late = run_->now == run::phase::open && stage_->gradients().has_late() ? 1 : 0;
        agreed.copies_open = stage_->copies().any_open() ? 1 : 0;
        agreed.written = run_->written.empty() ? 0 : 1;
        agreed.behind = behind_ != nullptr && !behind_->ready() ? 1 : 0;
        if (judges_moments()) look_at_moments(run_->judged_groups, agreed);
    }, agreed.votes());
    const turn order(*this);
    if (judges_moments()) {
        if (agreed.moved != 0 && agreed.squared == 0)
            log_->warning("group {}: the squares of all gradients are 0 in fp32 (gradients below about 1e-21); scale the loss or use fp64",
                          run_->judged_groups);
        ++run_->judged_groups;
    }
    if (behind_ != nullptr && agreed.behind == 0) behind_->progress();
    if (run_->micro_step_ended) {  // zero_finish has done it
        run_->micro_step_ended = false;
        return;
    }
    if (run_->now == run::phase::finished) return apply_update(numbers_of_update(), agreed.written != 0, agreed.copies_open != 0);
    const bool at_once = !settings_.check_grad_overflow && stage_->updates_while_summing();
    auto numbers = at_once ? numbers_of_update() : stage::update_numbers{};
    if (!finish_micro_step(agreed.late != 0, at_once ? &numbers : nullptr)) return;
    if (!at_once) numbers = numbers_of_update();
    apply_update(std::move(numbers), false, agreed.copies_open != 0);
}

stage::update_numbers engine::numbers_of_update() const {
    stage::update_numbers numbers;
    const double rate = rate_of_next_update();
    const auto momentum = settings_.lr_schedule.momentum(run_->step - 1);
    const bool scheduled = settings_.lr_schedule.type != schedule::kind::none;
    for (const auto& group : run_->groups) {
        numbers.groups.push_back(group.numbers);
        auto& mine = numbers.groups.back();
        if (scheduled) mine.lr = rate * group.lr_ratio;
        if (momentum) (settings_.optimizer == optimizer::kind::sgd ? mine.momentum : mine.beta1) = *momentum;
        numbers.frozen.push_back(group.frozen ? 1 : 0);
    }
    numbers.step = run_->step + 1;
    return numbers;
}

void engine::apply_update(stage::update_numbers numbers, bool written_anywhere, bool copies_open_anywhere) {
    const auto start = std::chrono::steady_clock::now();
    if (written_anywhere) {  // the caller wrote into its slices since finish
        auto names = stage_->memory().state_names();
        names.insert(names.end(), {"value", "gradient"});
        std::vector<std::int64_t> flags;
        for (const auto& n : names) flags.push_back(run_->written.count(n) != 0 ? 1 : 0);
        ranks_->all_reduce(flags, comm::combine::maximum);
        std::set<std::string> written;
        for (std::size_t i = 0; i < names.size(); ++i)
            if (flags[i] != 0) written.insert(names[i]);
        compute::totals again;
        const postponed following = attempt([&] {
            stage_->follow(written);
            if (written.count("gradient") != 0) again = stage_->gradients().measure();
        });
        if (written.count("gradient") != 0) agree_on_norm(again, following.failure());
        following.rethrow();
    }
    const double clip = settings_.gradient_clipping;
    run_->overflow = settings_.check_grad_overflow && (!run_->finite || (clip > 0 && !std::isfinite(run_->grad_norm)));
    if (run_->overflow) {
        ++run_->skipped;
        // With a loss scale that finds its level this is how it does so.
        log_->once(settings_.loss_scaling.moves() ? log_level::info : log_level::warning,
                   "an update was skipped because a gradient is not finite (\"skipped_steps\" counts them); said once");
        close_window();
        stage_->copies().end_of_step();
        const double scale = run_->scale.value();
        require(run_->scale.update(true), code::numeric,
                "the gradient overflowed although the loss scale is at its minimum {}: the update is skipped; lower the learning rate or "
                "look for NaN in the model", scale);
        return;
    }
    numbers.clip_factor = optimizer::clip_factor(clip, run_->grad_norm);
    before_renewal(copies_open_anywhere, [&] { stage_->update(numbers); });
    if (!stage_->optimizer().keeps_gradient() || !numbers.applied.empty()) run_->gradient_readable = false;
    ++run_->step;
    run_->scale.update(false);
    const bool readable = run_->gradient_readable;
    close_window();
    run_->gradient_readable = readable;
    follow_values(copies_open_anywhere);
    stage_->copies().end_of_step();
    run_->seconds_updating += seconds_since(start);
}

postponed engine::attempt(const std::function<void()>& body) {
    postponed one;
    one.attempt(body);
    if (one.failure()) ranks_->give_up();
    return one;
}

// What is renewed afterwards is renewed by all ranks, so a failure of one is everybody's first.
void engine::before_renewal(bool copies_open_anywhere, const std::function<void()>& body) {
    if (!copies_open_anywhere) return body();
    const postponed changes = attempt(body);
    agreement_->settle(calls::renewal(), [&] { changes.rethrow(); });
}

// The slices hold new values: copies that are open anywhere are renewed, all others count as not fetched.
void engine::follow_values(bool copies_open_anywhere) {
    std::fill(run_->received.begin(), run_->received.end(), char{0});
    stage_->values_changed(copies_open_anywhere);
    for (const auto& t : registry_.all())
        if (stage_->copies().is_open(t.id)) received(t.id);
}

// The caller or a checkpoint wrote the owned slices, and the values were published: the rest follows, and the window is over.
void engine::follow_slices(bool copies_open_anywhere) {
    stage_->follow({stage_->memory().state_names().begin(), stage_->memory().state_names().end()});
    close_window();
    run_->gradient_readable = false;
    follow_values(copies_open_anywhere);
}

void engine::close_window() {
    run_->now = run::phase::idle;
    run_->micro_step = 0;
    run_->micro_step_ended = false;
    run_->written.clear();
}

// --- moments that vanish ---

// Squares of gradients below about 1e-21 vanish in fp32: Adam then divides by eps alone. All ranks hear it, from votes that a
// step takes to its agreement anyway: one group each, from the step after the first update on.
bool engine::judges_moments() const {
    const bool has_both = settings_.optimizer == optimizer::kind::adam || settings_.optimizer == optimizer::kind::lamb;
    return has_both && run_->step > 0 && run_->judged_groups < run_->groups.size();
}

void engine::look_at_moments(std::size_t group, ballot& mine) const {
    constexpr std::int64_t tile = 1 << 16;
    for (int b = 0; b < context_->buckets() && mine.squared == 0; ++b) {
        const auto& bucket = context_->bucket(b);
        if (static_cast<std::size_t>(bucket.group) != group || !bucket.trainable || sum_type(bucket.type) != dtype::f32) continue;
        const auto part = stage_->memory().states_part(b);
        const auto* m = reinterpret_cast<const float*>(stage_->memory().state_at(b, 0, part.first));
        const auto* v = reinterpret_cast<const float*>(stage_->memory().state_at(b, 1, part.first));
        std::vector<float> first, second;  // from a device
        for (std::int64_t done = 0; done < part.count && mine.squared == 0; done += tile) {
            const std::int64_t n = std::min(tile, part.count - done);
            const float *one = m + done, *other = v + done;
            if (!work_->on_host()) {
                first.resize(static_cast<std::size_t>(n));
                second.resize(static_cast<std::size_t>(n));
                work_->copy(first.data(), std::exchange(one, first.data()), n * size_of(dtype::f32));
                work_->copy(second.data(), std::exchange(other, second.data()), n * size_of(dtype::f32));
            }
            for (std::int64_t i = 0; i < n && mine.squared == 0; ++i) {
                if (one[i] == 0) continue;
                mine.moved = 1;
                mine.squared = other[i] != 0 ? 1 : 0;
            }
        }
    }
}

// --- the step in parts ---

owned_part engine::slice(int id, const std::string& state) {
    const auto& t = checked(id, "zero_slice");
    check_state(t, state, "zero_slice");
    require(state != "gradient" || run_->now == run::phase::finished, code::state,
            "zero_slice: the gradient's slices may be used from zero_finish (at the end of the window) to the next zero_step, zero_publish or zero_reduce");
    const turn order(*this, turn::begins::here);
    run_->written.insert(state == "master" ? "value" : state);
    return owned(id, state == "master" ? "value" : state);
}

void engine::publish() {
    std::int64_t open = 0;
    agreement_->enter(with_phase(calls::publish(0)), [&] {
        require_committed("zero_publish");
        require(run_->now != run::phase::open, code::state, "zero_publish inside an accumulation window: zero_finish it first");
        open = stage_->copies().any_open() ? 1 : 0;
    }, {&open, 1});
    const turn order(*this);
    before_renewal(open != 0, [&] { stage_->publish(); });
    follow_slices(open != 0);
    stage_->copies().end_of_step();
}

void engine::adopt() {
    std::int64_t open = 0;
    agreement_->enter(calls::adopt(), [&] {
        require_committed("zero_load");
        open = stage_->copies().any_open() ? 1 : 0;
    }, {&open, 1});
    const turn order(*this);
    before_renewal(open != 0, [&] {
        stage_->publish();
        for (int b = 0; b < context_->buckets(); ++b)  // frozen values changed as well
            if (!context_->bucket(b).trainable) stage_->moves().publish(b);
    });
    follow_slices(open != 0);
}

double engine::dot(const std::string& a, const std::string& b, int group) {
    agreement_->enter(calls::dot(digest_of({group}, a + "\n" + b)), [&] {
        require_committed("zero_dot");
        require(group < groups_, code::argument, "zero_dot: group {} does not exist; there are 0 to {}, and -1 means all", group, groups_ - 1);
        for (const auto& t : registry_.all()) {
            if (!stage_->memory().trainable(layout_.where(t.id).bucket)) continue;
            check_state(t, a, "zero_dot");
            check_state(t, b, "zero_dot");
        }
    });
    compute::totals all;
    postponed products;
    products.attempt([&] { all = own_products(a, b, group); });
    return sum_over_ranks(all.squares, all.finite, products.failure());
}

compute::totals engine::own_products(const std::string& a, const std::string& b, int group) {
    compute::totals all;
    const compute::held until_then(*work_, {&all, 1});
    for (const auto& t : registry_.all()) {
        const auto& bucket = context_->bucket(layout_.where(t.id).bucket);
        if (!bucket.trainable || (group >= 0 && bucket.group != group)) continue;
        if (frozen(t.id) && (a == "gradient" || b == "gradient")) continue;  // as in "grad_norm"
        const bool replicated = run_->groups[static_cast<std::size_t>(bucket.group)].model_replicated;
        if (replicated && model_ != nullptr && model_->rank() != 0) continue;
        const auto x = owned(t.id, a == "master" ? "value" : a), y = owned(t.id, b == "master" ? "value" : b);
        if (x.count == 0) continue;
        const auto offloaded = [&](const std::string& state) {
            if (state == "gradient") return false;
            const int at = layout_.where(t.id).bucket;
            const bool of_values = (state == "value" || state == "master") && !stage_->memory().has_master(at);
            return of_values ? stage_->memory().values_offloaded(at) : stage_->memory().states_offloaded(at);
        };
        if (offloaded(a) || offloaded(b)) add_product_on_host(x, y, all);
        else work_->dot(x.type, x.data, y.data, x.count, all);
    }
    work_->wait();
    return all;
}

// Of vectors that do not both lie on the device. The sum is exact, so it does not matter where it is formed.
void engine::add_product_on_host(const owned_part& x, const owned_part& y, compute::totals& all) {
    constexpr std::int64_t tile = 1 << 16;
    std::vector<std::byte> first(static_cast<std::size_t>(std::min(tile, x.count) * size_of(x.type))), second(first);
    for (std::int64_t done = 0; done < x.count; done += tile) {
        const std::int64_t n = std::min(tile, x.count - done), width = size_of(x.type);
        work_->copy(first.data(), static_cast<const std::byte*>(x.data) + done * width, n * width);
        work_->copy(second.data(), static_cast<const std::byte*>(y.data) + done * width, n * width);
        all.finite &= vector::dot(x.type, first.data(), second.data(), n, all.squares);
    }
}

void engine::wait() {
    agreement_->enter(calls::wait(), [&] { require_committed("zero_wait"); });
    if (behind_ != nullptr) behind_->join();
}

void engine::close() {
    const std::int64_t mine = window_digest();
    std::int64_t votes[4] = {0, 0, mine, -mine};
    agreement_->enter(calls::finalize(), [&] {
        if (!committed()) return;
        votes[0] = run_->now == run::phase::open ? 1 : 0;
        votes[1] = votes[0] != 0 && stage_->gradients().has_late() ? 1 : 0;
    }, votes);
    if (!committed()) return ranks_->farewell();
    const bool same_buckets = votes[2] == -votes[3];  // else some wait for what others will never send: given up
    postponed ends;
    if (votes[0] != 0 && same_buckets)  // what is on its way arrives, so that no message is left behind
        ends.attempt([&] {
            open_window();
            stage_->gradients().finish(true, 1, votes[1] != 0);
        });
    ends.attempt([&] { stage_->copies().drop_idle(); });
    if (ends.failure()) ranks_->give_up();
    if (behind_ != nullptr) ends.attempt([&] { behind_->join(); });
    ranks_->farewell();
    ends.rethrow();
}

}  // namespace zero
