// Phases of a save or a load: the sentence around a failure. Not here: how ranks meet (context.cpp).
#include "crew.hpp"

#include <new>

#include "core/error.hpp"

namespace zero::checkpoint {

void settle_phase(crew& ranks, const std::string& not_done, const char* doing, std::uint64_t digest,
                  const std::function<void()>& local) {
    const auto named = [&] {
        try {
            local();
        } catch (const error& problem) {
            throw error(problem.which(),
                        formatted("{}: while {}, rank {}: {}", not_done, doing, ranks.rank(), problem.what()),
                        problem.where());
        } catch (const std::bad_alloc&) {
            fail(code::memory, "{}: no memory while {}", not_done, doing);
        }
    };
    ranks.settle(named, digest);
}

}  // namespace zero::checkpoint
