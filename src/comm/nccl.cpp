// Direct messages by NCCL: non-blocking communicators, grouped sends and receives, asynchronous errors turned into codes. Only
// messages: NCCL's own reductions add in an order of their choice. See direct.hpp.
#include <nccl.h>

#include <chrono>
#include <map>
#include <memory>
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
            forget_registered();
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

    buffer take(compute::processor& work, ledger& book, purpose why, std::int64_t bytes) override {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
        if (bytes > 0 && handle_ != nullptr) {
            const cuda::device_guard here(device_);
            auto made = std::make_shared<registered>(work, known_, handle_, bytes);
            if (made->data != nullptr) {
                auto* const data = static_cast<std::byte*>(made->data);
                buffer memory(book, why, bytes, data, std::move(made), place::device);
                work.clear(data, bytes);
                return memory;
            }
        }
#endif
        return work.take(book, why, bytes);
    }

    void give_up() noexcept override {
        if (handle_ == nullptr || std::exchange(broken_, true)) return;
        known_->clear();  // goes with it
        static_cast<void>(ncclCommAbort(std::exchange(handle_, nullptr)));
    }

private:
    using registrations = std::map<void*, ncclComm_t>;  // those of a communicator that lives

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
    struct registered {
        compute::processor& work;
        std::shared_ptr<registrations> known;
        void *data = nullptr, *handle = nullptr;

        registered(compute::processor& by, std::shared_ptr<registrations> all, ncclComm_t with, std::int64_t bytes)
            : work(by), known(std::move(all)) {
            if (ncclMemAlloc(&data, static_cast<std::size_t>(bytes)) != ncclSuccess) data = nullptr;
            else if (ncclCommRegister(with, data, static_cast<std::size_t>(bytes), &handle) != ncclSuccess) handle = nullptr;
            cuda::forget(cudaGetLastError());
            if (handle != nullptr) (*known)[handle] = with;
        }
        registered(const registered&) = delete;
        registered& operator=(const registered&) = delete;
        ~registered() {
            if (data == nullptr) return;
            work.settle_all();  // unlike the memory of pools it goes at once
            if (const auto found = known->find(handle); found != known->end()) {
                static_cast<void>(ncclCommDeregister(found->second, handle));
                known->erase(found);
            }
            static_cast<void>(ncclMemFree(data));
        }
    };
    void forget_registered() {
        for (const auto& [handle, with] : *known_) static_cast<void>(ncclCommDeregister(with, handle));
        known_->clear();
    }
#else
    void forget_registered() {}
#endif

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
    std::shared_ptr<registrations> known_ = std::make_shared<registrations>();
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
