// CRC-32C against published vectors and against a bit-by-bit reference; table, instruction and copy agree.
#include "checkpoints/crc32c.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

using namespace zero;

static std::uint32_t bit_by_bit(const std::string& text) {
    std::uint32_t sum = ~0U;
    for (const char letter : text) {
        sum ^= static_cast<unsigned char>(letter);
        for (int k = 0; k < 8; ++k) sum = (sum & 1U) != 0 ? (sum >> 1) ^ 0x82f63b78U : sum >> 1;
    }
    return ~sum;
}

TEST_CASE("published vectors (RFC 3720, B.4)") {
    CHECK(crc32c::of("123456789") == 0xe3069283U);
    CHECK(crc32c::of(std::string(32, '\0')) == 0x8a9136aaU);
    CHECK(crc32c::of(std::string(32, '\xff')) == 0x62a8ab43U);
    std::string up;
    for (int k = 0; k < 32; ++k) up += static_cast<char>(k);
    CHECK(crc32c::of(up) == 0x46dd794eU);
    CHECK(crc32c::of("") == 0U);
    CHECK(crc32c::text(0xe30692U) == "00e30692");
}

TEST_CASE("all ways agree at every length and start") {
    std::mt19937 random(3);
    std::string text(40000, '\0');
    for (char& letter : text) letter = static_cast<char>(random());
    for (int round = 0; round < 300; ++round) {
        const std::size_t first = random() % 64, length = random() % (round % 3 == 0 ? 39000 : 200);
        const std::string part = text.substr(first, length);
        const std::uint32_t right = bit_by_bit(part);
        REQUIRE(crc32c::extend_by_table(0, text.data() + first, length) == right);
        REQUIRE(crc32c::extend_by_instruction(0, text.data() + first, length) == right);
        const std::size_t cut = length == 0 ? 0 : random() % length;
        REQUIRE(crc32c::extend(crc32c::of(text.data() + first, cut), text.data() + first + cut, length - cut) == right);
        std::string copy(length, '\0');
        REQUIRE(crc32c::copy(0, copy.data(), text.data() + first, length) == right);
        REQUIRE(copy == part);
    }
}
