// The sequence that a code writes without the library, at its best: MPI_Reduce_scatter_block, vectorised AdamW on the
// own slice, MPI_Allgather; and MPI_Allreduce with AdamW on everything for stage 0. One flat tensor, buffers taken once
// and touched, no division pass (the mean is a factor of the update), no norm, no overflow test. bf16 has two ways, and
// the faster one is the peer: a user operation on bf16, or widening and an fp32 sum. Also here: the fused step on
// private memory, without communication, which bounds every step of one node.
#pragma once
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "optimizer/optimizer.hpp"
#include "tensor/vector.hpp"

namespace benchmark {

using zero::dtype;

// Memory that has been touched. Starts are staggered inside the page, as the library's are: five streams that start at
// equal places slow the update by up to 1.6.
class array {
public:
    array() = default;
    array(std::int64_t count, dtype type) : bytes_(count * zero::size_of(type)), width_(zero::size_of(type)) {
        static int made = 0;
        start_ = made++ % 16 * 192;
        const std::size_t bytes = static_cast<std::size_t>(bytes_ + start_ + 4095) / 4096 * 4096;
        data_.reset(static_cast<std::byte*>(std::aligned_alloc(4096, bytes)));
        std::memset(data_.get(), 0, bytes);
    }
    std::byte* at(std::int64_t index = 0) const { return data_.get() + start_ + index * width_; }
    explicit operator bool() const { return data_ != nullptr; }

private:
    struct release {
        void operator()(std::byte* memory) const { std::free(memory); }
    };
    std::unique_ptr<std::byte, release> data_;
    std::int64_t bytes_ = 0, width_ = 1, start_ = 0;
};

inline void add_bf16(void* in, void* inout, int* count, MPI_Datatype*) {
    const void* both[2] = {inout, in};
    const dtype types[2] = {dtype::bf16, dtype::bf16};
    std::array<float, 2048> tile;
    for (std::int64_t done = 0; done < *count; done += static_cast<std::int64_t>(tile.size())) {
        const std::int64_t n = std::min<std::int64_t>(static_cast<std::int64_t>(tile.size()), *count - done);
        const void* parts[2] = {static_cast<const std::uint16_t*>(both[0]) + done,
                                static_cast<const std::uint16_t*>(both[1]) + done};
        zero::vector::ordered_sum(dtype::f32, tile.data(), false, parts, types, 2, n);
        zero::vector::convert(dtype::bf16, static_cast<std::uint16_t*>(inout) + done, dtype::f32, tile.data(), n);
    }
}

class peer {
public:
    enum class wire { own_type, widened };

    peer(dtype type, std::int64_t count, bool everything, MPI_Comm comm)
        : type_(type), sum_(zero::sum_type(type)), everything_(everything), comm_(comm) {
        MPI_Comm_rank(comm, &rank_);
        MPI_Comm_size(comm, &ranks_);
        slice_ = (count + ranks_ * 64 - 1) / (ranks_ * 64) * 64;
        const std::int64_t all = slice_ * ranks_, held = everything ? all : slice_;
        gradient_ = array(all, type);
        values_ = array(all, type);
        sums_ = array(held, sum_);
        for (auto& state : states_) state = array(held, sum_);
        if (zero::is_16bit(type)) {
            master_ = array(held, sum_);
            narrow_ = array(held, type);
            wide_ = array(all, sum_);
        }
        MPI_Op_create(add_bf16, 1, &operation_);
    }
    ~peer() { MPI_Op_free(&operation_); }
    peer(const peer&) = delete;
    peer& operator=(const peer&) = delete;

    void* gradient() const { return gradient_.at(); }
    std::int64_t count() const { return slice_ * ranks_; }
    void use(wire way) { way_ = way; }

    void step() {
        reduce();
        update();
        gather();
    }

    // What one node cannot do without: every slice read once from each rank, summed in the caches, AdamW, values
    // written.
    void bound() {
        constexpr std::int64_t tile = 4096;
        std::vector<const void*> parts(static_cast<std::size_t>(ranks_));
        const std::vector<dtype> types(parts.size(), type_);
        for (std::int64_t first = 0; first < slice_; first += tile) {
            const std::int64_t n = std::min(tile, slice_ - first);
            for (int k = 0; k < ranks_; ++k) parts[static_cast<std::size_t>(k)] = gradient_.at(k * slice_ + first);
            void* sum = tile_.data();
            if (everything_) sum = sums_.at(first);
            zero::vector::ordered_sum(sum_, sum, false, parts.data(), types.data(), ranks_, n);
            if (!everything_) update_tile(tile_.data(), rank_ * slice_ + first, first, n);
        }
        if (everything_) {
            ++steps_;
            update_tile(sums_.at(), 0, 0, count());
        }
    }

    // The three parts of a step.
    void reduce() {
        const int all = static_cast<int>(count()), own = static_cast<int>(slice_);
        if (!zero::is_16bit(type_)) {
            const MPI_Datatype number = type_ == dtype::f64 ? MPI_DOUBLE : MPI_FLOAT;
            if (everything_)
                MPI_Allreduce(gradient_.at(), sums_.at(), all, number, MPI_SUM, comm_);
            else
                MPI_Reduce_scatter_block(gradient_.at(), sums_.at(), own, number, MPI_SUM, comm_);
        } else if (way_ == wire::own_type) {
            if (everything_)
                MPI_Allreduce(gradient_.at(), narrow_.at(), all, MPI_UINT16_T, operation_, comm_);
            else
                MPI_Reduce_scatter_block(gradient_.at(), narrow_.at(), own, MPI_UINT16_T, operation_, comm_);
        } else {
            zero::vector::convert(dtype::f32, wide_.at(), type_, gradient_.at(), count());
            if (everything_)
                MPI_Allreduce(wide_.at(), sums_.at(), all, MPI_FLOAT, MPI_SUM, comm_);
            else
                MPI_Reduce_scatter_block(wide_.at(), sums_.at(), own, MPI_FLOAT, MPI_SUM, comm_);
        }
    }

    void update() {
        const std::int64_t first = everything_ ? 0 : rank_ * slice_, count = everything_ ? this->count() : slice_;
        ++steps_;
        if (!zero::is_16bit(type_) || way_ == wire::widened) return update_tile(sums_.at(), first, 0, count);
        constexpr std::int64_t tile = 4096;  // widened in the caches
        for (std::int64_t done = 0; done < count; done += tile) {
            const std::int64_t n = std::min(tile, count - done);
            zero::vector::convert(dtype::f32, tile_.data(), type_, narrow_.at(done), n);
            update_tile(tile_.data(), first + done, done, n);
        }
    }

    void gather() {
        if (everything_) return;
        const int bytes = static_cast<int>(slice_ * zero::size_of(type_));
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values_.at(), bytes, MPI_BYTE, comm_);
    }

private:
    void update_tile(const void* gradient, std::int64_t value, std::int64_t state, std::int64_t count) {
        zero::optimizer::update_range part;
        part.value_type = type_;
        part.value = master_ ? master_.at(state) : values_.at(value);
        part.copy16 = master_ ? values_.at(value) : nullptr;
        part.gradient = gradient;
        part.states = {states_[0].at(state), states_[1].at(state)};
        part.count = count;
        zero::optimizer::update(zero::optimizer::kind::adam, numbers_, 1.0 / ranks_, std::max<std::int64_t>(1, steps_),
                                part);
    }

    dtype type_, sum_;
    bool everything_;
    MPI_Comm comm_;
    int rank_ = 0, ranks_ = 1;
    std::int64_t slice_ = 0, steps_ = 0;
    wire way_ = wire::own_type;
    MPI_Op operation_ = MPI_OP_NULL;
    zero::optimizer::hyper numbers_{.weight_decay = 0.01};
    array gradient_, values_, sums_, master_, narrow_, wide_;
    std::array<array, 2> states_;
    alignas(64) std::array<double, 4096> tile_{};
};

}  // namespace benchmark
