// A small model as plain data: what all ranks hold together, cut into the parts of single ranks at any borders.
#pragma once
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "checkpoints/state.hpp"

namespace zero::test {

struct whole_vector {
    std::string state;
    dtype type;
    std::string bytes;
};
struct whole_tensor {
    std::string name;
    dtype type;
    std::vector<std::int64_t> dims;
    std::int64_t count;
    int group;
    bool frozen;
    std::vector<whole_vector> vectors;
};

inline std::string random_floats(dtype type, std::int64_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal(0, 1);
    std::string bytes(static_cast<std::size_t>(count * size_of(type)), '\0');
    for (std::int64_t k = 0; k < count; ++k) {
        char* to = bytes.data() + k * size_of(type);
        const double drawn = normal(random);
        const float single = static_cast<float>(drawn);
        if (type == dtype::f64)
            std::memcpy(to, &drawn, 8);
        else if (type == dtype::f32)
            std::memcpy(to, &single, 4);
        else if (type == dtype::bf16)
            std::memcpy(to, reinterpret_cast<const char*>(&single) + 2, 2);  // its upper half
        else {
            const auto bits = static_cast<std::uint16_t>(0x3800 + random() % 0x400);  // 0.5 to 1
            std::memcpy(to, &bits, 2);
        }
    }
    return bytes;
}

inline whole_tensor make_tensor(const std::string& name, dtype type, std::vector<std::int64_t> dims, bool frozen,
                                unsigned seed, int group = 0) {
    whole_tensor made{name, type, std::move(dims), 1, group, frozen, {}};
    for (const std::int64_t dim : made.dims) made.count *= dim;
    const dtype kept = sum_type(type);
    made.vectors.push_back({"value", frozen ? type : kept, random_floats(frozen ? type : kept, made.count, seed)});
    if (frozen) return made;
    made.vectors.push_back({"exp_avg", kept, random_floats(kept, made.count, seed + 1)});
    made.vectors.push_back({"exp_avg_sq", kept, random_floats(kept, made.count, seed + 2)});
    return made;
}

// Every dtype, 0-d, zero-size, names with '/', '.', Unicode, a name that is another's folder, a frozen one of each
// type.
inline std::vector<whole_tensor> odd_model() {
    return {make_tensor("w", dtype::f32, {5, 7, 3}, false, 1),
            make_tensor("w/bias.x", dtype::f32, {6}, false, 11),
            make_tensor("scalar", dtype::f32, {}, false, 21),
            make_tensor("half", dtype::bf16, {9, 4}, false, 31, 1),
            make_tensor("half16", dtype::f16, {3, 5}, false, 41, 1),
            make_tensor("double", dtype::f64, {2, 3, 4, 5}, false, 51),
            make_tensor("empty", dtype::f32, {0, 4}, false, 61),
            make_tensor("Größe/λ", dtype::f64, {8}, false, 71),
            make_tensor("ice/bf16", dtype::bf16, {4, 4}, true, 81),
            make_tensor("ice/fp16", dtype::f16, {7}, true, 91),
            make_tensor("ice/fp32", dtype::f32, {2, 2}, true, 101),
            make_tensor("one", dtype::bf16, {}, false, 111)};
}

// What one rank has of it, with memory of its own.
class share {
public:
    // Borders: even, or random with `seed` (some ranks then own nothing of a tensor).
    share(const std::vector<whole_tensor>& all, int rank, int size, bool blank, unsigned seed = 0) {
        for (std::size_t t = 0; t < all.size(); ++t) {
            const whole_tensor& one = all[t];
            checkpoint::tensor_state made{one.name, one.type, one.dims, one.count, one.group, one.frozen, {}};
            const auto [first, count] = borders(one.count, rank, size, seed == 0 ? 0 : seed + static_cast<unsigned>(t));
            for (const whole_vector& vector : one.vectors) {
                const std::int64_t width = size_of(vector.type);
                memory_.push_back(vector.bytes.substr(static_cast<std::size_t>(first * width),
                                                      static_cast<std::size_t>(count * width)));
                if (blank) std::fill(memory_.back().begin(), memory_.back().end(), '\x5a');
                made.vectors.push_back({vector.state, vector.type, first, count, memory_.back().data()});
            }
            state.tensors.push_back(made);
        }
        state.run.optimizer = "adam";
        state.run.schedule = "none";
        state.run.config = "{\"a\":\"\\\"crc32c\\\":\\\"\"}";
        state.run.step = 7;
        state.run.lr = 0.1;
    }
    share(const share&) = delete;
    share& operator=(const share&) = delete;

    bool equals(const std::vector<whole_tensor>& all) const {
        for (std::size_t t = 0; t < all.size(); ++t)
            for (std::size_t v = 0; v < all[t].vectors.size(); ++v) {
                const checkpoint::vector_state& mine = state.tensors[t].vectors[v];
                const std::int64_t width = size_of(mine.type);
                if (mine.count > 0 && std::memcmp(mine.data, all[t].vectors[v].bytes.data() + mine.first * width,
                                                  static_cast<std::size_t>(mine.count * width)) != 0)
                    return false;
            }
        return true;
    }
    void scramble() {
        for (std::string& bytes : memory_) std::fill(bytes.begin(), bytes.end(), '\x33');
    }
    bool untouched() const {
        for (const std::string& bytes : memory_)
            if (bytes.find_first_not_of('\x5a') != std::string::npos) return false;
        return true;
    }

    checkpoint::contents state;

private:
    static std::pair<std::int64_t, std::int64_t> borders(std::int64_t count, int rank, int size, unsigned seed) {
        std::vector<std::int64_t> cut{0};
        std::mt19937 random(seed);
        for (int k = 1; k < size; ++k)
            cut.push_back(seed == 0 ? count * k / size
                                    : static_cast<std::int64_t>(random() % static_cast<unsigned>(count + 1)));
        cut.push_back(count);
        std::sort(cut.begin(), cut.end());
        const std::size_t r = static_cast<std::size_t>(rank);
        return {cut[r], cut[r + 1] - cut[r]};
    }
    std::deque<std::string> memory_;
};

}  // namespace zero::test
