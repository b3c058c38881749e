// Saving and loading against the storage itself, in the same run: save against raw O_DIRECT writes of as many bytes
// with fsync, the pause of an asynchronous save against memcpy of the state, load against raw O_DIRECT reads: into a new
// context, also of what one rank has saved, and back into one that has trained. Every rank takes part in all of them; the
// slowest counts. "checksums": CRC-32C of as many bytes in memory, alone; a save sums while it copies. All bytes are
// random: storage is faster with zeros. The disk's cache is not the system's: parts are read by O_DIRECT.
// Options: --json, --mebibytes N (1536) of state over all ranks, --rounds N (9), --folder PATH (the working directory),
// --tensors N (40).
#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <thread>

#include "checkpoints/crc32c.hpp"
#include "support/mpi_main.hpp"
#include "support/subject.hpp"

namespace {

constexpr std::int64_t request = std::int64_t{8} << 20;
constexpr int under_way = 2;
constexpr std::size_t huge_page = 2 << 20;

[[noreturn]] void give_up(const char* what) {
    std::perror(what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

// What the storage does with requests of 8 MiB, two under way, out of and into memory that is warm, in huge
// pages: requests of scattered small ones cost it a third of its speed.
class raw {
public:
    raw() {
        for (auto& one : memory_) {
            one.reset(static_cast<std::byte*>(std::aligned_alloc(huge_page, static_cast<std::size_t>(request))));
            ::madvise(one.get(), static_cast<std::size_t>(request), MADV_HUGEPAGE);
            std::mt19937_64 random(1);  // storage may shorten what repeats itself
            for (std::int64_t at = 0; at < request; at += 8) {
                const std::uint64_t word = random();
                std::memcpy(one.get() + at, &word, 8);
            }
        }
    }
    void write(const std::string& path, std::int64_t bytes) {
        const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_DIRECT, 0666);
        if (file < 0 || ::fallocate(file, 0, 0, bytes) != 0) give_up("raw write");
        in_turn(bytes, [&](int lane, std::int64_t offset, std::size_t now) {
            std::byte* const from = memory_[static_cast<std::size_t>(lane)].get();
            for (std::size_t at = 0; at < now; at += 4096) {  // no two pages are equal
                const std::int64_t place = offset + static_cast<std::int64_t>(at);
                std::memcpy(from + at, &place, sizeof place);
            }
            return ::pwrite(file, from, now, offset);
        });
        if (::fsync(file) != 0 || ::close(file) != 0) give_up("raw fsync");
    }
    void read(const std::string& path, std::int64_t bytes) {
        const int file = ::open(path.c_str(), O_RDONLY | O_DIRECT);
        if (file < 0) give_up("raw read");
        in_turn(bytes, [&](int lane, std::int64_t offset, std::size_t now) {
            return ::pread(file, memory_[static_cast<std::size_t>(lane)].get(), now, offset);
        });
        ::close(file);
    }

private:
    template <typename Call>
    void in_turn(std::int64_t bytes, const Call& call) {
        std::atomic<std::int64_t> next{0};
        const auto work = [&](int lane) {
            for (std::int64_t offset = next.fetch_add(request); offset < bytes; offset = next.fetch_add(request)) {
                const auto now = static_cast<std::size_t>(std::min(request, bytes - offset));
                if (call(lane, offset, now) != static_cast<ssize_t>(now)) give_up("raw request");
            }
        };
        std::thread other(work, 1);
        work(0);
        other.join();
    }
    struct release {
        void operator()(std::byte* what) const { std::free(what); }
    };
    std::unique_ptr<std::byte, release> memory_[under_way];
};

// fp32 parameters with two moments each, sharded in stage 2: what this rank saves is a share of all three.
class model {
public:
    model(MPI_Comm ranks, std::int64_t elements, int tensors, bool behind, bool trained = true) {
        const std::string config = std::string(R"({"optimizer": {"type": "AdamW"}, "zero_optimization": {"stage": 2},
            "checkpoint": {"async": )") +
                                   (behind ? "true}}" : "false}}");
        benchmark::check(zero_init(ranks, config.c_str(), &context_));
        const std::int64_t each = elements / tensors;
        for (int k = 0; k < tensors; ++k)
            benchmark::check(zero_register(context_, nullptr, ZERO_F32, 1, &each, nullptr, 0, nullptr));
        benchmark::check(zero_commit(context_));
        if (!trained) return;
        for (int k = 0; k < tensors; ++k) benchmark::check(zero_fill(context_, k, "normal", 0, 1, 1));
        std::uint32_t word = 1;
        for (int k = 0; k < tensors; ++k) {
            void* gradient = nullptr;
            benchmark::check(zero_gradient(context_, k, &gradient));
            for (std::int64_t i = 0; i < each; ++i) {
                word = word * 1'664'525U + 1'013'904'223U;
                static_cast<float*>(gradient)[i] = static_cast<float>(word) * 0x1p-32F - 0.5F;
            }
            benchmark::check(zero_reduce(context_, k, nullptr));
        }
        benchmark::check(zero_step(context_));  // moments are zeros before
    }
    ~model() { zero_finalize(&context_); }
    model(const model&) = delete;
    model& operator=(const model&) = delete;
    void save(const std::string& folder, const std::string& tag) {
        benchmark::check(zero_save(context_, folder.c_str(), tag.c_str()));
    }
    void load(const std::string& folder, const std::string& tag) {
        benchmark::check(zero_load(context_, folder.c_str(), tag.c_str()));
    }
    void wait() { benchmark::check(zero_wait(context_)); }

private:
    zero_t context_ = nullptr;
};

// What this process has had from storage so far, by the kernel's count.
std::int64_t bytes_had() {
    std::ifstream from("/proc/self/io");
    std::string key;
    for (std::int64_t value = 0; from >> key >> value;)
        if (key == "read_bytes:") return value;
    return 0;
}

template <typename Work>
double slowest(const Work& work) {
    MPI_Barrier(MPI_COMM_WORLD);
    double time = benchmark::seconds(work);
    MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return time;
}

class measurement {
public:
    enum variant { raw_write, save, memory_copy, pause, whole, raw_read, load, load_other, back, sums, count };

    measurement(std::int64_t bytes, int tensors, std::string folder, int rank, int ranks)
        : folder_(std::move(folder)),
          elements_(bytes / 12),
          tensors_(tensors),
          own_(std::max(request, bytes / ranks / request * request)),
          rank_(rank),
          now_(MPI_COMM_WORLD, bytes / 12, tensors, false),
          behind_(MPI_COMM_WORLD, bytes / 12, tensors, true),
          from_(static_cast<std::size_t>(own_), 1),
          to_(static_cast<std::size_t>(own_), 2) {
        if (rank == 0) model(MPI_COMM_SELF, bytes / 12, tensors, false).save(path("one"), "one");
        MPI_Barrier(MPI_COMM_WORLD);
    }

    // Of all ranks in one load: of what as many ranks have saved, and of what one has.
    std::int64_t had = 0, had_other = 0, had_back = 0;

    void round(benchmark::rounds& into, int number) {
        const std::vector<variant> order{raw_write, save, memory_copy, pause, raw_read, load, load_other, back, sums};
        const std::string tag = std::to_string(number), raw_path = path("raw-" + std::to_string(rank_));
        now_.save(path("read"), tag);  // for load and raw reads, in every order
        raw_.write(path("raw-read-" + std::to_string(rank_)), own_);
        for (std::size_t k = 0; k < order.size(); ++k) {
            const auto which = order[(k + static_cast<std::size_t>(number + 2)) % order.size()];
            double time = 0;
            settle_disk();
            switch (which) {
                case raw_write:
                    time = slowest([&] { raw_.write(raw_path, own_); });
                    ::unlink(raw_path.c_str());
                    break;
                case save:
                    time = slowest([&] { now_.save(path("save"), tag); });
                    break;
                case memory_copy:
                    time = slowest([&] { std::memcpy(to_.data(), from_.data(), to_.size()); });
                    break;
                case pause: {
                    const double all = slowest([&] {
                        time = slowest([&] { behind_.save(path("behind"), tag); });
                        behind_.wait();
                    });
                    if (number >= 0) into.add(whole, all);
                    break;
                }
                case raw_read:
                    time = slowest([&] { raw_.read(path("raw-read-" + std::to_string(rank_)), own_); });
                    break;
                case load:
                    time = into_fresh(had, "read", tag);
                    break;
                case sums:
                    time = slowest([&] {
                        for (std::int64_t at = 0; at < own_; at += zero::crc32c::block_bytes)
                            sum_ ^= zero::crc32c::of(from_.data() + at, static_cast<std::size_t>(zero::crc32c::block_bytes));
                    });
                    break;
                case load_other:
                    time = into_fresh(had_other, "one", "one");
                    break;
                default:
                    time = counted(had_back, [&] { now_.load(path("read"), tag); });
            }
            if (number >= 0) into.add(which, time);
        }
        ::unlink(path("raw-read-" + std::to_string(rank_)).c_str());
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank_ == 0)
            for (const char* one : {"read", "save", "behind"}) std::filesystem::remove_all(path(one));
        settle_disk();
    }

private:
    // Nothing has to pay for the removal of what came before it: the file system hands space back when it next commits.
    void settle_disk() const {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank_ == 0) ::sync();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    template <typename Work>
    double counted(std::int64_t& bytes, const Work& work) {
        const std::int64_t before = bytes_had();
        const double time = slowest(work);
        bytes = bytes_had() - before;
        MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        return time;
    }
    std::string path(const std::string& name) const { return folder_ + "/" + name; }

    // As a job that goes on after a kill does.
    double into_fresh(std::int64_t& had_now, const std::string& from, const std::string& tag) {
        model fresh(MPI_COMM_WORLD, elements_, tensors_, false, false);
        return counted(had_now, [&] { fresh.load(path(from), tag); });
    }

    std::string folder_;
    std::int64_t elements_;
    int tensors_;
    std::int64_t own_;
    int rank_;
    raw raw_;
    model now_, behind_;
    std::vector<char> from_, to_;
    std::uint32_t sum_ = 0;
};

}  // namespace

int main(int count, char** texts) {
    return benchmark::mpi_main(count, texts, [](const benchmark::arguments& options, int rank, int ranks) {
        const long size = options.number("--mebibytes", 1536), count_of_rounds = options.number("--rounds", 9);
        const auto tensors = static_cast<int>(options.number("--tensors", 40));
        const std::string folder = options.text("--folder", ".") + "/zero-benchmark-checkpoint";
        if (rank == 0) std::filesystem::create_directories(folder);
        MPI_Barrier(MPI_COMM_WORLD);
        benchmark::rounds times(measurement::count);
        std::int64_t had = 0, had_other = 0;
        {
            measurement all(std::int64_t{size} << 20, tensors, folder, rank, ranks);
            for (int number = -2; number < count_of_rounds; ++number) all.round(times, number);
            had = all.had;
            had_other = all.had_other;
        }
        if (rank == 0) std::filesystem::remove_all(folder);
        benchmark::report report("checkpoint: fp32 AdamW state, stage 2; rates of all ranks together");
        const auto row = [&](const char* what, measurement::variant variant, const char* peer,
                             measurement::variant reference, std::int64_t read = 0) {
            const benchmark::spread ratio = times.speedup(variant, reference);
            const double rate = static_cast<double>(size) / 1024;
            report.add({{"what", what},
                        {"ranks", ranks},
                        {"MiB", size},
                        {"MiB read", read >> 20},
                        {"seconds", times.time(variant).median},
                        {"GiB/s", rate / times.time(variant).median},
                        {"against", peer},
                        {"peer GiB/s", rate / times.time(reference).median},
                        {"of peer", ratio.median},
                        {"10 %", ratio.low},
                        {"90 %", ratio.high},
                        {"disturbed", times.disturbed(reference) ? "YES" : "no"}});
        };
        row("save", measurement::save, "raw write", measurement::raw_write);
        row("async pause", measurement::pause, "memcpy", measurement::memory_copy);
        row("async save", measurement::whole, "raw write", measurement::raw_write);
        row("checksums", measurement::sums, "raw write", measurement::raw_write);
        row("load", measurement::load, "raw read", measurement::raw_read, had);
        row("load, saved by 1", measurement::load_other, "raw read", measurement::raw_read, had_other);
        row("load, back", measurement::back, "raw read", measurement::raw_read, had);
        return report;
    });
}
