// The loops. Each element of a result is the work of one thread, which adds in a fixed order: no atomics, so runs repeat bit for bit.
#include "network.hpp"

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace surrogate {

namespace {

void check(cudaError_t what, const char* call) {
    if (what == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(what));
    std::exit(1);
}

class host_machine final : public machine {
public:
    bool on_host() const override { return true; }
    void* stream() const override { return nullptr; }
    float* take(std::int64_t count) override {
        memory_.push_back(std::make_unique<float[]>(static_cast<std::size_t>(count)));
        return memory_.back().get();
    }
    void to_host(float* to, const float* from, std::int64_t count) override {
        for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
    }
    void from_host(float* to, const float* from, std::int64_t count) override { to_host(to, from, count); }

private:
    std::vector<std::unique_ptr<float[]>> memory_;
};

class device_machine final : public machine {
public:
    device_machine() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
    ~device_machine() override {
        for (float* one : memory_) cudaFree(one);
        cudaStreamDestroy(stream_);
    }
    bool on_host() const override { return false; }
    void* stream() const override { return stream_; }
    float* take(std::int64_t count) override {
        float* memory = nullptr;
        check(cudaMalloc(reinterpret_cast<void**>(&memory), static_cast<std::size_t>(count) * sizeof(float)), "cudaMalloc");
        memory_.push_back(memory);
        return memory;
    }
    void to_host(float* to, const float* from, std::int64_t count) override { copy(to, from, count); }
    void from_host(float* to, const float* from, std::int64_t count) override { copy(to, from, count); }

private:
    void copy(float* to, const float* from, std::int64_t count) {
        check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(count) * sizeof(float), cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
        check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    }
    cudaStream_t stream_ = nullptr;
    std::vector<float*> memory_;
};

// --- one loop body each: element i of the result ---

struct draw_inputs {
    float* x;
    int inputs;
    std::int64_t step, first;
    __host__ __device__ void operator()(std::int64_t i) const {  // splitmix64 of the place in the sample
        std::uint64_t z = (static_cast<std::uint64_t>(step) << 40) + static_cast<std::uint64_t>(first * inputs + i) + 0x9E3779B97F4A7C15ULL;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        z ^= z >> 31;
        x[i] = static_cast<float>(z >> 40) / 8388608.0f - 1.0f;
    }
};

struct simulate {  // what the network is to learn
    const float* x;
    float* truth;
    int inputs;
    __host__ __device__ void operator()(std::int64_t i) const {
        const float* in = x + i * inputs;
        truth[i] = sinf(3.0f * in[0]) + in[1] * in[2] - 0.5f * in[3] * in[3];
    }
};

struct apply_layer {
    const float *x, *weights, *bias;
    float* y;
    layer of;
    __host__ __device__ void operator()(std::int64_t i) const {
        const float* in = x + i / of.outputs * of.inputs;
        const float* row = weights + i % of.outputs * of.inputs;
        float sum = bias[i % of.outputs];
        for (int k = 0; k < of.inputs; ++k) sum += row[k] * in[k];
        y[i] = of.bends ? tanhf(sum) : sum;
    }
};

struct differentiate_squares {
    const float *y, *truth;
    float* gradient;
    float scale;
    __host__ __device__ void operator()(std::int64_t i) const { gradient[i] = 2.0f * scale * (y[i] - truth[i]); }
};

struct unbend {
    const float* y;
    float* gradient;
    __host__ __device__ void operator()(std::int64_t i) const { gradient[i] *= 1.0f - y[i] * y[i]; }
};

struct gradient_of_weights {
    const float *x, *of_y;
    float* gradient;
    layer of;
    int rows;
    __host__ __device__ void operator()(std::int64_t i) const {
        const std::int64_t out = i / of.inputs, in = i % of.inputs;
        float sum = 0;
        for (int row = 0; row < rows; ++row) sum += of_y[row * std::int64_t{of.outputs} + out] * x[row * std::int64_t{of.inputs} + in];
        gradient[i] = sum;
    }
};

struct gradient_of_bias {
    const float* of_y;
    float* gradient;
    int outputs, rows;
    __host__ __device__ void operator()(std::int64_t i) const {
        float sum = 0;
        for (int row = 0; row < rows; ++row) sum += of_y[row * std::int64_t{outputs} + i];
        gradient[i] = sum;
    }
};

struct gradient_of_inputs {
    const float *of_y, *weights;
    float* gradient;
    layer of;
    __host__ __device__ void operator()(std::int64_t i) const {
        const float* behind = of_y + i / of.inputs * of.outputs;
        float sum = 0;
        for (int out = 0; out < of.outputs; ++out) sum += behind[out] * weights[out * std::int64_t{of.inputs} + i % of.inputs];
        gradient[i] = sum;
    }
};

template <typename Body>
__global__ void run(std::int64_t count, Body body) {
    const std::int64_t all = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += all) body(i);
}

template <typename Body>
void for_each(const machine& where, std::int64_t count, const Body& body) {
    if (where.on_host()) {
        for (std::int64_t i = 0; i < count; ++i) body(i);
        return;
    }
    constexpr int threads = 256, most_blocks = 4096;
    const std::int64_t blocks = (count + threads - 1) / threads;
    run<<<static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks), threads, 0, static_cast<cudaStream_t>(where.stream())>>>(count, body);
    check(cudaGetLastError(), "launch");
}

}  // namespace

std::unique_ptr<machine> machine::host() { return std::make_unique<host_machine>(); }

std::unique_ptr<machine> machine::device(int number) {
    int all = 0;
    if (cudaGetDeviceCount(&all) != cudaSuccess || all == 0) return nullptr;
    check(cudaSetDevice(number % all), "cudaSetDevice");  // zero_init takes the current one
    return std::make_unique<device_machine>();
}

network::network(machine& where, std::vector<layer> layers, int rows) : where_(where), layers_(std::move(layers)), rows_(rows), truth_(where.take(rows)) {
    const auto room = [&](int width) {
        values_.push_back(where.take(std::int64_t{width} * rows));
        gradients_.push_back(where.take(std::int64_t{width} * rows));
    };
    room(layers_.front().inputs);
    for (const layer& one : layers_) room(one.outputs);
}

void network::draw(std::int64_t step, std::int64_t first) {
    const int inputs = layers_.front().inputs;
    for_each(where_, std::int64_t{inputs} * rows_, draw_inputs{values_.front(), inputs, step, first});
    for_each(where_, rows_, simulate{values_.front(), truth_, inputs});
}

void network::forward(std::size_t which, const float* weights, const float* bias) {
    const layer& one = layers_[which];
    for_each(where_, std::int64_t{one.outputs} * rows_, apply_layer{values_[which], weights, bias, values_[which + 1], one});
}

double network::sum_of_squares() {
    std::vector<float> answer(static_cast<std::size_t>(rows_)), truth(answer);
    where_.to_host(answer.data(), values_.back(), rows_);
    where_.to_host(truth.data(), truth_, rows_);
    double sum = 0;
    for (std::size_t i = 0; i < answer.size(); ++i) sum += (double{answer[i]} - truth[i]) * (double{answer[i]} - truth[i]);
    return sum;
}

void network::start_backward(float scale) {
    for_each(where_, rows_, differentiate_squares{values_.back(), truth_, gradients_.back(), scale});
}

void network::backward(std::size_t which, const float* weights, float* weights_gradient, float* bias_gradient) {
    const layer& one = layers_[which];
    float* of_y = gradients_[which + 1];
    if (one.bends) for_each(where_, std::int64_t{one.outputs} * rows_, unbend{values_[which + 1], of_y});
    for_each(where_, one.weights(), gradient_of_weights{values_[which], of_y, weights_gradient, one, rows_});
    for_each(where_, one.outputs, gradient_of_bias{of_y, bias_gradient, one.outputs, rows_});
    if (which > 0) for_each(where_, std::int64_t{one.inputs} * rows_, gradient_of_inputs{of_y, weights, gradients_[which], one});
}

}  // namespace surrogate
