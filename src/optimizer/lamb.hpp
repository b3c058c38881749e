// LAMB (Y. You et al., 2020, algorithm 2): direction and application of one element, in two passes because the trust
// ratio needs the norms of whole tensors in between. Not here: the norms (the stage has them agreed over ranks).
#pragma once
#include "optimizer/adam.hpp"

namespace zero::optimizer {

template <typename T>
struct lamb_direction_rule {
    moments<T> mean;
    T inverse_bias1;
    T decay;

    static lamb_direction_rule from(const hyper& numbers, std::int64_t step) {
        return {moments<T>::from(numbers, step), static_cast<T>(1 / bias(numbers, numbers.beta1, step)),
                static_cast<T>(numbers.weight_decay)};
    }
    ZERO_HD T operator()(T value, T gradient, T& first, T& second) const {
        mean.advance(gradient, first, second);
        const T adapted = (first * inverse_bias1) / mean.root(second);
        return decay != 0 ? adapted + decay * value : adapted;
    }
};

template <typename T>
struct lamb_apply_rule {
    static constexpr int states = 0;
    T rate;  // lr * trust

    static lamb_apply_rule from(const hyper& numbers, double trust) { return {static_cast<T>(numbers.lr * trust)}; }
    ZERO_HD void operator()(T& value, T direction, T&, T&) const { value = value - rate * direction; }
};

}  // namespace zero::optimizer
