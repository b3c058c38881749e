// Two levels: inside a node by memory that its ranks share, across nodes by MPI among the ranks with equal places on their
// nodes. What crosses the network does so once per node: a reduction goes inside, then across; a gather across, then inside;
// both in pieces, so that the levels overlap. Not here: how ranks of a node meet (node_shared.cpp), messages (mpi.cpp).
#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <utility>

#include "comm/checks.hpp"
#include "comm/node_flags.hpp"
#include "comm/node_shared.hpp"
#include "core/error.hpp"

namespace zero::comm {

namespace {

constexpr std::size_t lanes = 3;                      // of node sums: one is formed, two travel
constexpr std::int64_t largest_row = 256 * 1024;      // bytes of a lane for one node: fewer messages, still in cache
constexpr std::int64_t smallest_row = 8 * 1024;       // below this the cost per message rules
constexpr std::int64_t lanes_aim = 6 * 1024 * 1024;   // many nodes: smaller rows rather than more memory
constexpr std::int64_t gather_piece = 1024 * 1024;    // bytes of one rank's part on their way at once
constexpr std::int64_t ahead = 2;                     // pieces between the nodes, gathers inside one, that are under way

std::byte* bytes_at(const void* base, std::int64_t offset) {
    return base == nullptr ? nullptr : static_cast<std::byte*>(const_cast<void*>(base)) + offset;
}

class hierarchical final : public communicator {
public:
    hierarchical(std::unique_ptr<communicator> world, std::unique_ptr<node_level> inside, std::unique_ptr<communicator> across)
        : world_(std::move(world)),
          inside_(std::move(inside)),
          across_(std::move(across)),
          nodes_(world_->nodes()),
          node_(nodes_.node_of(world_->rank())),
          local_(nodes_.local_of(world_->rank())) {
        hierarchical::meanwhile({});
    }

    int rank() const noexcept override { return world_->rank(); }
    int size() const noexcept override { return nodes_.ranks; }
    const partition::topology& nodes() const noexcept override { return nodes_; }
    node_memory* shared() const noexcept override { return inside_->shared(); }
    bool on_one_node() override { return false; }
    bool start_helper() override { return helped_ = across_->start_helper() && inside_->start_helper(); }
    void employ(crew* threads) noexcept override {
        inside_->employ(threads);
        across_->employ(threads);
    }
    void meanwhile(std::function<bool()> work) override {
        const auto all = [this, work = std::move(work)] {
            const bool moved = advance() | (work && work());
            if (!moved) look_around();
            return moved;
        };
        world_->meanwhile(all);
        inside_->meanwhile(all);
        across_->meanwhile(all);
        meanwhile_ = all;
    }
    traffic sent() const noexcept override {
        traffic all = world_->sent();
        return all += across_->sent();
    }

    std::unique_ptr<operation> start_reduce_scatter(reduce_scatter_request what) override;
    std::unique_ptr<operation> start_all_gather(all_gather_request what) override;
    void fence() override {
        watched([&] { inside_->fence(); });
    }
    void farewell() noexcept override { inside_->farewell(); }
    void all_reduce(std::span<std::int64_t> values, combine how) override {
        watched([&] { inside_->all_reduce(values, how); });
        across_->all_reduce(values, how);
    }
    void broadcast(void* data, std::int64_t bytes, int root) override {
        if (nodes_.local_of(root) == local_) across_->broadcast(data, bytes, nodes_.node_of(root));
        watched([&] { inside_->broadcast(data, bytes, nodes_.local_of(root)); });
    }
    std::vector<std::string> gather(const std::string& mine, int root) override { return world_->gather(mine, root); }
    std::string broadcast(const std::string& text, int root) override { return world_->broadcast(text, root); }

    void reserve(ledger& book, std::int64_t largest_slice_bytes) override;
    std::int64_t scratch_bytes(std::int64_t largest_slice_bytes) const noexcept override {
        const std::int64_t row = row_bytes(largest_slice_bytes);
        return inside_->scratch_bytes(largest_slice_bytes) + lane_bytes(row) * static_cast<std::int64_t>(lanes) + across_->scratch_bytes(row);
    }

    // One reduce-scatter on its way.
    struct reduction {
        reduce_scatter_request what;
        std::unique_ptr<operation> inside;  // null: all ranks of the node have read what they need
        std::int64_t arrived = 0;           // elements of the slice that are final
        bool dropped = false;
        std::exception_ptr error;
        bool done() const noexcept { return dropped || (!inside && arrived == what.slice); }
    };
    // One gather on its way, in pieces of every rank's part. A piece comes to the ranks of a node in as many gathers as there
    // are nodes, that of the own one first.
    struct gathering {
        all_gather_request what;
        std::int64_t piece = 0, pieces = 0, inside = 0;         // inside: gathers there, all together
        std::int64_t landed = 0, spread = 0;                    // pieces from the other nodes; gathers inside that are over
        std::deque<std::unique_ptr<operation>> crossing, spreading;
        bool dropped = false;
        std::exception_ptr error;
        bool done() const noexcept { return dropped || (landed == pieces && spread == inside); }
    };

    bool advance() noexcept;
    template <typename One>
    void finish(One& one);
    void give_up(std::exception_ptr why) noexcept {
        break_off(why);
        world_->tell(news::given_up);
    }

private:
    struct lane {
        std::shared_ptr<reduction> of;
        std::int64_t count = 0;
        std::unique_ptr<operation> travel;  // null: free
    };

    template <typename Call>
    void watched(const Call& inside);
    void look_around();
    void break_off(std::exception_ptr why) noexcept;
    std::int64_t row_bytes(std::int64_t largest_slice_bytes) const noexcept;
    std::int64_t lane_bytes(std::int64_t row) const noexcept { return row * nodes_.nodes; }
    std::byte* lane_memory() const noexcept { return memory_.data() + lane_bytes(row_) * static_cast<std::int64_t>(filling_); }
    void leave(const std::shared_ptr<reduction>& one, std::int64_t first, std::int64_t count);
    void move_reductions();
    void move_gather(gathering& one);
    all_gather_request piece_across(const gathering& one, std::int64_t piece) const;
    all_gather_request piece_inside(const gathering& one, std::int64_t piece, int node) const;
    template <typename One>
    static void drop(One& one, const std::exception_ptr& why) noexcept;

    std::unique_ptr<communicator> world_;
    std::unique_ptr<node_level> inside_;
    std::unique_ptr<communicator> across_;
    partition::topology nodes_;
    int node_, local_;
    std::function<bool()> meanwhile_;
    buffer memory_;
    std::int64_t row_ = 0;
    std::deque<std::shared_ptr<reduction>> reductions_;  // in the order of their starts
    std::deque<std::shared_ptr<gathering>> gathers_;
    std::array<lane, lanes> lanes_;
    std::size_t filling_ = 0, arriving_ = 0;  // lanes
    std::uint64_t moves_ = 0;
    std::chrono::steady_clock::time_point last_look_{};
    bool busy_ = false;                       // what an operation calls must not come back in here
    bool helped_ = false;
    std::exception_ptr broken_;
};

bool hierarchical::advance() noexcept {
    if (busy_ || (reductions_.empty() && gathers_.empty())) return false;
    busy_ = true;
    const std::uint64_t before = moves_;
    try {
        for (std::uint64_t seen = before + 1; seen != moves_;) {
            seen = moves_;
            move_reductions();
            if (gathers_.empty()) continue;
            move_gather(*gathers_.front());
            if (gathers_.front()->done()) gathers_.pop_front();
        }
    } catch (...) {
        give_up(std::current_exception());
    }
    busy_ = false;
    return moves_ != before;
}

template <typename One>
void hierarchical::finish(One& one) {
    node_patience idle;
    while (!one.done()) {
        if (meanwhile_()) {
            idle.reset();
        } else {
            const bool thoroughly = idle.rest();
            if (!one.done()) watched([&] { inside_->refuse_broken(thoroughly); });
        }
    }
    if (one.error) std::rethrow_exception(std::exchange(one.error, nullptr));
}

// Ranks of a node see each other end. Those of other nodes must be told, or they would wait for this rank.
template <typename Call>
void hierarchical::watched(const Call& inside) {
    try {
        inside();
    } catch (const error& e) {
        if (e.which() == code::mpi) world_->tell(news::dead);
        throw;
    }
}

// From time to time in every wait: has a rank of this node died, or has anybody told what would make it one without end?
void hierarchical::look_around() {
    watched([&] { inside_->look_around(); });
    const auto now = std::chrono::steady_clock::now();
    if (now - last_look_ < std::chrono::milliseconds(100)) return;
    last_look_ = now;
    const news bad = world_->heard();
    if (bad == news::none) return;
    if (!broken_)
        break_off(std::make_exception_ptr(error(code::state, "a rank of another node has given up an earlier operation: finalize this context on all ranks")));
    require(bad != news::dead, code::mpi, "a rank of another node has ended without zero_finalize: end this program too, and look there for the cause");
}

template <typename One>
void hierarchical::drop(One& one, const std::exception_ptr& why) noexcept {
    if (!one.error) one.error = why;
    one.dropped = true;
}

void hierarchical::break_off(std::exception_ptr why) noexcept {
    broken_ = why;
    for (auto& one : reductions_) {
        drop(*one, why);
        one->inside.reset();
    }
    for (auto& one : gathers_) {
        drop(*one, why);
        one->crossing.clear();
        one->spreading.clear();
    }
    for (lane& at : lanes_) at = {};
    reductions_.clear();
    gathers_.clear();
    inside_->give_up();
    ++moves_;
}

// --- reductions: into a lane inside the node, then across to the owner ---

std::int64_t hierarchical::row_bytes(std::int64_t largest_slice_bytes) const noexcept {
    if (largest_slice_bytes <= 0) return 0;
    const std::int64_t fits = lanes_aim / static_cast<std::int64_t>(lanes) / nodes_.nodes / 128 * 128;
    return std::min(std::clamp(fits, smallest_row, largest_row), (largest_slice_bytes + 127) / 128 * 128);
}

void hierarchical::reserve(ledger& book, std::int64_t largest_slice_bytes) {
    require(reductions_.empty(), code::internal, "the lanes cannot change while reductions are under way");
    memory_ = buffer();
    inside_->reserve(book, largest_slice_bytes);
    row_ = row_bytes(largest_slice_bytes);
    memory_ = buffer(book, purpose::communication, lane_bytes(row_) * static_cast<std::int64_t>(lanes));
    across_->reserve(book, row_);
}

// Full: the rows of the lane are this node's contributions to the slices of this rank and its peers.
void hierarchical::leave(const std::shared_ptr<reduction>& one, std::int64_t first, std::int64_t count) {
    const auto& what = one->what;
    reduce_scatter_request part;
    part.source = lane_memory();
    part.sum_type = part.travel_type = what.sum_type;
    part.slice = count;
    part.target = bytes_at(what.target, first * size_of(what.sum_type));
    part.add = what.add;
    if (what.finished)
        part.finished = [&what, first](int member, std::int64_t begin, std::int64_t n, void* sums) { what.finished(member, first + begin, n, sums); };
    part.passing = what.passing;
    lane& at = lanes_[filling_];
    at.of = one;
    at.count = count;
    at.travel = across_->start_reduce_scatter(std::move(part));
    filling_ = (filling_ + 1) % lanes;
    ++moves_;
}

void hierarchical::move_reductions() {
    for (auto& one : reductions_) {
        if (!one->inside) continue;
        bool over = false;
        watched([&] { over = one->inside->progress(); });
        if (!over) break;  // a later one is not over before it
        one->inside->finish();
        one->inside.reset();
        ++moves_;
    }
    for (lane* at = &lanes_[arriving_]; at->travel; at = &lanes_[arriving_]) {
        try {
            if (!at->travel->progress()) break;
        } catch (...) {  // what went wrong with this sum is this rank's own affair
            if (!at->of->error) at->of->error = std::current_exception();
        }
        at->of->arrived += at->count;
        *at = {};
        arriving_ = (arriving_ + 1) % lanes;
        ++moves_;
    }
    while (!reductions_.empty() && reductions_.front()->done()) reductions_.pop_front();
}

template <typename One>
class two_level_operation : public operation {
public:
    two_level_operation(hierarchical& over, std::shared_ptr<One> one) : over_(over), one_(std::move(one)) {}
    ~two_level_operation() override {
        if (one_->done()) return;
        over_.give_up(std::make_exception_ptr(error(code::state, "an earlier operation was given up: finalize this context")));
    }
    bool progress() override {
        over_.advance();
        if (!one_->done()) return false;
        finish();
        return true;
    }
    void finish() override { over_.finish(*one_); }

private:
    hierarchical& over_;
    std::shared_ptr<One> one_;
};

std::unique_ptr<operation> hierarchical::start_reduce_scatter(reduce_scatter_request what) {
    check_reduction(what);
    require(!what.exact, code::internal, "an exact sum takes all contributions at once: it goes by one flat level");
    if (broken_) std::rethrow_exception(broken_);
    require(what.slice == 0 || row_ > 0, code::internal, "reserve() comes before the first reduction");
    auto one = std::make_shared<reduction>();
    one->what = std::move(what);
    auto result = std::make_unique<two_level_operation<reduction>>(*this, one);
    if (one->what.slice == 0) return result;
    node_level::portions how;
    how.blocks = nodes_.nodes;
    how.elements = row_ / size_of(one->what.sum_type);
    how.place = [this](std::int64_t, std::int64_t) { return lanes_[filling_].travel ? nullptr : lane_memory(); };
    how.ready = [this, of = std::weak_ptr(one)](std::int64_t first, std::int64_t count) { leave(of.lock(), first, count); };
    const bool was_busy = std::exchange(busy_, true);
    try {
        one->inside = inside_->start_reduce_in_portions(one->what, std::move(how));
        reductions_.push_back(one);
    } catch (...) {
        busy_ = was_busy;
        throw;
    }
    busy_ = was_busy;
    if (!helped_) advance();
    return result;
}

// --- gathers: across to the rank with the same place on every node, then inside ---

// Of a part of so many bytes, those of one piece.
landing piece_of(const void* start, std::int64_t bytes, std::int64_t piece, std::int64_t first) {
    return {bytes_at(start, first), std::clamp<std::int64_t>(bytes - first, 0, piece)};
}

all_gather_request hierarchical::piece_across(const gathering& one, std::int64_t piece) const {
    all_gather_request part;
    const std::int64_t first = piece * one.piece;
    for (int node = 0; node < nodes_.nodes; ++node) {
        const landing& whole = one.what.landings[static_cast<std::size_t>(node * nodes_.per_node() + local_)];
        part.landings.push_back(piece_of(node == node_ ? one.what.own : whole.data, whole.bytes, one.piece, first));
    }
    part.own = part.landings[static_cast<std::size_t>(node_)].data;
    part.own_bytes = part.landings[static_cast<std::size_t>(node_)].bytes;
    return part;
}

all_gather_request hierarchical::piece_inside(const gathering& one, std::int64_t piece, int node) const {
    all_gather_request part;
    const std::int64_t first = piece * one.piece;
    for (int local = 0; local < nodes_.per_node(); ++local) {
        const landing& whole = one.what.landings[static_cast<std::size_t>(node * nodes_.per_node() + local)];
        part.landings.push_back(piece_of(whole.data, whole.bytes, one.piece, first));
    }
    const landing& mine = part.landings[static_cast<std::size_t>(local_)];
    part.own = node == node_ ? bytes_at(one.what.own, first) : mine.data;
    part.own_bytes = mine.bytes;
    part.visible = one.what.visible && node == node_;
    return part;
}

void hierarchical::move_gather(gathering& one) {
    const auto over = [](const std::unique_ptr<operation>& each) { return each->progress(); };
    const auto settle = [&](std::deque<std::unique_ptr<operation>>& going, std::int64_t& ended) {
        while (!going.empty() && over(going.front())) {
            going.pop_front();
            ++ended;
            ++moves_;
        }
    };
    const auto under_way = [](const auto& going) { return static_cast<std::int64_t>(going.size()); };
    while (one.landed + under_way(one.crossing) < one.pieces && under_way(one.crossing) < ahead)
        one.crossing.push_back(across_->start_all_gather(piece_across(one, one.landed + under_way(one.crossing))));
    settle(one.crossing, one.landed);
    while (one.spread + under_way(one.spreading) < one.inside && under_way(one.spreading) < ahead) {
        const std::int64_t next = one.spread + under_way(one.spreading), piece = next / nodes_.nodes, turn = next % nodes_.nodes;
        if (turn > 0 && piece >= one.landed) break;  // not here yet
        one.spreading.push_back(inside_->start_all_gather(piece_inside(one, piece, (node_ + static_cast<int>(turn)) % nodes_.nodes)));
    }
    watched([&] {
        for (std::size_t k = 1; k < one.spreading.size(); ++k) over(one.spreading[k]);  // may be ahead of the others' first
        settle(one.spreading, one.spread);
    });
}

std::unique_ptr<operation> hierarchical::start_all_gather(all_gather_request what) {
    check_gather(what, rank(), size());
    if (what.root >= 0) return world_->start_all_gather(std::move(what));  // every part goes to one node once anyway
    if (broken_) std::rethrow_exception(broken_);
    auto one = std::make_shared<gathering>();
    std::int64_t most = 0;
    for (const landing& each : what.landings) most = std::max(most, each.bytes);
    one->piece = what.once ? most : std::min(most, gather_piece);
    one->pieces = most == 0 ? 0 : (most + one->piece - 1) / one->piece;
    one->inside = what.once ? 0 : one->pieces * nodes_.nodes;
    one->what = std::move(what);
    auto result = std::make_unique<two_level_operation<gathering>>(*this, one);
    if (!one->done()) gathers_.push_back(std::move(one));
    if (!helped_) advance();
    return result;
}

}  // namespace

std::unique_ptr<communicator> make_hierarchical(std::unique_ptr<communicator> world, std::unique_ptr<node_level> inside,
                                                std::unique_ptr<communicator> across) {
    return std::make_unique<hierarchical>(std::move(world), std::move(inside), std::move(across));
}

}  // namespace zero::comm
