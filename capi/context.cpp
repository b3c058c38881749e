// The table of live handles and the checks of arguments. Not here: the C functions (c_*.cpp).
#include "capi/context.hpp"

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "comm/communicator.hpp"

namespace zero::capi {

namespace {

// The one registry of the library besides the log: without it a dead handle could not be told from a live one.
struct handle_table {
    std::mutex lock;
    std::map<std::uintptr_t, std::unique_ptr<context>> live;
    std::atomic<std::uint64_t> taken{0};  // how many handles have died
    std::uintptr_t next = 0x2e805;  // far from 0, from small integers and, being odd, from addresses of objects
};

// Never destroyed: a context that was never finalized must not touch MPI from a static destructor.
handle_table& table() {
    static handle_table& the_table = *new handle_table;
    return the_table;
}

std::uintptr_t number_of(zero_t handle) noexcept {
    return reinterpret_cast<std::uintptr_t>(handle);
}

}  // namespace

zero_t add_handle(std::unique_ptr<context> what) {
    handle_table& all = table();
    const std::lock_guard hold(all.lock);
    const std::uintptr_t number = all.next;
    all.live.emplace(number, std::move(what));
    all.next += 2;
    return reinterpret_cast<zero_t>(number);
}

std::unique_ptr<context> take_handle(zero_t handle) {
    handle_table& all = table();
    const std::lock_guard hold(all.lock);
    const auto found = all.live.find(number_of(handle));
    if (found == all.live.end()) return nullptr;
    std::unique_ptr<context> taken = std::move(found->second);
    all.live.erase(found);
    all.taken.fetch_add(1);
    return taken;
}

namespace {

// What this thread looked up last. It holds as long as no handle has died since; short calls come by the hundred thousand,
// and a lock would make each wait for all that was written before it.
struct last_look {
    zero_t handle = nullptr;
    context* what = nullptr;
    std::uint64_t taken = 0;
};
thread_local last_look last;

}  // namespace

context& look(zero_t handle) {
    require(handle != nullptr, code::argument, "the handle is NULL; pass what zero_init gave, before zero_finalize");
    handle_table& all = table();
    const std::uint64_t taken = all.taken.load();
    if (last.handle == handle && last.taken == taken) return *last.what;
    const std::lock_guard hold(all.lock);
    const auto found = all.live.find(number_of(handle));
    require(found != all.live.end(), code::argument,
            "the handle belongs to no living context; it was finalized, or it never came from zero_init");
    last = {handle, found->second.get(), taken};
    return *found->second;
}

engine& reader(zero_t handle) {
    return look(handle).body;
}

engine& worker(zero_t handle) {
    engine& body = look(handle).body;
    require(comm::mpi_is_usable(), code::state,
            "MPI is finalized; only zero_finalize may still be called for this handle");
    return body;
}

std::string text_of(const char* text, const char* what) {
    require(text != nullptr, code::argument, "{} is NULL; pass a text", what);
    return optional_text(text, what);
}

std::string optional_text(const char* text, const char* what) {
    if (text == nullptr) return {};
    // The Fortran binding writes a NUL inside a text as these two bytes, which no UTF-8 text holds (bindings/fortran).
    require(std::strstr(text, "\xC0\x80") == nullptr, code::argument,
            "{} holds a NUL character inside its text; remove it", what);
    return text;
}

void need(const void* pointer, const char* what) {
    require(pointer != nullptr, code::argument, "{} is NULL; pass where it is to be found or written", what);
}

dtype dtype_of(int number, bool parameter) {
    switch (number) {
        case ZERO_F32:
        case ZERO_F64:
        case ZERO_BF16:
        case ZERO_F16:
            return static_cast<dtype>(number);
        case ZERO_I32:
        case ZERO_I64:
        case ZERO_U8:
            require(!parameter, code::argument,
                    "dtype {} is for attached arrays only; parameters are ZERO_F32, ZERO_F64, ZERO_BF16 or ZERO_F16",
                    name(static_cast<dtype>(number)));
            return static_cast<dtype>(number);
        case ZERO_C64:
        case ZERO_C128:
            fail(code::unsupported,
                 "dtype {} is not built yet; use real and imaginary parts as one {} array with a last extent of 2",
                 name(static_cast<dtype>(number)), number == ZERO_C64 ? "ZERO_F32" : "ZERO_F64");
        default:
            fail(code::argument, "dtype {} is unknown; use one of the ZERO_F32 ... constants", number);
    }
}

place place_of(int number) {
    require(number >= ZERO_PLACE_DEVICE && number <= ZERO_PLACE_NVME, code::argument,
            "place {} is unknown; use ZERO_PLACE_DEVICE, ZERO_PLACE_HOST or ZERO_PLACE_NVME", number);
    return static_cast<place>(number);
}

std::span<const std::int64_t> dims_of(int ndim, const std::int64_t* dims) {
    require(ndim >= 0 && ndim <= most_dims, code::argument, "ndim is {}; a tensor has 0 to {} dimensions", ndim,
            most_dims);
    if (ndim > 0) need(dims, "dims");
    return {dims, static_cast<std::size_t>(ndim)};
}

std::span<const int> ids_of(int n, const int* ids) {
    require(n >= 0, code::argument, "n is {}; a list has 0 or more tensors", n);
    if (n > 0) need(ids, "ids");
    return {ids, static_cast<std::size_t>(n)};
}

void copy_text(const std::string& from, char* text, std::size_t capacity, std::size_t* needed) {
    const std::size_t whole = from.size() + 1;
    if (needed != nullptr) *needed = whole;
    if (text == nullptr || capacity == 0) {
        require(needed != nullptr, code::argument,
                "text and needed are both NULL; pass a buffer, or needed to learn its size");
        return;
    }
    const std::size_t kept = whole <= capacity ? from.size() : capacity - 1;
    std::memcpy(text, from.data(), kept);
    text[kept] = '\0';
    require(whole <= capacity || needed != nullptr, code::argument,
            "the text takes {} bytes and the buffer holds {}; it was cut", whole, capacity);
}

}  // namespace zero::capi
