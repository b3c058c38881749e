// Optimizer states in host memory for values and gradients on a device: the host updates them, a tile at a time, while the gradients of
// the next tile come down and the values of the last one go up (Ren et al., "ZeRO-Offload", 2021, section 4). Same element updates as on
// the device, so the same bits. Not here: which elements (stage/updater), states on the device (device_update), NVMe.
#pragma once
#include <array>
#include <memory>
#include <span>

#include "offload/tiles.hpp"

namespace zero::offload {

// What host_update takes of host memory for buckets up to this length, and of device memory; 0 elements: nothing.
std::int64_t staging_bytes(std::int64_t largest_part, std::int64_t sub_group) noexcept;
std::int64_t device_bytes(std::int64_t largest_part) noexcept;

class host_update {
public:
    // `device` orders what is done there; it and the threads outlive this. largest_part: elements of a part of run().
    host_update(compute::processor& device, crew& threads, ledger& book, std::int64_t largest_part, std::int64_t sub_group);
    ~host_update();

    // An update in which states and the master (or the value itself) may lie in host memory. value_here, copy_here: range.value,
    // range.copy16 lie there; gradients are on the device.
    struct part {
        optimizer::update_range range;
        bool value_here = true, copy_here = false;
    };
    // What was asked of the device up to `ready` comes first; what it is asked after this, last.
    void run(std::span<const part> parts, changes what, const action& act, const compute::note& ready);

private:
    struct lane {
        std::byte *gradient = nullptr, *value = nullptr;
        std::unique_ptr<compute::note> down, up;
    };
    void bring_down(const part& of, const tile& what, lane& through);
    void update(const part& of, const tile& what, changes which, const action& act, lane& through);

    compute::processor& device_;
    std::int64_t tile_elements_;
    std::unique_ptr<compute::processor> down_, up_, host_;
    buffer staging_;
    std::array<lane, 3> lanes_;  // one comes down, one is updated, one goes up
};

}  // namespace zero::offload
