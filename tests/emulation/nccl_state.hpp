// An emulated communicator, as its process sees it. Not here: making one (nccl_communicator.cpp), operations
// (nccl_operations.cpp).
#pragma once
#include <map>
#include <memory>

#include "calls.hpp"
#include "nccl_shared.hpp"

struct ncclComm {
    int rank = 0, ranks = 0, device = 0;
    bool blocking = true;
    zero_emulation::call_site where;

    // While it is made.
    bool ready = false;
    std::int64_t file_process = 0, file_number = -1;
    std::uint64_t token = 0;
    ncclComm* parent = nullptr;  // split from it; null once that is settled
    std::uint64_t split_number = 0;
    int own_file = -1;  // made by this rank, for the others to open

    int file = -1;  // holds a lock on byte `rank`, which ends with the process
    zero_emulation::shared_communicator* shared = nullptr;
    int device_files[zero_emulation::most_ranks];

    // Numbers of what was enqueued; the queue's thread works on it in that order.
    std::uint64_t collectives = 0, splits = 0, sends[zero_emulation::most_ranks] = {},
                  receives[zero_emulation::most_ranks] = {};
    zero_emulation::dependency last;
    std::atomic<int> pending{0};
    std::atomic<bool> aborted{false};
    std::atomic<ncclResult_t> error{ncclSuccess};
    bool finalizing = false;
    bool hesitates = false;  // says ncclInProgress until it is asked
    std::map<void*, std::unique_ptr<char>> registrations;  // by handle; they go with it
};

namespace zero_emulation {

// One more step towards `ready`, without waiting.
void advance(machine& m, ncclComm& what);
// Until all of them are ready, or failed.
ncclResult_t wait_ready(machine& m, guard& lock, const std::vector<ncclComm*>& what);
bool is_alive(const ncclComm& of, int rank);
bool is_known(machine& m, ncclComm_t what);

// The group of this thread, between ncclGroupStart and ncclGroupEnd.
struct group_state;
bool in_group();
void join_group(ncclComm* made);  // a communicator to wait for at the end of the group

std::size_t size_of(ncclDataType_t type);  // 0: unknown
// result = inputs[0] op inputs[1] op ...; 16-bit types in fp32 and rounded once.
void combine(ncclDataType_t type, ncclRedOp_t operation, const std::vector<std::vector<std::byte>>& inputs,
             std::byte* result);

}  // namespace zero_emulation
