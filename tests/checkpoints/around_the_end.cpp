// S19: contexts that saved and are destroyed after MPI_Finalize, or never, some with an asynchronous save under way; and no
// HDF5 object stays open after a save or a load. A program of its own, for MPI lives once.
#include <hdf5.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

#include "support/expect.hpp"
#include "zero/zero.h"

namespace {

// HDF5 numbers its objects by type and order of birth; it counts its own types itself, but does not say how many of
// them are somebody's. So every number is asked for, up to the one that comes next.
int open_objects() {
    constexpr int type_shift = 8 * sizeof(hid_t) - 8;  // HDF5 1.10 and later: 7 bits for the type, below the sign
    int found = 0;
    for (int type = H5I_FILE; type < H5I_NTYPES; ++type)
        for (hid_t number = 0; number < 20'000; ++number)
            found += H5Iis_valid((static_cast<hid_t>(type) << type_shift) | number) > 0 ? 1 : 0;
    return found;
}

zero_t make(const char* stage) {
    zero_t z = nullptr;
    const std::int64_t dims[1] = {1000};
    expect(ZERO_OK, zero_init(MPI_COMM_WORLD, stage, &z), "init");
    expect(ZERO_OK, zero_register(z, "w", ZERO_BF16, 1, dims, nullptr, 0, nullptr), "register");
    expect(ZERO_OK, zero_commit(z), "commit");
    return z;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    H5open();
    const hid_t probe = H5Screate(H5S_SCALAR);
    const int before = open_objects();
    H5Sclose(probe);
    if (before - open_objects() != 1) {
        std::fprintf(stderr, "the count of HDF5 objects does not see a dataspace\n");
        ++failures;
    }
    zero_t late = make("{\"zero_optimization\": {\"stage\": 2}}");
    zero_t never = make("{\"zero_optimization\": {\"stage\": 3}}");
    const zero_t both[] = {late, never};
    for (zero_t z : both) {
        expect(ZERO_OK, zero_save(z, "folder", z == late ? "late" : "never"), "save");
        expect(ZERO_OK, zero_load(z, "folder", "late"), "load");
    }
    const int left = open_objects() - (before - 1);
    if (left != 0) {
        std::fprintf(stderr, "%d HDF5 objects are open after save and load\n", left);
        ++failures;
    }
    zero_t behind = make("{\"zero_optimization\": {\"stage\": 2}, \"checkpoint\": {\"async\": true}}");
    zero_t forgotten = make("{\"zero_optimization\": {\"stage\": 3}, \"checkpoint\": {\"async\": true}}");
    zero_t kept = make("{\"zero_optimization\": {\"stage\": 1}, \"checkpoint\": {\"async\": true}}");
    expect(ZERO_OK, zero_save(behind, "given_up", "t"), "asynchronous save");
    expect(ZERO_OK, zero_save(forgotten, "forgotten", "t"), "asynchronous save");
    expect(ZERO_OK, zero_save(kept, "kept", "t"), "asynchronous save");
    expect(ZERO_OK, zero_finalize(&kept), "finalize");
    expect(ZERO_OK, access("kept/t/MANIFEST.json", R_OK), "finalize commits");
    MPI_Finalize();
    expect(ZERO_ERR_STATE, zero_save(never, "folder", "after"), "save after MPI_Finalize");
    expect(ZERO_ERR_STATE, zero_load(never, "folder", "late"), "load after MPI_Finalize");
    expect(ZERO_ERR_STATE, zero_finalize(&late), "finalize after MPI_Finalize");
    if (late != nullptr) ++failures;
    expect(ZERO_ERR_STATE, zero_wait(behind), "wait after MPI_Finalize");
    expect(ZERO_ERR_STATE, zero_finalize(&behind), "finalize after MPI_Finalize, while a save is under way");
    expect(-1, access("given_up/t", R_OK), "what nobody agreed on is not there");
    return failures;
}
