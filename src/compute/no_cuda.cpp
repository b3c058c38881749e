// A build without CUDA has no processor but the host.
#include "compute/processor.hpp"
#include "core/error.hpp"

namespace zero::compute {

std::unique_ptr<processor> make_cuda(int, ledger&) {
    fail(code::unsupported, "this build has no CUDA: set libzero.device to \"auto\" or \"host\", or build with -DZERO_CUDA=ON");
}

}  // namespace zero::compute
