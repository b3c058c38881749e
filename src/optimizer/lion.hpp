// Lion (X. Chen et al., 2023, algorithm 2): the update of one element. Decay is decoupled: it never enters the sign.
#pragma once
#include "core/host_device.hpp"
#include "optimizer/optimizer.hpp"

namespace zero::optimizer {

template <typename T>
struct lion {
    static constexpr int states = 1;
    T beta1, rest1, beta2, rest2;
    T rate;
    T decay;  // lr * weight_decay

    static lion from(const hyper& numbers) {
        return {static_cast<T>(numbers.beta1), static_cast<T>(1 - numbers.beta1),
                static_cast<T>(numbers.beta2), static_cast<T>(1 - numbers.beta2),
                static_cast<T>(numbers.lr),    static_cast<T>(numbers.lr * numbers.weight_decay)};
    }
    ZERO_HD void operator()(T& value, T gradient, T& average, T&) const {
        const T blend = beta1 * average + rest1 * gradient;
        const T negative = blend < 0 ? -rate : blend;  // zero moves nothing, NaN stays NaN
        const T move = blend > 0 ? rate : negative;
        if (decay != 0) value = value - decay * value;
        value = value - move;
        average = beta2 * average + rest2 * gradient;
    }
};

}  // namespace zero::optimizer
