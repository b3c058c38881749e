// zero.h, "life of a context" and "options and readings". Each function is its engine call behind guard().
#include <memory>
#include <string>

#include "capi/context.hpp"
#include "comm/communicator.hpp"

namespace {

using namespace zero;
using namespace zero::capi;

// The option may come with the configuration or from zero_set_*, so this is asked at init and again at commit.
void watch_signals_if_wanted(context& what) {
    if (what.body.options().boolean("libzero.checkpoint_signals")) what.stopping.watch_signals();
}

void start(MPI_Comm comm, const char* config, zero_t* z) {
    if (z != nullptr) *z = nullptr;
    auto made = std::make_unique<context>(&comm, config == nullptr ? std::string() : std::string(config));
    made->body.agree().settle(calls::init(0), [&] { need(z, "z"); });  // not before: the other ranks are on their way
    watch_signals_if_wanted(*made);
    *z = add_handle(std::move(made));
}

// MPI_Comm_f2c of an uninitialised MPI is an error that MPI may answer by ending the program.
MPI_Comm from_fortran(MPI_Fint comm) {
    require(comm::mpi_is_usable(), code::state,
            "MPI is not initialised, or finalized already; call zero between MPI_Init and MPI_Finalize");
    return MPI_Comm_f2c(comm);
}

}  // namespace

int zero_init(MPI_Comm comm, const char* config, zero_t* z) {
    return guard([&] { start(comm, config, z); });
}

int zero_init_f(MPI_Fint comm, const char* config, zero_t* z) {
    return guard([&] {
        if (z != nullptr) *z = nullptr;
        start(from_fortran(comm), config, z);
    });
}

int zero_set_model_comm(zero_t z, MPI_Comm model) {
    return guard([&] { worker(z).set_model_comm(&model); });
}

int zero_set_model_comm_f(zero_t z, MPI_Fint model) {
    return guard([&] {
        engine& body = worker(z);
        const MPI_Comm converted = from_fortran(model);
        body.set_model_comm(&converted);
    });
}

int zero_commit(zero_t z) {
    return guard([&] {
        worker(z).commit();
        watch_signals_if_wanted(look(z));
    });
}

int zero_wait(zero_t z) {
    return guard([&] { worker(z).wait(); });
}

int zero_finalize(zero_t* z) {
    return guard([&] {
        need(z, "z");
        engine& body = reader(*z);
        const bool usable = comm::mpi_is_usable();
        std::exception_ptr problem;
        try {
            if (usable) body.close();
        } catch (const error& failure) {
            if (failure.which() == code::mismatch) throw;  // the others still need this rank
            problem = std::current_exception();
        }
        take_handle(*z).reset();
        *z = nullptr;
        if (problem) std::rethrow_exception(problem);
        require(usable, code::state,
                "zero_finalize came after MPI_Finalize: local memory was freed, but nothing was agreed "
                "with the other ranks; call it before MPI_Finalize");
    });
}

int zero_set_int(zero_t z, const char* key, int64_t value) {
    return guard([&] { reader(z).set(text_of(key, "key"), static_cast<std::int64_t>(value)); });
}

int zero_set_real(zero_t z, const char* key, double value) {
    return guard([&] { reader(z).set(text_of(key, "key"), value); });
}

int zero_set_text(zero_t z, const char* key, const char* value) {
    return guard([&] { reader(z).set(text_of(key, "key"), text_of(value, "value")); });
}

int zero_get_int(zero_t z, const char* key, int64_t* value) {
    return guard([&] {
        need(value, "value");
        *value = reader(z).get_integer(text_of(key, "key"));
    });
}

int zero_get_real(zero_t z, const char* key, double* value) {
    return guard([&] {
        need(value, "value");
        *value = reader(z).get_real(text_of(key, "key"));
    });
}

int zero_get_text(zero_t z, const char* key, char* text, size_t capacity, size_t* needed) {
    return guard([&] { copy_text(reader(z).get_text(text_of(key, "key")), text, capacity, needed); });
}
