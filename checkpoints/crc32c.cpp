// CRC-32C by table and by the SSE4.2 instruction. The instruction has a latency of 3 and a throughput of 1, so three
// independent chains run side by side and are joined: shifting a checksum over n zero bytes is a linear map.
#include "crc32c.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace zero::crc32c {
namespace {

constexpr std::uint32_t polynomial = 0x82f63b78;  // reflected
constexpr std::size_t strip = 4096;               // bytes per chain and round

using table = std::array<std::uint32_t, 256>;

constexpr std::uint32_t shift_bits(std::uint32_t sum, int bits) noexcept {
    for (int k = 0; k < bits; ++k) sum = (sum & 1U) != 0 ? (sum >> 1) ^ polynomial : sum >> 1;
    return sum;
}

// slices[k][b]: byte b followed by k zero bytes.
constexpr std::array<table, 8> make_slices() noexcept {
    std::array<table, 8> slices{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) slices[0][byte] = shift_bits(byte, 8);
    for (std::size_t k = 1; k < 8; ++k)
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const std::uint32_t before = slices[k - 1][byte];
            slices[k][byte] = (before >> 8) ^ slices[0][before & 255U];
        }
    return slices;
}
constexpr std::array<table, 8> slices = make_slices();

std::uint64_t load(const unsigned char* at) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return word;
}

std::uint32_t raw_by_table(std::uint32_t sum, const unsigned char* at, std::size_t bytes) noexcept {
    for (; bytes >= 8; at += 8, bytes -= 8) {
        const std::uint64_t word = load(at) ^ sum;
        sum = 0;
        for (std::size_t k = 0; k < 8; ++k) sum ^= slices[7 - k][(word >> (8 * k)) & 255U];
    }
    for (; bytes > 0; ++at, --bytes) sum = (sum >> 8) ^ slices[0][(sum ^ *at) & 255U];
    return sum;
}

#if defined(__x86_64__)

// shifts[k][b]: what byte k of a checksum, being b, becomes after `strip` zero bytes.
std::array<table, 4> make_shifts() noexcept {
    std::array<table, 4> shifts{};
    static const std::array<unsigned char, strip> zeros{};
    for (std::size_t k = 0; k < 4; ++k)
        for (std::uint32_t byte = 0; byte < 256; ++byte)
            shifts[k][byte] = raw_by_table(byte << (8 * k), zeros.data(), strip);
    return shifts;
}

std::uint32_t over_strip(const std::array<table, 4>& shifts, std::uint32_t sum) noexcept {
    return shifts[0][sum & 255U] ^ shifts[1][(sum >> 8) & 255U] ^ shifts[2][(sum >> 16) & 255U] ^ shifts[3][sum >> 24];
}

__attribute__((target("sse4.2"))) std::uint32_t raw_by_instruction(std::uint32_t sum, const unsigned char* at,
                                                                   std::size_t bytes) noexcept {
    static const std::array<table, 4> shifts = make_shifts();
    for (; bytes >= 3 * strip; at += 3 * strip, bytes -= 3 * strip) {
        std::uint64_t first = sum, second = 0, third = 0;
        for (std::size_t k = 0; k < strip; k += 8) {
            first = _mm_crc32_u64(first, load(at + k));
            second = _mm_crc32_u64(second, load(at + strip + k));
            third = _mm_crc32_u64(third, load(at + 2 * strip + k));
        }
        sum = over_strip(shifts, static_cast<std::uint32_t>(first)) ^ static_cast<std::uint32_t>(second);
        sum = over_strip(shifts, sum) ^ static_cast<std::uint32_t>(third);
    }
    std::uint64_t rest = sum;
    for (; bytes >= 8; at += 8, bytes -= 8) rest = _mm_crc32_u64(rest, load(at));
    sum = static_cast<std::uint32_t>(rest);
    for (; bytes > 0; ++at, --bytes) sum = _mm_crc32_u8(sum, *at);
    return sum;
}

bool has_instruction() noexcept {
    return __builtin_cpu_supports("sse4.2") != 0;
}

#else

std::uint32_t raw_by_instruction(std::uint32_t sum, const unsigned char* at, std::size_t bytes) noexcept {
    return raw_by_table(sum, at, bytes);
}
bool has_instruction() noexcept {
    return false;
}

#endif

}  // namespace

std::uint32_t extend_by_table(std::uint32_t before, const void* data, std::size_t bytes) noexcept {
    return ~raw_by_table(~before, static_cast<const unsigned char*>(data), bytes);
}

std::uint32_t extend_by_instruction(std::uint32_t before, const void* data, std::size_t bytes) noexcept {
    if (!has_instruction()) return extend_by_table(before, data, bytes);
    return ~raw_by_instruction(~before, static_cast<const unsigned char*>(data), bytes);
}

std::uint32_t extend(std::uint32_t before, const void* data, std::size_t bytes) noexcept {
    return extend_by_instruction(before, data, bytes);
}

std::uint32_t copy(std::uint32_t before, void* to, const void* from, std::size_t bytes) noexcept {
    constexpr std::size_t tile = 3 * strip;  // stays in the first-level cache
    auto* target = static_cast<unsigned char*>(to);
    const auto* source = static_cast<const unsigned char*>(from);
    for (std::size_t done = 0; done < bytes; done += tile) {
        const std::size_t now = std::min(tile, bytes - done);
        std::memcpy(target + done, source + done, now);
        before = extend(before, target + done, now);
    }
    return before;
}

std::string text(std::uint32_t sum) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string result(8, '0');
    for (std::size_t k = 0; k < 8; ++k) result[7 - k] = digits[(sum >> (4 * k)) & 15U];
    return result;
}

}  // namespace zero::crc32c
