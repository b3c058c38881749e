// What the tests of src/comm share: the world duplicated (so that the shim sees any use of MPI_COMM_WORLD), random
// values.
#pragma once
#include <mpi.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "core/error.hpp"
#include "device/node_memory.hpp"

namespace ranks {

// The same cases over the memory that the ranks of a node share; what counts MPI's messages is tagged [mpi] and left out.
inline bool over_node() { return std::getenv("ZERO_TEST_NODE_SHARED") != nullptr; }
// The same cases on several nodes of so many ranks each, but for those that say something else themselves.
inline int node_size() {
    const char* const text = std::getenv("ZERO_TEST_NODE_SIZE");
    return text == nullptr ? 0 : std::atoi(text);
}

class everyone {
public:
    everyone() { MPI_Comm_dup(MPI_COMM_WORLD, &comm); }
    ~everyone() { MPI_Comm_free(&comm); }
    std::unique_ptr<zero::comm::communicator> talk(zero::comm::mpi_options how = {}) const {
        if (how.node_size == 0) how.node_size = node_size();
        auto plain = zero::comm::make_mpi(&comm, how);
        std::string reason;
        return over_node() ? zero::comm::share_node(std::move(plain), reason) : std::move(plain);
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

// An array that the communicator's other ranks may read, where they share memory.
template <typename T>
class visible {
public:
    visible(const zero::comm::communicator& over, const std::vector<T>& values) : own_(values), data_(own_.data()) {
        const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
        if (over.size() == 1 || over.shared() == nullptr || bytes == 0) return;
        keeper_ = over.shared()->take_own(bytes);
        data_ = reinterpret_cast<T*>(keeper_->data);
        std::memcpy(data_, values.data(), static_cast<std::size_t>(bytes));
    }
    visible(const visible&) = delete;
    visible& operator=(const visible&) = delete;
    T* data() { return data_; }

private:
    std::vector<T> own_;
    T* data_;
    std::shared_ptr<const zero::node_memory::stretch> keeper_;
};

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
