// Two levels for device memory. Inside a node every rank sends its contributions to their owner, which adds them in rank order:
// as many bytes as a ring, and an order that is known. Between nodes the sums of the node go on through host memory.
#include "comm/device_ranks.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "comm/checks.hpp"
#include "comm/chunks.hpp"
#include "comm/direct.hpp"
#include "comm/everywhere.hpp"
#include "comm/staged.hpp"
#include "core/error.hpp"

namespace zero::comm {

namespace {

constexpr std::int64_t largest_row = 8 << 20;   // bytes of one contribution to one owner on their way at once
constexpr std::int64_t scratch_aim = 64 << 20;  // many ranks: smaller rows rather than more memory
constexpr std::size_t lanes = 2;                // of sums of the node: one is formed while the other one crosses

std::byte* at(const void* base, std::int64_t bytes) { return static_cast<std::byte*>(const_cast<void*>(base)) + bytes; }

// All ranks of the node have come to the same point. Messages between devices keep their streams busy until both sides have
// posted them; so none is posted before it is known that the others will not first wait for something else: a program that
// waits for its whole device between two calls (cudaFree does) must not wait for a rank that waits for it.
// It says what their messages hold too: the receiver must know how long they are.
class invitation {
public:
    invitation(communicator& mates, dtype mine) : types_(static_cast<std::size_t>(mates.size())) {
        all_gather_request what;
        for (auto& type : types_) what.landings.push_back({&type, sizeof type});
        dtype& own = types_[static_cast<std::size_t>(mates.rank())];
        own = mine;
        what.own = &own;
        what.own_bytes = sizeof own;
        answers_ = mates.start_all_gather(std::move(what));
    }
    bool accepted() { return answers_->progress(); }
    const std::vector<dtype>& types() const noexcept { return types_; }

private:
    std::vector<dtype> types_;  // by rank of the node
    std::unique_ptr<operation> answers_;
};

// The levels that one kind of transfer uses. Reductions and gathers have their own, for their orders are independent.
struct levels {
    std::unique_ptr<compute::processor> order;  // the stream on which they go
    std::unique_ptr<communicator> mates;        // the ranks of this node, for invitations; null: alone, or only staged
    std::unique_ptr<direct> inside;             // among them; null likewise
    std::unique_ptr<communicator> peers;        // of other nodes; null: there are none
    std::unique_ptr<staged> across;             // over `peers`; where there is no direct way inside, over all ranks
    std::unique_ptr<invitation> next;           // to the next messages inside
    bool only_staged = false;

    std::vector<dtype> types;                   // of the messages to which all have come

    bool all_are_here(dtype mine) {
        if (!inside) return true;
        if (!next) next = std::make_unique<invitation>(*mates, mine);
        if (!next->accepted()) return false;
        types = next->types();
        next.reset();
        return true;
    }
};

// What is found out when it is asked for is kept in it.
template <typename One>
bool done_or_failed(One& one) noexcept {
    try {
        return one.error || one.over();
    } catch (...) {
        one.error = std::current_exception();
        return true;
    }
}

struct reduction {
    reduce_scatter_request what;
    std::int64_t formed = 0, arrived = 0;       // elements of the slice whose sums of the node are asked for; that are final
    std::unique_ptr<operation> staged;          // instead
    std::unique_ptr<compute::note> last;        // when arrived == slice
    std::exception_ptr error;
    bool over() const { return arrived == what.slice && (!last || last->passed()); }
    bool done() noexcept { return done_or_failed(*this); }
};

struct gathering {
    all_gather_request what;
    std::unique_ptr<operation> crossing;        // to be finished before the gather inside
    bool spread = false;                        // inside the node, or there is nothing to spread
    std::unique_ptr<compute::note> last;
    std::exception_ptr error;
    bool over() const { return spread && (!last || last->passed()); }
    bool done() noexcept { return done_or_failed(*this); }
};

class device_ranks final : public communicator {
public:
    device_ranks(std::unique_ptr<communicator> host, compute::processor& work, levels sums, levels values)
        : host_(std::move(host)), work_(work), nodes_(host_->nodes()), node_(nodes_.node_of(host_->rank())),
          local_(nodes_.local_of(host_->rank())), sums_(std::move(sums)), values_(std::move(values)) {
        host_->meanwhile([this] { return move(); });
    }
    ~device_ranks() override { settle(); }  // before the memory goes, which each stream frees in its own order

    int rank() const noexcept override { return host_->rank(); }
    int size() const noexcept override { return host_->size(); }
    const partition::topology& nodes() const noexcept override { return nodes_; }
    void all_reduce(std::span<std::int64_t> values, combine how) override { host_->all_reduce(values, how); }
    void broadcast(void* data, std::int64_t bytes, int root) override { host_->broadcast(data, bytes, root); }
    std::vector<std::string> gather(const std::string& mine, int root) override { return host_->gather(mine, root); }
    std::string broadcast(const std::string& text, int root) override { return host_->broadcast(text, root); }
    void employ(crew* threads) noexcept override { host_->employ(threads); }
    void farewell() noexcept override { host_->farewell(); }
    traffic sent() const noexcept override {
        traffic all = host_->sent();
        for (const levels* level : {&sums_, &values_})
            if (level->peers) all += level->peers->sent();
        return all;
    }

    std::unique_ptr<operation> start_reduce_scatter(reduce_scatter_request what) override;
    std::unique_ptr<operation> start_all_gather(all_gather_request what) override;
    void reserve(ledger& book, std::int64_t largest_slice_bytes) override;
    std::int64_t scratch_bytes(std::int64_t largest_slice_bytes) const noexcept override {
        std::int64_t bytes = 0;
        for (const levels* level : {&sums_, &values_})
            if (level->across) bytes += level->across->scratch_bytes(level->only_staged ? largest_slice_bytes : row_bytes(largest_slice_bytes));
        return bytes;
    }
    std::int64_t device_scratch_bytes(std::int64_t largest_slice_bytes) const noexcept override {
        if (sums_.only_staged) return 0;
        const std::int64_t row = row_bytes(largest_slice_bytes);
        return row * rows() + row * nodes_.nodes * static_cast<std::int64_t>(sums_.across ? lanes : 0);
    }

    buffer take_landing(compute::processor& work, ledger& book, purpose why, std::int64_t bytes) override {
        return values_.inside ? values_.inside->take(work, book, why, bytes) : work.take(book, why, bytes);
    }

    void give_up() noexcept override;
    void refuse_given_up() override {
        if (broken_) std::rethrow_exception(broken_);
    }
    bool move() noexcept;  // never waits; true when something moved. What fails is kept in all that is under way
    void wait_for(const std::function<bool()>& done) {
        while (!done())
            if (!move()) std::this_thread::yield();
    }

private:
    int per_node() const noexcept { return nodes_.per_node(); }
    // Rows of scratch: a contribution of each peer to each slice of the node that this rank adds up, and where a narrower type
    // travels, those that go out.
    std::int64_t rows() const noexcept { return std::int64_t{2} * (per_node() - 1) * nodes_.nodes; }
    std::int64_t row_bytes(std::int64_t largest_slice_bytes) const noexcept {
        return fair_row(largest_slice_bytes, largest_row, scratch_aim, rows());
    }
    void form(const reduce_scatter_request& what, std::int64_t first, std::int64_t count, std::byte* to);
    bool move_reductions();
    bool move_gathers();
    void spread_inside(gathering& one);
    void look_for_trouble();
    void break_off(std::exception_ptr why) noexcept;
    void settle() noexcept {
        for (levels* level : {&sums_, &values_}) {
            level->order->settle();
            if (level->across) level->across->settle();
        }
    }

    std::unique_ptr<communicator> host_;
    compute::processor& work_;
    partition::topology nodes_;
    int node_, local_;
    levels sums_, values_;
    buffer scratch_, shares_;
    std::int64_t row_ = 0, questions_ = 0;
    struct lane {
        std::shared_ptr<reduction> of;
        std::int64_t count = 0;
        std::unique_ptr<operation> travel;          // null: free
    };
    std::array<lane, lanes> lanes_;
    std::size_t filling_ = 0, arriving_ = 0;
    std::deque<std::shared_ptr<reduction>> reductions_;  // under way, in the order of their starts
    std::deque<std::shared_ptr<gathering>> gathers_;
    bool moving_ = false;
    std::exception_ptr broken_;
};

template <typename One>
class device_operation final : public operation {
public:
    device_operation(device_ranks& by, std::shared_ptr<One> what) : by_(by), what_(std::move(what)) {}
    ~device_operation() override {
        if (!what_->done()) by_.give_up();  // its memory goes
    }
    bool progress() override {
        by_.move();
        return what_->done();
    }
    void finish() override {
        by_.wait_for([this] { return what_->done(); });
        if (what_->error) {
            by_.give_up();
            std::rethrow_exception(what_->error);
        }
        if constexpr (std::is_same_v<One, reduction>) {
            auto known = std::exchange(what_->what.finished, nullptr);
            if (known && what_->what.slice > 0) known(0, 0, what_->what.slice, what_->what.target);
        }
    }

private:
    device_ranks& by_;
    std::shared_ptr<One> what_;
};

// Sums of this node for `count` elements of each of its slices that this rank adds up: one after the other at `to`.
void device_ranks::form(const reduce_scatter_request& what, std::int64_t first, std::int64_t count, std::byte* to) {
    auto& on = *sums_.order;
    const std::int64_t width = size_of(what.sum_type), thin = size_of(what.travel_type);
    const int each = nodes_.nodes;
    const auto slot = [&](int local, int node) {
        return at(what.source, ((std::int64_t{local} * each + node) * what.slice + first) * width);
    };
    std::vector<direct::message> out, in;
    std::vector<dtype> types = sums_.types;
    types.resize(static_cast<std::size_t>(per_node()), what.sum_type);  // alone on the node: none were asked
    std::byte* row = scratch_.data();
    std::vector<std::byte*> arrived(static_cast<std::size_t>(per_node() * each));
    for (int peer = 0; peer < per_node(); ++peer)
        for (int node = 0; node < each; ++node) {
            if (peer == local_) continue;
            in.push_back({peer, row, count * size_of(types[static_cast<std::size_t>(peer)])});
            arrived[static_cast<std::size_t>(peer * each + node)] = std::exchange(row, row + row_);
            std::byte* leaves = slot(peer, node);
            if (what.travel_type != what.sum_type) {
                on.convert(what.travel_type, row, what.sum_type, leaves, count);
                leaves = std::exchange(row, row + row_);
            }
            out.push_back({peer, leaves, count * thin});
        }
    if (!out.empty()) sums_.inside->exchange(out, in, on);
    std::vector<const void*> sources(static_cast<std::size_t>(per_node()));
    types[static_cast<std::size_t>(local_)] = what.sum_type;
    for (int node = 0; node < each; ++node) {
        for (int peer = 0; peer < per_node(); ++peer)
            sources[static_cast<std::size_t>(peer)] = peer == local_ ? slot(local_, node) : arrived[static_cast<std::size_t>(peer * each + node)];
        on.ordered_sum(what.sum_type, to + node * count * width, what.add && each == 1, sources.data(), types.data(), per_node(), count);
    }
}

std::unique_ptr<operation> device_ranks::start_reduce_scatter(reduce_scatter_request what) {
    check_reduction(what);
    require(!what.exact && !what.short_source, code::internal, "sums of device memory are neither exact nor short");
    if (broken_) std::rethrow_exception(broken_);
    sums_.order->follow(*work_.take_note());
    auto one = std::make_shared<reduction>();
    if (sums_.only_staged) {
        auto rest = what;
        rest.finished = nullptr;
        one->staged = sums_.across->start_reduce_scatter(std::move(rest));
    }
    one->what = std::move(what);
    if (one->what.slice > 0) reductions_.push_back(one);
    move();
    return std::make_unique<device_operation<reduction>>(*this, std::move(one));
}

// Sums of the node, piece by piece, on their way to their owners.
bool device_ranks::move_reductions() {
    bool moved = false;
    const auto found = std::find_if(reductions_.begin(), reductions_.end(), [](const auto& r) { return r->formed < r->what.slice; });
    if (found != reductions_.end()) {
        auto& one = **found;
        const std::int64_t width = size_of(one.what.sum_type), first = one.formed, left = one.what.slice - first;
        lane& next = lanes_[filling_];
        if (sums_.only_staged) {
            if (one.staged->progress()) {
                one.staged->finish();
                one.formed = one.arrived = one.what.slice;
                moved = true;
            }
        } else if (!sums_.across) {
            if (sums_.all_are_here(one.what.travel_type)) {
                const std::int64_t most = row_ / width;
                for (std::int64_t at_row = 0; at_row < left; at_row += most)
                    form(one.what, at_row, std::min(most, left - at_row), at(one.what.target, at_row * width));
                one.last = sums_.order->take_note();
                one.formed = one.arrived = one.what.slice;
                moved = true;
            }
        } else if (!next.travel && sums_.all_are_here(one.what.travel_type)) {
            next.of = *found;
            next.count = std::min(row_ / width, left);
            std::byte* share = shares_.data() + static_cast<std::int64_t>(filling_) * row_ * nodes_.nodes;
            form(one.what, first, next.count, share);
            reduce_scatter_request piece;
            piece.source = share;
            piece.sum_type = piece.travel_type = one.what.sum_type;
            if (per_node() == 1) {  // no sums, but what this rank contributes
                piece.travel_type = one.what.travel_type;
                piece.short_type = one.what.short_type;
            }
            piece.slice = next.count;
            piece.target = at(one.what.target, first * width);
            piece.add = one.what.add;
            next.travel = sums_.across->start_reduce_scatter(std::move(piece));
            one.formed += next.count;
            filling_ = (filling_ + 1) % lanes;
            moved = true;
        }
    }
    lane& oldest = lanes_[arriving_];
    if (oldest.travel && oldest.travel->progress()) {
        oldest.travel->finish();
        oldest.travel.reset();
        oldest.of->arrived += oldest.count;
        oldest.of.reset();
        arriving_ = (arriving_ + 1) % lanes;
        moved = true;
    }
    while (!reductions_.empty() && reductions_.front()->done()) reductions_.pop_front();
    return moved;
}

std::unique_ptr<operation> device_ranks::start_all_gather(all_gather_request what) {
    check_gather(what, rank(), size());
    if (what.on_host) return host_->start_all_gather(std::move(what));
    require(what.root < 0, code::internal, "a gather of device memory goes to all ranks");
    if (broken_) std::rethrow_exception(broken_);
    values_.order->follow(*work_.take_note());
    auto one = std::make_shared<gathering>();
    if (values_.only_staged) {
        one->crossing = values_.across->start_all_gather(what);
    } else if (values_.across) {
        all_gather_request between;
        for (int node = 0; node < nodes_.nodes; ++node)
            between.landings.push_back(what.landings[static_cast<std::size_t>(node * per_node() + local_)]);
        between.own = what.own;
        between.own_bytes = what.own_bytes;
        one->crossing = values_.across->start_all_gather(std::move(between));
    }
    one->what = std::move(what);
    gathers_.push_back(one);
    move();
    return std::make_unique<device_operation<gathering>>(*this, std::move(one));
}

// In the order of their starts, for messages inside the node match in their order.
bool device_ranks::move_gathers() {
    bool moved = false;
    const auto found = std::find_if(gathers_.begin(), gathers_.end(), [](const auto& g) { return !g->spread; });
    if (found != gathers_.end()) {
        auto& one = **found;
        if (one.crossing && one.crossing->progress()) {
            one.crossing->finish();
            one.crossing.reset();
            moved = true;
        }
        if (!one.crossing && (values_.only_staged || values_.all_are_here(dtype::f32))) {
            if (!values_.only_staged) spread_inside(one);
            one.spread = moved = true;
        }
    }
    while (!gathers_.empty() && gathers_.front()->done()) gathers_.pop_front();
    return moved;
}

// This rank's part and those of its peers on other nodes, which lie here by now, go to all ranks of the node.
void device_ranks::spread_inside(gathering& one) {
    const auto& mine = one.what.landings[static_cast<std::size_t>(rank())];
    std::vector<direct::message> out, in;
    for (int peer = 0; peer < per_node(); ++peer)
        for (int node = 0; node < nodes_.nodes && peer != local_; ++node) {
            const auto& leaves = one.what.landings[static_cast<std::size_t>(node * per_node() + local_)];
            const auto& lands = one.what.landings[static_cast<std::size_t>(node * per_node() + peer)];
            out.push_back({peer, node == node_ ? at(one.what.own, 0) : static_cast<std::byte*>(leaves.data), leaves.bytes});
            in.push_back({peer, lands.data, lands.bytes});
        }
    if (!out.empty()) values_.inside->exchange(out, in, *values_.order);
    if (mine.bytes > 0 && mine.data != one.what.own) values_.order->start_copy(mine.data, one.what.own, mine.bytes);
    one.last = values_.order->take_note();
}

void device_ranks::look_for_trouble() {
    for (levels* level : {&sums_, &values_})
        if (level->inside) level->inside->refuse_broken();
    require(host_->heard() == news::none, code::cuda,
            "another rank gave up, or is gone: its own error says why; finalize this context");
}

bool device_ranks::move() noexcept {
    if (broken_ || std::exchange(moving_, true)) return false;
    bool moved = false;
    try {
        moved |= move_reductions();
        moved |= move_gathers();
        if (!(reductions_.empty() && gathers_.empty()) && ++questions_ % 64 == 0) look_for_trouble();
    } catch (...) {
        break_off(std::current_exception());
    }
    moving_ = false;
    return moved;
}

void device_ranks::break_off(std::exception_ptr why) noexcept {
    if (std::exchange(broken_, broken_ ? broken_ : why) != nullptr) return;
    for (auto& one : reductions_) one->error = broken_;
    for (auto& one : gathers_) one->error = broken_;
    for (levels* level : {&sums_, &values_}) {
        level->next.reset();
        if (level->inside) level->inside->give_up();
        for (communicator* of : {level->mates.get(), level->peers.get()})
            if (of != nullptr) of->leaves_messages();  // no message that is left in it shall reach another context
    }
    host_->tell(news::given_up);
    settle();
    for (lane& one : lanes_) one = {};
    reductions_.clear();
    gathers_.clear();
}

void device_ranks::give_up() noexcept {
    break_off(std::make_exception_ptr(error(code::cuda, "an earlier call of this context failed: finalize it")));
}

void device_ranks::reserve(ledger& book, std::int64_t largest_slice_bytes) {
    row_ = row_bytes(largest_slice_bytes);
    for (levels* level : {&sums_, &values_})
        if (level->across) level->across->reserve(book, level->only_staged ? largest_slice_bytes : row_);
    if (sums_.only_staged) return;
    if (sums_.inside) scratch_ = sums_.inside->take(*sums_.order, book, purpose::communication, row_ * rows());
    if (sums_.across) shares_ = sums_.order->take(book, purpose::communication, row_ * nodes_.nodes * static_cast<std::int64_t>(lanes));
}

}  // namespace

std::unique_ptr<communicator> over_devices(std::unique_ptr<communicator> host, compute::processor& work, std::string& reason) {
    // What may fail on one rank alone comes first, for the rest is collective.
    std::array<std::unique_ptr<compute::processor>, 4> streams;  // of sums and values: what is done, and the copies of staged ones
    std::exception_ptr failed;
    std::string lacking;
    try {
        for (auto& one : streams) one = work.beside();
    } catch (const error& e) {
        failed = std::current_exception();
        lacking = e.what();
    }
    if (!everywhere(*host, failed == nullptr, lacking)) {
        if (failed) std::rethrow_exception(failed);
        fail(code::cuda, "another rank could not set up its device: {}", lacking);
    }
    const auto make = [&](staged::kind what, std::unique_ptr<compute::processor> order, std::unique_ptr<compute::processor> copies) {
        levels all;
        all.order = std::move(order);
        const auto& nodes = host->nodes();
        const int rank = host->rank();
        const bool one_node = host->on_one_node();
        if (nodes.per_node() > 1) {
            // Unequal nodes are one flat level, in which some ranks do not reach each other's devices.
            all.mates = host->part(nodes.node_of(rank), nodes.per_node());
            if (nodes.nodes == 1 && !one_node) reason = "the nodes have unequal numbers of ranks, or ranks are not numbered node by node";
            else all.inside = connect(*all.mates, work, reason);
            std::int64_t without = all.inside ? 0 : 1;
            host->all_reduce({&without, 1}, combine::maximum);
            all.only_staged = without != 0;
            if (all.only_staged && all.inside) all.inside->give_up();
        }
        if (all.only_staged) {
            all.inside = nullptr;
            all.mates = nullptr;
            all.across = std::make_unique<staged>(what, *host, *all.order, std::move(copies));
        } else if (nodes.nodes > 1) {
            all.peers = host->part(nodes.local_of(rank), 1);
            all.across = std::make_unique<staged>(what, *all.peers, *all.order, std::move(copies));
        }
        return all;
    };
    levels sums = make(staged::kind::reductions, std::move(streams[0]), std::move(streams[1]));
    levels values = make(staged::kind::gathers, std::move(streams[2]), std::move(streams[3]));
    return std::make_unique<device_ranks>(std::move(host), work, std::move(sums), std::move(values));
}

}  // namespace zero::comm
