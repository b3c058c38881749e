// zero-ckpt diff: two checkpoints tensor by tensor, in bits and as numbers. Step, options and the like are not compared.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include "answer.hpp"
#include "checkpoints/reshard.hpp"
#include "content.hpp"
#include "progress.hpp"
#include "tensor/registry.hpp"
#include "tensor/vector.hpp"
#include "tool.hpp"

namespace zero::tool {
namespace {

using json = nlohmann::ordered_json;

// JSON has no infinity.
json number(double value) {
    return std::isfinite(value) ? json(value) : json("inf");
}

struct counted {
    std::int64_t different = 0;
    double absolute = 0, relative = 0;  // largest; infinite where only one is no number

    void see(double a, double b) {
        if (std::isnan(a) && std::isnan(b)) return;
        const double gap = a == b ? 0 : std::abs(a - b);
        const double most = std::max(std::abs(a), std::abs(b));
        const double part = gap == 0 ? 0 : gap / most;
        constexpr double infinite = std::numeric_limits<double>::infinity();
        absolute = std::max(absolute, std::isnan(gap) ? infinite : gap);
        relative = std::max(relative, std::isnan(part) ? infinite : part);
    }
};

class comparison {
public:
    explicit comparison(const options& what) : a_(what.path), b_(what.other), bar_(bytes(a_) + bytes(b_)) {}

    int run(bool as_json) {
        std::map<std::string, const checkpoint::tensor_entry*> others;
        for (const auto& one : b_.what().tensors) others[b_.shown_name(one)] = &one;
        for (const auto& one : a_.what().tensors) {
            const std::string name = a_.shown_name(one);
            const auto other = others.find(name);
            if (other == others.end()) {
                only_a_.push_back(name);
                continue;
            }
            compare(name, one, *other->second);
            others.erase(other);
        }
        for (const auto& one : b_.what().tensors)
            if (others.contains(b_.shown_name(one))) only_b_.push_back(b_.shown_name(one));
        if (as_json)
            print_json();
        else
            print_text();
        return equal() ? fine : different;
    }

private:
    static std::int64_t bytes(const content& of) { return of.what().head.bytes; }
    bool equal() const { return only_a_.empty() && only_b_.empty() && entries_.empty(); }

    void compare(const std::string& name, const checkpoint::tensor_entry& a, const checkpoint::tensor_entry& b) {
        json entry{{"name", name}}, values = json::array();
        const auto note = [&](const char* what, const json& mine, const json& other) {
            if (mine != other) entry[what] = {mine, other};
        };
        note("dims", a.dims, b.dims);
        note("dtype", zero::name(a.type), zero::name(b.type));
        note("group", a.group, b.group);
        note("frozen", a.frozen, b.frozen);
        for (const auto& vector : a.vectors) {
            const auto* other = checkpoint::find_vector(b, vector.state);
            if (other == nullptr)
                values.push_back({{"state", vector.state}, {"only_in", "A"}});
            else if (a.dims == b.dims)
                compare_values(values, vector, *other, a.count);
        }
        for (const auto& vector : b.vectors)
            if (checkpoint::find_vector(a, vector.state) == nullptr) values.push_back({{"state", vector.state}, {"only_in", "B"}});
        if (!values.empty()) entry["values"] = values;
        if (entry.size() > 1)
            entries_.push_back(entry);
        else
            ++same_;
    }

    void compare_values(json& values, const checkpoint::vector_entry& a, const checkpoint::vector_entry& b,
                        std::int64_t count) {
        counted found;
        const bool same_type = a.type == b.type;
        std::vector<std::byte> other;
        std::vector<double> left, right;
        a_.each_chunk(a, count, a.type, [&](std::int64_t first, std::int64_t now, const std::byte* mine) {
            other.resize(static_cast<std::size_t>(now * size_of(b.type)));
            b_.read(b, first, now, b.type, other.data());
            bar_.add(now * (size_of(a.type) + size_of(b.type)));
            const auto size = static_cast<std::size_t>(size_of(a.type));
            if (same_type && std::memcmp(mine, other.data(), other.size()) == 0) return;
            left.resize(static_cast<std::size_t>(now));
            right.resize(left.size());
            vector::convert(dtype::f64, left.data(), a.type, mine, now);
            vector::convert(dtype::f64, right.data(), b.type, other.data(), now);
            for (std::size_t k = 0; k < left.size(); ++k) {
                // Numbers of two types have no bits to compare.
                const bool equal = same_type ? std::memcmp(mine + k * size, other.data() + k * size, size) == 0
                                             : left[k] == right[k] || (std::isnan(left[k]) && std::isnan(right[k]));
                if (equal) continue;
                ++found.different;
                found.see(left[k], right[k]);
            }
        });
        if (found.different == 0 && same_type) return;
        json entry{{"state", a.state}};
        if (!same_type) entry["stored"] = {zero::name(a.type), zero::name(b.type)};
        entry.update({{"different", found.different},
                      {"elements", count},
                      {"largest_absolute", number(found.absolute)},
                      {"largest_relative", number(found.relative)}});
        values.push_back(entry);
    }

    void print_json() const {
        tool::print_json({{"a", a_.folder()},
                          {"b", b_.folder()},
                          {"equal", equal()},
                          {"equal_tensors", same_},
                          {"only_in_a", only_a_},
                          {"only_in_b", only_b_},
                          {"different", entries_}});
    }

    void print_text() const {
        for (const std::string& name : only_a_) fmt::print("{}: only in {}\n", name, a_.folder());
        for (const std::string& name : only_b_) fmt::print("{}: only in {}\n", name, b_.folder());
        for (const json& entry : entries_) {
            const std::string name = entry["name"];
            for (const char* what : {"dims", "dtype", "group", "frozen"})
                if (entry.contains(what))
                    fmt::print("{}: {} {} and {}\n", name, what, entry[what][0].dump(), entry[what][1].dump());
            for (const json& one : entry.value("values", json::array())) {
                const std::string state = one["state"];
                if (one.contains("only_in")) {
                    fmt::print("{}: {} only in {}\n", name, state,
                               one["only_in"] == "A" ? a_.folder() : b_.folder());
                    continue;
                }
                if (one.contains("stored"))
                    fmt::print("{}: {} stored as {} and {}\n", name, state, one["stored"][0].dump(),
                               one["stored"][1].dump());
                fmt::print("{}: {} differs in {} of {} elements, by at most {} absolute, {} relative\n", name, state,
                           one["different"].dump(), one["elements"].dump(), one["largest_absolute"].dump(),
                           one["largest_relative"].dump());
            }
        }
        if (equal()) fmt::print("the {} tensors have equal bits\n", same_);
    }

    content a_, b_;
    progress bar_;
    std::vector<std::string> only_a_, only_b_;
    std::vector<json> entries_;
    std::int64_t same_ = 0;
};

}  // namespace

int diff(const options& what) {
    return comparison(what).run(what.json);
}

}  // namespace zero::tool
