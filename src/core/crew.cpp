// Helpers wait for the next loop by its number. See crew.hpp.
#include "core/crew.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "core/deaf.hpp"
#include "core/floating_point.hpp"

namespace zero {

crew::crew(int members, std::vector<cpu_list> cores) : cores_(std::move(cores)) {
    const deaf helpers_too;
    try {
        for (int member = 1; member < members; ++member) helpers_.emplace_back([this, member] { work(member); });
    } catch (const std::system_error&) {
    }
}

crew::~crew() {
    over_.store(true);
    loops_.fetch_add(1);
    loops_.notify_all();
    for (auto& helper : helpers_) helper.join();
}

void crew::work(int member) {
    const floating_point_guard usual_environment;
    if (!cores_.empty()) stay_on(cores_[static_cast<std::size_t>(member) % cores_.size()]);
    for (std::uint32_t seen = 0;;) {
        loops_.wait(seen);
        seen = loops_.load();
        if (over_.load()) return;
        take_piece(member);
        ended_.fetch_add(1);
        ended_.notify_one();
    }
}

void crew::take_piece(int member) noexcept {
    const std::int64_t first = member * each_, count = std::min(each_, total_ - first);
    if (count <= 0) return;
    try {
        (*part_)(member, first, count);
    } catch (...) {
        const std::lock_guard<std::mutex> alone(guard_);
        if (!failed_) failed_ = std::current_exception();
    }
}

void crew::share(std::int64_t total, std::int64_t grain, const piece& part) {
    if (total <= 0) return;
    const std::int64_t grains = (total + grain - 1) / grain;
    if (helpers_.empty() || grains == 1 || taken_.test_and_set(std::memory_order_acquire)) return part(0, 0, total);
    part_ = &part;
    total_ = total;
    each_ = (grains + members() - 1) / members() * grain;
    ended_.store(0);
    loops_.fetch_add(1);
    loops_.notify_all();
    take_piece(0);
    const auto helpers = static_cast<std::uint32_t>(helpers_.size());
    for (std::uint32_t ended = ended_.load(); ended != helpers; ended = ended_.load()) ended_.wait(ended);
    const auto failed = std::exchange(failed_, nullptr);
    taken_.clear(std::memory_order_release);
    if (failed) std::rethrow_exception(failed);
}

namespace {

int cores_of_this_thread() {
    cpu_set_t mine;
    return ::sched_getaffinity(0, sizeof mine, &mine) == 0 ? std::max(1, CPU_COUNT(&mine)) : 1;
}

}  // namespace

int threads_to_use(int wanted) {
    if (wanted == 0) {
        const char* text = std::getenv("OMP_NUM_THREADS");  // "8", or "8,2" for nested loops
        wanted = text == nullptr ? 1 : std::atoi(text);
    }
    return std::clamp(wanted, 1, cores_of_this_thread());
}

// Elsewhere a fixed core may be that of another rank or of the caller, who moves: the system knows better.
std::vector<cpu_list> cores_to_stay_on(const std::string& bind, int threads) {
    if (bind == "none" || threads < 2) return {};
    auto cores = own_cores();
    if (bind == "auto" && cores.size() != static_cast<std::size_t>(threads)) cores.clear();
    return cores;
}

// Where the launcher binds nothing, all ranks of the node may use all of its cores.
bool core_to_spare(int threads, int ranks_on_node) {
    const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
    return std::min<long>(cores_of_this_thread(), online / std::max(1, ranks_on_node)) > threads;
}

}  // namespace zero
