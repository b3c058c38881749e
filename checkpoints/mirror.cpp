// Vector by vector, each from the beginning of a cache line. See mirror.hpp.
#include "mirror.hpp"

#include "device/pages.hpp"

namespace zero::checkpoint {

mirror::mirror(engine& of, contents& state) : of_(of) {
    constexpr std::int64_t line = 64;
    std::int64_t all = 0;
    const auto bytes_of = [](const vector_state& one) { return one.count * size_of(one.type); };
    for (const tensor_state& tensor : state.tensors)
        for (const vector_state& one : tensor.vectors) all += round_up(bytes_of(one), line);
    memory_ = buffer(of.book(), purpose::checkpoint, all);
    std::byte* next = memory_.data();
    for (tensor_state& tensor : state.tensors)
        for (vector_state& one : tensor.vectors) {
            const std::int64_t bytes = bytes_of(one);
            if (bytes == 0) continue;
            images_.push_back({one.data, next, bytes});
            of.copy(next, one.data, bytes);
            one.data = next;
            next += round_up(bytes, line);
        }
}

void mirror::bring_back() {
    for (const image& one : images_) of_.copy(one.device, one.host, one.bytes);
}

}  // namespace zero::checkpoint
