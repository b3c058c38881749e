// From the number of a type to the type: which instance of a template does the work. Not here: what the types can (convert.hpp).
#pragma once
#include "tensor/convert.hpp"
#include "tensor/dtype.hpp"
#include "tensor/vector_kernels.hpp"

namespace zero::vector {

// Both throw code::internal for other types (vector.cpp).
int element_of(dtype type);          // f32, f64, bf16, f16
void require_sum_type(dtype type);   // f32, f64

// work.template operator()<T>()
template <typename Work>
void with_sum(dtype type, const Work& work) {
    require_sum_type(type);
    if (type == dtype::f64) work.template operator()<double>();
    else work.template operator()<float>();
}
template <typename Work>
void with_element(dtype type, const Work& work) {
    switch (element_of(type)) {
        case element_bf16: return work.template operator()<bf16>();
        case element_f16: return work.template operator()<f16>();
        default: return with_sum(type, work);
    }
}

}  // namespace zero::vector
