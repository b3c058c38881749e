// The threads of a rank: the caller and helpers that share one loop after the other. Helpers never call MPI, hear no
// signals, and run on the cores that the launcher gave. Not here: which these are (places.hpp), what is worth sharing.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/places.hpp"

namespace zero {

class crew {
public:
    // The caller counts; fewer, where the system gives no more threads. Helper k stays on cores[k % size]; the caller, to whom
    // cores[0] is left, stays nowhere. None: all run where the caller may.
    explicit crew(int members, std::vector<cpu_list> cores = {});
    ~crew();
    crew(const crew&) = delete;
    crew& operator=(const crew&) = delete;

    int members() const noexcept { return static_cast<int>(helpers_.size()) + 1; }

    // Calls part(member, first, count) for pieces that together are 0 .. total-1: at most one for each member, 0 is the
    // caller, and all but the last are multiples of `grain`. What a piece throws is thrown here, when all have ended.
    // While one loop is on its way, that of another thread is done by that thread alone, as member 0.
    using piece = std::function<void(int member, std::int64_t first, std::int64_t count)>;
    void share(std::int64_t total, std::int64_t grain, const piece& part);

private:
    void work(int member);
    void take_piece(int member) noexcept;

    std::vector<cpu_list> cores_;
    std::vector<std::thread> helpers_;
    std::atomic<std::uint32_t> loops_{0}, ended_{0};  // loops begun; helpers that are through with the present one
    std::atomic<bool> over_{false};
    std::atomic_flag taken_;
    const piece* part_ = nullptr;
    std::int64_t total_ = 0, each_ = 0;
    std::mutex guard_;  // of failed_
    std::exception_ptr failed_;
};

// The same with `threads`; null: the caller does it alone.
inline void share(crew* threads, std::int64_t total, std::int64_t grain, const crew::piece& part) {
    if (threads != nullptr) threads->share(total, grain, part);
    else if (total > 0) part(0, 0, total);
}

// libzero.threads, or where that is 0 OMP_NUM_THREADS, or 1; never more than the cores that this thread may use.
int threads_to_use(int wanted);
// libzero.bind: the cores that helpers stay on; none where they are free.
std::vector<cpu_list> cores_to_stay_on(const std::string& bind, int threads);
// Has this rank, one of so many on its node, a core that neither its threads nor other ranks need?
bool core_to_spare(int threads, int ranks_on_node);

}  // namespace zero
