// What every benchmark shares: rounds in which all variants take turns, quantiles of times and of ratios taken inside a
// round, and one result printed as a table or as JSON. Not here: MPI (mpi_main.hpp; a
// variant may contain barriers; the caller gives times of the slowest rank through `rounds::add`).
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace benchmark {

inline double quantile(std::vector<double> values, double which) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const double place = which * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

struct spread {
    double low = 0, median = 0, high = 0;  // 10 %, 50 %, 90 %
};
inline spread spread_of(const std::vector<double>& values) {
    return {quantile(values, 0.1), quantile(values, 0.5), quantile(values, 0.9)};
}

template <typename Work>
double seconds(Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Times of several variants, one of each per round.
class rounds {
public:
    explicit rounds(std::size_t variants) : times_(variants) {}
    void add(std::size_t variant, double time) { times_[variant].push_back(time); }
    spread time(std::size_t variant) const { return spread_of(times_[variant]); }

    // times of `reference` divided by those of `variant`, round by round: 1.2 = variant is 1.2 times as fast
    spread speedup(std::size_t variant, std::size_t reference) const {
        std::vector<double> ratios;
        for (std::size_t i = 0; i < times_[variant].size(); ++i)
            ratios.push_back(times_[reference][i] / times_[variant][i]);
        return spread_of(ratios);
    }

    // A run is void when the reference itself moved by more than 15 % between its first and its last third, or when its
    // own times lie so far apart that another program must have had the processor in between.
    double drift(std::size_t variant) const {
        const auto& all = times_[variant];
        const auto third = static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, all.size() / 3));
        const double first = quantile({all.begin(), all.begin() + third}, 0.5),
                     last = quantile({all.end() - third, all.end()}, 0.5);
        return std::max(first, last) / std::min(first, last) - 1;
    }
    bool disturbed(std::size_t variant) const {
        const spread own = time(variant);
        return drift(variant) > 0.15 || own.high > 1.5 * own.low;
    }

private:
    std::vector<std::vector<double>> times_;
};

// Runs every variant once to warm up, then `count` rounds; the one that begins changes from round to round.
inline rounds interleave(int count, const std::vector<std::function<void()>>& variants) {
    rounds result(variants.size());
    for (const auto& variant : variants) variant();
    for (int round = 0; round < count; ++round) {
        for (std::size_t k = 0; k < variants.size(); ++k) {
            const std::size_t which = (k + static_cast<std::size_t>(round)) % variants.size();
            result.add(which, seconds(variants[which]));
        }
    }
    return result;
}

// Rows of named values: strings as they are, numbers with three digits after the point in the table and in full in
// JSON.
class report {
public:
    explicit report(std::string title) : title_(std::move(title)) {}
    void add(nlohmann::ordered_json row) { rows_.push_back(std::move(row)); }
    const nlohmann::ordered_json& rows() const { return rows_; }

    void print(bool as_json) const {
        if (as_json) {
            nlohmann::ordered_json all;
            all["benchmark"] = title_;
            all["rows"] = rows_;
            std::printf("%s\n", all.dump(2).c_str());
        } else {
            print_table();
        }
    }

private:
    static std::string cell(const nlohmann::ordered_json& value) {
        if (value.is_string()) return value.get<std::string>();
        if (!value.is_number_float()) return value.dump();
        char text[32];
        std::snprintf(text, sizeof text, "%.3f", value.get<double>());
        return text;
    }
    void print_table() const {
        std::printf("%s\n", title_.c_str());
        if (rows_.empty()) return;
        std::vector<std::vector<std::string>> lines(1);
        for (const auto& [key, value] : rows_.front().items()) lines[0].push_back(key);
        for (const auto& row : rows_) {
            lines.emplace_back();
            for (const auto& key : lines[0]) lines.back().push_back(row.contains(key) ? cell(row[key]) : "-");
        }
        std::vector<std::size_t> width(lines[0].size());
        for (const auto& line : lines) {
            for (std::size_t k = 0; k < line.size(); ++k) width[k] = std::max(width[k], line[k].size());
        }
        for (const auto& line : lines) {
            for (std::size_t k = 0; k < line.size(); ++k)
                std::printf("%*s  ", static_cast<int>(width[k]), line[k].c_str());
            std::printf("\n");
        }
    }

    std::string title_;
    nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
};

// "--name value" and "--name", nothing else.
class arguments {
public:
    arguments(int count, char** texts) : texts_(texts + 1, texts + count) {}
    bool has(std::string_view name) const { return std::find(texts_.begin(), texts_.end(), name) != texts_.end(); }
    long number(std::string_view name, long otherwise) const {
        const auto found = std::find(texts_.begin(), texts_.end(), name);
        return found == texts_.end() || found + 1 == texts_.end() ? otherwise
                                                                  : std::strtol((found + 1)->c_str(), nullptr, 10);
    }
    std::string text(std::string_view name, const char* otherwise) const {
        const auto found = std::find(texts_.begin(), texts_.end(), name);
        return found == texts_.end() || found + 1 == texts_.end() ? otherwise : *(found + 1);
    }

private:
    std::vector<std::string> texts_;
};

}  // namespace benchmark
