// Whether all ranks have what they need to go one way together.
#pragma once
#include <string>

#include "comm/communicator.hpp"

namespace zero::comm {

// True when `mine` is true on all ranks; else `reason` becomes that of the lowest rank that lacks something. Collective.
inline bool everywhere(communicator& ranks, bool mine, std::string& reason) {
    std::int64_t lacking = mine ? 0 : ranks.size() - ranks.rank();
    ranks.all_reduce({&lacking, 1}, combine::maximum);
    if (lacking != 0) reason = ranks.broadcast(reason, ranks.size() - static_cast<int>(lacking));
    return lacking == 0;
}

}  // namespace zero::comm
