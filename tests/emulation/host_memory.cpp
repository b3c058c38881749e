// Pinned and registered host memory, and what a pointer is. Not here: device memory (memory.cpp).
#include <sys/mman.h>

#include <algorithm>

#include "calls.hpp"
#include "memory.hpp"
#include "queue.hpp"
#include "race.hpp"

namespace zero_emulation {
namespace {

std::shared_ptr<allocation> pin(machine& m, void* place, std::size_t bytes, allocation::kind what, unsigned flags) {
    auto made = std::make_shared<allocation>();
    made->what = what;
    made->begin = reinterpret_cast<std::uintptr_t>(place);
    made->bytes = bytes;
    made->device = current_device();
    made->flags = flags;
    made->where = here();
    m.pinned_bytes += static_cast<std::int64_t>(bytes);
    m.allocations.emplace(made->begin, made);
    return made;
}

bool is_pinned(const std::shared_ptr<allocation>& what) {
    return what && (what->what == allocation::kind::pinned || what->what == allocation::kind::registered);
}

cudaError_t unpin(machine& m, guard& lock, void* place, allocation::kind what, const char* function) {
    const auto found = m.allocations.find(reinterpret_cast<std::uintptr_t>(place));
    if (found == m.allocations.end() || found->second->what != what) {
        problem(m, std::string("not from the allocator it is given back to, or freed twice: ") + function + "\n" +
                       to_text(here()));
        return what == allocation::kind::registered ? cudaErrorHostMemoryNotRegistered : cudaErrorInvalidValue;
    }
    const auto gone = found->second;
    host_touches(m, gone->begin, gone->bytes, true, function);
    ++m.counted.implicit_synchronizes;
    wait_for_all(m, lock);
    m.pinned_bytes -= static_cast<std::int64_t>(gone->bytes);
    m.allocations.erase(gone->begin);
    if (what == allocation::kind::pinned) ::munmap(reinterpret_cast<void*>(gone->room), gone->room_bytes);
    return cudaSuccess;
}

}  // namespace
}  // namespace zero_emulation

using namespace zero_emulation;

extern "C" {

cudaError_t cudaHostAlloc(void** place, size_t bytes, unsigned flags) {
    return cuda_call([&](machine& m, guard&) -> cudaError_t {
        if (place == nullptr) return cudaErrorInvalidValue;
        *place = nullptr;
        ++m.counted.pinned_allocations;
        if (bytes == 0) return cudaSuccess;
        if (m.pinned_bytes + static_cast<std::int64_t>(bytes) > m.pinned_limit) return cudaErrorMemoryAllocation;
        // As in the arena: the end at a page that nobody may touch.
        const std::size_t whole = (bytes + arena::alignment - 1) / arena::alignment * arena::alignment;
        const std::size_t open = (whole + arena::page - 1) / arena::page * arena::page;
        void* room = ::mmap(nullptr, open + arena::page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room == MAP_FAILED) return cudaErrorMemoryAllocation;
        ::mprotect(room, open, PROT_READ | PROT_WRITE);
        *place = static_cast<std::byte*>(room) + open - whole;
        std::fill_n(static_cast<unsigned char*>(*place), bytes, static_cast<unsigned char>(0xA5));
        const auto made = pin(m, *place, bytes, allocation::kind::pinned, flags);
        made->room = reinterpret_cast<std::uintptr_t>(room);
        made->room_bytes = open + arena::page;
        return cudaSuccess;
    });
}
cudaError_t cudaMallocHost(void** place, size_t bytes) {
    return cudaHostAlloc(place, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* place) {
    return cuda_call(
        [&](machine& m, guard& lock) -> cudaError_t {
            return place == nullptr ? cudaSuccess
                                    : unpin(m, lock, place, allocation::kind::pinned, "cudaFreeHost frees");
        },
        when_failing::release);
}

cudaError_t cudaHostRegister(void* place, size_t bytes, unsigned flags) {
    return cuda_call([&](machine& m, guard&) -> cudaError_t {
        ++m.counted.registrations;
        const auto begin = reinterpret_cast<std::uintptr_t>(place);
        if (place == nullptr || bytes == 0 || m.memory.holds(begin)) return cudaErrorInvalidValue;
        for (const auto& [first, each] : m.allocations) {
            if (first < begin + bytes && begin < each->end()) return cudaErrorHostMemoryAlreadyRegistered;
        }
        if (m.pinned_bytes + static_cast<std::int64_t>(bytes) > m.pinned_limit) return cudaErrorMemoryAllocation;
        pin(m, place, bytes, allocation::kind::registered, flags);
        return cudaSuccess;
    });
}
cudaError_t cudaHostUnregister(void* place) {
    return cuda_call(
        [&](machine& m, guard& lock) {
            return unpin(m, lock, place, allocation::kind::registered, "cudaHostUnregister gives up");
        },
        when_failing::release);
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
    return cuda_call([&](machine& m, guard&) -> cudaError_t {
        if (!is_pinned(find(m, reinterpret_cast<std::uintptr_t>(host)))) return cudaErrorInvalidValue;
        *device = host;
        return cudaSuccess;
    });
}
cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
    return cuda_call([&](machine& m, guard&) -> cudaError_t {
        const auto found = find(m, reinterpret_cast<std::uintptr_t>(host));
        if (!is_pinned(found)) return cudaErrorInvalidValue;
        *flags = found->flags;
        return cudaSuccess;
    });
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes, const void* place) {
    return cuda_call([&](machine& m, guard&) -> cudaError_t {
        const auto address = reinterpret_cast<std::uintptr_t>(place);
        const auto found = find(m, address);
        *attributes = {};
        attributes->type = cudaMemoryTypeUnregistered;
        attributes->device = -2;
        attributes->hostPointer = const_cast<void*>(place);
        if (!found || found->freed || address == found->end()) {
            if (m.memory.holds(address)) return cudaErrorInvalidValue;
            return cudaSuccess;
        }
        attributes->device = found->device;
        attributes->devicePointer = const_cast<void*>(place);
        attributes->type = is_pinned(found) ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
        if (found->what == allocation::kind::managed) attributes->type = cudaMemoryTypeManaged;
        if (found->on_device()) attributes->hostPointer = nullptr;
        return cudaSuccess;
    });
}

}  // extern "C"
