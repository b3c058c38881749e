// The registered parameters: what the caller described, checked. Not where their values live later (stage/).
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.hpp"

namespace zero {

constexpr int most_dims = 7;

struct tensor {
    int id = -1;
    std::string name;
    dtype type = dtype::f32;
    std::vector<std::int64_t> dims;   // row-major, last index fastest
    std::int64_t count = 0;           // product of dims; 1 for no dims
    void* values = nullptr;           // the caller's array; null: the library owns the storage (see library_owned)
    bool library_owned = false;
    int group = 0;
    std::int64_t bytes() const noexcept { return count * size_of(type); }
};

class registry {
public:
    // Throws code::argument: bad name, dtype, dims (negative, product over 2^63-1 bytes), duplicate name, memory that
    // overlaps another tensor's; code::unsupported for complex types. name empty: "t<id>". An array of 0 elements may be null.
    int add(const std::string& name, dtype type, std::span<const std::int64_t> dims, void* values, int group);
    void rebind(int id, void* values);             // overlap checked
    int find(const std::string& name) const;       // -1: none
    const tensor& at(int id) const;                // code::argument for an unknown id
    int count() const noexcept { return static_cast<int>(tensors_.size()); }
    std::span<const tensor> all() const noexcept { return tensors_; }

private:
    void check_overlap(const std::string& name, const void* values, std::int64_t bytes, int except) const;
    std::vector<tensor> tensors_;
    std::map<std::string, int> ids_;
    std::map<std::uintptr_t, int> by_address_;     // start of each non-empty caller's array -> id
};

void check_name(const std::string& name, const char* what);  // UTF-8, 1..255 bytes, no empty, '.' or '..' component; code::argument
std::string shape_text(std::span<const std::int64_t> dims);  // "[3, 4]"

}  // namespace zero
