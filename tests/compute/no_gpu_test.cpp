// Where there is no GPU, no driver, or no CUDA in the build: the library starts, says what is missing, and refuses "cuda" with what
// to change. Where there is a GPU, it is chosen.
#include <catch2/catch.hpp>

#include "compute/processor.hpp"
#include "core/error.hpp"
#include "device/devices.hpp"

namespace {

#ifdef ZERO_TEST_WITH_CUDA
constexpr auto refusal = zero::code::cuda;
constexpr const char* reason = "no GPU can be used here (cudaGetDeviceCount: ";
#else
constexpr auto refusal = zero::code::unsupported;
constexpr const char* reason = "this build has no CUDA";
#endif

template <typename Call>
void check_refused(const Call& call) {
    try {
        call();
        FAIL("no error");
    } catch (const zero::error& what) {
        INFO(what.what());
        CHECK(what.which() == refusal);
        CHECK_THAT(what.what(), Catch::Contains("cuda", Catch::CaseSensitive::No));
    }
}

}  // namespace

TEST_CASE("without a GPU the library starts, and says what is missing", "[cuda]") {
    const auto chosen = zero::choose_device("auto");
    REQUIRE(zero::choose_device("host").number == -1);
    int plain = 0;
    CHECK(zero::recognise(&plain).kind == zero::memory_of::plain);
    zero::check_reachable(&plain, -1, "the values of", "w");
    if (chosen.number >= 0) {
        CHECK(zero::choose_device("cuda").number == chosen.number);
        return;
    }
    CHECK_THAT(chosen.reason, Catch::Contains(reason));
    zero::ledger book;
    check_refused([] { zero::choose_device("cuda"); });
    check_refused([&] { zero::compute::make_cuda(0, book); });
    CHECK(book.bytes(zero::place::device) == 0);
}
