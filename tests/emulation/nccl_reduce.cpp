// Sums, products, least and greatest of the ranks' elements, in the order of the ranks.
#include <algorithm>
#include <cstring>

#include "nccl_state.hpp"
#include "tensor/convert.hpp"

namespace zero_emulation {
namespace {

template <typename T>
T add(ncclRedOp_t operation, T a, T b) {
    switch (operation) {
        case ncclProd:
            return static_cast<T>(a * b);
        case ncclMax:
            return std::max(a, b);
        case ncclMin:
            return std::min(a, b);
        default:
            return static_cast<T>(a + b);
    }
}

// Sums in Sum; load and store turn elements into it and back.
template <typename Element, typename Sum, typename Load, typename Store>
void over(ncclRedOp_t operation, const std::vector<std::vector<std::byte>>& inputs, std::byte* result, Load load,
          Store store) {
    for (std::size_t i = 0; i < inputs[0].size(); i += sizeof(Element)) {
        Sum sum{};
        for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
            Element each;
            std::memcpy(&each, inputs[rank].data() + i, sizeof each);
            sum = rank == 0 ? load(each) : add<Sum>(operation, sum, load(each));
        }
        if (operation == ncclAvg) sum = static_cast<Sum>(sum / static_cast<Sum>(inputs.size()));
        const Element narrow = store(sum);
        std::memcpy(result + i, &narrow, sizeof narrow);
    }
}

template <typename T>
void plain(ncclRedOp_t operation, const std::vector<std::vector<std::byte>>& inputs, std::byte* result) {
    const auto same = [](T value) { return value; };
    over<T, T>(operation, inputs, result, same, same);
}

template <typename T>
void half(ncclRedOp_t operation, const std::vector<std::vector<std::byte>>& inputs, std::byte* result) {
    const auto narrow = [](float value) {
        T rounded;
        zero::narrow(value, rounded);
        return rounded;
    };
    over<T, float>(
        operation, inputs, result, [](T value) { return zero::widen(value); }, narrow);
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
    switch (type) {
        case ncclInt8:
        case ncclUint8:
            return 1;
        case ncclFloat16:
        case ncclBfloat16:
            return 2;
        case ncclInt32:
        case ncclUint32:
        case ncclFloat32:
            return 4;
        case ncclInt64:
        case ncclUint64:
        case ncclFloat64:
            return 8;
        default:
            return 0;
    }
}

void combine(ncclDataType_t type, ncclRedOp_t operation, const std::vector<std::vector<std::byte>>& inputs,
             std::byte* result) {
    switch (type) {
        case ncclInt8:
            return plain<std::int8_t>(operation, inputs, result);
        case ncclUint8:
            return plain<std::uint8_t>(operation, inputs, result);
        case ncclInt32:
            return plain<std::int32_t>(operation, inputs, result);
        case ncclUint32:
            return plain<std::uint32_t>(operation, inputs, result);
        case ncclInt64:
            return plain<std::int64_t>(operation, inputs, result);
        case ncclUint64:
            return plain<std::uint64_t>(operation, inputs, result);
        case ncclFloat32:
            return plain<float>(operation, inputs, result);
        case ncclFloat64:
            return plain<double>(operation, inputs, result);
        case ncclFloat16:
            return half<zero::f16>(operation, inputs, result);
        case ncclBfloat16:
            return half<zero::bf16>(operation, inputs, result);
        default:
            return;
    }
}

}  // namespace zero_emulation
