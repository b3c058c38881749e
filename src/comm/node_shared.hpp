// Communicators over memory that the ranks of a node share (share_node.cpp makes them).
#pragma once
#include <memory>

#include "comm/communicator.hpp"
#include "device/node_memory.hpp"

namespace zero::comm {

// `board`: sizeof(node_flags) bytes per rank, reserved by every rank for itself.
std::int64_t board_bytes(int ranks) noexcept;
std::unique_ptr<communicator> make_node_shared(std::unique_ptr<communicator> plain, std::shared_ptr<node_memory> memory,
                                               std::shared_ptr<const node_memory::stretch> board);
std::unique_ptr<communicator> make_self_with(std::shared_ptr<node_memory> memory);  // one rank

}  // namespace zero::comm
