// The checks at registration: names, types, shapes, and that no two tensors share memory.
// Not here: whether all ranks registered the same (engine/, at commit).
#include "tensor/registry.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

#include "core/error.hpp"

namespace zero {

namespace {

// Length in bytes of the UTF-8 character that starts here; 0 when it is none (cut short, too long a form, a surrogate).
std::size_t character_length(const std::string& text, std::size_t at) {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const unsigned lead = byte(at);
    if (lead < 0x80) return 1;
    if (lead < 0xC2 || lead > 0xF4) return 0;
    const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(at + i) & 0xC0u) != 0x80u) return 0;
    }
    const unsigned second = byte(at + 1);
    const bool too_long = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
    const bool surrogate = lead == 0xED && second >= 0xA0;
    const bool too_high = lead == 0xF4 && second >= 0x90;
    return too_long || surrogate || too_high ? 0 : length;
}

bool is_utf8(const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = character_length(text, at);
        if (length == 0) return false;
        at += length;
    }
    return true;
}

void check_type(const std::string& name, dtype type) {
    if (is_parameter_type(type)) return;
    require(
        type != dtype::c64 && type != dtype::c128, code::unsupported,
        "tensor '{}': complex parameters are not built yet; register real and imaginary part as one real tensor with "
        "a last dimension of 2",
        name);
    fail(code::argument, "tensor '{}': dtype {} ({}) cannot be trained; use ZERO_F32, ZERO_F64, ZERO_BF16 or ZERO_F16",
         name, static_cast<int>(type), zero::name(type));
}

std::int64_t count_elements(const std::string& name, dtype type, std::span<const std::int64_t> dims) {
    require(dims.size() <= static_cast<std::size_t>(most_dims), code::argument,
            "tensor '{}' has {} dimensions; at most {} are possible: merge some", name, dims.size(), most_dims);
    bool empty = false;
    for (const std::int64_t extent : dims) {
        require(extent >= 0, code::argument, "tensor '{}' has shape {}: a dimension cannot be negative", name,
                shape_text(dims));
        empty = empty || extent == 0;
    }
    if (empty) return 0;  // also where the other extents multiply to more than fits
    std::int64_t count = 1, bytes = 0;
    bool overflow = false;
    for (const std::int64_t extent : dims) overflow = overflow || __builtin_mul_overflow(count, extent, &count);
    overflow = overflow || __builtin_mul_overflow(count, size_of(type), &bytes);
    require(!overflow, code::argument, "tensor '{}' of shape {} takes more than 2^63-1 bytes: check the dimensions",
            name, shape_text(dims));
    return count;
}

std::uintptr_t address(const void* values) noexcept {
    return reinterpret_cast<std::uintptr_t>(values);
}

void check_pointer(const std::string& name, dtype type, const void* values, std::int64_t bytes) {
    const auto start = address(values);
    require(start % static_cast<std::uintptr_t>(size_of(type)) == 0, code::argument,
            "tensor '{}': its array starts at an address that is no multiple of {} bytes: align it to its element type",
            name, size_of(type));
    require(
        static_cast<std::uintptr_t>(bytes) <= std::numeric_limits<std::uintptr_t>::max() - start, code::argument,
        "tensor '{}': an array of {} bytes at this address would pass the end of memory: check pointer and dimensions",
        name, bytes);
}

}  // namespace

void check_name(const std::string& name, const char* what) {
    require(!name.empty() && name.size() <= 255, code::argument, "a {} of {} bytes: give 1 to 255 bytes", what,
            name.size());
    require(name.find('\0') == std::string::npos && is_utf8(name), code::argument,
            "a {} is not UTF-8 text: encode it as UTF-8", what);
    for (std::size_t start = 0; start <= name.size();) {
        const std::size_t end = std::min(name.find('/', start), name.size());
        const std::string component = name.substr(start, end - start);
        require(!component.empty() && component != "." && component != "..", code::argument,
                "{} '{}' has an empty, '.' or '..' component between its slashes: rename it", what, name);
        start = end + 1;
    }
}

std::string shape_text(std::span<const std::int64_t> dims) {
    return formatted("[{}]", fmt::join(dims.begin(), dims.end(), ", "));
}

int registry::add(const std::string& given_name, dtype type, std::span<const std::int64_t> dims, void* values,
                  int group) {
    const int id = count();
    const std::string name = given_name.empty() ? formatted("t{}", id) : given_name;
    check_name(name, "tensor name");
    require(!ids_.contains(name), code::argument, "a tensor '{}' is registered already: names must differ", name);
    check_type(name, type);
    require(group >= 0, code::argument, "tensor '{}': group {} does not exist; use 0 or what zero_group gave", name,
            group);

    tensor fresh;
    fresh.id = id;
    fresh.name = name;
    fresh.type = type;
    fresh.dims.assign(dims.begin(), dims.end());
    fresh.count = count_elements(name, type, dims);
    fresh.values = values;
    // An empty array counts as the caller's even when null: ranks may differ in the address of nothing.
    fresh.library_owned = values == nullptr && fresh.count > 0;
    fresh.group = group;
    const bool listed = values != nullptr && fresh.count > 0;
    if (listed) {
        check_pointer(name, type, values, fresh.bytes());
        check_overlap(name, values, fresh.bytes(), -1);
    }

    tensors_.push_back(std::move(fresh));
    ids_.emplace(name, id);
    if (listed) by_address_.emplace(address(values), id);
    return id;
}

void registry::rebind(int id, void* values) {
    tensor& one = tensors_[static_cast<std::size_t>(at(id).id)];
    require(!one.library_owned, code::state, "tensor '{}' is kept by the library: only a caller's array can be rebound",
            one.name);
    if (one.count > 0) {
        require(values != nullptr, code::argument, "tensor '{}' cannot be rebound to NULL: give the new array",
                one.name);
        check_pointer(one.name, one.type, values, one.bytes());
        check_overlap(one.name, values, one.bytes(), id);
        by_address_.erase(address(one.values));
        by_address_.emplace(address(values), id);
    }
    one.values = values;
}

int registry::find(const std::string& name) const {
    const auto found = ids_.find(name);
    return found == ids_.end() ? -1 : found->second;
}

const tensor& registry::at(int id) const {
    require(id >= 0 && id < count(), code::argument, "tensor id {} does not exist; {} tensors are registered", id,
            count());
    return tensors_[static_cast<std::size_t>(id)];
}

// Listed arrays are disjoint and sorted by address, so only the two neighbours can overlap; `except` is looked past.
void registry::check_overlap(const std::string& name, const void* values, std::int64_t bytes, int except) const {
    const std::uintptr_t start = address(values), end = start + static_cast<std::uintptr_t>(bytes);
    const auto refuse = [&](int other) {
        fail(code::argument, "tensor '{}' shares memory with tensor '{}': each needs an array of its own", name,
             at(other).name);
    };
    auto after = by_address_.lower_bound(start);
    auto before = after;
    if (after != by_address_.end() && after->second == except) ++after;
    if (after != by_address_.end() && after->first < end) refuse(after->second);
    if (before != by_address_.begin() && std::prev(before)->second == except) --before;
    if (before == by_address_.begin()) return;
    --before;
    if (before->first + static_cast<std::uintptr_t>(at(before->second).bytes()) > start) refuse(before->second);
}

}  // namespace zero
