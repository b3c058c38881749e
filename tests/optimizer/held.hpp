// Parameters, states and the 16-bit copy of one tensor as a test holds them, and one step of any optimizer over them.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "optimizer/optimizer.hpp"

template <typename T>
struct held {
    std::vector<T> value, first, second;
    std::vector<std::uint16_t> copy;
    zero::dtype type = sizeof(T) == 8 ? zero::dtype::f64 : zero::dtype::f32;

    explicit held(const std::vector<double>& start)
        : value(start.begin(), start.end()), first(start.size()), second(start.size()), copy(start.size()) {}

    zero::optimizer::update_range range(const std::vector<T>& gradient) {
        zero::optimizer::update_range part;
        part.value_type = type;
        part.value = value.data();
        part.copy16 = zero::is_16bit(type) ? copy.data() : nullptr;
        part.gradient = gradient.data();
        part.states = {first.data(), second.data()};
        part.count = static_cast<std::int64_t>(value.size());
        return part;
    }
    static double norm(const std::vector<T>& x) {
        double sum = 0;
        for (const T e : x) sum += static_cast<double>(e) * static_cast<double>(e);
        return std::sqrt(sum);
    }
    void step(zero::optimizer::kind which, const zero::optimizer::hyper& h, double clip, std::int64_t number,
              std::vector<T> gradient) {
        const auto part = range(gradient);
        if (which != zero::optimizer::kind::lamb) {
            zero::optimizer::update(which, h, clip, number, part);
            return;
        }
        zero::optimizer::lamb_direction(h, clip, number, part, gradient.data());  // over the gradient
        const double trust = zero::optimizer::lamb_trust(h, norm(value), norm(gradient));
        zero::optimizer::lamb_apply(h, trust, part, gradient.data());
    }
};
