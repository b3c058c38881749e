// zero-ckpt import: a safetensors file becomes a checkpoint of values alone, for "checkpoint.load": "weights". The file is
// mapped, not read into memory, and written by the code that saves contexts.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>

#include "answer.hpp"
#include "checkpoints/directory.hpp"
#include "checkpoints/saving.hpp"
#include "progress.hpp"
#include "safetensors.hpp"
#include "tensor/registry.hpp"
#include "tool.hpp"

namespace zero::tool {
namespace {

using nlohmann::json;

class mapped {
public:
    explicit mapped(const std::string& path) {
        const files::disk disk;
        const files::file from = disk.open(path);
        bytes_ = from.bytes();
        require(bytes_ >= 8, code::argument, "{} is no safetensors file: it has {} bytes", path, bytes_);
        const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (descriptor >= 0) start_ = ::mmap(nullptr, size(), PROT_READ, MAP_PRIVATE, descriptor, 0);
        const int number = errno;
        if (descriptor >= 0) ::close(descriptor);
        require(start_ != MAP_FAILED, code::io, "could not map {}: {}", path, std::strerror(number));
    }
    ~mapped() { ::munmap(start_, size()); }
    mapped(const mapped&) = delete;
    mapped& operator=(const mapped&) = delete;
    std::int64_t bytes() const noexcept { return bytes_; }
    const char* at(std::int64_t offset) const noexcept { return static_cast<const char*>(start_) + offset; }

private:
    std::size_t size() const noexcept { return static_cast<std::size_t>(bytes_); }
    void* start_ = MAP_FAILED;
    std::int64_t bytes_ = 0;
};

class reading {
public:
    reading(const mapped& from, const std::string& path) : from_(from), path_(path) {
        std::uint64_t length = 0;
        std::memcpy(&length, from.at(0), 8);
        if (length > static_cast<std::uint64_t>(std::min(from.bytes() - 8, safetensors::most_header_bytes)))
            wrong("its header would have {} bytes", length);
        data_ = 8 + static_cast<std::int64_t>(length);
        bool twice = false;
        std::set<std::string> known;
        const json::parser_callback_t watch = [&](int depth, json::parse_event_t event, json& seen) {
            if (depth > 8) wrong("its header is nested too deep");
            if (event == json::parse_event_t::key && depth == 1)
                twice = twice || !known.insert(seen.get<std::string>()).second;
            return true;
        };
        try {
            header_ = json::parse(from.at(8), from.at(data_), watch);
        } catch (const json::exception& problem) {
            wrong("its header is no JSON ({})", problem.what());
        }
        if (!header_.is_object()) wrong("its header is no JSON object");
        if (twice) wrong("its header names a tensor twice");
    }

    checkpoint::contents contents() const {
        checkpoint::contents all;
        all.run.optimizer = "none";
        all.run.schedule = "none";
        all.run.config = "{}";
        const bool states = header_.contains("__metadata__") && header_["__metadata__"].is_object() &&
                            header_["__metadata__"].contains(safetensors::states_key);
        for (const auto& [name, entry] : header_.items()) {
            if (name == "__metadata__" || (states && name.starts_with(safetensors::states_prefix))) continue;
            try {
                all.tensors.push_back(tensor(name, entry));
            } catch (const json::exception& problem) {
                wrong("the entry of \"{}\" is not as the format has it ({})", name, problem.what());
            }
        }
        if (all.tensors.empty()) wrong("it holds no tensor");
        return all;
    }

private:
    template <typename... Args>
    [[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) const {
        fail(code::argument, "{} is not readable as a safetensors file: {}", path_,
             formatted(format, std::forward<Args>(args)...));
    }

    checkpoint::tensor_state tensor(const std::string& name, const json& entry) const {
        check_name(name, "tensor");
        const std::optional<dtype> type = safetensors::type_of(entry.at("dtype").get<std::string>());
        if (!type) wrong("\"{}\" has dtype {}; F32, F64, BF16 and F16 can be imported", name, entry["dtype"].dump());
        checkpoint::tensor_state made;
        made.name = name;
        made.type = *type;
        made.frozen = true;  // values only
        for (const json& dim : entry.at("shape")) {
            if (!dim.is_number_integer() || dim.get<std::int64_t>() < 0) wrong("the shape of \"{}\" is wrong", name);
            made.dims.push_back(dim.get<std::int64_t>());
        }
        if (made.dims.size() > static_cast<std::size_t>(most_dims))
            wrong("\"{}\" has {} dimensions, more than {}", name, made.dims.size(), most_dims);
        made.count = checkpoint::product(made.dims, path_);
        const json& offsets = entry.at("data_offsets");
        if (offsets.size() != 2 || !offsets.at(0).is_number_integer() || !offsets.at(1).is_number_integer())
            wrong("the data_offsets of \"{}\" are wrong", name);
        const auto first = offsets.at(0).get<std::int64_t>(), last = offsets.at(1).get<std::int64_t>();
        if (first < 0 || last < first || last > from_.bytes() - data_)
            wrong("the data of \"{}\" lie outside of the file; it may be cut short", name);
        if (made.count > (last - first) / size_of(*type) || made.count * size_of(*type) != last - first)
            wrong("\"{}\" has {} bytes, which does not fit its shape {}", name, last - first, shape_text(made.dims));
        void* data = const_cast<char*>(from_.at(data_ + first));  // a save only reads
        made.vectors.push_back({"value", *type, 0, made.count, data});
        return made;
    }

    const mapped& from_;
    std::string path_;
    json header_;
    std::int64_t data_ = 0;
};

}  // namespace

int import_safetensors(const options& what) {
    const mapped from(what.file);
    const checkpoint::contents all = reading(from, what.file).contents();
    checkpoint::check_tag(what.tag);
    std::int64_t bytes = 0;
    for (const checkpoint::tensor_state& one : all.tensors) bytes += one.count * size_of(one.type);
    progress bar(bytes);
    std::mutex one_at_a_time;  // several threads write
    const files::disk disk([&](const files::request& call) {
        if (call.what != files::action::write) return files::verdict{};
        const std::scoped_lock lock(one_at_a_time);
        bar.add(call.bytes);
        return files::verdict{};
    });
    checkpoint::solo alone;
    ledger book;
    log said(0);
    checkpoint::save_request how;
    how.directory = what.path;
    how.tag = what.tag;
    checkpoint::save(all, alone, disk, book, said, how);
    if (what.json)
        print_json({{"folder", files::join(what.path, what.tag)},
                    {"file", what.file},
                    {"tensors", all.tensors.size()},
                    {"bytes", bytes}});
    return fine;
}

}  // namespace zero::tool
