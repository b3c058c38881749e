// What the tests of the C interface share: the ranks, a context that cleans up after itself, and a model of two
// tensors.
#pragma once
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "zero/zero.h"

namespace zero_test {

inline int rank_of(MPI_Comm comm = MPI_COMM_WORLD) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    return rank;
}
inline int size_of(MPI_Comm comm = MPI_COMM_WORLD) {
    int size = 0;
    MPI_Comm_size(comm, &size);
    return size;
}
inline bool last_rank() {
    return rank_of() == size_of() - 1;
}

// The call must give the code, and a sentence where it fails.
#define EXPECT(expected, call)                             \
    do {                                                   \
        const int code_of_call = (call);                   \
        INFO(#call << ": " << zero_last_error());          \
        CHECK(code_of_call == (expected));                 \
        CHECK(std::string(zero_last_error()).size() > 10); \
    } while (false)
#define WORKS(call)                               \
    do {                                          \
        const int code_of_call = (call);          \
        INFO(#call << ": " << zero_last_error()); \
        REQUIRE(code_of_call == ZERO_OK);         \
    } while (false)

inline std::string sgd(int stage, const std::string& more = "") {
    return "{\"zero_optimization\": {\"stage\": " + std::to_string(stage) +
           ", \"stage3_param_persistence_threshold\": 0}, \"libzero\": {\"stale_check\": false}, "
           "\"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 1}}" +
           more + "}";
}

// A context over the world with tensors "a" (the caller's, 3 x 5 of fp32) and "b" (the library's, 7 of fp64).
struct model {
    explicit model(int stage, bool committed = true, const std::string& more = "")
        : a(15, 0.0F), gradient_a(15, 1.0F), gradient_b(7, 1.0) {
        WORKS(zero_init(MPI_COMM_WORLD, sgd(stage, more).c_str(), &z));
        WORKS(zero_register(z, "a", ZERO_F32, 2, dims_a, a.data(), 0, &id_a));
        WORKS(zero_register(z, "b", ZERO_F64, 1, dims_b, nullptr, 0, &id_b));
        if (committed) WORKS(zero_commit(z));
    }
    ~model() {
        if (z != nullptr) zero_finalize(&z);
    }
    model(const model&) = delete;
    model& operator=(const model&) = delete;

    void train_one_step() {
        WORKS(zero_reduce(z, id_a, gradient_a.data()));
        WORKS(zero_reduce(z, id_b, gradient_b.data()));
        WORKS(zero_step(z));
    }
    // The context still works: one more step moves every element by -1.
    void check_usable() {
        std::vector<double> before(7), after(7);
        WORKS(zero_gather_to(z, id_b, ZERO_EVERYONE, before.data()));
        train_one_step();
        WORKS(zero_gather_to(z, id_b, ZERO_EVERYONE, after.data()));
        for (std::size_t i = 0; i < 7; ++i) CHECK(after[i] == before[i] - 1);
    }

    const std::int64_t dims_a[2] = {3, 5};
    const std::int64_t dims_b[1] = {7};
    zero_t z = nullptr;
    int id_a = -1, id_b = -1;
    std::vector<float> a, gradient_a;
    std::vector<double> gradient_b;
};

// Everything written to the process's stdout and stderr while this lives.
class listening {
public:
    listening() : file_(std::tmpfile()) {
        std::fflush(nullptr);
        for (int stream : {1, 2}) {
            saved_[stream] = dup(stream);
            dup2(fileno(file_), stream);
        }
    }
    ~listening() {
        if (saved_[1] >= 0) restore();
        std::fclose(file_);
    }
    std::string heard() {
        restore();
        std::string text;
        std::rewind(file_);
        for (int letter = std::fgetc(file_); letter != EOF; letter = std::fgetc(file_))
            text.push_back(static_cast<char>(letter));
        return text;
    }

private:
    void restore() {
        std::fflush(nullptr);
        for (int stream : {1, 2}) {
            dup2(saved_[stream], stream);
            close(saved_[stream]);
            saved_[stream] = -1;
        }
    }
    std::FILE* file_;
    int saved_[3] = {-1, -1, -1};
};

}  // namespace zero_test
