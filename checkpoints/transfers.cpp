// Lanes over the ring, or over threads.
#include "transfers.hpp"

#include <algorithm>
#include <vector>

#include "ring.hpp"
#include "threads.hpp"

namespace zero::checkpoint {
namespace {

// One transfer of a lane, request by request.
struct lane_state {
    transfer what;
    std::size_t number = 0;
    std::int64_t done = 0;
    files::step now;

    files::action action() const { return what.writes ? files::action::write : files::action::read; }
    void start(ring& by, int lane) {
        now = what.file->next(action(), static_cast<std::byte*>(what.data) + done, what.bytes - done,
                              what.offset + done);
        again(by, lane);
    }
    void again(ring& by, int lane) { by.start(lane, what.writes, now.descriptor, now.data, now.bytes, now.offset); }
};

}  // namespace

bool by_ring(int lanes, std::size_t count, const next_transfer& next, const transfer_taken& taken) {
    std::vector<lane_state> all(static_cast<std::size_t>(lanes));
    const std::unique_ptr<ring> by = ring::open(lanes);  // gone before the lanes
    if (by == nullptr) return false;
    std::size_t begun = 0, ended = 0;
    const auto begin = [&](int lane) {
        lane_state& one = all[static_cast<std::size_t>(lane)];
        one.number = begun++;
        one.done = 0;
        one.what = next(lane, one.number);
        one.start(*by, lane);
    };
    for (int lane = 0; lane < lanes && begun < count; ++lane) begin(lane);
    while (ended < count) {
        const auto [lane, answer] = by->wait();
        lane_state& one = all[static_cast<std::size_t>(lane)];
        const std::int64_t had = one.what.file->outcome(one.action(), one.now, answer);
        one.done += std::max<std::int64_t>(had, 0);
        if (had < 0) {
            one.again(*by, lane);
        } else if (had > 0 && one.done < one.what.bytes) {
            one.start(*by, lane);
        } else {
            taken(lane, one.number, one.done);
            ++ended;
            if (begun < count) begin(lane);
        }
    }
    return true;
}

void by_threads(int lanes, std::size_t count, const next_transfer& next, const transfer_taken& taken) {
    in_turn(lanes, count, [&](int lane, std::size_t k) {
        const transfer one = next(lane, k);
        std::int64_t had = one.bytes;
        if (one.writes)
            one.file->write(one.data, one.bytes, one.offset);
        else
            had = one.file->read(one.data, one.bytes, one.offset);
        taken(lane, k, had);
    });
}

void carry_out(int lanes, std::size_t count, const next_transfer& next, const transfer_taken& taken) {
    if (lanes > 1 && by_ring(lanes, count, next, taken)) return;
    by_threads(lanes, count, next, taken);
}

}  // namespace zero::checkpoint
