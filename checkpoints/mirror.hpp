// Host memory in the place of what a context holds on a device, for the time of a save or a load. Not here: files.
#pragma once
#include "context.hpp"
#include "device/memory.hpp"

namespace zero::checkpoint {

class mirror {
public:
    // Local. The vectors of `state` are in host memory from here on, with the values of the device. Throws code::memory.
    mirror(engine& of, contents& state);
    void bring_back();  // to the device

private:
    struct image {
        void* device;
        std::byte* host;
        std::int64_t bytes;
    };
    engine& of_;
    std::vector<image> images_;
    buffer memory_;
};

}  // namespace zero::checkpoint
