// Non-temporal stores where the processor has them (SSE2). See stream_copy.hpp.
#include "tensor/stream_copy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace zero {

namespace {

constexpr std::int64_t line = 64;

// Bytes before the first whole line.
[[maybe_unused]] std::int64_t head_of(const void* place, std::int64_t bytes) noexcept {
    const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(place) % static_cast<std::uintptr_t>(line));
    return std::min(bytes, (line - past) % line);
}

}  // namespace

void stream_copy(void* to, const void* from, std::int64_t bytes) noexcept {
    auto* target = static_cast<std::byte*>(to);
    const auto* source = static_cast<const std::byte*>(from);
#ifdef __SSE2__
    const std::int64_t head = head_of(target, bytes);
    std::memcpy(target, source, static_cast<std::size_t>(head));
    target += head, source += head, bytes -= head;
    for (; bytes >= line; target += line, source += line, bytes -= line) {
        auto* out = reinterpret_cast<__m128i*>(target);
        const auto* in = reinterpret_cast<const __m128i*>(source);
        const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1), c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
        _mm_stream_si128(out, a);
        _mm_stream_si128(out + 1, b);
        _mm_stream_si128(out + 2, c);
        _mm_stream_si128(out + 3, d);
    }
    _mm_sfence();
#endif
    std::memcpy(target, source, static_cast<std::size_t>(bytes));
}

void copy_either_way(void* to, const void* from, std::int64_t bytes, bool past_caches) noexcept {
    if (past_caches) stream_copy(to, from, bytes);
    else if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void stream_zeros(void* to, std::int64_t bytes) noexcept {
    auto* target = static_cast<std::byte*>(to);
#ifdef __SSE2__
    const std::int64_t head = head_of(target, bytes);
    std::memset(target, 0, static_cast<std::size_t>(head));
    target += head, bytes -= head;
    const __m128i zero = _mm_setzero_si128();
    for (; bytes >= line; target += line, bytes -= line)
        for (int k = 0; k < 4; ++k) _mm_stream_si128(reinterpret_cast<__m128i*>(target) + k, zero);
    _mm_sfence();
#endif
    std::memset(target, 0, static_cast<std::size_t>(bytes));
}

}  // namespace zero
