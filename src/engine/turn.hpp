// One call of a context on a device. What the caller put on its stream before comes first, and what the call did precedes what it
// puts there afterwards. Collective calls begin it within their agreement (engine::join_ranks), so that a refusal is everybody's.
// A failure that is not, in the middle of a call, ends what the others wait for. On host memory nothing of it is needed.
#pragma once
#include <exception>

#include "compute/processor.hpp"
#include "engine/engine.hpp"

namespace zero {

class turn {
public:
    enum class begins { here, in_agreement };
    explicit turn(engine& of, begins when = begins::in_agreement) : of_(of) {
        if (of.device_ < 0) return;
        exceptions_ = std::uncaught_exceptions();
        failures_ = of.agreement_->failures();
        if (when == begins::here) of.work_->after_caller();
    }
    ~turn() {
        if (of_.device_ < 0) return;
        if (std::uncaught_exceptions() > exceptions_ && of_.agreement_->failures() == failures_) of_.ranks_->give_up();
        try {
            of_.work_->before_caller();
        } catch (...) {  // then by waiting
            of_.work_->settle();
        }
    }
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;

private:
    engine& of_;
    int exceptions_ = 0;
    std::int64_t failures_ = 0;
};

}  // namespace zero
