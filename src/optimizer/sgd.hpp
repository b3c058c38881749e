// Stochastic gradient descent, plain and with (Nesterov) momentum in the form of I. Sutskever et al., 2013, as PyTorch
// writes it: the update of one element. Decay is added to the gradient.
#pragma once
#include <cstdint>

#include "core/host_device.hpp"
#include "optimizer/optimizer.hpp"

namespace zero::optimizer {

template <typename T>
struct sgd {
    static constexpr int states = 0;
    T rate, decay;

    static sgd from(const hyper& numbers) { return {static_cast<T>(numbers.lr), static_cast<T>(numbers.weight_decay)}; }
    ZERO_HD void operator()(T& value, T gradient, T&, T&) const {
        if (decay != 0) gradient = gradient + decay * value;
        value = value - rate * gradient;
    }
};

template <typename T>
struct sgd_momentum {
    static constexpr int states = 1;
    T rate, decay, momentum;
    bool nesterov, first;  // the first step takes the gradient as it is, whatever the buffer holds

    static sgd_momentum from(const hyper& numbers, std::int64_t step) {
        return {static_cast<T>(numbers.lr), static_cast<T>(numbers.weight_decay), static_cast<T>(numbers.momentum),
                numbers.nesterov, step <= 1};
    }
    ZERO_HD void operator()(T& value, T gradient, T& buffer, T&) const {
        if (decay != 0) gradient = gradient + decay * value;
        buffer = first ? gradient : momentum * buffer + gradient;
        const T move = nesterov ? gradient + momentum * buffer : buffer;
        value = value - rate * move;
    }
};

}  // namespace zero::optimizer
