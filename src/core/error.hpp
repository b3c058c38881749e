// The one exception of the library: a code of the public contract and a sentence that says what to change.
// Not here: how it crosses the C ABI (capi/guard.hpp) or the other ranks (core/agreement.hpp).
#pragma once
#include <stdexcept>
#include <string>
#include <utility>

#include "core/text.hpp"

namespace zero {

// One line per code: identifier, number, public name, what it means. Docs and zero_error_name come from it.
#define ZERO_ERROR_TABLE(row)                                                                      \
    row(ok, 0, "ZERO_OK", "success")                                                               \
    row(argument, 1, "ZERO_ERR_ARGUMENT", "bad id, pointer, dims, root, name, tag or dead handle") \
    row(state, 2, "ZERO_ERR_STATE", "the call does not fit the present state of the context")      \
    row(config, 3, "ZERO_ERR_CONFIG", "a key or a value of the configuration is wrong")            \
    row(memory, 4, "ZERO_ERR_MEMORY", "memory could not be had or a limit on it was reached")      \
    row(mpi, 5, "ZERO_ERR_MPI", "an MPI call failed")                                              \
    row(cuda, 6, "ZERO_ERR_CUDA", "a CUDA call failed")                                            \
    row(nccl, 7, "ZERO_ERR_NCCL", "a NCCL call failed")                                            \
    row(io, 8, "ZERO_ERR_IO", "a file could not be read or written")                               \
    row(checkpoint, 9, "ZERO_ERR_CHECKPOINT", "a checkpoint is missing, damaged, of another model, or exists already") \
    row(mismatch, 10, "ZERO_ERR_MISMATCH", "ranks differ in tensors, options, arguments or calls") \
    row(unsupported, 11, "ZERO_ERR_UNSUPPORTED", "known, but not in this build or not built yet")  \
    row(numeric, 12, "ZERO_ERR_NUMERIC", "numbers left the usable range")                          \
    row(internal, 99, "ZERO_ERR_INTERNAL", "a fault of the library: please report it")

enum class code : int {
#define ZERO_ROW(identifier, number, name, text) identifier = number,
    ZERO_ERROR_TABLE(ZERO_ROW)
#undef ZERO_ROW
};

const char* name(code which) noexcept;     // "ZERO_ERR_STATE"; "ZERO_ERR_UNKNOWN" for a number that is no code
const char* meaning(code which) noexcept;  // the last column

// How far the sentence says already on which rank it happened; only agreements between ranks write that.
enum class located : int { nowhere, rank, model_rank };

class error : public std::runtime_error {
public:
    error(code which, const std::string& sentence, located where = located::nowhere)
        : std::runtime_error(sentence), code_(which), located_(where) {}
    code which() const noexcept { return code_; }
    located where() const noexcept { return located_; }

private:
    code code_;
    located located_;
};

template <typename... Args>
[[noreturn]] void fail(code which, fmt::format_string<Args...> format, Args&&... args) {
    throw error(which, formatted(format, std::forward<Args>(args)...));
}

template <typename... Args>
void require(bool condition, code which, fmt::format_string<Args...> format, Args&&... args) {
    if (!condition) throw error(which, formatted(format, std::forward<Args>(args)...));
}

}  // namespace zero
