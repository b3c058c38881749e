// Does a checkpoint fit a context? All reasons at once, so that a user repairs a script once.
#include <algorithm>
#include <set>

#include "loading.hpp"
#include "reshard.hpp"
#include "tensor/registry.hpp"

namespace zero::checkpoint {
namespace {

constexpr std::size_t most_named = 20;

class listing {
public:
    template <typename... Args>
    void add(fmt::format_string<Args...> format, Args&&... args) {
        if (++count_ <= most_named)
            text_ += (text_.empty() ? "" : "; ") + formatted(format, std::forward<Args>(args)...);
    }
    std::string text() const {
        return count_ <= most_named ? text_ : formatted("{}; and {} more", text_, count_ - most_named);
    }

private:
    std::string text_;
    std::size_t count_ = 0;
};

bool converts(dtype from, dtype to) {
    return from == to || (is_parameter_type(from) && is_parameter_type(to));
}

void compare_vectors(const tensor_state& mine, const tensor_entry& saved, bool values_only, listing& found) {
    for (const vector_state& vector : mine.vectors) {
        if (values_only && vector.state != "value") continue;
        const vector_entry* same = find_vector(saved, vector.state);
        if (same == nullptr)
            found.add("tensor \"{}\" was saved without \"{}\"", mine.name, vector.state);
        else if (!converts(same->type, vector.type))
            found.add("\"{}\" of tensor \"{}\" cannot become {}", vector.state, mine.name, name(vector.type));
    }
    if (values_only) return;
    for (const vector_entry& vector : saved.vectors) {
        const bool known = std::any_of(mine.vectors.begin(), mine.vectors.end(),
                                       [&](const vector_state& one) { return one.state == vector.state; });
        if (!known)
            found.add("tensor \"{}\" was saved with \"{}\", which this context does not keep", mine.name, vector.state);
    }
}

void compare_tensors(const contents& state, const catalogue& saved, bool values_only, listing& found) {
    std::set<std::string> mine;
    for (const tensor_state& tensor : state.tensors) {
        mine.insert(tensor.name);
        const tensor_entry* same = saved.tensor(tensor.name);
        if (same == nullptr)
            found.add("tensor \"{}\" is missing in the checkpoint", tensor.name);
        else if (same->dims != tensor.dims)
            found.add("tensor \"{}\" has shape {} here and {} in the checkpoint", tensor.name, shape_text(tensor.dims),
                      shape_text(same->dims));
        else
            compare_vectors(tensor, *same, values_only, found);
    }
    for (const auto& [name, tensor] : saved.tensors())
        if (!mine.contains(name)) found.add("tensor \"{}\" of the checkpoint is not registered here", name);
}

void compare_attachments(const contents& state, const manifest& saved, const crew& ranks, listing& found) {
    for (const attached_state& mine : state.attachments) {
        const attachment_entry* same = find_attachment(saved, mine.name, ranks.model_rank(), 0);
        if (same != nullptr && same->per_rank && mine.per_rank && saved.head.ranks != ranks.data_size()) {
            found.add(
                "the attached array \"{}\" belongs to each rank, and was saved by {} ranks, not {}: load on as many, "
                "or do not attach it",
                mine.name, saved.head.ranks, ranks.data_size());
            continue;
        }
        same = find_attachment(saved, mine.name, ranks.model_rank(), ranks.data_rank());
        if (same == nullptr)
            found.add("the attached array \"{}\" is missing in the checkpoint", mine.name);
        else if (same->per_rank != mine.per_rank)
            found.add("the attached array \"{}\" is per rank only in one of checkpoint and context", mine.name);
        else if (same->dims != mine.dims || same->type != mine.type)
            found.add("the attached array \"{}\" is {} {} here and {} {} in the checkpoint", mine.name, name(mine.type),
                      shape_text(mine.dims), name(same->type), shape_text(same->dims));
    }
}

}  // namespace

bool values_alone(const run_state& mine, const run_state& saved, taking how) {
    return how == taking::weights || (how == taking::partial && mine.optimizer != saved.optimizer);
}

bool fits(const tensor_state& mine, const tensor_entry* saved) {
    return saved != nullptr && saved->dims == mine.dims;
}
bool fits(const vector_state& mine, const vector_entry* saved) {
    return saved != nullptr && converts(saved->type, mine.type);
}
bool fits(const attached_state& mine, const attachment_entry* saved, bool as_many_ranks) {
    return saved != nullptr && saved->per_rank == mine.per_rank && (as_many_ranks || !mine.per_rank) &&
           saved->dims == mine.dims && saved->type == mine.type;
}

std::string differences(const contents& state, const manifest& saved, const crew& ranks, taking how) {
    listing found;
    if (saved.run.optimizer != state.run.optimizer && how != taking::weights)
        found.add(
            "it was saved with optimizer \"{}\", this context has \"{}\"{}", saved.run.optimizer, state.run.optimizer,
            how == taking::strict ? ": set \"checkpoint.load\" to \"weights\" to take the values alone" : "");
    const catalogue tensors(saved, ranks.model_rank());
    compare_tensors(state, tensors, values_alone(state.run, saved.run, how), found);
    if (how != taking::weights) compare_attachments(state, saved, ranks, found);
    return found.text();
}

}  // namespace zero::checkpoint
