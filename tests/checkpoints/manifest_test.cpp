// The manifest: there and back, every flipped bit and every cut found, hostile numbers refused.
#include "checkpoints/manifest.hpp"

#include <catch2/catch.hpp>

#include "checkpoints/crc32c.hpp"

using namespace zero;
using namespace zero::checkpoint;

static manifest example() {
    manifest what;
    what.head = {
        "01234567-89ab-4def-8123-456789abcdef", "tag \"with\" quotes", "2020-01-01T00:00:00Z", 12, 34, 400, 2, 1, 3};
    what.run.step = 34;
    what.run.lr = 0.1;
    what.run.scale = 65536;
    what.run.optimizer = "adam";
    what.run.config = "{\"crc32c\":\"00000000\"}\n";
    what.files = {{"part-01234567-00000-of-00002.h5", 5000, 1, 2048, 3000, 1},
                  {"part-01234567-00001-of-00002.h5", 5000, 2, 2048, 3000, 2}};
    what.extents = {{0, "/data/group-0-fp32/parameter", dtype::f32, 0, 40, 4096, 0},
                    {1, "/data/group-0-fp32/parameter", dtype::f32, 0, 60, 4096, 0},
                    {1, "/attached/replicated/rng", dtype::u8, 0, 4, 4800, 1}};
    what.tensors = {
        {"a/b", dtype::f32, {10, 10}, 100, 0, 0, false, {{"value", dtype::f32, {{0, 0, 0, 40}, {1, 0, 40, 60}}}}}};
    what.attachments = {{"rng", dtype::u8, {4}, 4, false, 0, 0, 2}};
    return what;
}

static bool refused(const manifest& what) {
    try {
        from_text(to_text(what), "MANIFEST.json");
        return false;
    } catch (const damage& problem) {
        return problem.which() == code::checkpoint &&
               std::string(problem.what()).find("MANIFEST.json") != std::string::npos;
    }
}

TEST_CASE("there and back") {
    const manifest back = from_text(to_text(example()), "m");
    CHECK(to_text(back) == to_text(example()));
    CHECK(back.run.lr == 0.1);
    CHECK(back.run.config == example().run.config);
    CHECK(back.tensors[0].vectors[0].pieces[1].first == 40);
    const head only = head_from_text(to_text(example()).substr(0, 1000), "m");
    CHECK(only.sequence == 12);
    CHECK(only.tag == "tag \"with\" quotes");
}

TEST_CASE("every flipped bit and every cut is found") {
    const std::string good = to_text(example());
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
        std::string bad = good;
        bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
        REQUIRE_THROWS_AS(from_text(bad, "m"), damage);
    }
    for (std::size_t length = 0; length < good.size(); ++length)
        REQUIRE_THROWS_AS(from_text(good.substr(0, length), "m"), damage);
    CHECK_THROWS_AS(from_text(good + " ", "m"), damage);
}

TEST_CASE("a flipped bit in the head is found without the rest") {
    const std::string good = to_text(example());
    const std::size_t line = good.find('\n') + 1;
    for (std::size_t bit = 0; bit < 8 * line; ++bit) {
        std::string bad = good;
        bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
        REQUIRE_THROWS_AS(head_from_text(bad, "m"), damage);
    }
}

TEST_CASE("hostile numbers with right checksums are refused") {
    manifest what = example();
    SECTION("beyond the end of the file") {
        what.extents[0].offset = 4900;
    }
    SECTION("an offset near 2^63") {
        what.extents[0].offset = INT64_MAX - 8;
    }
    SECTION("a count that overflows in bytes") {
        what.extents[0].count = what.tensors[0].vectors[0].pieces[0].count = INT64_MAX / 2;
    }
    SECTION("arrays over each other") {
        what.extents[2].offset = 4100;
    }
    SECTION("an array over the checksums") {
        what.extents[1].offset = 2900;
    }
    SECTION("checksums of two arrays are one") {
        what.extents[2].block = 0;
    }
    SECTION("more checksums than the file holds") {
        what.files[0].blocks = 1'000'000'000'000;
    }
    SECTION("a hole in a tensor") {
        what.tensors[0].vectors[0].pieces[1].first = 41;
    }
    SECTION("a tensor covered twice") {
        what.tensors[0].vectors[0].pieces[1].first = 39;
    }
    SECTION("a tensor without its end") {
        what.tensors[0].vectors[0].pieces.pop_back();
    }
    SECTION("a larger tensor") {
        what.tensors[0].dims = {10, 11};
    }
    SECTION("dims beyond 2^63") {
        what.tensors[0].dims = {INT64_MAX, INT64_MAX};
    }
    SECTION("negative dims") {
        what.tensors[0].dims = {-10, -10};
    }
    SECTION("two pieces in one place") {
        what.tensors[0].vectors[0].pieces[1] = {0, 0, 40, 60};
    }
    SECTION("a file name that leaves the folder") {
        what.files[0].name = "part-/../../etc/passwd";
    }
    SECTION("no such file") {
        what.extents[0].file = 7;
    }
    SECTION("no such array") {
        what.tensors[0].vectors[0].pieces[0].extent = 9;
    }
    SECTION("another dtype") {
        what.tensors[0].vectors[0].type = dtype::f64;
    }
    SECTION("a tensor twice") {
        what.tensors.push_back(what.tensors[0]);
    }
    SECTION("a tensor of nobody") {
        what.tensors[0].model = 3;
    }
    SECTION("two steps") {
        what.run.step = 35;
    }
    CHECK(refused(what));
}

TEST_CASE("JSON that is not a manifest is refused") {
    for (const std::string text : {"", "{}", "[]", "null", "{\"head\":1}", "{\"head\":{},\"head\":{}}", "\"\\ud800\""})
        CHECK_THROWS_AS(from_json(text, "m"), damage);
    CHECK_THROWS_AS(from_json(std::string(100000, '['), "m"), damage);
    std::string twice = to_text(example());
    twice.insert(twice.find("\"step\":34"), "\"step\":33,");
    CHECK_THROWS_AS(from_json(twice, "m"), damage);
    std::string fraction = to_text(example());
    fraction.replace(fraction.find("\"step\":34"), 9, "\"step\":3.5");
    CHECK_THROWS_AS(from_json(fraction, "m"), damage);
}
