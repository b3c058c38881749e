// What stands behind a zero_t, the table of live handles, and the checks that every C function makes of its arguments.
// Not here: checks that need the model or the state of training (engine/).
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "capi/guard.hpp"
#include "core/error.hpp"
#include "core/stop.hpp"
#include "engine/calls.hpp"
#include "engine/engine.hpp"
#include "zero/zero.h"

namespace zero::capi {

struct context {
    context(const void* mpi_comm, const std::string& config) : body(mpi_comm, config) {}
    engine body;
    stop::watch stopping;
};

// A zero_t is a number of this table, never an address: a handle of a finalized context is never taken for a new one.
zero_t add_handle(std::unique_ptr<context> what);
std::unique_ptr<context> take_handle(zero_t handle);  // leaves the table; null when it is not in it
context& look(zero_t handle);                         // throws code::argument for what is no live handle

engine& reader(zero_t handle);  // for calls that only look
engine& worker(zero_t handle);  // for calls that may communicate: MPI must be usable, else code::state

// The texts and pointers that came over the border. `what` is the parameter's name in zero.h.
std::string text_of(const char* text, const char* what);        // null is an error
std::string optional_text(const char* text, const char* what);  // null is ""
void need(const void* pointer, const char* what);               // null is an error
dtype dtype_of(int number, bool parameter);                     // throws for unknown and complex types
place place_of(int number);
std::span<const std::int64_t> dims_of(int ndim, const std::int64_t* dims);
std::span<const int> ids_of(int n, const int* ids);

// Copies as zero.h says of zero_get_text.
void copy_text(const std::string& from, char* text, std::size_t capacity, std::size_t* needed);

// A wrong argument of a collective call: the other ranks are already on their way into the call's agreement, so this
// rank meets them there with its error, and all ranks return it.
template <typename Check>
void check_together(engine& body, const char* call_name, Check&& check) {
    try {
        check();
    } catch (...) {
        const std::exception_ptr problem = std::current_exception();
        body.agree().enter(calls::refused(call_name), [&] { std::rethrow_exception(problem); });
        throw;
    }
}

// The same for gathers, which stay alone where whole values are at hand anyway (zero.h, "Two limits").
template <typename Check>
void check_gathering(engine& body, const char* call_name, Check&& check) {
    if (body.gathers_meet()) {
        check_together(body, call_name, std::forward<Check>(check));
    } else {
        check();
    }
}

}  // namespace zero::capi
