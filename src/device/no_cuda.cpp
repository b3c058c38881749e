// The answers of a build without CUDA: there is host memory only. See devices.hpp.
#include "core/error.hpp"
#include "device/devices.hpp"

namespace zero {

device_choice choose_device(const std::string& wanted) {
    require(wanted != "cuda", code::unsupported,
            "libzero.device is \"cuda\", but this build has no CUDA: set it to \"auto\" or \"host\", or build with -DZERO_CUDA=ON");
    return {-1, wanted == "host" ? "libzero.device is \"host\"" : "this build has no CUDA"};
}

bool program_uses(int) { return false; }

address_facts recognise(const void*) { return {}; }

void check_reachable(const void*, int, const char*, const std::string&) {}

}  // namespace zero
