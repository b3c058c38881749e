// Ranks as threads of one process: a crew for tests of saving and loading without MPI.
#pragma once
#include <barrier>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "checkpoints/crew.hpp"
#include "core/error.hpp"

namespace zero::test {

class meeting {
public:
    explicit meeting(int size)
        : barrier(size), texts(static_cast<std::size_t>(size)), errors(static_cast<std::size_t>(size)) {}
    std::barrier<> barrier;
    std::vector<std::string> texts;
    std::vector<std::optional<error>> errors;
    std::string told;
};

class thread_crew final : public checkpoint::crew {
public:
    thread_crew(meeting& place, int number, int data_size, int model_size)
        : place_(place), number_(number), data_size_(data_size), model_size_(model_size) {}
    int data_rank() const noexcept override { return number_ % data_size_; }
    int data_size() const noexcept override { return data_size_; }
    int model_rank() const noexcept override { return number_ / data_size_; }
    int model_size() const noexcept override { return model_size_; }

    void settle(const std::function<void()>& local, std::uint64_t) override {
        std::optional<error>& mine = place_.errors[static_cast<std::size_t>(number_)];
        mine.reset();
        try {
            local();
        } catch (const error& problem) {
            mine = problem;
        }
        place_.barrier.arrive_and_wait();
        std::optional<error> first;
        for (const std::optional<error>& one : place_.errors)
            if (one && !first) first = *one;
        place_.barrier.arrive_and_wait();
        if (first) throw *first;
    }
    std::vector<std::string> gather(const std::string& mine) override {
        place_.texts[static_cast<std::size_t>(number_)] = mine;
        place_.barrier.arrive_and_wait();
        std::vector<std::string> all;
        if (number_ == 0) all = place_.texts;
        place_.barrier.arrive_and_wait();
        return all;
    }
    std::string broadcast(const std::string& text) override {
        if (number_ == 0) place_.told = text;
        place_.barrier.arrive_and_wait();
        std::string mine = place_.told;
        place_.barrier.arrive_and_wait();
        return mine;
    }

private:
    meeting& place_;
    int number_, data_size_, model_size_;
};

// Runs `rank` on data_size x model_size threads; what each of them threw, by rank.
inline std::vector<std::optional<error>> together(int data_size, int model_size,
                                                  const std::function<void(checkpoint::crew&)>& rank) {
    const int size = data_size * model_size;
    meeting place(size);
    std::vector<std::optional<error>> thrown(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    for (int number = 0; number < size; ++number)
        threads.emplace_back([&, number] {
            thread_crew ranks(place, number, data_size, model_size);
            try {
                rank(ranks);
            } catch (const error& problem) {
                thrown[static_cast<std::size_t>(number)] = problem;
            }
        });
    for (std::thread& one : threads) one.join();
    return thrown;
}

}  // namespace zero::test
