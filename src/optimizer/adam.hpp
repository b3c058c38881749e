// Adam (D. Kingma, J. Ba, 2015, algorithm 1) and AdamW (I. Loshchilov, F. Hutter, 2019, algorithm 2): the update of one
// element. Not here: loops, clipping, limits (kernels_host.inc).
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/host_device.hpp"
#include "optimizer/optimizer.hpp"

namespace zero::optimizer {

// A positive eps stays positive in the state type: else 0/0 where the gradient is zero.
template <typename T>
T positive_eps(double eps) {
    const T rounded = static_cast<T>(eps);
    return eps > 0 && rounded < std::numeric_limits<T>::min() ? std::numeric_limits<T>::min() : rounded;
}

inline double bias(const hyper& numbers, double beta, std::int64_t step) {
    return numbers.bias_correction ? 1 - std::pow(beta, static_cast<double>(step)) : 1;
}

// The moments and what follows from them; LAMB uses it too. States: exp_avg, exp_avg_sq.
template <typename T>
struct moments {
    T beta1, rest1, beta2, rest2;  // rest = 1 - beta
    T inverse_root_bias2, eps;

    static moments from(const hyper& numbers, std::int64_t step) {
        return {static_cast<T>(numbers.beta1),
                static_cast<T>(1 - numbers.beta1),
                static_cast<T>(numbers.beta2),
                static_cast<T>(1 - numbers.beta2),
                static_cast<T>(1 / std::sqrt(bias(numbers, numbers.beta2, step))),
                positive_eps<T>(numbers.eps)};
    }
    ZERO_HD void advance(T gradient, T& first, T& second) const {
        first = beta1 * first + rest1 * gradient;
        second = beta2 * second + (rest2 * gradient) * gradient;
    }
    ZERO_HD T root(float second) const { return __builtin_sqrtf(second) * inverse_root_bias2 + eps; }
    ZERO_HD T root(double second) const { return __builtin_sqrt(second) * inverse_root_bias2 + eps; }
};

template <typename T>
struct adam {
    static constexpr int states = 2;
    moments<T> mean;
    T rate;       // lr / (1 - beta1^t)
    T decoupled;  // lr * weight_decay, taken from the value before the update (AdamW)
    T coupled;    // weight_decay, added to the gradient (Adam with L2)

    static adam from(const hyper& numbers, std::int64_t step) {
        return {moments<T>::from(numbers, step), static_cast<T>(numbers.lr / bias(numbers, numbers.beta1, step)),
                static_cast<T>(numbers.decoupled ? numbers.lr * numbers.weight_decay : 0),
                static_cast<T>(numbers.decoupled ? 0 : numbers.weight_decay)};
    }
    // The questions keep an infinite value infinite without decay (0 times infinity is NaN); they leave the loop.
    ZERO_HD void operator()(T& value, T gradient, T& first, T& second) const {
        if (coupled != 0) gradient = gradient + coupled * value;
        if (decoupled != 0) value = value - decoupled * value;
        mean.advance(gradient, first, second);
        value = value - (rate * first) / mean.root(second);
    }
};

}  // namespace zero::optimizer
