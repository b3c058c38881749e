// Between a context (engine.hpp) and a checkpoint: what it holds as plain data, and its ranks as a crew.
#pragma once
#include "crew.hpp"
#include "engine/engine.hpp"
#include "state.hpp"

namespace zero::checkpoint {

contents contents_of(engine& from);  // local; pointers into the engine's own memory
progress_state progress_of(const run_state& saved, const optimizer::loss_scale_rules& rules);

// The data communicator times the model communicator. Both must form a grid: every model communicator joins ranks that
// have the same number in equally large data communicators.
class engine_crew final : public crew {
public:
    engine_crew(engine& of, call name);
    int data_rank() const noexcept override;
    int data_size() const noexcept override;
    int model_rank() const noexcept override;
    int model_size() const noexcept override;
    void settle(const std::function<void()>& local, std::uint64_t digest) override;
    std::vector<std::string> gather(const std::string& mine) override;
    std::string broadcast(const std::string& text) override;

private:
    engine& of_;
    call name_;
};

void check_grid(engine& of, call name);  // collective; code::argument where there is none

}  // namespace zero::checkpoint
