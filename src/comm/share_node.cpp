// Puts the ranks of every node on memory that they share, all of them or none. Not here: what they do with it
// (node_shared.cpp, and hierarchical.cpp for several nodes).
#include <exception>

#include "comm/everywhere.hpp"
#include "comm/node_shared.hpp"
#include "core/error.hpp"

namespace zero::comm {

namespace {

// What the ranks of one node share.
struct common {
    std::shared_ptr<node_memory> memory;
    std::shared_ptr<const node_memory::stretch> board;
};

// `all` have it, or none of them has.
bool take(communicator& all, communicator& node, common& what, std::string& reason) {
    const int rank = node.rank(), ranks = node.size();
    node_memory::address where;
    if (rank == 0) {
        what.memory = node_memory::make(ranks, reason);
        if (what.memory) where = what.memory->where();
    }
    node.broadcast(&where, sizeof where, 0);
    if (rank > 0 && where.descriptor >= 0) what.memory = node_memory::open(where, rank, reason);
    if (!everywhere(all, what.memory != nullptr, reason)) return false;
    if (ranks == 1) return true;
    try {
        what.board = what.memory->take_common(board_bytes(ranks));
        what.memory->reserve(what.board->data + rank * board_bytes(1), board_bytes(1));
    } catch (const error& e) {
        reason = e.what();
        what.board = nullptr;
    }
    return everywhere(all, what.board != nullptr, reason);
}

}  // namespace

std::unique_ptr<communicator> share_node(std::unique_ptr<communicator> plain, std::string& reason) {
    common what;
    const partition::topology nodes = plain->nodes();
    const int rank = plain->rank();
    if (plain->on_one_node()) {
        if (!take(*plain, *plain, what, reason)) return plain;
        if (nodes.ranks == 1) return make_self_with(std::move(what.memory));
        return make_node_shared(std::move(plain), std::move(what.memory), std::move(what.board));
    }
    if (nodes.nodes == 1) {
        reason = "the nodes have unequal numbers of ranks, or ranks are not numbered node by node";
        return plain;
    }
    if (nodes.per_node() == 1) {
        reason = "every rank is alone on its node";
        return plain;
    }
    auto inside = plain->part(nodes.node_of(rank), nodes.per_node());
    auto across = plain->part(nodes.local_of(rank), 1);
    if (!take(*plain, *inside, what, reason)) return plain;
    auto level = make_node_shared(std::move(inside), std::move(what.memory), std::move(what.board));
    return make_hierarchical(std::move(plain), std::move(level), std::move(across));
}

}  // namespace zero::comm
