// Elements in host memory: what tensor/vector.hpp and optimizer/optimizer.hpp do, at once. Long vectors are shared between the
// threads, unless they are part of a shared loop already.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "compute/processor.hpp"
#include "tensor/stream_copy.hpp"
#include "tensor/vector.hpp"

namespace zero::compute {

namespace {

class host final : public processor {
public:
    using processor::update;
    explicit host(crew& threads) : threads_(threads) {}
    place where() const noexcept override { return place::host; }
    buffer take(ledger& book, purpose why, std::int64_t bytes, memory_kind kind) override { return {book, why, bytes, kind}; }
    std::unique_ptr<processor> beside() override { return std::make_unique<host>(threads_); }
    void share(std::int64_t total, std::int64_t grain, const crew::piece& part) override { threads_.share(total, grain, part); }

    void clear(void* to, std::int64_t bytes, bool past_caches) override {
        split(bytes, large_bytes, [&](int, std::int64_t first, std::int64_t count) {
            auto* place = static_cast<std::byte*>(to) + first;
            if (past_caches) stream_zeros(place, count);
            else std::memset(place, 0, static_cast<std::size_t>(count));
        });
    }
    void copy(void* to, const void* from, std::int64_t bytes) override {
        auto* target = static_cast<std::byte*>(to);
        const auto* source = static_cast<const std::byte*>(from);
        if (target == source) return;
        const bool apart = target + bytes <= source || source + bytes <= target;
        split(bytes, apart ? large_bytes : bytes, [&](int, std::int64_t first, std::int64_t count) {
            std::memmove(target + first, source + first, static_cast<std::size_t>(count));
        });
    }

    void convert(dtype to_type, void* to, dtype from_type, const void* from, std::int64_t count) override {
        split(count, large, [&](int, std::int64_t first, std::int64_t n) {
            vector::convert(to_type, at(to, first, to_type), from_type, at(from, first, from_type), n);
        });
    }
    void accumulate(dtype sum_type, void* sum, dtype from_type, const void* from, double factor, std::int64_t count, bool assign) override {
        split(count, large, [&](int, std::int64_t first, std::int64_t n) {
            vector::accumulate(sum_type, at(sum, first, sum_type), from_type, at(from, first, from_type), factor, n, assign);
        });
    }
    void ordered_sum(dtype sum_type, void* target, bool add, const void* const* sources, const dtype* types, int ranks,
                     std::int64_t count) override {
        vector::ordered_sum(sum_type, target, add, sources, types, ranks, count);
    }
    void divide_and_norm(dtype type, void* data, double divisor, std::int64_t count, bool squares, totals& into) override {
        exact_sum aside;
        into.finite &= vector::divide_and_norm(type, data, divisor, count, squares ? into.squares : aside);
    }
    void divide(dtype type, void* data, double divisor, std::int64_t count) override { vector::divide(type, data, divisor, count); }
    void dot(dtype type, const void* a, const void* b, std::int64_t count, totals& into) override {
        std::vector<totals> parts(count > large ? static_cast<std::size_t>(threads_.members()) : 0);
        split(count, large, [&](int member, std::int64_t first, std::int64_t n) {
            totals& mine = parts.empty() ? into : parts[static_cast<std::size_t>(member)];
            mine.finite &= vector::dot(type, at(a, first, type), at(b, first, type), n, mine.squares);
        });
        for (const totals& part : parts) into.add(part);
    }
    void round_through(dtype narrow, dtype sum_type, void* data, std::int64_t count) override {
        split(count, large, [&](int, std::int64_t begin, std::int64_t length) {
            std::array<std::byte, 4096> tile;
            const std::int64_t step = static_cast<std::int64_t>(tile.size()) / size_of(narrow);
            for (std::int64_t first = begin; first < begin + length; first += step) {
                const std::int64_t n = std::min(step, begin + length - first);
                void* place = at(data, first, sum_type);
                vector::convert(narrow, tile.data(), sum_type, place, n);
                vector::convert(sum_type, place, narrow, tile.data(), n);
            }
        });
    }

    void update(optimizer::kind which, const optimizer::hyper& numbers, double clip_factor, std::int64_t step,
                const optimizer::update_range& part) override {
        optimizer::update(which, numbers, clip_factor, step, part);
    }
    void lamb_direction(const optimizer::hyper& numbers, double clip_factor, std::int64_t step, const optimizer::update_range& part,
                        void* direction) override {
        optimizer::lamb_direction(numbers, clip_factor, step, part, direction);
    }
    void lamb_apply(const optimizer::hyper& numbers, double trust, const optimizer::update_range& part, const void* direction) override {
        optimizer::lamb_apply(numbers, trust, part, direction);
    }

private:
    static constexpr std::int64_t large = 1 << 16, large_bytes = 1 << 19;  // elements, bytes that are worth another thread
    template <typename Piece>
    void split(std::int64_t total, std::int64_t grain, const Piece& piece) {
        if (total > grain) threads_.share(total, grain, piece);
        else if (total > 0) piece(0, std::int64_t{0}, total);
    }
    static void* at(void* data, std::int64_t first, dtype type) { return static_cast<std::byte*>(data) + first * size_of(type); }
    static const void* at(const void* data, std::int64_t first, dtype type) {
        return static_cast<const std::byte*>(data) + first * size_of(type);
    }

    crew& threads_;
};

}  // namespace

std::unique_ptr<processor> make_host(crew& threads) { return std::make_unique<host>(threads); }

}  // namespace zero::compute
