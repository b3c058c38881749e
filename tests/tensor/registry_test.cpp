// What registration accepts, refuses and remembers.
#include "tensor/registry.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <random>
#include <vector>

#include "core/error.hpp"

using namespace zero;
using shape = std::vector<std::int64_t>;

namespace {

template <typename Action>
code code_of(Action action) {
    try {
        action();
    } catch (const error& caught) {
        CHECK(std::string(caught.what()).size() > 20);  // a sentence, not a word
        return caught.which();
    }
    return code::ok;
}

int add(registry& tensors, const std::string& name, const shape& dims, void* values = nullptr,
        dtype type = dtype::f32) {
    return tensors.add(name, type, dims, values, 0);
}

}  // namespace

TEST_CASE("a tensor is kept as described") {
    registry tensors;
    std::vector<double> values(12);
    CHECK(tensors.add("layer/w.1", dtype::f64, shape{3, 4}, values.data(), 2) == 0);
    CHECK(add(tensors, "", {5}) == 1);
    const tensor& first = tensors.at(0);
    CHECK(first.id == 0);
    CHECK(first.name == "layer/w.1");
    CHECK(first.type == dtype::f64);
    CHECK(first.dims == shape{3, 4});
    CHECK(first.count == 12);
    CHECK(first.bytes() == 96);
    CHECK(first.values == values.data());
    CHECK(first.group == 2);
    CHECK_FALSE(first.library_owned);
    CHECK(tensors.at(1).name == "t1");
    CHECK(tensors.at(1).library_owned);
    CHECK(tensors.find("t1") == 1);
    CHECK(tensors.find("t2") == -1);
    CHECK(tensors.count() == 2);
    CHECK(tensors.all().size() == 2);
    for (const int id : {-1, 2}) CHECK(code_of([&] { tensors.at(id); }) == code::argument);
}

TEST_CASE("shapes from no dimension to seven") {
    registry tensors;
    shape dims;
    std::int64_t expected = 1;
    for (int n = 0; n <= 7; ++n) {
        CHECK(tensors.at(add(tensors, "", dims)).count == expected);
        dims.push_back(n + 1);
        expected *= n + 1;
    }
    CHECK(code_of([&] { add(tensors, "", dims); }) == code::argument);
    CHECK(shape_text(shape{3, 4}) == "[3, 4]");
    CHECK(shape_text(shape{}) == "[]");
}

TEST_CASE("negative and overflowing shapes are refused and leave no trace") {
    registry tensors;
    const std::int64_t large = std::int64_t{1} << 31, most = std::numeric_limits<std::int64_t>::max();
    const std::vector<shape> wrong{{-1}, {3, -4}, {-3, -4}, {0, -1}, {large, large, 4}, {most}, {large, large}};
    for (const shape& dims : wrong) {
        CAPTURE(shape_text(dims));
        CHECK(code_of([&] { add(tensors, "w", dims); }) == code::argument);
    }
    CHECK(tensors.count() == 0);
    CHECK(tensors.find("w") == -1);
    // The limit counts bytes: 2^61 - 1 fp32 elements fit, 2^61 do not.
    CHECK(code_of([&] { add(tensors, "fits", {(std::int64_t{1} << 61) - 1}); }) == code::ok);
    CHECK(code_of([&] { add(tensors, "no", {std::int64_t{1} << 61}); }) == code::argument);
}

TEST_CASE("empty tensors may have any address or none") {
    registry tensors;
    float values[4] = {};
    CHECK(tensors.at(add(tensors, "a", {4}, values)).count == 4);
    CHECK(tensors.at(add(tensors, "b", {0}, values + 1)).count == 0);  // inside a: nothing to share
    CHECK(tensors.at(add(tensors, "c", {0}, values + 1)).count == 0);
    const tensor& none = tensors.at(add(tensors, "d", {std::int64_t{1} << 62, 16, 0}));
    CHECK(none.count == 0);
    CHECK_FALSE(none.library_owned);
    CHECK(code_of([&] { tensors.rebind(none.id, values); }) == code::ok);
}

TEST_CASE("types that cannot be trained are refused") {
    registry tensors;
    const auto with = [&](int type) {
        return code_of([&] { add(tensors, "", {1}, nullptr, static_cast<dtype>(type)); });
    };
    for (const int type : {1, 2, 3, 4}) CHECK(with(type) == code::ok);
    for (const int type : {5, 6, 7, 0, -1, 10}) CHECK(with(type) == code::argument);
    for (const int type : {8, 9}) CHECK(with(type) == code::unsupported);
    CHECK(code_of([&] { tensors.add("g", dtype::f32, shape{1}, nullptr, -1); }) == code::argument);
}

TEST_CASE("names") {
    registry tensors;
    const std::vector<std::string> good{
        "w", "a/b.c", "...", "gew\xC3\xB6lbe", "\xF0\x9F\x98\x80", std::string(255, 'x'), "a b", ".hidden", "a..b"};
    for (const std::string& name : good) {
        CAPTURE(name);
        CHECK(code_of([&] { add(tensors, name, {1}); }) == code::ok);
    }
    const std::vector<std::string> bad{"/",
                                       "/a",
                                       "a/",
                                       "a//b",
                                       ".",
                                       "..",
                                       "a/../b",
                                       "a/.",
                                       std::string(256, 'x'),
                                       std::string("a\0b", 3),
                                       "\xFF",
                                       "a\xC3",
                                       "\xC0\xAF",
                                       "\xE0\x80\xAF",
                                       "\xED\xA0\x80",
                                       "\xF4\x90\x80\x80",
                                       "\xF0\x80\x80\x80",
                                       "\xC3("};
    for (const std::string& name : bad) {
        CAPTURE(name);
        CHECK(code_of([&] { add(tensors, name, {1}); }) == code::argument);
    }
    CHECK(code_of([&] { add(tensors, "w", {1}); }) == code::argument);  // twice
    CHECK_THROWS_WITH(check_name("", "tag"), Catch::Contains("tag"));
}

TEST_CASE("a name given by hand may collide with an automatic one, and is told") {
    registry tensors;
    add(tensors, "t1", {1});
    CHECK(code_of([&] { add(tensors, "", {1}); }) == code::argument);
}

TEST_CASE("memory shared with another tensor is refused, neighbours are not") {
    registry tensors;
    std::vector<float> memory(100);
    float* const base = memory.data();
    add(tensors, "middle", {20}, base + 40);
    const auto at = [&](int first, int count) { return code_of([&] { add(tensors, "", {count}, base + first); }); };
    CHECK(at(40, 20) == code::argument);
    CHECK(at(45, 5) == code::argument);
    CHECK(at(30, 11) == code::argument);
    CHECK(at(59, 1) == code::argument);
    CHECK(at(0, 100) == code::argument);
    CHECK(at(30, 10) == code::ok);
    CHECK(at(60, 10) == code::ok);
    CHECK_THROWS_WITH(add(tensors, "again", {1}, base + 59), Catch::Contains("again") && Catch::Contains("middle"));
    CHECK(tensors.count() == 3);
}

TEST_CASE("overlap agrees with comparing all pairs") {
    std::mt19937 random(7);
    static float memory[400];
    for (int round = 0; round < 200; ++round) {
        registry tensors;
        std::vector<std::pair<int, int>> taken;
        for (int i = 0; i < 30; ++i) {
            const int first = static_cast<int>(random() % 380), count = static_cast<int>(random() % 20);
            bool free = true;
            for (const auto& [other, length] : taken) {
                free = free && (count == 0 || length == 0 || first + count <= other || other + length <= first);
            }
            const code got =
                code_of([&] { tensors.add("n" + std::to_string(i), dtype::f32, shape{count}, memory + first, 0); });
            REQUIRE(got == (free ? code::ok : code::argument));
            if (free) taken.emplace_back(first, count);
        }
    }
}

TEST_CASE("pointers that cannot be an array of the type are refused") {
    registry tensors;
    alignas(8) char memory[64] = {};
    CHECK(code_of([&] { add(tensors, "w", {2}, memory + 2); }) == code::argument);
    CHECK(code_of([&] { add(tensors, "w", {2}, memory + 4, dtype::f64); }) == code::argument);
    CHECK(code_of([&] { add(tensors, "w", {2}, memory + 2, dtype::bf16); }) == code::ok);
    void* const last = reinterpret_cast<void*>(~std::uintptr_t{63});
    CHECK(code_of([&] { add(tensors, "end", {1000}, last); }) == code::argument);
}

TEST_CASE("rebind moves an array, also onto its own old place, never onto another's") {
    registry tensors;
    std::vector<float> memory(100);
    float* const base = memory.data();
    const int a = add(tensors, "a", {10}, base), b = add(tensors, "b", {10}, base + 50),
              own = add(tensors, "own", {10});
    const auto rebind = [&](int id, float* to) { return code_of([&] { tensors.rebind(id, to); }); };
    CHECK(rebind(a, base) == code::ok);
    CHECK(rebind(a, base + 5) == code::ok);
    CHECK(rebind(a, base + 41) == code::argument);
    CHECK(rebind(b, base + 14) == code::argument);
    CHECK(tensors.at(a).values == base + 5);
    CHECK(rebind(b, base + 15) == code::ok);
    CHECK(rebind(a, base + 60) == code::ok);
    CHECK(tensors.at(a).values == base + 60);
    CHECK(code_of([&] { add(tensors, "c", {15}, base); }) == code::ok);  // the old place is free
    CHECK(code_of([&] { add(tensors, "d", {1}, base + 60); }) == code::argument);
    CHECK(rebind(a, nullptr) == code::argument);
    CHECK(rebind(own, base + 80) == code::state);
    CHECK(rebind(17, base) == code::argument);
}

TEST_CASE("a hundred thousand tensors register quickly") {
    registry tensors;
    std::vector<float> memory(200'000);
    for (std::size_t i = 0; i < 100'000; ++i) add(tensors, "", {2}, memory.data() + 2 * (i * 7919 % 100'000));
    CHECK(tensors.count() == 100'000);
    CHECK(code_of([&] { add(tensors, "", {1}, memory.data() + 77); }) == code::argument);
}
