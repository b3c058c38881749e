// Numbers and texts in one string, for ranks of one job to tell each other things. Never written to a file.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace zero::checkpoint {

class packer {
public:
    packer& put(std::int64_t number) {
        const std::size_t at = text_.size();
        text_.resize(at + sizeof number);
        std::memcpy(text_.data() + at, &number, sizeof number);
        return *this;
    }
    packer& put(std::string_view text) {
        put(static_cast<std::int64_t>(text.size()));
        text_.append(text);
        return *this;
    }
    std::string take() { return std::move(text_); }

private:
    std::string text_;
};

class unpacker {
public:
    explicit unpacker(std::string_view text) : rest_(text) {}
    std::int64_t integer() {
        std::int64_t number = 0;
        std::memcpy(&number, cut(sizeof number).data(), sizeof number);
        return number;
    }
    std::size_t length() {
        const std::int64_t number = integer();
        require(number >= 0, code::internal, "a message between ranks holds the length {}", number);
        return static_cast<std::size_t>(number);
    }
    std::string text() { return std::string(cut(length())); }
    bool done() const noexcept { return rest_.empty(); }

private:
    std::string_view cut(std::size_t bytes) {
        require(bytes <= rest_.size(), code::internal, "a message between ranks ends too early");
        const std::string_view head = rest_.substr(0, bytes);
        rest_.remove_prefix(bytes);
        return head;
    }
    std::string_view rest_;
};

}  // namespace zero::checkpoint
