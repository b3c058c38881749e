// Device memory by cudaMalloc and by pools. Not here: host memory (host_memory.cpp), copies (copies.cpp).
#include "memory.hpp"

#include <algorithm>

#include "calls.hpp"
#include "queue.hpp"
#include "race.hpp"

namespace zero_emulation {

cudaError_t allocate_device(machine& m, void** place, std::size_t bytes, allocation::kind what, cudaMemPool_t pool) {
    if (place == nullptr) return cudaErrorInvalidValue;
    *place = nullptr;
    if (bytes == 0) return cudaSuccess;
    if (m.device_bytes + static_cast<std::int64_t>(bytes) > m.device_limit) return cudaErrorMemoryAllocation;
    auto made = std::make_shared<allocation>();
    made->begin = m.memory.take(bytes, made->room, made->room_bytes);
    if (made->begin == 0) return cudaErrorMemoryAllocation;
    made->what = what;
    made->bytes = bytes;
    made->device = current_device();
    made->pool = pool;
    made->where = here();
    m.device_bytes += static_cast<std::int64_t>(bytes);
    m.graves.erase(m.graves.lower_bound(made->room), m.graves.upper_bound(made->room + made->room_bytes));
    *place = reinterpret_cast<void*>(made->begin);
    m.allocations.emplace(made->begin, std::move(made));
    return cudaSuccess;
}

void bury(machine& m, std::shared_ptr<allocation> gone) {
    if (!m.memory.intact(gone->begin, gone->bytes, gone->room, gone->room_bytes)) {
        problem(m, "somebody wrote outside of " + describe(gone->begin, gone->end()) + ", allocated\n" +
                       to_text(gone->where));
    }
    m.memory.give_back(gone->room, gone->room_bytes);
    m.device_bytes -= static_cast<std::int64_t>(gone->bytes);
    if (m.pools.count(gone->pool) == 1) gone->pool->used -= gone->bytes;
    gone->history.clear();
    m.allocations.erase(gone->begin);
    constexpr std::size_t most_graves = 100000;
    if (m.graves.size() < most_graves) m.graves[gone->begin] = std::move(gone);
}

std::shared_ptr<allocation> around(machine& m, const void* place, std::size_t bytes, const char* function) {
    const auto begin = reinterpret_cast<std::uintptr_t>(place);
    const auto found = find(m, begin);
    if (found && !found->freed && begin + bytes <= found->end()) return found;
    if (!found && !m.memory.holds(begin)) return nullptr;
    const auto dead = found && found->freed ? found : find_grave(m, begin);
    if (dead) {
        problem(m, std::string("use after free: ") + function + " of " + describe(begin, begin + bytes) + "\n" +
                       to_text(here()) + "  allocated\n" + to_text(dead->where));
    } else if (m.memory.holds(begin)) {
        problem(m, std::string("outside of any allocation: ") + function + " of " + describe(begin, begin + bytes) +
                       "\n" + to_text(here()));
    }
    return nullptr;
}

bool release_device(machine& m, void* place, allocation::kind what, const char* function) {
    const auto begin = reinterpret_cast<std::uintptr_t>(place);
    const auto found = m.allocations.find(begin);
    if (found == m.allocations.end() || found->second->freed || found->second->what != what) {
        const bool twice = m.graves.count(begin) != 0 || (found != m.allocations.end() && found->second->freed);
        problem(m, std::string(twice ? "freed twice" : "not from the allocator it is given back to") + ": " + function +
                       "\n" + to_text(here()));
        return false;
    }
    bury(m, found->second);
    return true;
}

namespace {

cudaMemPool_t make_pool(machine& m, int device) {
    auto made = std::make_shared<CUmemPoolHandle_st>();
    made->device = device;
    const cudaMemPool_t handle = made.get();
    m.pools.emplace(handle, std::move(made));
    return handle;
}

cudaMemPool_t default_pool(machine& m, int device) {
    cudaMemPool_t& pool = m.default_pool[device];
    if (pool == nullptr) pool = make_pool(m, device);
    return pool;
}

cudaError_t allocate_from(machine& m, cudaMemPool_t pool, void** place, std::size_t bytes, cudaStream_t on) {
    const auto stream = stream_of(m, on);
    if (!stream || m.pools.count(pool) == 0) return cudaErrorInvalidResourceHandle;
    ++m.counted.pool_allocations;
    if (const cudaError_t error = allocate_device(m, place, bytes, allocation::kind::pool, pool);
        error != cudaSuccess || bytes == 0) {
        return error;
    }
    const cudaError_t error =
        enqueue(m, stream, {"cudaMallocAsync", {}, {}, {{*place, bytes, use::write}}, {}, {}, true});
    if (error != cudaSuccess) {
        m.allocations.at(reinterpret_cast<std::uintptr_t>(*place))->pool = nullptr;
        release_device(m, *place, allocation::kind::pool, "cudaMallocAsync");
        *place = nullptr;
        return error;
    }
    pool->used += bytes;
    pool->used_high = std::max(pool->used_high, pool->used);
    return cudaSuccess;
}

}  // namespace
}  // namespace zero_emulation

using namespace zero_emulation;

extern "C" {

cudaError_t cudaMalloc(void** place, size_t bytes) {
    return cuda_call([&](machine& m, guard&) {
        ++m.counted.allocations;
        return allocate_device(m, place, bytes, allocation::kind::device);
    });
}

cudaError_t cudaFree(void* place) {
    return cuda_call(
        [&](machine& m, guard& lock) -> cudaError_t {
            if (place == nullptr) return cudaSuccess;
            ++m.counted.frees;
            ++m.counted.implicit_synchronizes;
            wait_for_all(m, lock);
            const auto found = m.allocations.find(reinterpret_cast<std::uintptr_t>(place));
            const bool ordered = found != m.allocations.end() && found->second->what == allocation::kind::pool;
            if (found != m.allocations.end() && found->second->what == allocation::kind::managed) {
                m.device_bytes -= static_cast<std::int64_t>(found->second->bytes);
                ::operator delete (place, std::align_val_t{4096});
                m.allocations.erase(found);
                return cudaSuccess;
            }
            const auto kind = ordered ? allocation::kind::pool : allocation::kind::device;
            return release_device(m, place, kind, "cudaFree") ? cudaSuccess : cudaErrorInvalidValue;
        },
        when_failing::release);
}

cudaError_t cudaMallocManaged(void** place, size_t bytes, unsigned) {
    return cuda_call([&](machine& m, guard&) -> cudaError_t {
        ++m.counted.allocations;
        if (bytes == 0) return cudaErrorInvalidValue;
        if (m.device_bytes + static_cast<std::int64_t>(bytes) > m.device_limit) return cudaErrorMemoryAllocation;
        auto made = std::make_shared<allocation>();
        *place = ::operator new (bytes, std::align_val_t{4096});
        made->what = allocation::kind::managed;
        made->begin = reinterpret_cast<std::uintptr_t>(*place);
        made->bytes = bytes;
        made->device = current_device();
        made->where = here();
        m.device_bytes += static_cast<std::int64_t>(bytes);
        m.allocations.emplace(made->begin, std::move(made));
        return cudaSuccess;
    });
}

cudaError_t cudaMallocAsync(void** place, size_t bytes, cudaStream_t stream) {
    return cuda_call([&](machine& m, guard&) {
        const cudaMemPool_t current = m.current_pool[current_device()];
        return allocate_from(m, current != nullptr ? current : default_pool(m, current_device()), place, bytes, stream);
    });
}
cudaError_t cudaMallocFromPoolAsync(void** place, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    return cuda_call([&](machine& m, guard&) { return allocate_from(m, pool, place, bytes, stream); });
}

cudaError_t cudaFreeAsync(void* place, cudaStream_t on) {
    return cuda_call(
        [&](machine& m, guard&) -> cudaError_t {
            if (place == nullptr) return cudaSuccess;
            const auto stream = stream_of(m, on);
            if (!stream) return cudaErrorInvalidResourceHandle;
            ++m.counted.pool_frees;
            const auto begin = reinterpret_cast<std::uintptr_t>(place);
            const auto found = m.allocations.find(begin);
            if (found == m.allocations.end() || found->second->freed || found->second->what != allocation::kind::pool) {
                return release_device(m, place, allocation::kind::pool, "cudaFreeAsync") ? cudaSuccess
                                                                                         : cudaErrorInvalidValue;
            }
            const auto gone = found->second;
            gone->freed = true;
            const auto run = [gone] {
                machine& all = the_machine();
                guard lock(all.door);
                bury(all, gone);
                return true;
            };
            const cudaError_t error =
                enqueue(m, stream, {"cudaFreeAsync", {}, run, {{place, gone->bytes, use::write}}, {}, {}, true});
            gone->freed = error == cudaSuccess;
            return error;
        },
        when_failing::release);
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
    return cuda_call([&](machine& m, guard&) {
        *total = static_cast<size_t>(m.device_limit);
        *free = static_cast<size_t>(std::max<std::int64_t>(m.device_limit - m.device_bytes, 0));
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
    return cuda_call([&](machine& m, guard&) -> cudaError_t {
        if (device < 0 || device >= m.devices) return cudaErrorInvalidDevice;
        *pool = default_pool(m, device);
        return cudaSuccess;
    });
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
    return cuda_call([&](machine& m, guard&) -> cudaError_t {
        if (device < 0 || device >= m.devices) return cudaErrorInvalidDevice;
        *pool = m.current_pool[device] != nullptr ? m.current_pool[device] : default_pool(m, device);
        return cudaSuccess;
    });
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const struct cudaMemPoolProps* properties) {
    return cuda_call([&](machine& m, guard&) -> cudaError_t {
        if (properties->allocType != cudaMemAllocationTypePinned ||
            properties->location.type != cudaMemLocationTypeDevice) {
            return cudaErrorInvalidValue;
        }
        *pool = make_pool(m, properties->location.id);
        return cudaSuccess;
    });
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    return cuda_call([&](machine& m, guard&) { return m.pools.erase(pool) == 1 ? cudaSuccess : cudaErrorInvalidValue; },
                     when_failing::release);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr what, void* value) {
    return cuda_call([&](machine& m, guard&) -> cudaError_t {
        if (m.pools.count(pool) == 0) return cudaErrorInvalidValue;
        if (what == cudaMemPoolAttrReleaseThreshold) pool->threshold = *static_cast<std::uint64_t*>(value);
        if (what == cudaMemPoolAttrUsedMemHigh) pool->used_high = pool->used;
        return cudaSuccess;
    });
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr what, void* value) {
    return cuda_call([&](machine& m, guard&) -> cudaError_t {
        if (m.pools.count(pool) == 0) return cudaErrorInvalidValue;
        auto& result = *static_cast<std::uint64_t*>(value);
        switch (what) {
            case cudaMemPoolAttrReleaseThreshold:
                result = pool->threshold;
                break;
            case cudaMemPoolAttrUsedMemCurrent:
            case cudaMemPoolAttrReservedMemCurrent:
                result = pool->used;
                break;
            case cudaMemPoolAttrUsedMemHigh:
            case cudaMemPoolAttrReservedMemHigh:
                result = pool->used_high;
                break;
            default:
                return cudaErrorInvalidValue;
        }
        return cudaSuccess;
    });
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
    return cuda_call(
        [&](machine& m, guard&) { return m.pools.count(pool) == 1 ? cudaSuccess : cudaErrorInvalidValue; });
}

}  // extern "C"
