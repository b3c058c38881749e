// What the Fortran binding needs beyond zero.h: it sees wrong kinds, shapes and strides, which C cannot, and its
// refusals must reach zero_last_error and the other ranks as any other error does. Not here: the binding
// (bindings/fortran/).
#include "capi/context.hpp"

extern "C" ZERO_API int zerof_refuse(zero_t z, int collective, const char* call_name, const char* sentence);

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
