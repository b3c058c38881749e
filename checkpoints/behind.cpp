// Who does what when in an asynchronous save. See behind.hpp.
#include "behind.hpp"

#include <utility>

#include "engine/calls.hpp"

namespace zero::checkpoint {

saves_behind::saves_behind(engine& of) : of_(of), ranks_(of, calls::save) {}

saves_behind::~saves_behind() {
    if (work_ != nullptr) work_->abandon();
}

void saves_behind::start(contents state, const files::disk* disk, const save_request& what) {
    auto work = std::make_unique<saving>(std::move(state), ranks_, disk != nullptr ? *disk : disk_, of_.book(),
                                         of_.logger(), what);
    try {
        work->begin();
        work->write_behind(kept_);
    } catch (...) {
        work->abandon();
        throw;
    }
    work_ = std::move(work);
}

bool saves_behind::ready() const {
    return work_ == nullptr || work_->written();
}

void saves_behind::progress() {
    try {
        complete();
    } catch (...) {
        failed_ = std::current_exception();
    }
}

void saves_behind::join() {
    if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
    complete();
}

void saves_behind::complete() {
    if (work_ == nullptr) return;
    try {
        work_->write();
        work_->finish();
    } catch (const error& problem) {
        // Not while other ranks are in another call: then nothing was begun here, and it goes on.
        if (problem.which() == code::mismatch) throw;
        work_->abandon();
        work_.reset();
        throw error(
            problem.which(),
            formatted("the earlier zero_save, which was written in the background (checkpoint.async), failed, and this "
                      "call has done nothing else: {}",
                      problem.what()),
            problem.where());
    }
    work_.reset();
}

void save_behind(engine& from, contents state, const files::disk* disk, const save_request& what) {
    if (from.behind() == nullptr) from.behind() = std::make_unique<saves_behind>(from);
    static_cast<saves_behind&>(*from.behind()).start(std::move(state), disk, what);
}

}  // namespace zero::checkpoint
