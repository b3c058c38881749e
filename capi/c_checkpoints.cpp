// zero.h, "checkpoints". Files and their format are in checkpoints/, signals and wall time in core/stop.
#include "capi/context.hpp"
#include "checkpoints/load.hpp"
#include "checkpoints/save.hpp"

namespace {

using namespace zero;
using namespace zero::capi;

using action = void (*)(engine&, const std::string& directory, const std::string& tag);

void with_folder(zero_t z, const char* call_name, const char* directory, const char* tag, action run) {
    engine& body = worker(z);
    std::string folder;
    std::string label;
    check_together(body, call_name, [&] {
        body.require_committed(call_name);
        folder = text_of(directory, "directory");
        require(!folder.empty(), code::argument, "directory is empty; name the folder that holds the checkpoints");
        label = optional_text(tag, "tag");
    });
    run(body, folder, label);
}

}  // namespace

int zero_save(zero_t z, const char* directory, const char* tag) {
    return guard([&] { with_folder(z, "zero_save", directory, tag, &checkpoint::save); });
}

int zero_load(zero_t z, const char* directory, const char* tag) {
    return guard([&] { with_folder(z, "zero_load", directory, tag, &checkpoint::load); });
}

int zero_should_stop(zero_t z, int* flag) {
    return guard([&] {
        context& what = look(z);
        engine& body = worker(z);
        std::int64_t vote[1] = {0};
        body.agree().enter(
            calls::should_stop,
            [&] {
                need(flag, "flag");
                vote[0] = what.stopping.wants_to_stop(body.options().real("libzero.end_time")) ? 1 : 0;
            },
            vote);
        *flag = vote[0] != 0 ? 1 : 0;
    });
}
