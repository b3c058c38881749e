// The table of codes and the exception that carries them.
#include "core/error.hpp"

#include <catch2/catch.hpp>
#include <set>

using zero::code;

TEST_CASE("codes have the numbers and names of the public contract") {
    const std::pair<int, std::string> contract[] = {
        {0, "ZERO_OK"},           {1, "ZERO_ERR_ARGUMENT"},   {2, "ZERO_ERR_STATE"},     {3, "ZERO_ERR_CONFIG"},
        {4, "ZERO_ERR_MEMORY"},   {5, "ZERO_ERR_MPI"},        {6, "ZERO_ERR_CUDA"},      {7, "ZERO_ERR_NCCL"},
        {8, "ZERO_ERR_IO"},       {9, "ZERO_ERR_CHECKPOINT"}, {10, "ZERO_ERR_MISMATCH"}, {11, "ZERO_ERR_UNSUPPORTED"},
        {12, "ZERO_ERR_NUMERIC"}, {99, "ZERO_ERR_INTERNAL"},
    };
    std::set<std::string> meanings;
    for (const auto& [number, name] : contract) {
        CHECK(zero::name(static_cast<code>(number)) == name);
        meanings.insert(zero::meaning(static_cast<code>(number)));
    }
    CHECK(meanings.size() == std::size(contract));
}

TEST_CASE("a number that is no code has a name too") {
    for (const int number : {-1, 13, 98, 100}) {
        CHECK(zero::name(static_cast<code>(number)) == std::string("ZERO_ERR_UNKNOWN"));
        CHECK(zero::meaning(static_cast<code>(number)) == std::string("not a code of this library"));
    }
}

TEST_CASE("fail throws the code and the sentence") {
    try {
        zero::fail(code::config, "key '{}' is {}", "stage", 7);
    } catch (const zero::error& caught) {
        CHECK(caught.which() == code::config);
        CHECK(caught.what() == std::string("key 'stage' is 7"));
        return;
    }
    FAIL("nothing was thrown");
}

TEST_CASE("require throws only when its condition is false") {
    CHECK_NOTHROW(zero::require(true, code::state, "never {}", 1));
    CHECK_THROWS_WITH(zero::require(false, code::state, "call {} first", "zero_commit"), "call zero_commit first");
}
