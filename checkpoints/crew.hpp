// The ranks that save or load together, as few verbs: the data ranks of one model, times the ranks over which the model
// itself is split. A rank's number is model_rank * data_size + data_rank. Siblings: solo (here), the engine's
// (context.cpp), threads (tests).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zero::checkpoint {

class crew {
public:
    crew() = default;
    crew(const crew&) = delete;
    crew& operator=(const crew&) = delete;
    virtual ~crew() = default;
    virtual int data_rank() const noexcept = 0;
    virtual int data_size() const noexcept = 0;
    virtual int model_rank() const noexcept { return 0; }
    virtual int model_size() const noexcept { return 1; }

    // Runs `local` on every rank; when it throws anywhere, all ranks throw that error. `digest` must be equal on all.
    virtual void settle(const std::function<void()>& local, std::uint64_t digest) = 0;
    virtual std::vector<std::string> gather(const std::string& mine) = 0;  // by rank number, on rank 0
    virtual std::string broadcast(const std::string& text) = 0;            // from rank 0

    int rank() const noexcept { return model_rank() * data_size() + data_rank(); }
    int size() const noexcept { return model_size() * data_size(); }
};

class solo final : public crew {
public:
    int data_rank() const noexcept override { return 0; }
    int data_size() const noexcept override { return 1; }
    void settle(const std::function<void()>& local, std::uint64_t) override { local(); }
    std::vector<std::string> gather(const std::string& mine) override { return {mine}; }
    std::string broadcast(const std::string& text) override { return text; }
};

// One phase of a save or a load. Every failure says what is not done because of it ("checkpoint ... was not saved in
// ..."), in which phase and on which rank, and is thrown on all ranks.
void settle_phase(crew& ranks, const std::string& not_done, const char* doing, std::uint64_t digest,
                  const std::function<void()>& local);

}  // namespace zero::checkpoint
