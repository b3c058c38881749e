// zero.h, "memory, reports, estimates" and "surroundings". Not here: what this build is made of (build_info.cpp).
#include "capi/context.hpp"
#include "zero/version.h"

namespace {

using namespace zero;
using namespace zero::capi;

void write(std::int64_t* to, std::int64_t value) {
    if (to != nullptr) *to = value;
}

void write(int* to, int value) {
    if (to != nullptr) *to = value;
}

}  // namespace

int zero_report(zero_t z, char* text, size_t capacity, size_t* needed) {
    return guard([&] {
        engine& body = worker(z);
        const std::string whole = body.report();
        body.agree().settle(calls::report(), [&] { copy_text(whole, text, capacity, needed); });
    });
}

int zero_estimate(const char* config, int dtype, int ranks, int nodes, int64_t elements, int64_t largest,
                  int64_t* device_bytes, int64_t* host_bytes, int64_t* nvme_bytes) {
    return guard([&] {
        const zero::dtype type = dtype_of(dtype, true);
        require(ranks >= 1 && nodes >= 1, code::argument, "ranks is {} and nodes is {}; both are at least 1", ranks,
                nodes);
        require(elements >= 0 && largest >= 0 && largest <= elements, code::argument,
                "elements is {} and largest is {}; largest is the number of elements of the largest tensor", elements,
                largest);
        const estimate all = estimate_memory(optional_text(config, "config"), type, ranks, nodes, elements, largest);
        write(device_bytes, all.device);
        write(host_bytes, all.host);
        write(nvme_bytes, all.nvme);
    });
}

int zero_set_stream(zero_t z, void* cuda_stream) {
    return guard([&] {
        reader(z).set_stream(cuda_stream);
    });
}

int zero_set_log(zero_t z, zero_log_fn fn, void* user) {
    return guard([&] {
        zero::log& lines = reader(z).logger();
        if (fn == nullptr) return lines.redirect({});
        lines.redirect(
            [fn, user](log_level level, const std::string& text) { fn(static_cast<int>(level), text.c_str(), user); });
    });
}

const char* zero_error_name(int number) {
    return name(static_cast<code>(number));
}

const char* zero_last_error(void) {
    return last_sentence();
}

int zero_version(int* major, int* minor, int* patch) {
    write(major, ZERO_VERSION_MAJOR);
    write(minor, ZERO_VERSION_MINOR);
    write(patch, ZERO_VERSION_PATCH);
    return ZERO_OK;
}
