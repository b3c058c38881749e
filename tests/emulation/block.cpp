// Threads of a block as fibres (ucontext), with barriers over the block and over its warps: see block.hpp.
#include "block.hpp"

#include <ucontext.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>

#include "fibre_sanitizers.hpp"
#include "state.hpp"

namespace zero_emulation {
namespace {

constexpr std::size_t stack_bytes = std::size_t{64} << 10;

struct fibre {
    ucontext_t context;
    std::unique_ptr<std::byte[]> stack;
    bool finished = false;
    sanitizer_fibre sanitizer;
};

// A barrier that those pass together who have not finished.
struct meeting {
    unsigned expected = 0, arrived = 0;
    std::uint64_t generation = 0;
    void arrive() {
        ++arrived;
        check();
    }
    void leave() {
        --expected;
        check();
    }

private:
    void check() {
        if (arrived == 0 || arrived < expected) return;
        arrived = 0;
        ++generation;
    }
};

struct warp {
    meeting all;
    std::array<std::array<std::uint64_t, warpSize>, 2> words{};
};

// One thread runs all kernels.
struct {
    std::vector<std::unique_ptr<fibre>> fibres;
    std::vector<warp> warps;
    meeting all;
    ucontext_t scheduler;
    sanitizer_fibre scheduler_sanitizer;
    const std::function<void()>* thread = nullptr;
    std::size_t current = 0;
    bool on_fibres = false;
} block;

std::uint64_t progress() {
    std::uint64_t sum = block.all.generation;
    for (const warp& each : block.warps) sum += each.all.generation;
    return sum;
}

void set_thread(std::size_t number) {
    block.current = number;
    threadIdx.x = static_cast<unsigned>(number % blockDim.x);
    threadIdx.y = static_cast<unsigned>(number / blockDim.x % blockDim.y);
    threadIdx.z = static_cast<unsigned>(number / blockDim.x / blockDim.y);
}

void leave(fibre& mine, bool for_ever) {
    before_switch(for_ever ? nullptr : &mine.sanitizer, block.scheduler_sanitizer);
    ::swapcontext(&mine.context, &block.scheduler);
    after_switch(mine.sanitizer, nullptr);
}

void enter() {
    fibre& mine = *block.fibres[block.current];
    after_switch(mine.sanitizer, &block.scheduler_sanitizer);
    (*block.thread)();
    mine.finished = true;
    block.all.leave();
    block.warps[block.current / warpSize].all.leave();
    leave(mine, true);
}

void prepare(std::size_t number) {
    if (block.fibres.size() <= number) block.fibres.push_back(std::make_unique<fibre>());
    fibre& one = *block.fibres[number];
    if (!one.stack) one.stack.reset(new std::byte[stack_bytes]);
    one.finished = false;
    ::getcontext(&one.context);
    one.context.uc_stack.ss_sp = one.stack.get();
    one.context.uc_stack.ss_size = stack_bytes;
    one.context.uc_link = nullptr;
    ::makecontext(&one.context, enter, 0);
    one.sanitizer.make(one.stack.get(), stack_bytes);
}

void resume(std::size_t number) {
    set_thread(number);
    fibre& one = *block.fibres[number];
    before_switch(&block.scheduler_sanitizer, one.sanitizer);
    ::swapcontext(&block.scheduler, &one.context);
    after_switch(block.scheduler_sanitizer, nullptr);
    if (one.finished) one.sanitizer.drop();
}

void complain(const std::string& what) {
    machine& m = the_machine();
    const guard lock(m.door);
    problem(m, what);
}

void wait(const meeting& of, std::uint64_t before) {
    const std::size_t mine = block.current;
    while (of.generation == before) leave(*block.fibres[mine], false);
}

bool may_meet(const char* function) {
    if (block.on_fibres) return true;
    complain(std::string(function) + " in a block whose first thread comes to no barrier");
    std::abort();
}

}  // namespace

void barrier() {
    may_meet("__syncthreads");
    const std::uint64_t before = block.all.generation;
    block.all.arrive();
    wait(block.all, before);
}

std::uint64_t exchange(std::uint64_t mine, int lane, const char* function) {
    may_meet(function);
    warp& ours = block.warps[block.current / warpSize];
    const std::uint64_t before = ours.all.generation;
    auto& words = ours.words[before % 2];
    words[block.current % warpSize] = mine;
    const int present = static_cast<int>(ours.all.expected);
    ours.all.arrive();
    wait(ours.all, before);
    return lane < 0 || lane >= present ? mine : words[static_cast<std::size_t>(lane)];
}

unsigned ballot(bool mine) {
    may_meet("__ballot_sync");
    warp& ours = block.warps[block.current / warpSize];
    const std::uint64_t before = ours.all.generation;
    auto& words = ours.words[before % 2];
    words[block.current % warpSize] = mine ? 1 : 0;
    const unsigned present = ours.all.expected;
    ours.all.arrive();
    wait(ours.all, before);
    unsigned bits = 0;
    for (unsigned i = 0; i < present; ++i) bits |= static_cast<unsigned>(words[i]) << i;
    return bits;
}

void run_block(const std::function<void()>& thread) {
    const std::size_t threads = std::size_t{blockDim.x} * blockDim.y * blockDim.z;
    block.thread = &thread;
    block.all = {static_cast<unsigned>(threads), 0, 0};
    block.warps.assign((threads + warpSize - 1) / warpSize, {});
    for (std::size_t i = 0; i < block.warps.size(); ++i) {
        block.warps[i].all.expected = static_cast<unsigned>(std::min<std::size_t>(threads - i * warpSize, warpSize));
    }
    block.on_fibres = true;
    block.scheduler_sanitizer.adopt();
    prepare(0);
    resume(0);
    if (block.fibres[0]->finished) {  // no barriers
        block.on_fibres = false;
        for (std::size_t i = 1; i < threads; ++i) {
            set_thread(i);
            thread();
        }
        return;
    }
    for (std::size_t i = 1; i < threads; ++i) prepare(i);
    for (std::size_t left = threads; left > 0;) {
        const std::uint64_t before = progress();
        const std::size_t left_before = left;
        for (std::size_t i = 0; i < threads; ++i) {
            if (block.fibres[i]->finished) continue;
            resume(i);
            if (block.fibres[i]->finished) --left;
        }
        if (left != left_before || progress() != before) continue;
        // The first round takes everybody to a barrier; nobody passes one in a later round: they wait at different
        // ones.
        complain("the threads of a block wait at different barriers");
        break;
    }
    block.on_fibres = false;
}

}  // namespace zero_emulation
