// What a checkpoint holds, as plain data: the part of a context that this rank saves or wants back. The engine is
// turned into it by context.cpp; tests make it by hand.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "tensor/dtype.hpp"

namespace zero::checkpoint {

// One vector of a tensor: "value" (the master where there is one) or a state. This rank has a contiguous range of it.
struct vector_state {
    std::string state;
    dtype type = dtype::f32;
    std::int64_t first = 0, count = 0;  // elements of the flattened tensor
    void* data = nullptr;
};

struct tensor_state {
    std::string name;
    dtype type = dtype::f32;
    std::vector<std::int64_t> dims;
    std::int64_t count = 1;
    int group = 0;
    bool frozen = false;
    std::vector<vector_state> vectors;  // "value" first
};

// The caller's own array.
struct attached_state {
    std::string name;
    dtype type = dtype::f64;
    std::vector<std::int64_t> dims;
    std::int64_t count = 0;
    bool per_rank = false;
    void* data = nullptr;
};

// Everything that is not an array.
struct run_state {
    std::int64_t step = 0, skipped = 0;
    double lr = 0, scale = 1;
    std::int64_t hysteresis = 0, iteration = 0, last_overflow = -1;
    int stage = 0, nodes = 1;
    std::string optimizer, schedule, config;
};

struct contents {
    std::vector<tensor_state> tensors;
    std::vector<attached_state> attachments;
    run_state run;
};

// Something on disk is not what was written: another checkpoint may be taken in its place.
class damage : public error {
public:
    explicit damage(const std::string& sentence) : error(code::checkpoint, sentence) {}
};

template <typename... Args>
[[noreturn]] void damaged(fmt::format_string<Args...> format, Args&&... args) {
    throw damage(formatted(format, std::forward<Args>(args)...));
}

}  // namespace zero::checkpoint
