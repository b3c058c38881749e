// Asynchronous saves of a context (checkpoint.async). zero_save begins, copies and returns; a thread of each rank
// writes; the collective rest is done inside later calls of the library, so that no thread but the caller's ever calls
// MPI or HDF5. Not here: what a save does (saving.hpp).
#pragma once
#include <exception>
#include <memory>

#include "context.hpp"
#include "device/memory.hpp"
#include "saving.hpp"

namespace zero::checkpoint {

class saves_behind final : public pending {
public:
    explicit saves_behind(engine& of);
    ~saves_behind() override;

    // Collective. Nothing is under way. `disk` may be null: the object's own.
    void start(contents state, const files::disk* disk, const save_request& what);

    bool ready() const override;
    void progress() override;
    void join() override;

private:
    void complete();

    engine& of_;
    engine_crew ranks_;
    files::disk disk_;
    buffer kept_;                   // the copies; kept from save to save
    std::unique_ptr<saving> work_;  // null: nothing is under way
    std::exception_ptr failed_;     // of a save that progress() completed
};

// Collective. The save of a context whose earlier one is joined.
void save_behind(engine& from, contents state, const files::disk* disk, const save_request& what);

}  // namespace zero::checkpoint
