// The file, its mapping and its parts. See node_memory.hpp.
#include "device/node_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "core/error.hpp"
#include "device/available.hpp"
#include "device/pages.hpp"

namespace zero {

namespace {

const std::int64_t page = page_bytes();
constexpr std::int64_t gibibyte = std::int64_t{1} << 30;
constexpr std::int64_t most_address_space = std::int64_t{32} << 40;  // of the 128 TiB that a process has

std::string because(const char* what) { return formatted("{}: {}", what, std::strerror(errno)); }

struct flock byte_of(int rank) noexcept {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = rank;
    lock.l_len = 1;
    return lock;
}

std::shared_ptr<node_memory> give_up(int file, std::string& reason, const std::string& why) {
    reason = why;
    ::close(file);
    return nullptr;
}

constexpr const char* mapping_it = "mapping the memory of the node";

}  // namespace

// The file is closed where it cannot be used.
std::shared_ptr<node_memory> node_memory::map_and_lock(int file, const address& where, int rank, std::string& reason) {
    const auto all = static_cast<std::size_t>(where.part_bytes * (where.ranks + 1));
    void* data = ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (data == MAP_FAILED) return give_up(file, reason, because(mapping_it));
    struct flock lock = byte_of(rank);
    if (::fcntl(file, F_SETLK, &lock) == 0)
        return std::shared_ptr<node_memory>(new node_memory(file, static_cast<std::byte*>(data), where, rank));
    const std::string why = because(mapping_it);
    ::munmap(data, all);
    return give_up(file, reason, why);
}

node_memory::node_memory(int file, std::byte* data, const address& where, int rank)
    : file_(file), data_(data), where_(where), rank_(rank) {
    common_.first = page;  // the first page holds the token
    own_.first = where.part_bytes * (1 + rank);
}

std::shared_ptr<node_memory> node_memory::make(int ranks, std::string& reason) {
    // A file that grows beyond the limit of the shell would end the process by a signal.
    struct rlimit largest {};
    if (::getrlimit(RLIMIT_FSIZE, &largest) == 0 && largest.rlim_cur != RLIM_INFINITY) {
        reason = "the size of files is limited (ulimit -f)";
        return nullptr;
    }
    address where;
    where.process = ::getpid();
    where.ranks = ranks;
    const std::int64_t memory = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * page;
    where.part_bytes = std::min(round_up(std::max(memory, gibibyte), gibibyte), most_address_space / (ranks + 1) / gibibyte * gibibyte);
    std::random_device source;
    where.token = (static_cast<std::uint64_t>(source()) << 32) | source();
    const int file = ::memfd_create("libzero", MFD_CLOEXEC);
    if (file < 0) {
        reason = because("memfd_create");
        return nullptr;
    }
    where.descriptor = file;
    if (::ftruncate(file, where.part_bytes * (ranks + 1)) != 0 || ::fallocate(file, 0, 0, page) != 0)
        return give_up(file, reason, because(mapping_it));
    auto made = map_and_lock(file, where, 0, reason);
    if (made) std::memcpy(made->data_, &where.token, sizeof where.token);
    return made;
}

std::shared_ptr<node_memory> node_memory::open(const address& where, int rank, std::string& reason) {
    const std::string path = formatted("/proc/{}/fd/{}", where.process, where.descriptor);
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) {
        reason = because(path.c_str());
        return nullptr;
    }
    std::uint64_t token = 0;
    if (::pread(file, &token, sizeof token, 0) != static_cast<ssize_t>(sizeof token) || token != where.token)
        return give_up(file, reason, "the ranks run on different machines or in different containers");
    return map_and_lock(file, where, rank, reason);
}

node_memory::~node_memory() {
    ::munmap(data_, static_cast<std::size_t>(where_.part_bytes * (where_.ranks + 1)));
    ::close(file_);
}

std::int64_t node_memory::offset_of(const void* place) const noexcept {
    const auto* at = static_cast<const std::byte*>(place);
    const bool inside = at >= data_ && at < data_ + where_.part_bytes * (where_.ranks + 1);
    return inside ? at - data_ : -1;
}

std::shared_ptr<const node_memory::stretch> node_memory::take(part& from, std::int64_t bytes, std::int64_t stagger) {
    const std::int64_t next = from.ends.empty() ? from.first : *from.ends.rbegin();
    const std::int64_t room = from.first + where_.part_bytes - next - page;
    require(bytes >= 0 && bytes <= room - stagger, code::memory,
            "{} bytes are more than the memory that the ranks of a node share has room for: set libzero.node_shared to false", bytes);
    auto made = std::make_unique<stretch>(stretch{at(next + stagger), bytes});
    from.ends.insert(next + round_up(bytes + stagger, page));
    return {made.release(), [self = shared_from_this(), &from](const stretch* what) {
                self->give_back(from, *what);
                delete what;
            }};
}

// Of common memory only the place: others may still read there.
void node_memory::give_back(part& to, const stretch& what) noexcept {
    const std::int64_t first = offset_of(what.data) / page * page;
    const std::int64_t end = round_up(offset_of(what.data) + what.bytes, page);
    if (&to == &own_) discard(at(first), end - first);
    to.ends.erase(to.ends.find(end));
}

void node_memory::discard(const std::byte* first, std::int64_t bytes) noexcept {
    if (bytes > 0) ::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset_of(first), bytes);
}

// Streams that start at equal places in their pages get in each other's way (device/memory.cpp).
std::shared_ptr<const node_memory::stretch> node_memory::take_own(std::int64_t bytes) {
    constexpr std::int64_t stagger = 7 * 192;
    auto taken = take(own_, bytes, bytes >= 64 * page ? stagger : 0);
    reserve(taken->data, bytes);
    return taken;
}

buffer node_memory::own_buffer(ledger& book, purpose why, std::int64_t bytes) {
    auto taken = take_own(bytes);
    std::byte* place = taken->data;
    return {book, why, bytes, place, std::move(taken)};
}

std::shared_ptr<const node_memory::stretch> node_memory::take_common(std::int64_t bytes) { return take(common_, bytes, 0); }

void node_memory::reserve(const std::byte* first, std::int64_t bytes, bool pinned) {
    if (bytes == 0) return;
    const std::int64_t begin = offset_of(first) / page * page, end = round_up(offset_of(first) + bytes, page);
    std::string lacking = shortage(bytes);
    if (lacking.empty() && ::fallocate(file_, 0, begin, end - begin) != 0) lacking = std::strerror(errno);
    require(lacking.empty(), code::memory,
            "{} bytes of memory that the ranks of a node share could not be had ({}): use more ranks, a higher stage or smaller buckets",
            bytes, lacking);
    (void)populate(at(begin), end - begin);  // a fault for each page later, where it is unknown
    if (pinned) (void)::mlock(at(begin), static_cast<std::size_t>(end - begin));
}

std::byte* node_memory::map_privately(const std::byte* first, std::int64_t bytes) const {
    void* view = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file_, offset_of(first));
    return view == MAP_FAILED ? nullptr : static_cast<std::byte*>(view);
}

bool node_memory::lives(int rank) const noexcept {
    if (rank == rank_) return true;
    struct flock lock = byte_of(rank);
    return ::fcntl(file_, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace zero
