// What is done to elements, and memory to hold them, wherever they lie. One processor for each kind of memory behind the
// same few calls: host.cpp (vectorised loops, shared by the rank's threads), cuda.cpp (kernels on the library's stream; no_cuda.cpp
// in builds without). The bits of a result do not depend on which one it was. Not here: when what is done (stage/), what
// travels (comm/).
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "core/crew.hpp"
#include "core/exact_sum.hpp"
#include "core/ledger.hpp"
#include "device/memory.hpp"
#include "optimizer/optimizer.hpp"
#include "tensor/dtype.hpp"

namespace zero::compute {

// What the norm and the overflow test of an update are made of.
struct totals {
    exact_sum squares;             // of gradients, after the division
    bool finite = true;
    void add(const totals& other) noexcept {
        squares.add(other.squares);
        finite &= other.finite;
    }
};

class note {
public:
    virtual ~note() = default;
    virtual bool passed() const { return true; }
    virtual void wait() const {}
};

// Calls take effect one after the other. On a device they return before that, and what they find out is there after wait();
// arguments are addresses in memory of this processor's place, but where `copy` says otherwise.
class processor {
public:
    virtual ~processor() = default;
    virtual place where() const noexcept = 0;
    bool on_host() const noexcept { return where() == place::host; }

    // Zeroed memory, booked. Throws code::memory with size and purpose.
    virtual buffer take(ledger& book, purpose why, std::int64_t bytes, memory_kind kind = memory_kind::plain) = 0;

    // Splits a loop among what works at the same time here; each piece may make calls of its own. Blocks until all were made.
    virtual void share(std::int64_t total, std::int64_t grain, const crew::piece& part) = 0;

    virtual void clear(void* to, std::int64_t bytes, bool past_caches = false) = 0;
    // Either address may be of this place or of the host. One to or from host memory has taken effect on return.
    virtual void copy(void* to, const void* from, std::int64_t bytes) = 0;

    // As the functions of these names in tensor/vector.hpp.
    virtual void convert(dtype to_type, void* to, dtype from_type, const void* from, std::int64_t count) = 0;
    virtual void accumulate(dtype sum_type, void* sum, dtype from_type, const void* from, double factor, std::int64_t count, bool assign) = 0;
    virtual void ordered_sum(dtype sum_type, void* target, bool add, const void* const* sources, const dtype* types, int ranks,
                             std::int64_t count) = 0;
    virtual void divide_and_norm(dtype type, void* data, double divisor, std::int64_t count, bool squares, totals& into) = 0;  // squares: wanted
    virtual void divide(dtype type, void* data, double divisor, std::int64_t count) = 0;
    virtual void dot(dtype type, const void* a, const void* b, std::int64_t count, totals& into) = 0;
    // data[i] = the sum type's value nearest to what a narrower type holds of it.
    virtual void round_through(dtype narrow, dtype sum_type, void* data, std::int64_t count) = 0;
    // As copy, but memory of the host stays as it is, and is not looked at, until wait() or the next note has passed.
    virtual void start_copy(void* to, const void* from, std::int64_t bytes) { copy(to, from, bytes); }

    // As the functions of these names in optimizer/optimizer.hpp.
    virtual void update(optimizer::kind which, const optimizer::hyper& numbers, double clip_factor, std::int64_t step,
                        const optimizer::update_range& part) = 0;
    virtual void update(optimizer::kind which, const optimizer::hyper& numbers, double clip_factor, std::int64_t step,
                        std::span<const optimizer::update_range> parts) {  // many ranges: one kernel for hundreds
        for (const auto& part : parts) update(which, numbers, clip_factor, step, part);
    }
    virtual void lamb_direction(const optimizer::hyper& numbers, double clip_factor, std::int64_t step, const optimizer::update_range& part,
                                void* direction) = 0;
    virtual void lamb_apply(const optimizer::hyper& numbers, double trust, const optimizer::update_range& part, const void* direction) = 0;

    // Everything has taken effect.
    virtual void wait() {}
    virtual void settle() noexcept {}       // the same after an error: whatever failed is left to those who look for it
    virtual void settle_all() noexcept {}   // of all processors beside this one too
    virtual void forget(std::span<const totals> /*these*/) noexcept {}  // what is under way to them shall not arrive: they end
    // A point in what is done here: what was asked for before has taken effect when it has passed. Results in `totals` need wait().
    virtual std::unique_ptr<note> take_note() { return std::make_unique<note>(); }
    virtual void follow(const note& /*of_another*/) {}  // what comes here from now on is done after that
    // Another one for the same memory, whose calls are done beside those made here.
    virtual std::unique_ptr<processor> beside() = 0;
    virtual void* stream() const noexcept { return nullptr; }  // cudaStream_t of this one
    virtual int device() const noexcept { return -1; }         // its number
    // The order among what the caller puts on its stream and what is done here: what it put there before precedes what
    // comes here from now on; what was done here so far precedes what it puts there from now on. Neither waits.
    virtual void after_caller() {}
    virtual void before_caller() {}
    virtual void follow_stream(void* /*cuda_stream*/) {}  // the caller's; null: the default stream
};

// Totals of one thing, which a processor may still be adding to. When they end early, by an error, nothing more arrives.
class held {
public:
    held(processor& by, std::span<const totals> these) : by_(by), these_(these) {}
    ~held() { by_.forget(these_); }
    held(const held&) = delete;
    held& operator=(const held&) = delete;

private:
    processor& by_;
    std::span<const totals> these_;
};

std::unique_ptr<processor> make_host(crew& threads);
// Memory of that device, and host memory that it reaches (memory_kind::pinned). Throws code::unsupported in builds without CUDA.
std::unique_ptr<processor> make_cuda(int device, ledger& book);
// What make_cuda books as communication on the device, and as much again on the host, for results that are under way.
constexpr std::int64_t cuda_result_bytes = 128 * (exact_sum::limbs + 1) * 8;

}  // namespace zero::compute
