// CRC-32C (Castagnoli, RFC 3720 appendix B.4): what guards every byte of a checkpoint. Uses the processor's own
// instruction where there is one, a table elsewhere; the numbers are the same.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace zero::crc32c {

constexpr std::int64_t block_bytes = 1 << 20;  // one checksum per this many bytes of data

// The checksum of what `before` is the checksum of (0: nothing), followed by these bytes.
std::uint32_t extend(std::uint32_t before, const void* data, std::size_t bytes) noexcept;
inline std::uint32_t of(const void* data, std::size_t bytes) noexcept {
    return extend(0, data, bytes);
}
inline std::uint32_t of(std::string_view text) noexcept {
    return extend(0, text.data(), text.size());
}

// Copies and extends in one go: the bytes are summed while they are in cache.
std::uint32_t copy(std::uint32_t before, void* to, const void* from, std::size_t bytes) noexcept;

std::string text(std::uint32_t sum);  // 8 lower-case hex digits

// The two ways, for tests: `by_instruction` falls back to the table where the processor lacks it.
std::uint32_t extend_by_table(std::uint32_t before, const void* data, std::size_t bytes) noexcept;
std::uint32_t extend_by_instruction(std::uint32_t before, const void* data, std::size_t bytes) noexcept;

}  // namespace zero::crc32c
