// zero.h, "values". Each function is its engine call behind guard(); what a C caller may get wrong is checked before,
// and a failure on one rank is carried to all (check_together).
#include "capi/context.hpp"

using namespace zero;
using namespace zero::capi;

int zero_fill(zero_t z, int id, const char* kind, double a, double b, uint64_t seed) {
    return guard([&] {
        engine& body = worker(z);
        std::string word;
        check_together(body, "zero_fill", [&] { word = text_of(kind, "kind"); });
        body.fill(id, word, a, b, seed);
    });
}

int zero_gather(zero_t z, int id, void** values) {
    return guard([&] {
        engine& body = worker(z);
        check_gathering(body, "zero_gather", [&] { need(values, "values"); });
        *values = body.gather(id);
    });
}

int zero_prefetch(zero_t z, int id) {
    return guard([&] { worker(z).prefetch(id); });
}

int zero_release(zero_t z, int id) {
    return guard([&] { worker(z).release(id); });
}

int zero_scatter(zero_t z, int id, int root, const void* values) {
    return guard([&] { worker(z).scatter(id, root, values); });
}

int zero_gather_to(zero_t z, int id, int root, void* buffer) {
    return guard([&] { worker(z).gather_to(id, root, buffer); });
}

int zero_gather_state(zero_t z, int id, const char* state, int root, void* buffer) {
    return guard([&] {
        engine& body = worker(z);
        std::string word;
        check_together(body, "zero_gather_state", [&] { word = text_of(state, "state"); });
        body.gather_state(id, word, root, buffer);
    });
}

int zero_scatter_state(zero_t z, int id, const char* state, int root, const void* buffer) {
    return guard([&] {
        engine& body = worker(z);
        std::string word;
        check_together(body, "zero_scatter_state", [&] { word = text_of(state, "state"); });
        body.scatter_state(id, word, root, buffer);
    });
}

int zero_gather_list(zero_t z, int n, const int* ids, void** values) {
    return guard([&] {
        engine& body = worker(z);
        check_gathering(body, "zero_gather_list", [&] {
            ids_of(n, ids);
            if (n > 0) need(values, "values");
        });
        body.gather_list(ids_of(n, ids), values);
    });
}

int zero_release_list(zero_t z, int n, const int* ids) {
    return guard([&] { worker(z).release_list(ids_of(n, ids)); });
}

int zero_rebind(zero_t z, int id, void* values) {
    return guard([&] { reader(z).rebind(id, values); });
}
