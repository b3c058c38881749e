// Which way of dividing gives the right bits for the least time; the loops of all processors ask it. Not here: the loops.
#pragma once
#include <cmath>

#include "tensor/vector_kernels.hpp"

namespace zero::vector {

// The cheapest division of elements of type T with the right bits, and the number the kernel wants for it.
template <typename T>
division how_to_divide(double divisor, double& number) {
    number = divisor;
    if (divisor == 1) return division::none;
    int exponent = 0;
    const bool power = std::fabs(std::frexp(divisor, &exponent)) == 0.5;
    if (power && exponent > -100 && exponent < 100) {
        number = 1 / divisor;
        return division::multiply;
    }
    const bool exact = static_cast<double>(static_cast<T>(divisor)) == divisor;
    return exact ? division::divide : division::divide_wide;
}

}  // namespace zero::vector
