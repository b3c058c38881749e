// Puts the ranks of one node on memory that they share, all of them or none. Not here: what they do with it
// (node_shared.cpp).
#include <exception>

#include "comm/node_shared.hpp"
#include "core/error.hpp"

namespace zero::comm {

namespace {

// True when `mine` is true on all ranks; else `reason` becomes that of the lowest rank that lacks something.
bool everywhere(communicator& ranks, bool mine, std::string& reason) {
    std::int64_t lacking = mine ? 0 : ranks.size() - ranks.rank();
    ranks.all_reduce({&lacking, 1}, combine::maximum);
    if (lacking != 0) reason = ranks.broadcast(reason, ranks.size() - static_cast<int>(lacking));
    return lacking == 0;
}

}  // namespace

std::unique_ptr<communicator> share_node(std::unique_ptr<communicator> plain, std::string& reason) {
    const int rank = plain->rank(), ranks = plain->size();
    if (!plain->on_one_node()) {
        reason = "the ranks are on several nodes";
        return plain;
    }
    std::shared_ptr<node_memory> memory;
    node_memory::address where;
    if (rank == 0) {
        memory = node_memory::make(ranks, reason);
        if (memory) where = memory->where();
    }
    plain->broadcast(&where, sizeof where, 0);
    if (rank > 0 && where.descriptor >= 0) memory = node_memory::open(where, rank, reason);
    if (!everywhere(*plain, memory != nullptr, reason)) return plain;
    if (ranks == 1) return make_self_with(std::move(memory));

    std::shared_ptr<const node_memory::stretch> board;
    try {
        board = memory->take_common(board_bytes(ranks));
        memory->reserve(board->data + rank * board_bytes(1), board_bytes(1));
    } catch (const error& e) {
        reason = e.what();
        board = nullptr;
    }
    if (!everywhere(*plain, board != nullptr, reason)) return plain;
    return make_node_shared(std::move(plain), std::move(memory), std::move(board));
}

}  // namespace zero::comm
