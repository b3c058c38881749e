// A build without CUDA: no rank reaches another one's device. See direct.hpp.
#include "comm/direct.hpp"

namespace zero::comm {

std::unique_ptr<direct> connect(communicator&, compute::processor&, std::string& reason) {
    reason = "this build has no NCCL";
    return nullptr;
}

}  // namespace zero::comm
