// Conversion, accumulation and ordered sums on a device against the host, every pair of types, odd counts and odd places.
#include "compute/both.hpp"

using namespace both_processors;

TEST_CASE("a device converts as the host does, every type into every type", "[cuda]") {
    processors work;
    for (const dtype to : all_types) {
        for (const dtype from : all_types) {
            for (const std::int64_t count : counts) {
                const std::int64_t shift = shifts[static_cast<std::size_t>(count) % 3];
                const twin source(work, from, numbers(count, 1, true), shift), target(work, to, numbers(count, 2, true), shift);
                work.each([&](compute::processor& p) { p.convert(to, target.at(p), from, source.at(p), count); });
                INFO(name(from) << " to " << name(to) << ", " << count << " elements, shifted by " << shift);
                REQUIRE(target.equal());
            }
        }
    }
}

TEST_CASE("every 16-bit number becomes the same float on a device, and goes back", "[cuda]") {
    processors work;
    constexpr std::int64_t count = 1 << 16;
    for (const dtype narrow : {dtype::bf16, dtype::f16}) {
        std::vector<std::uint16_t> bits(count);
        for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
        const twin source(work, narrow, numbers(count, 1, false)), wide(work, dtype::f32, numbers(count, 2, false));
        work.each([&](compute::processor& p) {
            p.copy(source.at(p), bits.data(), count * 2);
            p.convert(dtype::f32, wide.at(p), narrow, source.at(p), count);
            p.convert(narrow, source.at(p), dtype::f32, wide.at(p), count);
        });
        INFO(name(narrow));
        REQUIRE(wide.equal());
        REQUIRE(source.equal());
    }
}

TEST_CASE("a device accumulates as the host does", "[cuda]") {
    processors work;
    for (const dtype sum : sum_types) {
        for (const dtype from : all_types) {
            for (const double factor : {1.0, 0.5, 0.3, -3.0, 1e300}) {
                for (const bool assign : {true, false}) {
                    for (const std::int64_t count : {7, 1000}) {
                        const std::int64_t shift = shifts[static_cast<std::size_t>(count) % 3];
                        const twin source(work, from, numbers(count, 1, true), shift), target(work, sum, numbers(count, 2, true), shift);
                        work.each([&](compute::processor& p) {
                            p.accumulate(sum, target.at(p), from, source.at(p), factor, count, assign);
                        });
                        INFO(name(sum) << " of " << name(from) << " times " << factor << (assign ? " assigned, " : " added, ") << count);
                        REQUIRE(target.equal());
                    }
                }
            }
        }
    }
}

TEST_CASE("a device adds many sources in their order", "[cuda]") {
    processors work;
    for (const dtype sum : sum_types) {
        for (const int ranks : {1, 2, 3, 17}) {  // 17: the larger of two kernels
            for (const bool same : {true, false}) {
                for (const bool add : {true, false}) {
                    const std::int64_t count = 333, shift = ranks % 3;
                    std::vector<twin> sources;
                    std::vector<dtype> types;
                    for (int k = 0; k < ranks; ++k) {
                        types.push_back(same ? sum : all_types[static_cast<std::size_t>(k + 1) % 4]);
                        sources.emplace_back(work, types.back(), numbers(count, static_cast<unsigned>(k), true), shift);
                    }
                    const twin apart(work, sum, numbers(count, 99, true), shift);
                    for (const twin* target : {&apart, static_cast<const twin*>(same ? &sources.back() : nullptr)}) {
                        if (target == nullptr) continue;
                        work.each([&](compute::processor& p) {
                            std::vector<const void*> places;
                            for (const twin& one : sources) places.push_back(one.at(p));
                            p.ordered_sum(sum, target->at(p), add, places.data(), types.data(), ranks, count);
                        });
                        INFO(name(sum) << ", " << ranks << (same ? " equal" : " mixed") << (add ? " added" : ""));
                        REQUIRE(target->equal());
                    }
                }
            }
        }
    }
    const void* none[1] = {};
    const dtype type[1] = {dtype::f32};
    REQUIRE_THROWS_AS(work.device->ordered_sum(dtype::f32, nullptr, false, none, type, 100000, 1), zero::error);
}

TEST_CASE("a device rounds through a narrower type", "[cuda]") {
    processors work;
    for (const dtype sum : sum_types) {
        for (const dtype narrow : all_types) {
            const twin data(work, sum, numbers(777, 3, true), 1);
            work.each([&](compute::processor& p) { p.round_through(narrow, sum, data.at(p), 777); });
            INFO(name(sum) << " through " << name(narrow));
            REQUIRE(data.equal());
        }
    }
}

TEST_CASE("clearing and copying on a device touch what they are asked to", "[cuda]") {
    processors work;
    const twin data(work, dtype::f32, numbers(100, 1, true), 1), other(work, dtype::f32, numbers(100, 2, true), 1);
    work.each([&](compute::processor& p) {
        p.clear(data.at(p) + 4, 9 * 4);
        p.copy(data.at(p) + 80, other.at(p), 7 * 4);
        p.clear(data.at(p), 0);
    });
    REQUIRE(data.equal());
}
