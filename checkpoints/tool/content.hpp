// zero-ckpt: one checkpoint, read as whole tensors piece by piece with all checks. Not here: what is done with them.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "checkpoints/reader.hpp"

namespace zero::tool {

constexpr std::int64_t chunk_elements = std::int64_t{1} << 20;  // so many are in memory at a time

// With "model-<m>/" where the model is split.
std::string shown_name(const checkpoint::manifest& in, const checkpoint::tensor_entry& of);

class content {
public:
    explicit content(const std::string& path);  // a checkpoint or a folder of them; throws where there is none
    content(const content&) = delete;
    content& operator=(const content&) = delete;

    const std::string& folder() const noexcept { return folder_; }
    const checkpoint::manifest& what() const noexcept { return what_; }
    std::string shown_name(const checkpoint::tensor_entry& of) const { return tool::shown_name(what_, of); }

    // Elements first .. first+count-1 of the flattened tensor, as `type`.
    void read(const checkpoint::vector_entry& from, std::int64_t first, std::int64_t count, dtype type, std::byte* to);
    // All `count` elements, chunk by chunk: place, how many, where they are until the call returns.
    using taker = std::function<void(std::int64_t first, std::int64_t count, const std::byte* data)>;
    void each_chunk(const checkpoint::vector_entry& from, std::int64_t count, dtype type, const taker& take);

private:
    const checkpoint::part_reader& part(int number);

    files::disk disk_;
    std::string folder_;
    checkpoint::manifest what_;
    std::map<int, checkpoint::part_reader> parts_;
    std::vector<std::byte> scratch_, chunk_;
};

}  // namespace zero::tool
