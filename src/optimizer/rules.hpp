// From the name of an optimizer to the rule of one element: hyper-parameters are rounded to the state type here, once per call,
// for the loops of every processor. Not here: the formulas (adam.hpp and its siblings).
#pragma once
#include "optimizer/adagrad.hpp"
#include "optimizer/adam.hpp"
#include "optimizer/kernels_host.hpp"
#include "optimizer/lamb.hpp"
#include "optimizer/lion.hpp"
#include "optimizer/sgd.hpp"

namespace zero::optimizer {

// sweep(name, rule for masters of type T). Nothing for LAMB, which takes two passes.
template <typename T, typename Sweep>
void with_rule(kind which, const hyper& numbers, std::int64_t step, const Sweep& sweep) {
    switch (which) {
        case kind::adam: return sweep(rule::adam, adam<T>::from(numbers, step));
        case kind::lion: return sweep(rule::lion, lion<T>::from(numbers));
        case kind::adagrad: return sweep(rule::adagrad, adagrad<T>::from(numbers));
        case kind::sgd:
            if (numbers.momentum == 0) return sweep(rule::sgd, sgd<T>::from(numbers));
            return sweep(rule::sgd_momentum, sgd_momentum<T>::from(numbers, step));
        case kind::lamb: return;
    }
}

// What every processor refuses, as code::internal (optimizer.cpp).
void require_states(const update_range& part, int needed);  // are they there?
void require_one_pass(kind which);                          // not LAMB
void require_parameters(dtype type);

}  // namespace zero::optimizer
