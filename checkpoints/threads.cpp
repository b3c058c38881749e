// Starting and joining of threads.hpp.
#include "threads.hpp"

#include <algorithm>
#include <deque>
#include <system_error>

#include "core/deaf.hpp"
#include "core/floating_point.hpp"

namespace zero::checkpoint {

bool helper::start(std::function<void()> work) {
    const deaf the_thread_too;
    try {
        thread_ = std::thread([this, work = std::move(work)] {
            const floating_point_guard usual_environment;
            try {
                work();
            } catch (...) {
                failed_ = std::current_exception();
            }
            done_.store(true);
        });
        started_ = true;
    } catch (const std::system_error&) {
    }
    return started_;
}

void helper::join() noexcept {
    if (thread_.joinable()) thread_.join();
}

void in_turn(int lanes, std::size_t count, const std::function<void(int, std::size_t)>& work) {
    std::atomic<std::size_t> next{0};
    std::atomic<bool> over{false};
    std::exception_ptr failed;
    {
        std::deque<helper> others;
        const auto lane_work = [&](int lane) {
            try {
                for (std::size_t k = next++; k < count && !over; k = next++) work(lane, k);
            } catch (...) {
                over = true;
                throw;
            }
        };
        for (int lane = 1; lane < lanes; ++lane)
            if (!others.emplace_back().start([&lane_work, lane] { lane_work(lane); })) break;
        try {
            lane_work(0);
        } catch (...) {
            failed = std::current_exception();
        }
        for (helper& other : others) {
            other.join();
            if (!failed) failed = other.failure();
        }
    }
    if (failed) std::rethrow_exception(failed);
}

int lanes_for(std::int64_t bytes) {
    constexpr std::int64_t most_lanes = 4;
    return static_cast<int>(std::clamp<std::int64_t>(bytes / request_bytes, 1, most_lanes));
}

}  // namespace zero::checkpoint
