// Non-temporal stores where the processor has them (SSE2). See stream_copy.hpp.
#include "tensor/stream_copy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace zero {

void stream_copy(void* to, const void* from, std::int64_t bytes) noexcept {
    auto* target = static_cast<std::byte*>(to);
    const auto* source = static_cast<const std::byte*>(from);
#ifdef __SSE2__
    constexpr std::int64_t line = 64;
    const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(target) % static_cast<std::uintptr_t>(line));
    const std::int64_t head = std::min(bytes, (line - past) % line);
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

}  // namespace zero
