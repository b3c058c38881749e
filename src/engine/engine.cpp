// Construction, options, registration and looks at the state. See engine.hpp; commit.cpp, fill.cpp, whole.cpp, step.cpp and
// report.cpp hold the other calls.
#include "engine/engine.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "core/error.hpp"
#include "device/devices.hpp"
#include "engine/run.hpp"
#include "optimizer/optimizer.hpp"

namespace zero {

engine::engine(const void* mpi_comm, const std::string& config) {
    ranks_ = comm::make(mpi_comm, {});
    agreement_ = std::make_unique<agreement>(*ranks_);
    log_ = std::make_unique<zero::log>(ranks_->rank());
    run_ = std::make_unique<run>();
    agreement_->enter(calls::init(0), [&] {
        options_.read(config);
        settings_ = config::resolve(options_, ranks_->size(), 0);
    });
    compare_options(calls::init(1));
    choose_place();
    join_ranks(mpi_comm);
    run_->options_digest = digest(options_.as_json());
    if (settings_.log_level >= 0) log_->level(static_cast<log_level>(settings_.log_level));
}

engine::~engine() = default;

void engine::set_model_comm(const void* mpi_comm) {
    std::unique_ptr<comm::communicator> model;
    agreement_->enter(calls::set_model_comm(), [&] {
        require(!committed(), code::state, "zero_set_model_comm comes before zero_commit");
        require(model_ == nullptr, code::state, "zero_set_model_comm was called already");
        comm::check_communicator(mpi_comm);
    });
    model = comm::make(mpi_comm, {});
    model_ = std::move(model);
    agreement_->also_over(model_.get());
}

bool engine::committed() const noexcept { return stage_ != nullptr; }

void engine::require_committed(const char* call) const {
    require(committed(), code::state, "{} comes after zero_commit", call);
}

// --- options ---

config::settings engine::resolved() const {
    const bool has_f16 = std::any_of(registry_.all().begin(), registry_.all().end(), [](const auto& t) { return t.type == dtype::f16; });
    return config::resolve(options_, ranks_->size(), largest_tensor(), has_f16);
}

// Before commit keys may come in any order, so what they mean together is judged at commit; afterwards at once.
template <typename Value>
void engine::set_option(const std::string& key, const Value& value) {
    if (!committed()) {
        require(!options_.is_read_by_init(key), code::state, "{} is read by zero_init: give it in the configuration or in the environment", key);
        options_.set(key, value);
    } else {
        require(options_.is_run_time(key), code::state, "{} is fixed by zero_commit: set it before, or in the configuration", key);
        const auto before = options_;
        try {
            options_.set(key, value);
            settings_ = resolved();
            refresh_groups();
        } catch (...) {
            options_ = before;
            throw;
        }
    }
    run_->options_digest = digest(options_.as_json());
    if (options_.has("libzero.log_level")) log_->level(static_cast<log_level>(options_.integer("libzero.log_level")));
}

void engine::set(const std::string& key, std::int64_t value) { set_option(key, value); }
void engine::set(const std::string& key, double value) { set_option(key, value); }
void engine::set(const std::string& key, const std::string& value) { set_option(key, value); }

std::int64_t engine::largest_tensor() const {
    std::int64_t most = 0;
    for (const auto& t : registry_.all()) most = std::max(most, t.count);
    return most;
}

void engine::refresh_groups() {
    std::vector<config::group_settings> fresh;
    for (int g = 0; g < groups_; ++g) fresh.push_back(config::resolve_group(options_, g));
    for (int g = 0; g < groups_ && !run_->groups.empty(); ++g) {
        bool frozen_at_commit = false;
        for (const auto& b : layout_.buckets()) frozen_at_commit |= b.group == g && !b.trainable;
        require(!frozen_at_commit || fresh[static_cast<std::size_t>(g)].frozen, code::state,
                "groups.{}.frozen: the group was frozen at zero_commit and has no optimizer states; commit it trainable and freeze it afterwards", g);
    }
    run_->groups = std::move(fresh);
}

namespace {

// "memory.<purpose>": bytes of one purpose in this rank's ledger.
std::optional<std::int64_t> ledger_entry(const ledger& book, const std::string& key) {
    static constexpr std::array<std::pair<std::string_view, purpose>, static_cast<std::size_t>(purpose::count_)> keys{{
        {"memory.parameters", purpose::parameters}, {"memory.gradients", purpose::gradients}, {"memory.master", purpose::master},
        {"memory.states", purpose::states}, {"memory.gathered", purpose::gathered}, {"memory.handoff", purpose::handoff},
        {"memory.communication", purpose::communication}, {"memory.checkpoint", purpose::checkpoint}}};
    for (const auto& [path, why] : keys)
        if (key == path) return book.bytes(why);
    return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> engine::state_integer(const std::string& key) const {
    if (key == "step") return run_->step;
    if (key == "micro_step") return run_->micro_step;
    if (key == "skipped_steps") return run_->skipped;
    if (key == "overflow") return run_->overflow ? 1 : 0;
    if (key == "rank") return ranks_->rank();
    if (key == "size") return ranks_->size();
    if (key == "threads") return threads_ != nullptr ? threads_->members() : 1;
    if (key == "nodes") return ranks_->nodes().nodes;
    if (key == "ranks_sharing_values") return committed() && stage_->memory().values_of_node() != nullptr ? ranks_->nodes().per_node() : 1;
    if (key == "sent.reduce_bytes") return ranks_->sent().reduce_bytes;
    if (key == "sent.gather_bytes") return ranks_->sent().gather_bytes;
    if (key == "sent.off_node_bytes") return ranks_->sent().off_node_bytes;
    if (key == "owned_elements" || key == "live_elements") {
        require_committed("reading the number of elements");
        return key == "owned_elements" ? owned_elements() : live_elements();
    }
    return ledger_entry(ledger_, key);
}

std::int64_t engine::owned_elements() const {
    return settings_.stage == 0 ? layout_.elements() : layout_.owned_elements(ranks_->rank());
}

// Elements whose values are on this rank right now: whole tensors, own slices of the others, gathered copies.
std::int64_t engine::live_elements() const {
    std::int64_t live = stage_->copies().live_elements();
    for (const auto& t : registry_.all())
        live += stage_->is_whole(t.id) ? t.count : layout_.owned(t.id, ranks_->rank()).count;
    return live;
}

// Keys whose value follows from other keys, or from the tensors where "auto" stands.
std::optional<std::int64_t> engine::resolved_integer(const std::string& key) const {
    static const std::map<std::string, std::int64_t config::settings::*> followers{
        {"train_batch_size", &config::settings::train_batch},
        {"train_micro_batch_size_per_gpu", &config::settings::micro_batch},
        {"gradient_accumulation_steps", &config::settings::accumulation_steps},
        {"zero_optimization.reduce_bucket_size", &config::settings::reduce_bucket_size},
        {"zero_optimization.allgather_bucket_size", &config::settings::allgather_bucket_size},
        {"zero_optimization.stage3_prefetch_bucket_size", &config::settings::prefetch_bucket_size},
        {"zero_optimization.stage3_param_persistence_threshold", &config::settings::persistence_threshold}};
    const auto found = followers.find(key);
    if (found == followers.end()) return std::nullopt;
    return (committed() ? settings_ : resolved()).*(found->second);
}

namespace {

bool reads_as_real(const std::string& key) { return key == "grad_norm" || key == "loss_scale" || key == "lr"; }

}  // namespace

std::int64_t engine::get_integer(const std::string& key) const {
    require(!reads_as_real(key), code::config, "\"{}\" is a real number: read it with zero_get_real or zero_get_text", key);
    if (const auto state = state_integer(key)) return *state;
    if (const auto number = resolved_integer(key)) return *number;
    return options_.integer(key);
}

double engine::get_real(const std::string& key) const {
    if (key == "grad_norm") {
        require(!committed() || settings_.check_grad_overflow, code::state,
                "\"grad_norm\" is not taken while libzero.check_grad_overflow is false: leave that true to read it");
        return run_->grad_norm;
    }
    if (key == "loss_scale") return committed() ? run_->scale.value() : optimizer::loss_scale(resolved().loss_scaling).value();
    if (key == "lr") return rate_of_next_update();
    if (const auto state = state_integer(key)) return static_cast<double>(*state);
    if (const auto number = resolved_integer(key)) return static_cast<double>(*number);
    return options_.real(key);
}

std::string engine::get_text(const std::string& key) const {
    if (reads_as_real(key)) return formatted("{}", get_real(key));
    if (const auto state = state_integer(key)) return formatted("{}", *state);
    if (const auto number = resolved_integer(key)) return formatted("{}", *number);
    return options_.text(key);
}

double engine::rate_of_next_update() const {
    const auto& how = committed() ? settings_ : resolved();
    return how.lr_schedule.rate(run_->step - 1, how.numbers.lr);
}

// --- registration ---

int engine::add_group(const std::string& json) {
    require(!committed(), code::state, "zero_group comes before zero_commit");
    options_.add_group(json, groups_);
    run_->options_digest = digest(options_.as_json());
    return groups_++;
}

int engine::add_tensor(const std::string& name, dtype type, std::span<const std::int64_t> dims, void* values, int group) {
    require(!committed(), code::state, "zero_register comes before zero_commit: the list of parameters is frozen by it");
    require(group >= 0 && group < groups_, code::argument, "tensor '{}': group {} does not exist; there are 0 to {}, and zero_group makes more", name, group, groups_ - 1);
    check_reachable(values, "the values of", name);
    return registry_.add(name, type, dims, values, group);
}

void engine::add_state(const std::string& name) {
    require(!committed(), code::state, "zero_state comes before zero_commit");
    check_name(name, "state");
    std::set<std::string> taken{"value", "master", "gradient"};
    for (const auto& [spelling, which] : optimizer::types)  // of all, for checkpoints go from one optimizer to another
        for (const auto& of_optimizer : optimizer::state_names(which, 1)) taken.insert(of_optimizer);
    require(taken.count(name) == 0 && std::find(user_states_.begin(), user_states_.end(), name) == user_states_.end(), code::argument,
            "state '{}' exists already: choose another name", name);
    user_states_.push_back(name);
}

void engine::attach(const attachment& what) {
    check_name(what.name, "attached array");
    require(what.count == 0 || what.data != nullptr, code::argument, "attached array '{}' has no data", what.name);
    zero::check_reachable(what.data, -1, "the elements of the attached array", what.name);
    for (const auto& other : attachments_)
        require(other.name != what.name, code::argument, "an array '{}' is attached already: choose another name", what.name);
    attachments_.push_back(what);
}

void engine::rebind(int id, void* values) {
    check_alone_or_together(calls::rebind(digest_of({id})), [&] {
        const auto& t = checked(id, "zero_rebind");
        require(!t.library_owned, code::state, "'{}' belongs to the library: there is no array of yours to move", t.name);
        require(stage_->is_whole(id), code::state, "'{}' is held in slices (stage 3): the library does not use your array after zero_commit", t.name);
        require(run_->holders[static_cast<std::size_t>(id)] == 0, code::state, "'{}' is gathered: zero_release it before zero_rebind", t.name);
        check_reachable(values, "the values of", t.name);
    });
    registry_.rebind(id, values);
}

// --- looks for checkpoints ---

std::vector<std::string> engine::state_names(int id) const {
    require_committed("reading the states");
    if (!stage_->memory().trainable(layout_.where(id).bucket)) return {};
    return stage_->memory().state_names();
}

owned_part engine::owned(int id, const std::string& state) {
    require_committed("reading owned parts");
    const auto part = layout_.owned(id, ranks_->rank());
    owned_part mine;
    mine.tensor = id;
    mine.first = part.first;
    mine.count = part.count;
    mine.type = stage_->memory().vector_type(id, state);
    mine.data = part.count > 0 ? stage_->memory().vector(id, state, part.first) : nullptr;
    return mine;
}

progress_state engine::progress() const { return {run_->step, run_->skipped, run_->scale.state(), rate_of_next_update()}; }

void engine::restore(const progress_state& from) {
    run_->step = from.step;
    run_->skipped = from.skipped;
    run_->scale.restore(from.scale);
}

bool engine::window_open() const noexcept { return run_->now != run::phase::idle; }

std::pair<std::int64_t, std::int64_t> engine::memory(place where) const { return {ledger_.bytes(where), ledger_.peak(where)}; }

}  // namespace zero
