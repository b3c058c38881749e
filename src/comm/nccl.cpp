// Direct messages by NCCL: non-blocking communicators, grouped sends and receives, asynchronous errors turned into codes. Only
// messages: NCCL's own reductions add in an order of their choice. See direct.hpp.
#include <nccl.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "comm/direct.hpp"
#include "comm/everywhere.hpp"
#include "core/error.hpp"
#include "device/cuda.hpp"

namespace zero::comm {

namespace {

constexpr auto patience = std::chrono::minutes(5);  // for the start: peers may be late, but not for ever

class nccl_direct final : public direct {
public:
    nccl_direct(int device, communicator& ranks, const ncclUniqueId& id) : device_(device), starting_(&ranks) {
        const cuda::device_guard here(device_);
        ncclConfig_t how = NCCL_CONFIG_INITIALIZER;
        how.blocking = 0;
        try {
            settle(ncclCommInitRankConfig(&handle_, ranks.size(), id, ranks.rank(), &how), "ncclCommInitRankConfig");
        } catch (...) {
            give_up();
            throw;
        }
        starting_ = nullptr;
    }
    ~nccl_direct() override {
        try {
            const cuda::device_guard here(device_);
            if (handle_ == nullptr) return;  // given up
            settle(ncclCommFinalize(handle_), "ncclCommFinalize");
            static_cast<void>(ncclCommDestroy(std::exchange(handle_, nullptr)));
        } catch (const error&) {  // it is over anyway
        }
        give_up();
    }
    nccl_direct(const nccl_direct&) = delete;
    nccl_direct& operator=(const nccl_direct&) = delete;

    void exchange(std::span<const message> out, std::span<const message> in, compute::processor& on) override {
        refuse_broken();
        const cuda::device_guard here(device_);
        const auto order = static_cast<cudaStream_t>(on.stream());
        settle(ncclGroupStart(), "ncclGroupStart");
        ncclResult_t first = ncclSuccess;
        const auto note = [&](ncclResult_t answer) {
            if (first == ncclSuccess && answer != ncclInProgress) first = answer;
        };
        for (const message& m : out)
            if (m.bytes > 0) note(ncclSend(m.data, static_cast<std::size_t>(m.bytes), ncclInt8, m.peer, handle_, order));
        for (const message& m : in)
            if (m.bytes > 0) note(ncclRecv(m.data, static_cast<std::size_t>(m.bytes), ncclInt8, m.peer, handle_, order));
        const ncclResult_t end = ncclGroupEnd();
        settle(first != ncclSuccess ? first : end, "ncclSend and ncclRecv");
    }

    void refuse_broken() override {
        if (broken_) fail(code::nccl, "NCCL: an earlier operation failed, or a peer gave up: finalize the context");
        ncclResult_t state = ncclSuccess;
        const ncclResult_t asked = ncclCommGetAsyncError(handle_, &state);
        if (asked != ncclSuccess) refuse(asked, "ncclCommGetAsyncError");
        if (state != ncclSuccess && state != ncclInProgress) refuse(state, "an operation on its way");
    }

    void give_up() noexcept override {
        if (handle_ == nullptr || std::exchange(broken_, true)) return;
        static_cast<void>(ncclCommAbort(std::exchange(handle_, nullptr)));
    }

private:
    // Waits while NCCL says that it is not through with the call itself.
    void settle(ncclResult_t answer, const char* call) {
        const auto end = std::chrono::steady_clock::now() + patience;
        while (answer == ncclInProgress) {
            const ncclResult_t asked = ncclCommGetAsyncError(handle_, &answer);
            if (asked != ncclSuccess) answer = asked;
            if (answer == ncclInProgress && starting_ != nullptr && starting_->heard() != communicator::news::none) refuse(ncclRemoteError, call);
            if (answer == ncclInProgress && std::chrono::steady_clock::now() > end) refuse(ncclRemoteError, call);
            if (answer == ncclInProgress) std::this_thread::yield();
        }
        if (answer != ncclSuccess) refuse(answer, call);
    }
    [[noreturn]] void refuse(ncclResult_t answer, const char* call) {
        const std::string what = ncclGetErrorString(answer);
        give_up();
        fail(code::nccl, "{}: {}; look at the output of NCCL_DEBUG=WARN, or set libzero.device to \"host\"", call, what);
    }

    int device_;
    ncclComm_t handle_ = nullptr;
    bool broken_ = false;
    communicator* starting_;  // while it starts: a peer that cannot says so there
};

std::string name_of_device(int device) {
    char name[64] = {};
    cuda::check(cudaDeviceGetPCIBusId(name, sizeof name, device), "cudaDeviceGetPCIBusId");
    return name;
}

}  // namespace

std::unique_ptr<direct> connect(communicator& ranks, compute::processor& work, std::string& reason) {
    int device = -1;
    std::string mine;
    ncclUniqueId id{};
    bool able = true;
    try {
        device = work.device();
        mine = name_of_device(device);
        const ncclResult_t made = ranks.rank() == 0 ? ncclGetUniqueId(&id) : ncclSuccess;
        require(made == ncclSuccess, code::nccl, "ncclGetUniqueId: {}", ncclGetErrorString(made));
    } catch (const error& e) {
        able = false;
        reason = e.what();
    }
    // NCCL serves one rank of each device.
    std::string verdict;
    const auto names = ranks.gather(mine, 0);
    for (std::size_t i = 0; i < names.size() && verdict.empty(); ++i)
        for (std::size_t j = i + 1; j < names.size() && verdict.empty(); ++j)
            if (names[i] == names[j]) verdict = formatted("ranks {} and {} of the node share the device {}", i, j, names[i]);
    verdict = ranks.broadcast(verdict, 0);
    if (!verdict.empty()) {
        able = false;
        reason = verdict;
    }
    if (!everywhere(ranks, able, reason)) return nullptr;
    ranks.broadcast(&id, sizeof id, 0);
    std::unique_ptr<direct> made;
    try {
        made = std::make_unique<nccl_direct>(device, ranks, id);
    } catch (const error& e) {
        reason = e.what();
        ranks.tell(communicator::news::given_up);
    }
    if (everywhere(ranks, made != nullptr, reason)) return made;
    if (made) made->give_up();
    return nullptr;
}

}  // namespace zero::comm
