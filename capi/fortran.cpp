// What the Fortran binding needs beyond zero.h: it sees wrong kinds, shapes and strides, which C cannot, and its
// refusals must reach zero_last_error and the other ranks as any other error does. Not here: the binding
// (bindings/fortran/).
#include "capi/context.hpp"

extern "C" ZERO_API int zerof_refuse(zero_t z, int collective, const char* call_name, const char* sentence);
// zero_reduce_scaled of a flat array of that dtype: one call, where asking for the dtype would be another. -1: the tensor
// has another one, and nothing was done.
extern "C" ZERO_API int zerof_reduce_flat(zero_t z, int id, int dtype, double factor, const void* gradient);

int zerof_refuse(zero_t z, int collective, const char* call_name, const char* sentence) {
    using namespace zero;
    using namespace zero::capi;
    return guard([&] {
        const auto refuse = [&] { fail(code::argument, "{}: {}", call_name, sentence); };
        constexpr int gathers = 2;  // as zero_gather: meets the other ranks only where it communicates
        if (collective == 0) refuse();
        if (collective == gathers) check_gathering(worker(z), call_name, refuse);
        check_together(worker(z), call_name, refuse);
    });
}

int zerof_reduce_flat(zero_t z, int id, int dtype, double factor, const void* gradient) {
    using namespace zero;
    using namespace zero::capi;
    bool fits = true;
    const int code = guard([&] {
        engine& body = worker(z);
        fits = static_cast<int>(body.tensors().at(id).type) == dtype;
        if (fits) body.reduce(id, factor, gradient);
    });
    return fits ? code : -1;
}
