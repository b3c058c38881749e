// Norms and dot products on a device: the limbs of the exact sum equal the host's, whatever the numbers.
#include "compute/both.hpp"
#include "tensor/exact_window.hpp"

using namespace both_processors;

namespace {

// Squares at any place of the superaccumulator, next to each other.
std::vector<double> far_apart(std::int64_t count, unsigned seed, int low, int high) {
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<int> exponent(low, high);
    std::uniform_real_distribution<double> fraction(-2, 2);
    std::vector<double> made(static_cast<std::size_t>(count));
    for (auto& x : made) x = std::ldexp(fraction(random), exponent(random));
    return made;
}

void check_norm(processors& work, dtype type, const std::vector<double>& values, double divisor, std::int64_t shift, bool wanted = true) {
    const auto count = static_cast<std::int64_t>(values.size());
    const twin data(work, type, values, shift);
    compute::totals host, device;
    host.squares.add(3);  // what was there before stays
    device.squares.add(3);
    work.host->divide_and_norm(type, data.at(*work.host), divisor, count, wanted, host);
    work.device->divide_and_norm(type, data.at(*work.device), divisor, count, wanted, device);
    work.device->wait();
    INFO(name(type) << ", " << count << " elements by " << divisor << ", shifted by " << shift);
    REQUIRE(data.equal());
    if (host.finite) REQUIRE(equal(host, device));
    REQUIRE(host.finite == device.finite);
    work.host->divide(type, data.at(*work.host), divisor, count);
    work.device->divide(type, data.at(*work.device), divisor, count);
    work.device->wait();
    REQUIRE(data.equal());
}

}  // namespace

TEST_CASE("a device divides, squares and adds up exactly as the host does", "[cuda]") {
    processors work;
    for (const dtype type : sum_types)
        for (const double divisor : {1.0, 4.0, 3.0, 1.1, -0x1p-99, 0x1p120})
            for (const std::int64_t count : counts) check_norm(work, type, numbers(count, 1, false), divisor, shifts[count % 3]);
}

TEST_CASE("sums on a device are exact when their terms lie far apart", "[cuda]") {
    processors work;
    for (const unsigned seed : {1u, 2u, 3u}) {
        check_norm(work, dtype::f64, far_apart(3001, seed, -1074, 1023), 1, 0);
        check_norm(work, dtype::f64, far_apart(3001, seed, -60, 60), 1, 1);
        check_norm(work, dtype::f32, far_apart(3001, seed, -149, 127), 1, 3);
    }
    check_norm(work, dtype::f64, std::vector<double>(64, 1e200), 1, 0);  // squares beyond the range of double
    check_norm(work, dtype::f64, std::vector<double>(64, 5e-324), 1, 0);
    check_norm(work, dtype::f32, std::vector<double>(5000, 1.0), 1, 0);
    check_norm(work, dtype::f32, std::vector<double>(5000, 1.0), 1, 0, false);  // squares not wanted
}

TEST_CASE("infinity and NaN are found on a device wherever they are", "[cuda]") {
    processors work;
    for (const double bad : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
        for (const dtype type : sum_types) {
            for (const std::size_t at : {0u, 15u, 16u, 500u, 999u}) {
                auto values = numbers(1000, 5, false);
                values[at] = bad;
                compute::totals sum;
                const twin data(work, type, values);
                work.device->divide_and_norm(type, data.at(*work.device), 2, 1000, false, sum);
                work.device->wait();
                REQUIRE_FALSE(sum.finite);
                check_norm(work, type, values, 2, 0);
            }
        }
    }
}

TEST_CASE("dot products on a device, of either sign", "[cuda]") {
    processors work;
    for (const dtype type : sum_types) {
        for (const std::int64_t count : counts) {
            for (const bool wild : {false, true}) {
                const twin a(work, type, wild ? far_apart(count, 1, -140, 120) : numbers(count, 1, false), shifts[count % 3]);
                const twin b(work, type, wild ? far_apart(count, 2, -140, 120) : numbers(count, 2, false), shifts[count % 3]);
                compute::totals host, device;
                work.host->dot(type, a.at(*work.host), b.at(*work.host), count, host);
                work.device->dot(type, a.at(*work.device), b.at(*work.device), count, device);
                work.device->wait();
                INFO(name(type) << ", " << count << (wild ? " far apart" : ""));
                REQUIRE(equal(host, device));
            }
        }
    }
}

TEST_CASE("more results than a device has room for come out, each where it belongs", "[cuda]") {
    processors work;
    constexpr std::size_t sums = 300;
    std::vector<compute::totals> host(sums), device(sums);
    const twin data(work, dtype::f32, numbers(1000, 1, false));
    for (int round = 0; round < 2; ++round) {
        for (std::size_t k = 0; k < sums; ++k) {
            const auto count = static_cast<std::int64_t>(k);
            work.host->dot(dtype::f32, data.at(*work.host), data.at(*work.host), count, host[k]);
            work.device->dot(dtype::f32, data.at(*work.device), data.at(*work.device), count, device[k]);
        }
    }
    work.device->wait();
    for (std::size_t k = 0; k < sums; ++k) REQUIRE(equal(host[k], device[k]));
}

TEST_CASE("results that were given up do not arrive, and the next ones are right", "[cuda]") {
    processors work;
    const twin data(work, dtype::f32, numbers(1000, 1, false));
    compute::totals host, sum;
    work.device->dot(dtype::f32, data.at(*work.device), data.at(*work.device), 1000, sum);
    work.device->forget({&sum, 1});
    work.device->wait();
    REQUIRE(equal(host, sum));
    work.host->dot(dtype::f32, data.at(*work.host), data.at(*work.host), 500, host);
    work.device->dot(dtype::f32, data.at(*work.device), data.at(*work.device), 500, sum);
    work.device->wait();
    REQUIRE(equal(host, sum));
}

TEST_CASE("a window holds what it is given and says so when it moves", "[cuda]") {
    std::mt19937_64 random(7);
    for (const int reach : {0, 30, 90, 600}) {
        std::uniform_int_distribution<int> exponent(-reach, reach);
        std::uniform_real_distribution<double> fraction(-1, 1);
        exact_sum direct, pieces;
        std::int64_t limbs[exact_sum::limbs] = {};
        int spills = 0;
        const auto spill = [&](const vector::exact_window& what) {
            ++spills;
            for (int i = 0; i < vector::exact_window::pieces; ++i) limbs[what.base / 32 + i] += what.piece(i);
        };
        vector::exact_window window;
        for (int k = 0; k < 20000; ++k) {
            const double value = std::ldexp(fraction(random), exponent(random));
            direct.add(value);
            window.add(value, spill);
        }
        if (reach == 30) REQUIRE(spills < 5);
        if (window.base >= 0) spill(window);
        std::copy_n(limbs, exact_sum::limbs, pieces.data().begin());
        direct.normalize();
        pieces.normalize();
        INFO("reach " << reach);
        REQUIRE(std::equal(direct.data().begin(), direct.data().end(), pieces.data().begin()));
    }
}
