// The test harness tested: one failing rank must fail the whole run, and tests have a folder of their own.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>

#include <mpi.h>

#include "support/temporary_folder.hpp"

TEST_CASE("the last rank fails when it is told to") {
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const bool told = std::getenv("ZERO_TEST_FAIL") != nullptr;
    CHECK_FALSE((told && rank == size - 1));
}

TEST_CASE("a test runs in a folder of its own") {
    const auto here = std::filesystem::current_path();
    CHECK(here.filename().string().rfind("zero_test.", 0) == 0);
    CHECK(std::filesystem::equivalent(here, std::filesystem::temp_directory_path()));
}

TEST_CASE("a temporary folder goes with everything in it") {
    std::filesystem::path path;
    {
        const zero::test::temporary_folder folder;
        path = folder.path();
        std::filesystem::create_directory(folder / "inner");
        CHECK(std::filesystem::exists(path / "inner"));
    }
    CHECK_FALSE(std::filesystem::exists(path));
}
