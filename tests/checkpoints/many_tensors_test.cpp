// 10,000 tensors: a save with its index and a load make as many calls to the file system as for 1,000, and take a time that is
// compared with what HDF5 alone needs for as many plain datasets on the same processor at the same moment.
#include <ctime>

#include "checkpoints/hdf5.hpp"
#include "jobs.hpp"

using namespace zero;
using namespace zero::test;

namespace {

constexpr int count = 10'000, fewer = 1'000;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool times_mean_something = false;  // HDF5 runs without the sanitizer
#else
constexpr bool times_mean_something = true;
#endif

// Of the processor, of the slowest rank: other tests run beside this one.
double seconds_of(const std::function<void()>& work) {
    MPI_Barrier(MPI_COMM_WORLD);
    const std::clock_t start = std::clock();
    work();
    double taken = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    MPI_Allreduce(MPI_IN_PLACE, &taken, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return taken;
}

std::string name_of(int k) {
    return "block/" + std::to_string(k / 100) + "/layer/" + std::to_string(k) + "/weight";
}

// As many datasets as an index has, of the same names, without mappings and attributes.
double seconds_of_plain_datasets() {
    return seconds_of([] {
        if (world_rank() != 0) return;
        const hdf5::session alone;
        hdf5::image file;
        const hdf5::list links = hdf5::link_list();
        const hdf5::space space = hdf5::make_space(std::vector<std::int64_t>{8, 4});
        const hdf5::type type = hdf5::file_type(dtype::f32);
        for (const char* folder : {"/parameters/", "/states/exp_avg/", "/states/exp_avg_sq/"})
            for (int k = 0; k < count; ++k)
                const hdf5::dataset made(H5Dcreate2(file.file(), (folder + name_of(k)).c_str(), type.get(), space.get(), links.get(),
                                                    H5P_DEFAULT, H5P_DEFAULT),
                                         "create a dataset");
        file.finish();
    });
}

void build(engine& z, int tensors) {
    for (int k = 0; k < tensors; ++k)
        z.add_tensor(name_of(k), k % 3 == 0 ? dtype::bf16 : dtype::f32, std::vector<std::int64_t>{8, 4}, nullptr, 0);
    z.commit();
}

std::string json_of(int stage) {
    return R"({"zero_optimization": {"stage": )" + std::to_string(stage) + R"(}, "optimizer": )" + adam + "}";
}

// Counts this rank's calls.
struct counting {
    std::atomic<std::int64_t> calls{0};
    files::disk disk{[this](const files::request&) {
        ++calls;
        return files::verdict{};
    }};
};

struct cost {
    double save = 0, load = 0;
    std::int64_t save_calls = 0, load_calls = 0;
};

cost there_and_back(int tensors, const std::string& place) {
    MPI_Comm comm = MPI_COMM_WORLD;
    cost found;
    std::vector<float> last;
    {
        engine z(&comm, json_of(2));
        build(z, tensors);
        for (const int id : {0, 1, tensors - 1}) z.fill(id, "normal", 0, 1, 7);
        last = values_of<float>(z, tensors - 2);
        const counting how;
        found.save = seconds_of([&] { checkpoint::save(z, place, "t", how.disk); });
        found.save_calls = how.calls;
    }
    for (const int stage : {1, 3}) {
        engine z(&comm, json_of(stage));
        build(z, tensors);
        const counting how;
        found.load = std::max(found.load, seconds_of([&] { checkpoint::load(z, place, "t", how.disk); }));
        found.load_calls = std::max<std::int64_t>(found.load_calls, how.calls);
        CHECK(values_of<float>(z, tensors - 2) == last);
    }
    return found;
}

}  // namespace

TEST_CASE("10,000 tensors: as many calls as for 1,000, and a time that HDF5 explains") {
    const shared_folder folder;
    const cost few = there_and_back(fewer, folder / "few"), many = there_and_back(count, folder / "many");
    // Nothing is written or read for each tensor.
    CHECK(many.save_calls <= few.save_calls + 4);
    CHECK(many.load_calls <= few.load_calls + 4);
    const double plain = seconds_of_plain_datasets();
    std::printf("save %.2f s, load %.2f s, plain datasets %.2f s; calls of rank %d: %ld and %ld, of 1,000 tensors %ld and %ld\n",
                many.save, many.load, plain, world_rank(), many.save_calls, many.load_calls, few.save_calls, few.load_calls);
    if (!times_mean_something) return;
    // Mappings, five attributes each and the manifest: measured 6.1 to 6.8; and 0.7.
    CHECK(many.save < 12 * plain);
    CHECK(many.load < 1.5 * plain);
}
