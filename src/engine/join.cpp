// Where a context works, and how its ranks talk: host memory or a device, MPI alone, memory shared inside nodes, or messages
// between devices. Decided once, by zero_init. See engine.hpp.
#include "comm/background.hpp"
#include "comm/device_ranks.hpp"
#include "core/error.hpp"
#include "device/devices.hpp"
#include "engine/run.hpp"
#include "engine/turn.hpp"

namespace zero {

// "auto": the device, where every rank's program uses one already. A program that does not could not read what it is given there.
void engine::choose_place() {
    device_choice mine;
    agreement_->settle(calls::init(2), [&] {
        mine = choose_device(settings_.device);
        if (settings_.device == "auto" && mine.number >= 0 && !program_uses(mine.number))
            mine = {-1, "the program used no GPU before zero_init; set libzero.device to \"cuda\" if it will"};
    });
    std::int64_t lacking = mine.number < 0 ? 1 : 0;
    ranks_->all_reduce({&lacking, 1}, comm::combine::maximum);
    why_host_ = mine.number < 0 ? mine.reason : lacking != 0 ? "other ranks use none" : "";
    if (lacking != 0) return;
    agreement_->settle(calls::init(3), [&] { work_ = compute::make_cuda(mine.number, ledger_); });
    device_ = mine.number;
}

void engine::join_ranks(const void* mpi_comm) {
    // The options of this level are known only now.
    if (settings_.node_size > 0 || settings_.largest_count > 0)
        ranks_ = comm::make(mpi_comm, {settings_.node_size, settings_.largest_count});
    if (device_ >= 0) {
        ranks_ = comm::over_devices(std::move(ranks_), *work_, why_staged_);
    } else {
        // A sum in two levels would be rounded after the first.
        if (settings_.reproducible && ranks_->nodes().nodes > 1) why_plain_ = "libzero.reproducible adds all contributions at once";
        else if (settings_.node_shared) ranks_ = comm::share_node(std::move(ranks_), why_plain_);
        if (ranks_->size() > 1) ranks_ = comm::in_background(std::move(ranks_));
    }
    agreement_ = std::make_unique<agreement>(*ranks_);
    if (device_ < 0) return;
    agreement_->begin_with([this] {
        ranks_->refuse_given_up();
        work_->after_caller();
    });
}

void engine::check_reachable(const void* address, const char* what, const std::string& of) const {
    zero::check_reachable(address, device_, what, of);
}

void engine::check_any(const void* address, const char* what, const std::string& of) const {
    if (device_ < 0 || !is_of_host(recognise(address).kind)) check_reachable(address, what, of);
}

void engine::set_stream(void* cuda_stream) {
    require(device_ >= 0 || cuda_stream == nullptr, code::unsupported,
            "zero_set_stream: this context works in host memory ({}); pass NULL as the stream", why_host_);
    if (device_ >= 0) work_->follow_stream(cuda_stream);
}

void engine::copy(void* to, const void* from, std::int64_t bytes) { work_->copy(to, from, bytes); }

}  // namespace zero
