// zero.h, "training". Each function is its engine call behind guard().
#include "capi/context.hpp"

using namespace zero;
using namespace zero::capi;

int zero_gradient(zero_t z, int id, void** buffer) {
    return guard([&] {
        need(buffer, "buffer");
        *buffer = reader(z).gradient(id);
    });
}

int zero_reduce(zero_t z, int id, const void* gradient) {
    return guard([&] { worker(z).reduce(id, 1.0, gradient); });
}

int zero_reduce_scaled(zero_t z, int id, double factor, const void* gradient) {
    return guard([&] { worker(z).reduce(id, factor, gradient); });
}

int zero_reduce_list(zero_t z, int n, const int* ids, const void* const* gradients) {
    return guard([&] {
        engine& body = worker(z);
        const auto list = ids_of(n, ids);
        if (n > 0) need(gradients, "gradients");
        body.reduce_list(list, gradients);
    });
}

int zero_step(zero_t z) {
    return guard([&] { worker(z).step(); });
}

int zero_finish(zero_t z) {
    return guard([&] { worker(z).finish(); });
}

int zero_slice(zero_t z, int id, const char* state, void** data, int64_t* first, int64_t* count) {
    return guard([&] {
        const owned_part part = reader(z).slice(id, text_of(state, "state"));
        if (data != nullptr) *data = part.data;
        if (first != nullptr) *first = part.first;
        if (count != nullptr) *count = part.count;
    });
}

int zero_publish(zero_t z) {
    return guard([&] { worker(z).publish(); });
}

int zero_dot(zero_t z, const char* a, const char* b, int group, double* result) {
    return guard([&] {
        engine& body = worker(z);
        std::string first;
        std::string second;
        check_together(body, "zero_dot", [&] {
            first = text_of(a, "a");
            second = text_of(b, "b");
            need(result, "result");
        });
        *result = body.dot(first, second, group);
    });
}
