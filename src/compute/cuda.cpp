// Elements in device memory: kernels on a stream of the library's own. Nothing here waits for the device but wait(), copies to
// and from the host, and a note that is asked to. Not here: the kernels (tensor/*_cuda.cu, optimizer/kernels_cuda.cu).
#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "compute/processor.hpp"
#include "core/error.hpp"
#include "device/cuda.hpp"
#include "device/devices.hpp"
#include "optimizer/kernels_cuda.hpp"
#include "tensor/vector_cuda.hpp"

namespace zero::compute {

namespace {

using cuda::check;
using cuda::device_guard;

class note_on_device final : public note {
public:
    note_on_device(int device, cudaStream_t of) : device_(device), event_(device) {
        const device_guard here(device);
        event_.record(of);
    }
    bool passed() const override {
        const device_guard here(device_);
        return event_.passed();
    }
    void wait() const override {
        const device_guard here(device_);
        event_.wait();
    }
    void precede(cudaStream_t what) const { event_.precede(what); }

private:
    int device_;
    cuda::event event_;
};

// What all processors of a context on one device share.
class unit {
public:
    explicit unit(int device) : number(device), pool(std::make_shared<cuda::pool>(device)) {
        check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
    }
    std::shared_ptr<cuda::stream> open_stream() {
        auto fresh = std::make_shared<cuda::stream>(number);
        const std::lock_guard<std::mutex> lock(guard_);
        streams_.push_back(fresh);
        return fresh;
    }
    void settle() noexcept {
        const std::lock_guard<std::mutex> lock(guard_);
        for (const auto& one : streams_)
            if (const auto alive = one.lock()) alive->settle();
    }
    buffer take(ledger& book, purpose why, std::int64_t bytes, const std::shared_ptr<cuda::stream>& order) const {
        try {
            auto memory = pool->take(bytes, order);
            check(cudaMemsetAsync(memory.get(), 0, static_cast<std::size_t>(bytes), order->handle()), "cudaMemsetAsync");
            std::byte* data = memory.get();
            return {book, why, bytes, data, std::move(memory), place::device};
        } catch (const error& lacking) {
            if (lacking.which() != code::memory) throw;
            fail(code::memory, "{} bytes of device memory for {} could not be had: {}", bytes, name(why), lacking.what());
        }
    }

    const int number;
    int multiprocessors = 1;
    const std::shared_ptr<cuda::pool> pool;

private:
    std::mutex guard_;  // of streams_
    std::vector<std::weak_ptr<cuda::stream>> streams_;
};

// Host memory with its lock; where the system refuses to lock, plain memory, to which copies are slower. It is given up when no
// copy is under way any more, also after an error.
struct locked_memory {
    std::shared_ptr<unit> of;
    ledger aside;  // the bytes are booked by whoever holds this
    buffer memory;
    std::shared_ptr<const void> lock;

    locked_memory(std::shared_ptr<unit> whose, purpose why, std::int64_t bytes)
        : of(std::move(whose)), memory(aside, why, bytes, memory_kind::pinned), lock(cuda::lock_pages(memory.data(), bytes)) {}
    ~locked_memory() { of->settle(); }
};

buffer take_locked(const std::shared_ptr<unit>& of, ledger& book, purpose why, std::int64_t bytes) {
    auto held = std::make_shared<locked_memory>(of, why, bytes);
    std::byte* data = held->memory.data();
    const bool locked = held->lock != nullptr;
    return {book, why, bytes, data, std::move(held), place::host, locked};
}

// Exact sums that kernels add to, and where they are to go when they are known.
class results {
public:
    results(const std::shared_ptr<unit>& device, ledger& book, const std::shared_ptr<cuda::stream>& order)
        : order_(order), sums_(device->take(book, purpose::communication, cuda_result_bytes, order)),
          read_(take_locked(device, book, purpose::communication, cuda_result_bytes)) {}

    static constexpr std::size_t room = cuda_result_bytes / sizeof(vector::device_sum);
    static_assert(cuda_result_bytes % sizeof(vector::device_sum) == 0);

    // Null: no room until these are collected.
    vector::device_sum* place_of(totals& into, bool squares) {
        const goal wanted{&into, squares};
        auto found = std::find(goals_.begin(), goals_.end(), wanted);
        if (found == goals_.end()) {
            if (goals_.size() == room) return nullptr;
            found = goals_.insert(goals_.end(), wanted);
            check(cudaMemsetAsync(sum_at(found - goals_.begin()), 0, sizeof(vector::device_sum), order_->handle()), "cudaMemsetAsync");
        }
        return sum_at(found - goals_.begin());
    }
    void forget(std::span<const totals> these) noexcept {
        const std::less<> before;  // a total order of addresses
        for (goal& one : goals_)
            if (!before(one.into, these.data()) && before(one.into, these.data() + these.size())) one.into = nullptr;
    }

    // Waits for the stream.
    void collect() {
        const auto goals = std::exchange(goals_, {});
        if (!goals.empty())
            check(cudaMemcpyAsync(read_.data(), sums_.data(), goals.size() * sizeof(vector::device_sum), cudaMemcpyDeviceToHost,
                                  order_->handle()), "cudaMemcpyAsync");
        order_->wait();
        const auto* found = reinterpret_cast<const vector::device_sum*>(read_.data());
        for (const goal& one : goals) {
            if (one.into == nullptr) {
                ++found;
                continue;
            }
            one.into->finite = one.into->finite && found->not_finite == 0;
            exact_sum sum;
            std::copy_n(found->limbs, exact_sum::limbs, sum.data().begin());
            if (one.squares) one.into->squares.add(sum);
            ++found;
        }
    }

private:
    struct goal {
        totals* into;
        bool squares;  // wanted, not only whether all was finite
        bool operator==(const goal&) const = default;
    };
    vector::device_sum* sum_at(std::ptrdiff_t which) const { return reinterpret_cast<vector::device_sum*>(sums_.data()) + which; }

    std::shared_ptr<cuda::stream> order_;
    buffer sums_, read_;
    std::vector<goal> goals_;
};

class on_device final : public processor {
public:
    using processor::update;

    on_device(std::shared_ptr<unit> of, ledger& book)
        : unit_(std::move(of)), book_(book), stream_(unit_->open_stream()), before_(unit_->number), results_(unit_, book, stream_) {}

    place where() const noexcept override { return place::device; }
    void* stream() const noexcept override { return stream_->handle(); }
    int device() const noexcept override { return unit_->number; }
    std::unique_ptr<processor> beside() override {
        const device_guard here(unit_->number);
        return std::make_unique<on_device>(unit_, book_);
    }
    void share(std::int64_t total, std::int64_t, const crew::piece& part) override {
        if (total > 0) part(0, 0, total);
    }

    buffer take(ledger& book, purpose why, std::int64_t bytes, memory_kind kind) override {
        require(bytes >= 0, code::memory, "a buffer of {} bytes for {} is impossible: the sizes behind it overflowed", bytes, name(why));
        if (bytes == 0) return {book, why, 0};
        const device_guard here(unit_->number);
        return kind == memory_kind::pinned ? take_locked(unit_, book, why, bytes) : unit_->take(book, why, bytes, stream_);
    }

    void clear(void* to, std::int64_t bytes, bool) override {
        if (bytes <= 0) return;
        const device_guard here(unit_->number);
        check(cudaMemsetAsync(to, 0, static_cast<std::size_t>(bytes), stream_->handle()), "cudaMemsetAsync");
    }
    void start_copy(void* to, const void* from, std::int64_t bytes) override {
        if (bytes <= 0 || to == from) return;
        const device_guard here(unit_->number);
        check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream_->handle()), "cudaMemcpyAsync");
    }
    void copy(void* to, const void* from, std::int64_t bytes) override {
        if (bytes <= 0 || to == from) return;
        start_copy(to, from, bytes);
        if (is_of_host(recognise(to).kind) || is_of_host(recognise(from).kind)) stream_->wait();
    }

    void convert(dtype to_type, void* to, dtype from_type, const void* from, std::int64_t count) override {
        if (to_type == from_type) return start_copy(to, from, count * size_of(to_type));
        const device_guard here(unit_->number);
        vector::convert(queue(), to_type, to, from_type, from, count);
    }
    void accumulate(dtype sum_type, void* sum, dtype from_type, const void* from, double factor, std::int64_t count, bool assign) override {
        const device_guard here(unit_->number);
        vector::accumulate(queue(), sum_type, sum, from_type, from, factor, count, assign);
    }
    void ordered_sum(dtype sum_type, void* target, bool add, const void* const* sources, const dtype* types, int ranks,
                     std::int64_t count) override {
        require(ranks >= 1, code::internal, "ordered_sum: no source");
        require(ranks <= vector::most_sources, code::unsupported,
                "a device adds at most {} contributions at once, not {}: set libzero.device to \"host\"", vector::most_sources, ranks);
        const device_guard here(unit_->number);
        vector::ordered_sum(queue(), sum_type, target, add, sources, types, ranks, count);
    }
    void divide_and_norm(dtype type, void* data, double divisor, std::int64_t count, bool squares, totals& into) override {
        if (count <= 0) return;
        const device_guard here(unit_->number);
        const std::lock_guard<std::mutex> lock(guard_);
        vector::divide_and_norm(queue(), type, data, divisor, count, place_of(into, squares));
    }
    void divide(dtype type, void* data, double divisor, std::int64_t count) override {
        totals nobody_asks;
        const held until_then(*this, {&nobody_asks, 1});
        if (divisor != 1) divide_and_norm(type, data, divisor, count, false, nobody_asks);
    }
    void dot(dtype type, const void* a, const void* b, std::int64_t count, totals& into) override {
        if (count <= 0) return;
        const device_guard here(unit_->number);
        const std::lock_guard<std::mutex> lock(guard_);
        vector::dot(queue(), type, a, b, count, place_of(into, true));
    }
    void round_through(dtype narrow, dtype sum_type, void* data, std::int64_t count) override {
        const device_guard here(unit_->number);
        vector::round_through(queue(), narrow, sum_type, data, count);
    }

    void update(optimizer::kind which, const optimizer::hyper& numbers, double clip_factor, std::int64_t step,
                const optimizer::update_range& part) override {
        update(which, numbers, clip_factor, step, std::span(&part, 1));
    }
    void update(optimizer::kind which, const optimizer::hyper& numbers, double clip_factor, std::int64_t step,
                std::span<const optimizer::update_range> parts) override {
        const device_guard here(unit_->number);
        optimizer::update(queue(), which, numbers, clip_factor, step, parts);
    }
    void lamb_direction(const optimizer::hyper& numbers, double clip_factor, std::int64_t step, const optimizer::update_range& part,
                        void* direction) override {
        const device_guard here(unit_->number);
        optimizer::lamb_direction(queue(), numbers, clip_factor, step, part, direction);
    }
    void lamb_apply(const optimizer::hyper& numbers, double trust, const optimizer::update_range& part, const void* direction) override {
        const device_guard here(unit_->number);
        optimizer::lamb_apply(queue(), numbers, trust, part, direction);
    }

    void wait() override {
        const device_guard here(unit_->number);
        const std::lock_guard<std::mutex> lock(guard_);
        results_.collect();
    }
    void settle() noexcept override { stream_->settle(); }
    void settle_all() noexcept override { unit_->settle(); }
    void forget(std::span<const totals> these) noexcept override {
        const std::lock_guard<std::mutex> lock(guard_);
        results_.forget(these);
    }
    std::unique_ptr<note> take_note() override { return std::make_unique<note_on_device>(unit_->number, stream_->handle()); }
    void follow(const note& of_another) override {
        const auto* theirs = dynamic_cast<const note_on_device*>(&of_another);
        if (theirs == nullptr) return of_another.wait();
        const device_guard here(unit_->number);
        theirs->precede(stream_->handle());
    }

    void after_caller() override { order(callers_, stream_->handle()); }
    void before_caller() override { order(stream_->handle(), callers_); }
    void follow_stream(void* cuda_stream) override { callers_ = static_cast<cudaStream_t>(cuda_stream); }

private:
    cuda::queue queue() const { return {stream_->handle(), unit_->multiprocessors}; }

    vector::device_sum* place_of(totals& into, bool squares) {
        if (auto* there = results_.place_of(into, squares)) return there;
        results_.collect();
        return results_.place_of(into, squares);
    }
    void order(cudaStream_t first, cudaStream_t then) {
        const device_guard here(unit_->number);
        require(!cuda::is_captured(callers_), code::state,
                "the stream of zero_set_stream is recording a CUDA graph, and a graph would repeat work without the agreement of the "
                "ranks: end the capture before calls of the library");
        before_.record(first);
        before_.precede(then);
    }

    std::shared_ptr<unit> unit_;
    ledger& book_;
    std::shared_ptr<cuda::stream> stream_;
    cuda::event before_;
    cudaStream_t callers_ = nullptr;
    std::mutex guard_;  // of results_
    results results_;
};

}  // namespace

std::unique_ptr<processor> make_cuda(int number, ledger& book) {
    const device_guard here(number);
    return std::make_unique<on_device>(std::make_shared<unit>(number), book);
}

}  // namespace zero::compute
