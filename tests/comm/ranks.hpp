// What the tests of src/comm share: the world duplicated (so that the shim sees any use of MPI_COMM_WORLD), random
// values.
#pragma once
#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "core/error.hpp"

namespace ranks {

class everyone {
public:
    everyone() { MPI_Comm_dup(MPI_COMM_WORLD, &comm); }
    ~everyone() { MPI_Comm_free(&comm); }
    std::unique_ptr<zero::comm::communicator> talk(zero::comm::mpi_options how = {}) const {
        return zero::comm::make_mpi(&comm, how);
    }
    MPI_Comm comm = MPI_COMM_NULL;
};

// The same numbers on every rank for the same seed; awkward to sum, so that the order shows.
template <typename T>
std::vector<T> values(std::int64_t count, unsigned seed) {
    std::mt19937_64 random(seed);
    std::vector<T> result(static_cast<std::size_t>(count));
    for (T& one : result) {
        const double size = static_cast<double>(random() % 2001) - 1000.0;
        one = static_cast<T>(size * (random() % 3 == 0 ? 32.0 : 1.0) / 7.0);
    }
    return result;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <typename Call>
zero::code code_of(const Call& call, std::string* text = nullptr) {
    try {
        call();
        return zero::code::ok;
    } catch (const zero::error& e) {
        if (text != nullptr) *text = e.what();
        return e.which();
    }
}

}  // namespace ranks
