// One rank: a reduction is a copy, a gather is a copy, and no MPI call is made.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "comm/checks.hpp"
#include "comm/chunks.hpp"
#include "comm/exact_tile.hpp"
#include "comm/node_shared.hpp"
#include "device/node_memory.hpp"
#include "tensor/vector.hpp"

namespace zero::comm {

namespace {

constexpr std::int64_t chunk = 64 * 1024;  // elements handed to `finished` while they are in cache

class copy_operation : public operation {
public:
    copy_operation(reduce_scatter_request what, crew* threads) : what_(std::move(what)), threads_(threads) {}
    bool progress() override {
        finish();
        return true;
    }
    void finish() override {
        if (done_) return;
        done_ = true;
        const dtype type = source_type(what_);
        const std::int64_t wide = size_of(what_.sum_type), width = size_of(type);
        const auto piece = [&](int member, std::int64_t begin, std::int64_t length) {
            const chunks parts{length, chunk};
            for (std::int64_t k = 0; k < parts.number(); ++k) {
                const std::int64_t first = begin + parts.first(k);
                const void* from = static_cast<const std::byte*>(what_.source) + first * width;
                void* to = static_cast<std::byte*>(what_.target) + first * wide;
                const bool in_place = from == to && !what_.add && what_.running == nullptr;
                bool final = true;
                if (what_.exact && !in_place)
                    final = sum_exactly(what_, first, &from, &type, 1, parts.count(k));
                else if (!in_place)
                    vector::ordered_sum(what_.sum_type, to, what_.add, &from, &type, 1, parts.count(k));
                if (final && what_.finished) what_.finished(member, first, parts.count(k), to);
            }
        };
        share(threads_, what_.slice, chunk, piece);
    }

private:
    reduce_scatter_request what_;
    crew* threads_;
    bool done_ = false;
};

class done_operation : public operation {
public:
    bool progress() override { return true; }
    void finish() override {}
};

class self final : public communicator {
public:
    explicit self(std::shared_ptr<node_memory> memory) : memory_(std::move(memory)) {}
    int rank() const noexcept override { return 0; }
    int size() const noexcept override { return 1; }
    const partition::topology& nodes() const noexcept override { return nodes_; }
    bool on_one_node() override { return true; }
    node_memory* shared() const noexcept override { return memory_.get(); }

    std::unique_ptr<operation> start_reduce_scatter(reduce_scatter_request what) override {
        check_reduction(what);
        return std::make_unique<copy_operation>(std::move(what), threads_);
    }
    std::unique_ptr<operation> start_all_gather(all_gather_request what) override {
        check_gather(what, 0, 1);
        const landing& mine = what.landings.front();
        if (mine.bytes > 0 && mine.data != what.own) {
            std::memcpy(mine.data, what.own, static_cast<std::size_t>(mine.bytes));
        }
        return std::make_unique<done_operation>();
    }

    void all_reduce(std::span<std::int64_t>, combine) override {}
    void broadcast(void*, std::int64_t, int) override {}
    std::vector<std::string> gather(const std::string& mine, int) override { return {mine}; }
    std::string broadcast(const std::string& text, int) override { return text; }

    void reserve(ledger&, std::int64_t) override {}
    std::int64_t scratch_bytes(std::int64_t) const noexcept override { return 0; }

private:
    partition::topology nodes_{1, 1};
    std::shared_ptr<node_memory> memory_;
};

}  // namespace

std::unique_ptr<communicator> make_self() {
    return std::make_unique<self>(nullptr);
}

std::unique_ptr<communicator> make_self_with(std::shared_ptr<node_memory> memory) {
    return std::make_unique<self>(std::move(memory));
}

}  // namespace zero::comm
