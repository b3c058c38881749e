// The verbs over plain MPI. Every wait moves *everything* that is under way: a rank that waits for one thing may be
// what another rank's reduction waits for. Hence non-blocking collectives everywhere. No threads of its own: any MPI
// thread level.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "comm/checks.hpp"
#include "comm/chunks.hpp"
#include "comm/exchange.hpp"
#include "comm/mpi_gather.hpp"
#include "comm/mpi_support.hpp"

namespace zero::comm {

namespace {

constexpr std::int64_t mpi_count_limit = INT32_MAX;
constexpr std::int64_t largest_passage = 1024 * 1024;  // bytes that a collective call moves: in the caches on their way
constexpr std::int64_t fewest = 4;  // one element of an fp64 sum in the units of two bytes that travel

std::int64_t count_limit(std::int64_t wanted) {
    require(wanted >= 0 && (wanted == 0 || wanted >= fewest) && wanted <= mpi_count_limit, code::argument,
            "largest_count is {}: give 4 to 2147483647, or 0 for the largest", wanted);
    return wanted == 0 ? mpi_count_limit : wanted;
}

class mpi final : public communicator {
public:
    mpi(MPI_Comm given, const mpi_options& options)
        : largest_count_(count_limit(options.largest_count)),
          own_(given),
          around_(find_nodes(own_.get(), options.node_size)),
          exchange_(own_.get(), around_.nodes, largest_count_, sent_) {
        check(MPI_Comm_rank(own_.get(), &rank_), "MPI_Comm_rank");
    }

    int rank() const noexcept override { return rank_; }
    int size() const noexcept override { return around_.nodes.ranks; }
    const partition::topology& nodes() const noexcept override { return around_.nodes; }
    bool on_one_node() override {
        return around_.nodes.nodes == 1 && !around_.unequal && (around_.asked ? around_ : ask_mpi(own_.get())).on_node == size();
    }
    std::unique_ptr<communicator> part(int color, int node_size) override {
        const split_communicator those(own_.get(), color, rank_);
        return std::make_unique<mpi>(those.get(), mpi_options{node_size, largest_count_});
    }
    bool start_helper() override { return every_thread_may_call(); }
    void meanwhile(std::function<bool()> work) override { meanwhile_ = std::move(work); }

    void tell(news what) noexcept override;
    news heard() override;

    std::unique_ptr<operation> start_reduce_scatter(reduce_scatter_request what) override;
    std::unique_ptr<operation> start_all_gather(all_gather_request what) override;
    void all_reduce(std::span<std::int64_t> values, combine how) override;
    void broadcast(void* data, std::int64_t bytes, int root) override;
    std::vector<std::string> gather(const std::string& mine, int root) override;
    std::string broadcast(const std::string& text, int root) override;

    void reserve(ledger& book, std::int64_t largest_slice_bytes) override {
        exchange_.reserve(book, largest_slice_bytes);
    }
    std::int64_t scratch_bytes(std::int64_t largest_slice_bytes) const noexcept override {
        return exchange_.scratch_bytes(largest_slice_bytes);
    }

    void employ(crew* threads) noexcept override { exchange_.employ(threads); }

    exchange& reductions() noexcept { return exchange_; }
    void leaves_messages() noexcept override { own_.keep(); }

    // Waits until `done()`; meanwhile the reductions move on.
    template <typename Done>
    void wait(const Done& done) {
        patience idle;
        while (!done()) {
            bool moved = exchange_.progress();
            if (meanwhile_) moved |= meanwhile_();
            if (moved)
                idle.reset();
            else
                idle.rest();
        }
    }

private:
    // One collective call on the passage: `post` starts it, and it is waited for. It cannot be cancelled: when bad news end
    // the wait, it is left to MPI for good, and the passage with it.
    template <typename Post>
    void collective(const Post& post, const char* call) {
        request_set one;
        check(post(passage_->data(), one.add()), call);
        try {
            wait([&] { return one.test(); });
        } catch (...) {
            one.clear();
            leaves_messages();
            static_cast<void>(passage_.release());
            throw;
        }
    }
    std::byte* passage(std::int64_t bytes) {
        if (!passage_) passage_ = std::make_unique<std::vector<std::byte>>();
        if (static_cast<std::int64_t>(passage_->size()) < bytes) passage_->resize(static_cast<std::size_t>(bytes));
        return passage_->data();
    }

    std::int64_t largest_count_;
    own_communicator own_;
    neighbourhood around_;
    exchange exchange_;
    std::function<bool()> meanwhile_;
    int rank_ = 0;
    std::int64_t gathers_ = 0, texts_ = 0;
    news told_ = news::none, heard_ = news::none;
    std::unique_ptr<std::vector<std::byte>> passage_;  // what the present collective call reads and writes
};

class reduce_operation : public operation {
public:
    reduce_operation(mpi& over, reduce_scatter_request what)
        : over_(over), one_(over.reductions().start(std::move(what))) {}
    ~reduce_operation() override {
        if (one_->done()) return;
        over_.leaves_messages();
        over_.reductions().abandon("an earlier reduction was given up: finalize this context");
    }
    bool progress() override {
        if (!one_->done()) over_.reductions().progress();
        if (!one_->done()) return false;
        report();
        return true;
    }
    void finish() override {
        over_.wait([this] { return one_->done(); });
        report();
    }

private:
    void report() {
        if (one_->error) std::rethrow_exception(std::exchange(one_->error, nullptr));
    }

    mpi& over_;
    std::shared_ptr<exchange::reduction> one_;
};

class gather_operation : public operation {
public:
    gather_operation(mpi& over, request_set posted) : over_(over), posted_(std::move(posted)) {}
    ~gather_operation() override {
        if (!posted_.empty()) over_.leaves_messages();
    }
    bool progress() override {
        over_.reductions().progress();
        return posted_.test();
    }
    void finish() override {
        over_.wait([this] { return posted_.test(); });
    }

private:
    mpi& over_;
    request_set posted_;
};

std::unique_ptr<operation> mpi::start_reduce_scatter(reduce_scatter_request what) {
    return std::make_unique<reduce_operation>(*this, std::move(what));
}

std::unique_ptr<operation> mpi::start_all_gather(all_gather_request what) {
    check_gather(what, rank_, size());
    request_set posted;
    sent_.gather_bytes += post_gather(own_.get(), what, tag_of(kind::gather, gathers_++), largest_count_, posted);
    const int own_node = nodes().node_of(rank_);
    const int elsewhere = what.root < 0 ? size() - nodes().per_node() : nodes().node_of(what.root) != own_node ? 1 : 0;
    sent_.off_node_bytes += elsewhere * what.own_bytes;
    return std::make_unique<gather_operation>(*this, std::move(posted));
}

void mpi::all_reduce(std::span<std::int64_t> values, combine how) {
    const MPI_Op op = how == combine::sum ? MPI_SUM : MPI_MAX;
    const chunks parts{static_cast<std::int64_t>(values.size()), std::min(largest_count_, largest_passage / 8)};
    for (std::int64_t k = 0; k < parts.number(); ++k) {
        const auto part = values.subspan(static_cast<std::size_t>(parts.first(k)), static_cast<std::size_t>(parts.count(k)));
        std::memcpy(passage(parts.count(k) * 8), part.data(), part.size_bytes());
        collective(
            [&](void* numbers, MPI_Request* r) {
                return MPI_Iallreduce(MPI_IN_PLACE, numbers, static_cast<int>(part.size()), MPI_INT64_T, op, own_.get(), r);
            },
            "MPI_Iallreduce");
        std::memcpy(part.data(), passage_->data(), part.size_bytes());
    }
}

void mpi::tell(news what) noexcept {
    static constexpr news texts[] = {news::none, news::given_up, news::dead};  // outlives the messages
    if (what <= told_ || !mpi_is_usable()) return;
    told_ = what;
    leaves_messages();
    for (int peer = 0; peer < size(); ++peer) {
        MPI_Request sent = MPI_REQUEST_NULL;
        if (peer == rank_) continue;
        if (MPI_Isend(&texts[static_cast<int>(what)], sizeof what, MPI_BYTE, peer, tag_of(kind::news, 0), own_.get(), &sent) == MPI_SUCCESS)
            MPI_Request_free(&sent);
    }
    // The caller may never come back: what MPI has not sent yet, because it must still connect, leaves now.
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    for (int there = 0; std::chrono::steady_clock::now() < end; std::this_thread::yield())
        if (MPI_Iprobe(MPI_ANY_SOURCE, tag_of(kind::news, 0), own_.get(), &there, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
}

communicator::news mpi::heard() {
    for (int there = 1; there != 0;) {
        MPI_Status status;
        check(MPI_Iprobe(MPI_ANY_SOURCE, tag_of(kind::news, 0), own_.get(), &there, &status), "MPI_Iprobe");
        if (there == 0) break;
        news what = news::none;
        check(MPI_Recv(&what, sizeof what, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, own_.get(), MPI_STATUS_IGNORE), "MPI_Recv");
        heard_ = std::max(heard_, what);
    }
    return heard_;
}

void mpi::broadcast(void* data, std::int64_t bytes, int root) {
    require(root >= 0 && root < size(), code::internal, "root {} of a broadcast over {} ranks", root, size());
    const chunks parts{bytes, std::min(largest_count_, largest_passage)};
    for (std::int64_t k = 0; k < parts.number(); ++k) {
        std::byte* first = static_cast<std::byte*>(data) + parts.first(k);
        const auto count = static_cast<std::size_t>(parts.count(k));
        std::byte* there = passage(parts.count(k));
        if (rank_ == root) std::memcpy(there, first, count);
        collective([&](void* part, MPI_Request* r) { return MPI_Ibcast(part, static_cast<int>(count), MPI_BYTE, root, own_.get(), r); },
                   "MPI_Ibcast");
        if (rank_ != root) std::memcpy(first, there, count);
    }
}

std::vector<std::string> mpi::gather(const std::string& mine, int root) {
    const std::size_t ranks = static_cast<std::size_t>(size());
    const std::int64_t length = static_cast<std::int64_t>(mine.size());
    std::vector<std::int64_t> lengths(ranks);
    std::memcpy(passage(8 * size()) + 8 * rank_, &length, sizeof length);
    collective(
        [&](void* all, MPI_Request* r) {
            return MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT64_T, own_.get(), r);
        },
        "MPI_Iallgather");
    std::memcpy(lengths.data(), passage_->data(), ranks * 8);
    std::vector<std::string> texts(rank_ == root ? ranks : 0);
    all_gather_request what{mine.data(), length, {}, root};
    for (std::size_t from = 0; from < ranks; ++from) {
        if (rank_ == root) texts[from].resize(static_cast<std::size_t>(lengths[from]));
        what.landings.push_back({rank_ == root ? texts[from].data() : nullptr, lengths[from]});
    }
    check_gather(what, rank_, size());
    request_set posted;
    post_gather(own_.get(), what, tag_of(kind::text, texts_++), largest_count_, posted);
    gather_operation(*this, std::move(posted)).finish();
    return texts;
}

std::string mpi::broadcast(const std::string& text, int root) {
    std::int64_t length = static_cast<std::int64_t>(text.size());
    broadcast(&length, sizeof length, root);
    std::string result = rank_ == root ? text : std::string(static_cast<std::size_t>(length), ' ');
    broadcast(result.data(), length, root);
    return result;
}

}  // namespace

std::unique_ptr<communicator> make_mpi(const void* mpi_comm, const mpi_options& options) {
    check_communicator(mpi_comm);
    return std::make_unique<mpi>(*static_cast<const MPI_Comm*>(mpi_comm), options);
}

}  // namespace zero::comm
