// States on a device for values in host memory (offload_param without offload_optimizer, or the device's share of both): the device updates
// them, a tile at a time, while the values of the next tile come up and those of the last one go down. Not here: states in host memory
// (host_update).
#pragma once
#include <array>
#include <memory>
#include <span>

#include "offload/tiles.hpp"

namespace zero::offload {

// What device_update takes of device memory for buckets up to this length, and of host memory; 0 elements: nothing.
std::int64_t lane_bytes(std::int64_t largest_part, std::int64_t sub_group) noexcept;
std::int64_t lane_bytes_on_host(std::int64_t largest_part) noexcept;

class device_update {
public:
    // As of host_update.
    device_update(compute::processor& device, ledger& book, std::int64_t largest_part, std::int64_t sub_group);
    ~device_update();

    // An update in which the parameter itself lies in host memory: `value`, or `copy16` where there is one; all else is on the
    // device. In the order of what the device is asked; finish() waits until the host's memory has the values.
    void start(std::span<const optimizer::update_range> parts, changes what, const action& act);
    void finish();

private:
    struct lane {
        std::byte* value = nullptr;
        std::unique_ptr<compute::note> up, down;
    };
    void pass(const optimizer::update_range& mine, std::size_t part, changes what, const action& act, lane& through);

    compute::processor& device_;
    std::int64_t tile_elements_;
    std::unique_ptr<compute::processor> up_, down_;
    buffer memory_;
    std::unique_ptr<compute::note> last_;  // of what was started
    std::array<lane, 3> lanes_;  // one comes up, one is updated, one goes down
};

}  // namespace zero::offload
