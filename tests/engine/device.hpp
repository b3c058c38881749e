// A model whose arrays and gradients lie in device memory, beside the same one in host memory (support.hpp): equal bits.
#pragma once
#include <cuda_runtime.h>

#include <cstdlib>
#include <utility>

#include "engine/support.hpp"

namespace engine_test {

// Each rank its own, as far as there are, unless the run says that they share one.
inline void choose_own_device() {
    int devices = 0;
    REQUIRE(cudaGetDeviceCount(&devices) == cudaSuccess);
    REQUIRE(cudaSetDevice(std::getenv("ZERO_TEST_SHARED_DEVICE") != nullptr ? 0 : rank() % devices) == cudaSuccess);
}

// Device memory of the caller's own. Filled and read over the default stream.
class array_on_device {
public:
    explicit array_on_device(const std::vector<std::byte>& from) : bytes_(from.size()) {
        REQUIRE(cudaMalloc(&data_, bytes_ + 1) == cudaSuccess);
        write(from);
    }
    ~array_on_device() { cudaFree(data_); }
    array_on_device(array_on_device&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
    array_on_device(const array_on_device&) = delete;
    array_on_device& operator=(const array_on_device&) = delete;

    void* data() const { return data_; }
    void write(const std::vector<std::byte>& from) {
        if (bytes_ == 0) return;
        REQUIRE(cudaMemcpy(data_, from.data(), bytes_, cudaMemcpyHostToDevice) == cudaSuccess);
        REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);  // from plain memory it may still be under way
    }
    std::vector<std::byte> read() const {
        std::vector<std::byte> found(bytes_);
        if (bytes_ > 0) REQUIRE(cudaMemcpy(found.data(), data_, bytes_, cudaMemcpyDeviceToHost) == cudaSuccess);
        return found;
    }

private:
    void* data_ = nullptr;
    std::size_t bytes_;
};

inline std::vector<std::byte> typed(zero::dtype type, const std::vector<double>& values) {
    std::vector<std::byte> made(values.size() * static_cast<std::size_t>(zero::size_of(type)));
    zero::vector::convert(type, made.data(), zero::dtype::f64, values.data(), static_cast<std::int64_t>(values.size()));
    return made;
}

// The same calls as support.hpp's model makes, on either place.
class placed_model {
public:
    enum class place { host, device };
    placed_model(setup how, place where) : s(std::move(how)), where_(where), z(world(), json(with_place())) {
        for (std::size_t t = 0; t < shapes().size(); ++t) {
            std::vector<double> start;
            for (std::int64_t i = 0; i < count_of(shapes()[t]); ++i) start.push_back(initial_value(t, i));
            hosts_.push_back(typed(s.type, start));
            hosts_.back().reserve(hosts_.back().size() + 1);
            if (on_device()) devices_.emplace_back(hosts_.back());
            void* mine = on_device() ? devices_.back().data() : hosts_.back().data();
            z.add_tensor("tensor/" + std::to_string(t), s.type, shapes()[t], s.library_owned ? nullptr : mine, 0);
        }
        z.commit();
        if (!s.library_owned) return;
        for (std::size_t t = 0; t < shapes().size(); ++t) {
            const void* from = on_device() && t % 2 == 0 ? devices_[t].data() : hosts_[t].data();  // either will do
            z.scatter(static_cast<int>(t), 0, rank() == 0 ? from : nullptr);
        }
    }
    bool on_device() const { return where_ == place::device; }

    void hand_over(std::int64_t number, bool reversed) {
        const int n = static_cast<int>(shapes().size());
        for (int k = 0; k < n; ++k) {
            const int t = reversed ? n - 1 - k : (k + rank()) % n;
            const auto at = static_cast<std::size_t>(t);
            std::vector<double> g;
            for (std::int64_t i = 0; i < count_of(shapes()[at]); ++i) g.push_back(gradient_of(rank(), number, at, i));
            const auto bytes = typed(s.type, g);
            if (!on_device()) {
                std::vector<std::byte> given = bytes;
                given.reserve(given.size() + 1);
                z.reduce(t, 1, given.data());
                std::fill(given.begin(), given.end(), std::byte{0x7f});
            } else if (builds_there && k % 3 == 0 && !bytes.empty()) {  // built up in the library's buffer
                void* buffer = z.gradient(t);
                REQUIRE(cudaMemcpyAsync(buffer, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, nullptr) == cudaSuccess);
                z.reduce(t, 1, nullptr);
            } else {
                array_on_device given(bytes);
                z.reduce(t, 1, given.data());
                REQUIRE(cudaMemsetAsync(given.data(), 0x7f, bytes.size(), nullptr) == cudaSuccess);  // in stream order it may
            }
        }
    }
    void train(int updates) {
        for (int u = 0; u < updates; ++u) {
            for (std::size_t t = 0; t < shapes().size(); ++t) fetch(z, static_cast<int>(t));
            for (int a = 0; a < s.accumulation; ++a) {
                hand_over(micro_++, u % 2 == 0);
                z.step();
            }
        }
    }
    // Values ("") or a state of all tensors, as rank `root` (-1: each) gets them, by turns in a buffer of either place.
    std::vector<std::byte> bits(const std::string& state = "", int root = -1) {
        std::vector<std::byte> all;
        for (std::size_t t = 0; t < shapes().size(); ++t) {
            const zero::dtype type = state.empty() ? s.type : zero::sum_type(s.type);
            std::vector<std::byte> one(static_cast<std::size_t>(count_of(shapes()[t]) * zero::size_of(type)));
            one.reserve(one.size() + 1);
            array_on_device aside(one);
            const bool there = on_device() && (t + static_cast<std::size_t>(rank())) % 2 == 0;
            void* to = there ? aside.data() : one.data();
            if (state.empty()) z.gather_to(static_cast<int>(t), root, to);
            else z.gather_state(static_cast<int>(t), state, root, to);
            if (there) one = aside.read();
            all.insert(all.end(), one.begin(), one.end());
        }
        return all;
    }
    // What a gather shows.
    std::vector<std::byte> gathered() {
        std::vector<std::byte> all;
        for (std::size_t t = 0; t < shapes().size(); ++t) {
            const auto bytes = static_cast<std::size_t>(count_of(shapes()[t]) * zero::size_of(s.type));
            const void* values = z.gather(static_cast<int>(t));
            std::vector<std::byte> one(bytes);
            if (bytes > 0 && on_device()) REQUIRE(cudaMemcpy(one.data(), values, bytes, cudaMemcpyDeviceToHost) == cudaSuccess);
            if (bytes > 0 && !on_device()) std::memcpy(one.data(), values, bytes);
            z.release(static_cast<int>(t));
            all.insert(all.end(), one.begin(), one.end());
        }
        return all;
    }

    setup s;
    bool builds_there = true;

private:
    setup with_place() const {
        setup all = s;
        all.more += on_device() ? device_options() : R"(, "libzero": {"device": "host", "node_shared": false)" + node_option() + "}";
        return all;
    }
    static std::string node_option() {
        const char* given = std::getenv("ZERO_TEST_NODE_SIZE");
        return given == nullptr ? "" : R"(, "node_size": )" + std::string(given);
    }
    static std::string device_options() { return R"(, "libzero": {"device": "cuda")" + node_option() + "}"; }
    place where_;
    std::vector<std::vector<std::byte>> hosts_;
    std::vector<array_on_device> devices_;
    std::int64_t micro_ = 0;

public:
    zero::engine z;  // last: it works on the arrays
};

}  // namespace engine_test
