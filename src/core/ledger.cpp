// Sums by place and purpose. Not synchronised: a context, and so its ledger, is used by one thread at a time.
#include "core/ledger.hpp"

namespace zero {

namespace {
constexpr std::size_t index(place where) noexcept {
    return static_cast<std::size_t>(where);
}
constexpr std::size_t index(purpose why) noexcept {
    return static_cast<std::size_t>(why);
}
}  // namespace

const char* name(purpose which) noexcept {
    switch (which) {
        case purpose::parameters:
            return "parameters";
        case purpose::gradients:
            return "gradients";
        case purpose::master:
            return "master copies";
        case purpose::states:
            return "optimizer states";
        case purpose::gathered:
            return "gathered values";
        case purpose::handoff:
            return "gradient buffers";
        case purpose::communication:
            return "communication";
        case purpose::checkpoint:
            return "checkpoint";
        case purpose::count_:
            break;
    }
    return "unknown";
}

const char* name(place which) noexcept {
    switch (which) {
        case place::device:
            return "device";
        case place::host:
            return "host";
        case place::nvme:
            return "nvme";
    }
    return "unknown";
}

void ledger::add(place where, purpose why, std::int64_t bytes) noexcept {
    account& books = accounts_[index(where)];
    books.now[index(why)] += bytes;
    books.total += bytes;
    if (books.total > books.peak) books.peak = books.total;
}

void ledger::remove(place where, purpose why, std::int64_t bytes) noexcept {
    account& books = accounts_[index(where)];
    books.now[index(why)] -= bytes;
    books.total -= bytes;
}

std::int64_t ledger::bytes(place where) const noexcept {
    return accounts_[index(where)].total;
}

std::int64_t ledger::peak(place where) const noexcept {
    return accounts_[index(where)].peak;
}

std::int64_t ledger::bytes(place where, purpose why) const noexcept {
    return accounts_[index(where)].now[index(why)];
}

std::int64_t ledger::bytes(purpose why) const noexcept {
    std::int64_t sum = 0;
    for (const account& books : accounts_) sum += books.now[index(why)];
    return sum;
}

}  // namespace zero
