// Adagrad (J. Duchi, E. Hazan, Y. Singer, 2011, diagonal form): the update of one element. Decay is added to the
// gradient.
#pragma once
#include "optimizer/adam.hpp"

namespace zero::optimizer {

template <typename T>
struct adagrad {
    static constexpr int states = 1;
    T rate, decay, eps;

    static adagrad from(const hyper& numbers) {
        return {static_cast<T>(numbers.lr), static_cast<T>(numbers.weight_decay), positive_eps<T>(numbers.eps)};
    }
    static ZERO_HD float root(float x) { return __builtin_sqrtf(x); }
    static ZERO_HD double root(double x) { return __builtin_sqrt(x); }
    ZERO_HD void operator()(T& value, T gradient, T& sum, T&) const {
        if (decay != 0) gradient = gradient + decay * value;
        sum = sum + gradient * gradient;
        value = value - (rate * gradient) / (root(sum) + eps);
    }
};

}  // namespace zero::optimizer
