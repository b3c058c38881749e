// zero_save and zero_load in a build without HDF5 (ZERO_HDF5=OFF): known, but not in this build.
#include "checkpoints/load.hpp"
#include "checkpoints/save.hpp"
#include "core/error.hpp"

namespace zero::checkpoint {
namespace {

[[noreturn]] void refuse(const char* what) {
    fail(code::unsupported, "{} needs HDF5, and libzero was built without it: configure with -DZERO_HDF5=ON", what);
}

}  // namespace

void save(engine&, const std::string&, const std::string&) {
    refuse("zero_save");
}
void save(engine&, const std::string&, const std::string&, const files::disk&) {
    refuse("zero_save");
}
void load(engine&, const std::string&, const std::string&) {
    refuse("zero_load");
}
void load(engine&, const std::string&, const std::string&, const files::disk&) {
    refuse("zero_load");
}

}  // namespace zero::checkpoint
