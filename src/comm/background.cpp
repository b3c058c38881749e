// One lock around the communicator underneath: it is held for one call of the caller, or while the helper asks each
// operation once to move on. The helper sleeps while nothing is under way, and steps back for the caller.
#include "comm/background.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include "core/deaf.hpp"
#include "core/floating_point.hpp"

namespace zero::comm {

namespace {

class background final : public communicator {
public:
    explicit background(std::unique_ptr<communicator> foreground) : under_(std::move(foreground)) {}
    ~background() override {
        {
            const turn mine(*this);
            over_ = true;
        }
        news_.notify_all();
        if (helper_.joinable()) helper_.join();
    }

    int rank() const noexcept override { return under_->rank(); }
    int size() const noexcept override { return under_->size(); }
    const partition::topology& nodes() const noexcept override { return under_->nodes(); }
    node_memory* shared() const noexcept override { return under_->shared(); }
    bool on_one_node() override { return call([&] { return under_->on_one_node(); }); }
    void meanwhile(std::function<bool()> work) override {
        call([&] { under_->meanwhile(std::move(work)); });
    }
    void employ(crew* threads) noexcept override {
        call([&] { under_->employ(threads); });
    }
    void fence() override {
        call([&] { under_->fence(); });
    }
    void farewell() noexcept override { under_->farewell(); }
    void all_reduce(std::span<std::int64_t> values, combine how) override {
        call([&] { under_->all_reduce(values, how); });
    }
    void broadcast(void* data, std::int64_t bytes, int root) override {
        call([&] { under_->broadcast(data, bytes, root); });
    }
    std::vector<std::string> gather(const std::string& mine, int root) override {
        return call([&] { return under_->gather(mine, root); });
    }
    std::string broadcast(const std::string& text, int root) override {
        return call([&] { return under_->broadcast(text, root); });
    }
    void reserve(ledger& book, std::int64_t largest_slice_bytes) override {
        call([&] { under_->reserve(book, largest_slice_bytes); });
    }
    std::int64_t scratch_bytes(std::int64_t largest_slice_bytes) const noexcept override {
        return under_->scratch_bytes(largest_slice_bytes);
    }
    traffic sent() const noexcept override {
        return call([&] { return under_->sent(); });
    }

    std::unique_ptr<communicator> part(int color, int node_size) override {
        return call([&] { return under_->part(color, node_size); });
    }

    std::unique_ptr<operation> start_reduce_scatter(reduce_scatter_request what) override {
        return watched([&] { return under_->start_reduce_scatter(std::move(what)); });
    }
    std::unique_ptr<operation> start_all_gather(all_gather_request what) override {
        return watched([&] { return under_->start_all_gather(std::move(what)); });
    }

    bool start_helper() override;

    // One operation under way.
    struct errand {
        std::unique_ptr<operation> work;
        bool done = false;
        std::exception_ptr error;
    };
    bool progress(errand& one);
    void finish(errand& one);
    void drop(errand& one) noexcept;

private:
    // The lock for one call of the caller, who goes first.
    class turn {
    public:
        explicit turn(const background& of) : of_(of) {
            of_.waiting_.fetch_add(1);
            of_.guard_.lock();
            of_.waiting_.fetch_sub(1);
        }
        ~turn() { of_.guard_.unlock(); }
        turn(const turn&) = delete;
        turn& operator=(const turn&) = delete;

    private:
        const background& of_;
    };

    template <typename Call>
    std::invoke_result_t<const Call&> call(const Call& what) const {
        const turn mine(*this);
        return what();
    }
    template <typename Start>
    std::unique_ptr<operation> watched(const Start& start);
    static void ask(errand& one) noexcept;
    bool ask_all() noexcept;
    void help();

    std::unique_ptr<communicator> under_;
    mutable std::mutex guard_;               // of all that follows, and of `under_`
    mutable std::atomic<int> waiting_{0};    // the caller wants the lock
    std::condition_variable news_;
    std::list<errand*> under_way_;           // in the order of their starts
    bool over_ = false;
    std::thread helper_;                     // last: it works on all the others
};

class errand_operation : public operation {
public:
    errand_operation(background& over, std::unique_ptr<background::errand> one) : over_(over), one_(std::move(one)) {}
    ~errand_operation() override { over_.drop(*one_); }
    bool progress() override { return over_.progress(*one_); }
    void finish() override { over_.finish(*one_); }

private:
    background& over_;
    std::unique_ptr<background::errand> one_;
};

template <typename Start>
std::unique_ptr<operation> background::watched(const Start& start) {
    auto one = std::make_unique<errand>();
    errand& mine = *one;
    auto result = std::make_unique<errand_operation>(*this, std::move(one));
    {
        const turn now(*this);
        mine.work = start();
        under_way_.push_back(&mine);
    }
    news_.notify_one();
    return result;
}

// What it throws is kept for the caller's next question.
void background::ask(errand& one) noexcept {
    try {
        one.done = one.work->progress();
    } catch (...) {
        one.error = std::current_exception();
        one.done = true;
    }
}

// A question of the caller neither waits for the helper nor does its work.
bool background::progress(errand& one) {
    const std::unique_lock<std::mutex> now(guard_, std::try_to_lock);
    if (!now.owns_lock()) return false;
    if (!one.done && !helper_.joinable()) ask(one);
    if (one.done) under_way_.remove(&one);
    if (one.error) std::rethrow_exception(std::exchange(one.error, nullptr));
    return one.done;
}

void background::finish(errand& one) {
    const turn now(*this);
    under_way_.remove(&one);
    if (one.error) std::rethrow_exception(std::exchange(one.error, nullptr));
    if (!one.done) one.work->finish();
    one.done = true;
}

void background::drop(errand& one) noexcept {
    const turn now(*this);
    under_way_.remove(&one);
    one.work.reset();
}

bool background::ask_all() noexcept {
    bool ended = false;
    for (errand* one : under_way_) {
        ask(*one);
        ended |= one->done;
    }
    under_way_.remove_if([](const errand* one) { return one->done; });
    return ended;
}

void background::help() {
    constexpr auto nap = std::chrono::microseconds(20);
    const floating_point_guard usual_environment;
    ::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);  // of this thread: naps are not stretched by 50 microseconds
    std::unique_lock<std::mutex> lock(guard_);
    while (!over_) {
        if (under_way_.empty()) {
            news_.wait(lock);
            continue;
        }
        const bool ended = ask_all();
        lock.unlock();
        if (!ended) std::this_thread::sleep_for(nap);
        while (waiting_.load() > 0) std::this_thread::yield();
        lock.lock();
    }
}

bool background::start_helper() {
    if (helper_.joinable()) return true;
    if (!under_->start_helper()) return false;
    const deaf as_all_helpers;
    try {
        helper_ = std::thread([this] { help(); });
    } catch (const std::system_error&) {
    }
    return helper_.joinable();
}

}  // namespace

std::unique_ptr<communicator> in_background(std::unique_ptr<communicator> foreground) {
    return std::make_unique<background>(std::move(foreground));
}

}  // namespace zero::comm
