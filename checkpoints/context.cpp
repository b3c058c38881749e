// The engine as contents and crew; save and load of the C ABI.
#include "context.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "behind.hpp"
#include "engine/calls.hpp"
#include "load.hpp"
#include "loading.hpp"
#include "message.hpp"
#include "mirror.hpp"
#include "save.hpp"
#include "saving.hpp"

namespace zero::checkpoint {
namespace {

std::string optimizer_name(optimizer::kind which) {
    const auto first = std::find_if(std::begin(optimizer::types), std::end(optimizer::types),
                                    [&](const auto& one) { return one.second == which; });
    std::string name(first->first);
    for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    return name;
}

std::string schedule_name(schedule::kind which) {
    return std::string(std::find_if(std::begin(schedule_types), std::end(schedule_types),
                                    [&](const auto& one) { return one.second == which; })
                           ->first);
}

vector_state vector_of(engine& from, int id, const std::string& state) {
    const owned_part part = from.owned(id, state);
    return {state, part.type, part.first, part.count, part.data};
}

tensor_state tensor_of(engine& from, const tensor& one) {
    tensor_state made;
    made.name = one.name;
    made.type = one.type;
    made.dims = one.dims;
    made.count = one.count;
    made.group = one.group;
    const int bucket = from.space().where(one.id).bucket;
    made.frozen = bucket >= 0 && !from.space().buckets()[static_cast<std::size_t>(bucket)].trainable;
    made.vectors.push_back(vector_of(from, one.id, "value"));
    for (const std::string& state : from.state_names(one.id)) made.vectors.push_back(vector_of(from, one.id, state));
    return made;
}

run_state run_of(const engine& from) {
    const progress_state progress = from.progress();
    run_state made;
    made.step = progress.step;
    made.skipped = progress.skipped;
    made.lr = progress.lr;
    made.scale = progress.scale.scale;
    made.hysteresis = progress.scale.hysteresis;
    made.iteration = progress.scale.iteration;
    made.last_overflow = progress.scale.last_overflow;
    made.stage = from.settings().stage;
    made.nodes = from.space().ranks().nodes;
    made.optimizer = optimizer_name(from.settings().optimizer);
    made.schedule = schedule_name(from.settings().lr_schedule.type);
    made.config = from.options().as_json();
    return made;
}

// The checks that both calls begin with, and what the context holds.
contents open(engine& of, const call& name) {
    contents state;
    of.agree().enter(name, [&] {
        require(
            !of.window_open(), code::state,
            "{} inside an accumulation window: call zero_step until the update, or save before the first zero_reduce",
            name.name);
        state = contents_of(of);
    });
    check_grid(of, name);
    return state;
}

std::optional<mirror> mirror_of(engine& of, contents& state, const call& name) {
    std::optional<mirror> made;
    if (of.on_device()) of.agree().settle(name, [&] { made.emplace(of, state); });
    return made;
}

}  // namespace

contents contents_of(engine& from) {
    contents made;
    from.require_committed("looking for what is to be saved or loaded");
    made.run = run_of(from);
    for (const tensor& one : from.tensors().all()) made.tensors.push_back(tensor_of(from, one));
    for (const attachment& one : from.attachments())
        made.attachments.push_back({one.name, one.type, one.dims, one.count, one.per_rank, one.data});
    return made;
}

progress_state progress_of(const run_state& saved, const optimizer::loss_scale_rules& rules) {
    progress_state made;
    made.step = saved.step;
    made.skipped = saved.skipped;
    made.lr = saved.lr;
    // A scale travels between runs that both move it. Elsewhere this context's own rules hold: gradients that nobody
    // scaled would be divided by it. (Only a moving scale counts iterations.)
    made.scale = rules.moves() && saved.iteration > 0 ? optimizer::loss_scale::snapshot{saved.scale, saved.hysteresis,
                                                                                saved.iteration, saved.last_overflow}
                                              : optimizer::loss_scale(rules).state();
    return made;
}

engine_crew::engine_crew(engine& of, call name) : of_(of), name_(name) {}
int engine_crew::data_rank() const noexcept {
    return of_.ranks().rank();
}
int engine_crew::data_size() const noexcept {
    return of_.ranks().size();
}
int engine_crew::model_rank() const noexcept {
    return of_.model_ranks() == nullptr ? 0 : of_.model_ranks()->rank();
}
int engine_crew::model_size() const noexcept {
    return of_.model_ranks() == nullptr ? 1 : of_.model_ranks()->size();
}

void engine_crew::settle(const std::function<void()>& local, std::uint64_t digest) {
    of_.agree().settle({name_.name, name_.number, digest, name_.over_model}, local);
}

// Along the data ranks, then the texts of each model rank's data rank 0 along the model ranks.
std::vector<std::string> engine_crew::gather(const std::string& mine) {
    std::vector<std::string> texts = of_.ranks().gather(mine, 0);
    if (of_.model_ranks() == nullptr || data_rank() != 0) return texts;
    packer to;
    for (const std::string& text : texts) to.put(text);
    std::vector<std::string> all;
    for (const std::string& packed : of_.model_ranks()->gather(to.take(), 0))
        for (unpacker from(packed); !from.done();) all.push_back(from.text());
    return all;
}

std::string engine_crew::broadcast(const std::string& text) {
    std::string told = text;
    if (of_.model_ranks() != nullptr && data_rank() == 0) told = of_.model_ranks()->broadcast(told, 0);
    return of_.ranks().broadcast(told, 0);
}

void check_grid(engine& of, call name) {
    if (of.model_ranks() == nullptr) return;
    const std::int64_t rank = of.ranks().rank(), size = of.ranks().size();
    std::array<std::int64_t, 4> same{rank, -rank, size, -size};
    of.model_ranks()->all_reduce(same, comm::combine::maximum);
    std::array<std::int64_t, 2> model{of.model_ranks()->rank(), -of.model_ranks()->rank()};
    of.ranks().all_reduce(model, comm::combine::maximum);
    of.agree().settle(name, [&] {
        require(same[0] == -same[1] && same[2] == -same[3] && model[0] == -model[1], code::argument,
                "{}: the communicators of zero_init and zero_set_model_comm do not form a grid: split the ranks by "
                "rows and by columns",
                name.name);
    });
}

namespace {

void save(engine& from, const std::string& directory, const std::string& tag, const files::disk* disk) {
    contents state = open(from, calls::save);
    if (from.behind() != nullptr) from.behind()->join();
    const std::optional<mirror> on_host = mirror_of(from, state, calls::save);
    save_request what{directory, tag, 1, 0, 0};
    what.ranks_per_file =
        static_cast<int>(std::min<std::int64_t>(from.settings().ranks_per_file, from.ranks().size()));
    what.keep_last = from.settings().keep_last;
    what.keep_every = from.settings().keep_every;
    if (from.options().boolean("checkpoint.async")) return save_behind(from, std::move(state), disk, what);
    engine_crew ranks(from, calls::save);
    const files::disk own;
    save(std::move(state), ranks, disk != nullptr ? *disk : own, from.book(), from.logger(), what);
}

}  // namespace

void save(engine& from, const std::string& directory, const std::string& tag, const files::disk& disk) {
    save(from, directory, tag, &disk);
}
void save(engine& from, const std::string& directory, const std::string& tag) {
    save(from, directory, tag, nullptr);
}

void load(engine& into, const std::string& directory, const std::string& tag, const files::disk& disk) {
    contents state = open(into, calls::load);
    if (into.behind() != nullptr) into.behind()->join();
    std::optional<mirror> on_host = mirror_of(into, state, calls::load);
    engine_crew ranks(into, calls::load);
    const std::string& word = into.settings().checkpoint_load;
    const taking how = word == "weights" ? taking::weights : word == "partial" ? taking::partial : taking::strict;
    const run_state saved = load(state, ranks, disk, into.book(), into.logger(), {directory, tag, how});
    into.agree().settle(calls::load, [&] {
        if (on_host) on_host->bring_back();
    });
    on_host.reset();
    // With the values alone a new run begins.
    into.restore(progress_of(values_alone(state.run, saved, how) ? run_state{} : saved, into.settings().loss_scaling));
    into.adopt();
}
void load(engine& into, const std::string& directory, const std::string& tag) {
    load(into, directory, tag, files::disk());
}

}  // namespace zero::checkpoint
