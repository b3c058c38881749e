// Communicators over memory that the ranks of a node share (share_node.cpp makes them).
#pragma once
#include <memory>

#include "comm/communicator.hpp"
#include "device/node_memory.hpp"

namespace zero::comm {

// The inner one of two levels: what it can beside the verbs.
class node_level : public communicator {
public:
    // A sum over the ranks of the node that is taken in portions, as there is room for them. A bucket has `blocks` slots in
    // a row for each rank of the node.
    struct portions {
        int blocks = 1;
        std::int64_t elements = 1;  // of each block
        // Where the portion's elements first .. first+count-1 of all blocks go, one block after the other; null: no room now.
        std::function<std::byte*(std::int64_t first, std::int64_t count)> place{};
        std::function<void(std::int64_t first, std::int64_t count)> ready{};  // they are there
    };
    // The request's target, add and finished are not used; its slice is that of a block.
    virtual std::unique_ptr<operation> start_reduce_in_portions(reduce_scatter_request what, portions how) = 0;

    // Throws when a rank has given up; `thoroughly`, which asks the system, also when one has died.
    virtual void refuse_broken(bool thoroughly) const = 0;
    // In every wait for something else: throws, about twice a second, when a rank has died.
    virtual void look_around() = 0;
    virtual void give_up() noexcept = 0;  // what is under way ends here, and the others learn of it
};

// `board`: sizeof(node_flags) bytes per rank, reserved by every rank for itself.
std::int64_t board_bytes(int ranks) noexcept;
std::unique_ptr<node_level> make_node_shared(std::unique_ptr<communicator> plain, std::shared_ptr<node_memory> memory,
                                             std::shared_ptr<const node_memory::stretch> board);
// `world`: all ranks, with nodes of several; `inside`: those of this node; `across`: those with this rank's place on the
// other nodes.
std::unique_ptr<communicator> make_hierarchical(std::unique_ptr<communicator> world, std::unique_ptr<node_level> inside,
                                                std::unique_ptr<communicator> across);
std::unique_ptr<communicator> make_self_with(std::shared_ptr<node_memory> memory);  // one rank

}  // namespace zero::comm
