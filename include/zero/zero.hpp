// libzero for C++17: zero.h with exceptions, RAII and spans. Header only, over the C functions alone, so that it fits
// any compiler that can link them. Meanings, shapes, units, who calls: zero.h. Names are the same, as members of
// zero::context.
#ifndef ZERO_ZERO_HPP
#define ZERO_ZERO_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "zero/version.h"
#include "zero/zero.h"

namespace zero {

// Inline, so that users write zero::context; a name of its own, so that nothing here meets the library's inside.
inline namespace interface_1 {

// A failed call: what() is the sentence, code() the ZERO_ERR_ number, name() its name.
class error : public std::runtime_error {
public:
    error(int code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
    int code() const noexcept { return code_; }
    const char* name() const noexcept { return zero_error_name(code_); }

private:
    int code_;
};
using failure = error;

inline void check(int code) {
    if (code != ZERO_OK) throw error(code, zero_last_error());
}

// Elements in a row that belong to somebody else. Made from pointer and size, or from anything with data() and size().
template <typename T>
class span {
public:
    span() = default;
    span(T* data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <typename Container, typename = decltype(static_cast<T*>(std::declval<Container&>().data()))>
    span(Container& all) noexcept : data_(all.data()), size_(all.size()) {}
    T* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    T* begin() const noexcept { return data_; }
    T* end() const noexcept { return data_ + size_; }
    T& operator[](std::size_t i) const noexcept { return data_[i]; }

private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

using dims = std::vector<std::int64_t>;

// The dtype of a C++ type. 16-bit parameters have no C++ type: register them with a dtype.
template <typename T>
constexpr int dtype_of() {
    using plain = std::remove_cv_t<T>;
    static_assert(std::is_same_v<plain, float> || std::is_same_v<plain, double> ||
                      std::is_same_v<plain, std::int32_t> || std::is_same_v<plain, std::int64_t> ||
                      std::is_same_v<plain, std::uint8_t>,
                  "no dtype belongs to this type; name one (ZERO_BF16, ...)");
    if (std::is_same_v<plain, float>) return ZERO_F32;
    if (std::is_same_v<plain, double>) return ZERO_F64;
    if (std::is_same_v<plain, std::int32_t>) return ZERO_I32;
    if (std::is_same_v<plain, std::int64_t>) return ZERO_I64;
    return ZERO_U8;
}

struct memory_use {
    std::int64_t bytes = 0, peak = 0;
};
struct tensor_shape {
    int dtype = 0;
    zero::dims dims;
    std::int64_t elements() const noexcept {
        std::int64_t product = 1;
        for (const std::int64_t extent : dims) product *= extent;
        return product;
    }
};

// This rank's part of a state: elements first .. first + size() - 1 of the flattened tensor.
template <typename T>
struct slice : span<T> {
    slice(T* data, std::size_t size, std::int64_t where) noexcept : span<T>(data, size), first(where) {}
    std::int64_t first = 0;
};

// Whole values of a tensor until this object goes.
template <typename T>
class gathered : public span<T> {
public:
    gathered(zero_t z, int id, T* data, std::size_t size) noexcept : span<T>(data, size), z_(z), id_(id) {}
    gathered(gathered&& other) noexcept : span<T>(other), z_(std::exchange(other.z_, nullptr)), id_(other.id_) {}
    gathered(const gathered&) = delete;
    gathered& operator=(const gathered&) = delete;
    gathered& operator=(gathered&&) = delete;
    ~gathered() {
        if (z_ != nullptr) zero_release(z_, id_);
    }

private:
    zero_t z_;
    int id_;
};

class context {
public:
    explicit context(MPI_Comm comm, const std::string& config = {}) { check(zero_init(comm, config.c_str(), &z_)); }
    context(context&& other) noexcept : z_(std::exchange(other.z_, nullptr)) {}
    context& operator=(context&& other) noexcept {
        std::swap(z_, other.z_);
        return *this;
    }
    context(const context&) = delete;
    context& operator=(const context&) = delete;
    // Collective like zero_finalize, whose errors are lost here: call finalize() where they matter.
    ~context() {
        if (z_ != nullptr) zero_finalize(&z_);
    }
    void finalize() { check(zero_finalize(&z_)); }
    zero_t handle() const noexcept { return z_; }

    // --- options and readings ---
    template <typename T>
    void set(const std::string& key, const T& value) {
        if constexpr (std::is_integral_v<T>)
            check(zero_set_int(z_, key.c_str(), static_cast<std::int64_t>(value)));
        else if constexpr (std::is_floating_point_v<T>)
            check(zero_set_real(z_, key.c_str(), static_cast<double>(value)));
        else
            check(zero_set_text(z_, key.c_str(), std::string(value).c_str()));
    }
    std::int64_t get_int(const std::string& key) const {
        std::int64_t value = 0;
        check(zero_get_int(z_, key.c_str(), &value));
        return value;
    }
    double get_real(const std::string& key) const {
        double value = 0;
        check(zero_get_real(z_, key.c_str(), &value));
        return value;
    }
    std::string get_text(const std::string& key) const {
        std::size_t needed = 0;
        check(zero_get_text(z_, key.c_str(), nullptr, 0, &needed));
        std::string text(needed, '\0');
        check(zero_get_text(z_, key.c_str(), text.data(), text.size(), &needed));
        text.resize(needed - 1);
        return text;
    }

    // --- describing the model ---
    void set_model_comm(MPI_Comm model) { check(zero_set_model_comm(z_, model)); }
    int group(const std::string& options_json) {
        int number = 0;
        check(zero_group(z_, options_json.c_str(), &number));
        return number;
    }
    // The caller's array; shape empty: one-dimensional. Its size must be that of the shape.
    template <typename T>
    int register_tensor(const std::string& name, span<T> values, dims shape = {}, int group = 0) {
        static_assert(!std::is_const_v<T>, "the library writes the values");
        if (shape.empty()) shape.push_back(static_cast<std::int64_t>(values.size()));
        if (tensor_shape{dtype_of<T>(), shape}.elements() != static_cast<std::int64_t>(values.size()))
            throw error(ZERO_ERR_ARGUMENT, "register_tensor: '" + name + "' has not as many values as its shape");
        return register_tensor(name, dtype_of<T>(), shape, values.data(), group);
    }
    template <typename T>
    int register_tensor(const std::string& name, std::vector<T>& values, dims shape = {}, int group = 0) {
        return register_tensor(name, span<T>(values), std::move(shape), group);
    }
    // values null: the library owns the storage.
    int register_tensor(const std::string& name, int dtype, const dims& shape, void* values = nullptr, int group = 0) {
        int id = -1;
        check(zero_register(z_, name.c_str(), dtype, static_cast<int>(shape.size()), shape.data(), values, group, &id));
        return id;
    }
    int find(const std::string& name) const {
        int id = -1;
        check(zero_find(z_, name.c_str(), &id));
        return id;
    }
    tensor_shape tensor(int id) const {
        tensor_shape which;
        int ndim = 0;
        std::int64_t extents[7];
        check(zero_tensor(z_, id, &which.dtype, &ndim, extents));
        which.dims.assign(extents, extents + ndim);
        return which;
    }
    int count() const {
        int number = 0;
        check(zero_count(z_, &number));
        return number;
    }
    template <typename T>
    void attach(const std::string& name, span<T> data, int kind = ZERO_REPLICATED) {
        const std::int64_t size = static_cast<std::int64_t>(data.size());
        check(zero_attach(z_, name.c_str(), dtype_of<T>(), 1, &size, data.data(), kind));
    }
    void state(const std::string& name) { check(zero_state(z_, name.c_str())); }
    memory_use forecast(int place) const {
        memory_use use;
        check(zero_forecast(z_, place, &use.bytes, &use.peak));
        return use;
    }
    void commit() { check(zero_commit(z_)); }

    // --- values ---
    void fill(int id, const std::string& kind, double a, double b = 0, std::uint64_t seed = 0) {
        check(zero_fill(z_, id, kind.c_str(), a, b, seed));
    }
    template <typename T>
    gathered<T> gather(int id) {
        void* values = nullptr;
        check(zero_gather(z_, id, &values));
        return gathered<T>(z_, id, static_cast<T*>(values), size_of(id));
    }
    void prefetch(int id) { check(zero_prefetch(z_, id)); }
    void scatter(int id, int root, const void* values) { check(zero_scatter(z_, id, root, values)); }
    void gather_to(int id, int root, void* buffer) { check(zero_gather_to(z_, id, root, buffer)); }
    void gather_state(int id, const std::string& state, int root, void* buffer) {
        check(zero_gather_state(z_, id, state.c_str(), root, buffer));
    }
    void scatter_state(int id, const std::string& state, int root, const void* buffer) {
        check(zero_scatter_state(z_, id, state.c_str(), root, buffer));
    }
    void rebind(int id, void* values) { check(zero_rebind(z_, id, values)); }

    // --- training ---
    template <typename T>
    span<T> gradient(int id) {
        void* buffer = nullptr;
        check(zero_gradient(z_, id, &buffer));
        return span<T>(static_cast<T*>(buffer), size_of(id));
    }
    void reduce(int id, const void* gradient = nullptr) { check(zero_reduce(z_, id, gradient)); }
    void reduce_scaled(int id, double factor, const void* gradient = nullptr) {
        check(zero_reduce_scaled(z_, id, factor, gradient));
    }
    void step() { check(zero_step(z_)); }
    void finish() { check(zero_finish(z_)); }
    void publish() { check(zero_publish(z_)); }
    template <typename T>
    zero::slice<T> slice(int id, const std::string& state) {
        void* data = nullptr;
        std::int64_t first = 0;
        std::int64_t count = 0;
        check(zero_slice(z_, id, state.c_str(), &data, &first, &count));
        return zero::slice<T>(static_cast<T*>(data), static_cast<std::size_t>(count), first);
    }
    double dot(const std::string& a, const std::string& b, int group = -1) {
        double result = 0;
        check(zero_dot(z_, a.c_str(), b.c_str(), group, &result));
        return result;
    }
    void wait() { check(zero_wait(z_)); }

    // --- checkpoints, memory, surroundings ---
    void save(const std::string& directory, const std::string& tag = {}) {
        check(zero_save(z_, directory.c_str(), tag.c_str()));
    }
    void load(const std::string& directory, const std::string& tag = {}) {
        check(zero_load(z_, directory.c_str(), tag.c_str()));
    }
    bool should_stop() {
        int flag = 0;
        check(zero_should_stop(z_, &flag));
        return flag != 0;
    }
    memory_use memory(int place) const {
        memory_use use;
        check(zero_memory(z_, place, &use.bytes, &use.peak));
        return use;
    }
    std::string report() {
        std::string text(16384, '\0');
        std::size_t needed = 0;
        check(zero_report(z_, text.data(), text.size(), &needed));
        const bool cut = needed > text.size();
        text.resize(needed);
        if (cut) check(zero_report(z_, text.data(), text.size(), &needed));
        text.resize(needed - 1);
        return text;
    }
    void set_log(zero_log_fn fn, void* user = nullptr) { check(zero_set_log(z_, fn, user)); }

private:
    std::size_t size_of(int id) const { return static_cast<std::size_t>(tensor(id).elements()); }

    zero_t z_ = nullptr;
};

}  // namespace interface_1
}  // namespace zero

#endif
