// Texts that come out: readings, report, names of errors, build information, log lines; and the estimate.
#include <cstring>

#include "support.hpp"
#include "zero/version.h"

using namespace zero_test;

TEST_CASE("a reading as text: whole, exactly fitting, cut, and only its size") {
    model m(2);
    std::size_t needed = 0;
    WORKS(zero_get_text(m.z, "optimizer.type", nullptr, 0, &needed));
    CHECK(needed == 4);
    char text[8];
    std::memset(text, '#', sizeof text);
    WORKS(zero_get_text(m.z, "optimizer.type", text, 4, &needed));
    CHECK(std::string(text) == "SGD");
    CHECK(text[4] == '#');
    std::memset(text, '#', sizeof text);
    WORKS(zero_get_text(m.z, "optimizer.type", text, 3, &needed));
    CHECK(std::string(text) == "SG");
    CHECK(text[3] == '#');
    CHECK(needed == 4);
    EXPECT(ZERO_ERR_ARGUMENT, zero_get_text(m.z, "optimizer.type", text, 3, nullptr));
    CHECK(std::string(text) == "SG");
    EXPECT(ZERO_ERR_ARGUMENT, zero_get_text(m.z, "optimizer.type", nullptr, 0, nullptr));
    EXPECT(ZERO_ERR_CONFIG, zero_get_text(m.z, "optimizer.typ", text, 8, &needed));
}

TEST_CASE("readings of a context") {
    model m(1);
    std::int64_t value = -1;
    double real = -1;
    WORKS(zero_get_int(m.z, "rank", &value));
    CHECK(value == rank_of());
    WORKS(zero_get_int(m.z, "size", &value));
    CHECK(value == size_of());
    WORKS(zero_get_int(m.z, "zero_optimization.stage", &value));
    CHECK(value == 1);
    WORKS(zero_get_real(m.z, "lr", &real));
    CHECK(real == 1);
    WORKS(zero_get_int(m.z, "owned_elements", &value));
    std::int64_t all = 0;
    MPI_Allreduce(&value, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all == 22);
    m.train_one_step();
    WORKS(zero_get_real(m.z, "grad_norm", &real));
    CHECK(real == Approx(std::sqrt(22.0)));
    for (const char* key : {"step", "micro_step", "skipped_steps", "overflow", "nodes", "live_elements"})
        WORKS(zero_get_int(m.z, key, &value));
    WORKS(zero_get_real(m.z, "loss_scale", &real));
}

TEST_CASE("the report is one text for all ranks") {
    model m(3);
    std::size_t needed = 0;
    WORKS(zero_report(m.z, nullptr, 0, &needed));
    std::vector<char> text(needed + 1, '#');
    WORKS(zero_report(m.z, text.data(), needed, &needed));
    CHECK(text.back() == '#');
    const std::string report(text.data());
    CHECK(report.find("parameters") != std::string::npos);
}

TEST_CASE("memory: what was forecast is what is taken") {
    for (const int stage : {0, 1, 2, 3}) {
        model m(stage, false);
        std::int64_t forecast = 0, bytes = 0, peak = 0;
        WORKS(zero_forecast(m.z, ZERO_PLACE_HOST, &forecast, nullptr));
        WORKS(zero_commit(m.z));
        WORKS(zero_memory(m.z, ZERO_PLACE_HOST, &bytes, &peak));
        CHECK(bytes == forecast);
        CHECK(peak >= bytes);
        WORKS(zero_memory(m.z, ZERO_PLACE_DEVICE, &bytes, &peak));
        CHECK((bytes == 0 && peak == 0));
    }
}

TEST_CASE("an estimate beyond 32 bits") {
    const char* const config =
        "{\"zero_optimization\": {\"stage\": 1}, \"optimizer\": {\"type\": \"Adam\"}, \"libzero\": {\"device\": "
        "\"host\"}}";
    std::int64_t device = -1, host = -1, nvme = -1;
    WORKS(zero_estimate(config, ZERO_F32, 8, 1, 3000000000, 3000000000, &device, &host, &nvme));
    CHECK(device == 0);
    CHECK(host == 27000000000);
    CHECK(nvme == 0);
    WORKS(zero_estimate(config, ZERO_F32, 8, 1, 3000000000, 1000000, nullptr, nullptr, nullptr));
}

TEST_CASE("names") {
    CHECK(std::string(zero_error_name(ZERO_OK)) == "ZERO_OK");
    CHECK(std::string(zero_error_name(ZERO_ERR_MISMATCH)) == "ZERO_ERR_MISMATCH");
    CHECK(std::string(zero_error_name(ZERO_ERR_INTERNAL)) == "ZERO_ERR_INTERNAL");
    CHECK(std::string(zero_error_name(12345)) == "ZERO_ERR_UNKNOWN");
    CHECK(zero_last_error() != nullptr);
    const std::string build = zero_build_info();
    CHECK(build.find("libzero " + std::to_string(ZERO_VERSION_MAJOR) + ".") == 0);
    for (const char* word : {"git: ", "compilers: ", "MPI: ", "HDF5: ", "options: "})
        CHECK(build.find(word) != std::string::npos);
}

TEST_CASE("log lines go to the caller and back to silence") {
    struct collected {
        std::vector<std::string> lines;
        static void add(int level, const char* text, void* user) {
            static_cast<collected*>(user)->lines.push_back(std::to_string(level) + " " + text);
        }
    } mine;
    zero_t z = nullptr;
    WORKS(zero_init(MPI_COMM_WORLD, "{\"an_unknown_section\": 1}", &z));
    WORKS(zero_set_log(z, &collected::add, &mine));
    const std::int64_t three = 3;
    WORKS(zero_register(z, "w", ZERO_F32, 1, &three, nullptr, 0, nullptr));
    WORKS(zero_commit(z));
    bool found = false;
    for (const std::string& line : mine.lines) found = found || line.find("an_unknown_section") != std::string::npos;
    CHECK(found);
    WORKS(zero_set_log(z, nullptr, nullptr));
    const std::size_t before = mine.lines.size();
    WORKS(zero_finalize(&z));
    CHECK(mine.lines.size() == before);
}
