// A plain serial optimizer in double, written from the formulas of the papers: what the kernels are tested against.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "optimizer/optimizer.hpp"

struct reference {
    zero::optimizer::kind which;
    zero::optimizer::hyper h;
    std::vector<double> p, a, b;
    int t = 0;

    reference(zero::optimizer::kind which_, const zero::optimizer::hyper& h_, std::vector<double> p_)
        : which(which_), h(h_), p(std::move(p_)), a(p.size()), b(p.size()) {}

    void step(const std::vector<double>& gradient, double clip) {
        using zero::optimizer::kind;
        ++t;
        std::vector<double> r(p.size());
        double p_norm = 0, r_norm = 0;
        for (std::size_t i = 0; i < p.size(); ++i) {
            double g = gradient[i] * clip;
            const double bias1 = h.bias_correction ? 1 - std::pow(h.beta1, t) : 1,
                         bias2 = h.bias_correction ? 1 - std::pow(h.beta2, t) : 1;
            if (which == kind::sgd || which == kind::adagrad || (which == kind::adam && !h.decoupled))
                g += h.weight_decay * p[i];
            if (which == kind::adam || which == kind::lamb) {
                if (which == kind::adam && h.decoupled) p[i] -= h.lr * h.weight_decay * p[i];
                a[i] = h.beta1 * a[i] + (1 - h.beta1) * g;
                b[i] = h.beta2 * b[i] + (1 - h.beta2) * g * g;
                r[i] = (a[i] / bias1) / (std::sqrt(b[i] / bias2) + h.eps);
                if (which == kind::lamb) r[i] += h.weight_decay * p[i];
            } else if (which == kind::lion) {
                const double u = h.beta1 * a[i] + (1 - h.beta1) * g;
                r[i] = (u > 0 ? 1 : u < 0 ? -1 : 0) + h.weight_decay * p[i];
                a[i] = h.beta2 * a[i] + (1 - h.beta2) * g;
            } else if (which == kind::adagrad) {
                a[i] += g * g;
                r[i] = g / (std::sqrt(a[i]) + h.eps);
            } else {
                a[i] = t == 1 ? g : h.momentum * a[i] + g;
                r[i] = h.momentum == 0 ? g : h.nesterov ? g + h.momentum * a[i] : a[i];
            }
            p_norm += p[i] * p[i];
            r_norm += r[i] * r[i];
        }
        double trust = 1;
        if (which == kind::lamb && p_norm > 0 && r_norm > 0)
            trust = std::clamp(std::sqrt(p_norm / r_norm), h.min_coeff, h.max_coeff);
        for (std::size_t i = 0; i < p.size(); ++i) p[i] = std::clamp(p[i] - h.lr * trust * r[i], h.lower, h.upper);
    }
};
