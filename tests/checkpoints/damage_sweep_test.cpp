// Damage of every kind to every file of a checkpoint: flipped bits, lost ends, lost, swapped and foreign files, forged
// numbers. Whatever a load reads is found damaged or is what was written; nothing else happens, and nothing large is
// allocated. A load never gives zeros with success.
#include <catch2/catch.hpp>
#include <cstdio>

#include "checkpoints/crc32c.hpp"
#include "checkpoints/frame.hpp"
#include "checkpoints/verify.hpp"
#include "largest_allocation.hpp"
#include "sweep.hpp"

using namespace zero;
using namespace zero::test;

namespace {

constexpr std::size_t most_memory = std::size_t{1} << 20;  // the files have a few KiB

// Two checkpoints: "old", then "new"; every trial damages the new one and mends it.
class scene {
public:
    scene() {
        save_options how;
        how.tag = "old";
        REQUIRE(text(save_on(2, old, place(), how)) == "");
        how.tag = "new";
        how.step = new_step;
        REQUIRE(text(save_on(2, fresh, place(), how)) == "");
    }
    std::string place() const { return folder_ / "c"; }
    std::string path(const std::string& name, const std::string& tag = "new") const { return place() + "/" + tag + "/" + name; }
    std::string part(std::size_t number, const std::string& tag = "new") const { return parts_of(place() + "/" + tag).at(number); }

    load_result load(int ranks, const std::string& tag) const {
        load_options back;
        back.tag = tag;
        back.seed = 3;
        largest_allocation = 0;
        const load_result found = load_on(ranks, tag == "old" ? old : fresh, place(), back);
        REQUIRE(largest_allocation <= most_memory);
        return found;
    }
    // A file of the new checkpoint, which any load of it reads, is not what was written.
    void require_found(const std::string& named, int ranks) const {
        const load_result tagged = load(ranks, "new");
        INFO(text(tagged.thrown));
        REQUIRE(answer(tagged.thrown) == code::checkpoint);
        REQUIRE_THAT(text(tagged.thrown), Catch::Contains(named));
        REQUIRE(tagged.untouched);
    }
    // Without a tag it is passed over, and that is said.
    void require_older_taken(const std::string& named) const {
        const load_result found = load_on(3, old, place());
        INFO(text(found.thrown));
        REQUIRE(answer(found.thrown) == code::ok);
        REQUIRE(found.equal);
        REQUIRE(found.run.step == old_step);
        REQUIRE(found.warnings.size() == 1);
        REQUIRE_THAT(found.warnings[0], Catch::Contains(named));
    }
    void require_whole() const {
        for (const char* tag : {"old", "new"}) {
            REQUIRE(load(2, tag).equal);
            REQUIRE(checkpoint::verify(files::disk(), place() + "/" + tag, true).problems.empty());
        }
    }
    bool verify_finds() const { return !checkpoint::verify(files::disk(), place() + "/new", true).problems.empty(); }

    const std::vector<whole_tensor> old = small_model(1), fresh = small_model(50);

private:
    temporary_folder folder_;
};

code checked(const std::function<void()>& call) {
    try {
        call();
        return code::ok;
    } catch (const error& problem) {
        return problem.which();
    }
}

// With the checksums made right, as a forger would.
std::string with_sums(std::string manifest) {
    const std::size_t line = manifest.find('\n'), head = manifest.find(",\"head_crc32c\":\"");
    if (head < line) manifest.replace(head + 16, 8, crc32c::text(crc32c::of(manifest.substr(8, head - 8))));
    manifest.resize(manifest.size() - 11);
    return manifest + crc32c::text(crc32c::of(manifest)) + "\"}\n";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
    return text;
}

}  // namespace

TEST_CASE("25,000 flipped bits", "[damage]") {
    const scene where;
    std::mt19937 random(11);
    std::int64_t flipped = 0, older = 0;
    const auto flip = [&](const std::string& path, std::size_t rounds, const auto& check) {
        const std::string good = read_file(path);
        for (std::size_t round = 0; round < rounds; ++round) {
            std::string bad = good;
            const std::size_t bit = random() % (8 * good.size());
            bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
            write_file(path, bad);
            INFO(path << " bit " << bit);
            check(round);
            ++flipped;
        }
        write_file(path, good);
    };
    for (const std::string& path : {where.part(0), where.part(1), where.path("MANIFEST.json")})
        flip(path, 7000, [&](std::size_t round) {
            where.require_found(path, 1 + static_cast<int>(round % 3));
            if (round % 20 == 0) {
                where.require_older_taken(path);
                ++older;
            }
            if (round % 20 == 10) REQUIRE(where.verify_finds());
        });
    flip(where.path("index.h5"), 4000, [&](std::size_t round) {
        REQUIRE(where.verify_finds());
        if (round % 20 == 0) REQUIRE(where.load(2, "new").equal);  // a load reads the parts
    });
    flip(where.place() + "/LATEST", 100, [&](std::size_t) {
        const load_result found = load_on(2, where.fresh, where.place());
        REQUIRE(found.equal);
        REQUIRE(found.warnings.empty());
    });
    where.require_whole();
    std::printf("%ld bits flipped: all found; %ld times the older checkpoint was taken\n", flipped, older);
}

TEST_CASE("every length of every file", "[damage]") {
    const scene where;
    std::int64_t cut = 0;
    for (const std::string& path : {where.part(0), where.part(1), where.path("MANIFEST.json")}) {
        const std::string good = read_file(path);
        for (std::size_t bytes = 0; bytes < good.size(); ++bytes, ++cut) {
            write_file(path, good.substr(0, bytes));
            where.require_found(path, 1 + static_cast<int>(bytes % 3));
            if (bytes % 100 == 0) where.require_older_taken(path);
        }
        for (const std::size_t more : {1, 4096, 100'000}) {
            write_file(path, good + std::string(more, '\0'));
            where.require_found(path, 2);
        }
        std::filesystem::resize_file(path, std::uintmax_t{1} << 40);  // a hole, in the eyes of stat a terabyte
        if (!path.ends_with(".json")) where.require_found(path, 2);
        write_file(path, good);
    }
    const std::string index = where.path("index.h5"), good = read_file(index);
    for (std::size_t bytes = 0; bytes < good.size(); bytes += 7, ++cut) {
        write_file(index, good.substr(0, bytes));
        REQUIRE(where.verify_finds());
    }
    write_file(index, good);
    where.require_whole();
    std::printf("%ld lengths, all found\n", cut);
}

TEST_CASE("lost, swapped and foreign files", "[damage]") {
    const scene where;
    const std::vector<std::string> names{where.part(0), where.part(1), where.path("MANIFEST.json"), where.part(0, "old"),
                                         where.part(1, "old"), where.path("MANIFEST.json", "old")};
    std::map<std::string, std::string> good;
    for (const std::string& one : names) good[one] = read_file(one);
    int cases = 0;
    for (std::size_t k = 0; k < 3; ++k) {
        const std::string& victim = names[k];
        for (const std::string& other : names)
            if (other != victim) {
                write_file(victim, good[other]);
                where.require_found(where.place() + "/new", 2);
                // (With the old one's manifest it is no longer the newest.)
                if (k < 2 || !other.ends_with("MANIFEST.json")) where.require_older_taken(where.place() + "/new");
                ++cases;
            }
        std::filesystem::remove(victim);
        where.require_found(victim + " is missing", 3);
        if (k < 2) where.require_older_taken(victim);  // without its manifest it is no checkpoint
        std::filesystem::create_directory(victim);
        const code found = answer(where.load(2, "new").thrown);
        REQUIRE((found == code::checkpoint || found == code::io));
        std::filesystem::remove(victim);
        write_file(victim, good[victim]);
        cases += 2;
    }
    where.require_whole();
    for (const std::string& stale : {std::string("old\n"), std::string("none\n"), std::string(), std::string(5000, 'x')}) {
        write_file(where.place() + "/LATEST", stale);
        REQUIRE(load_on(2, where.fresh, where.place()).equal);
        ++cases;
    }
    std::filesystem::remove(where.place() + "/LATEST");
    std::filesystem::create_directory(where.place() + "/LATEST");
    REQUIRE(load_on(2, where.fresh, where.place()).equal);
    std::printf("%d cases\n", cases + 1);
}

TEST_CASE("two checkpoints of one uuid", "[damage]") {
    const scene where;
    std::filesystem::copy(where.place() + "/new", where.place() + "/copy");  // by a user: the same data twice
    REQUIRE(where.load(3, "copy").equal);
    // The old data under the new one's uuid, with all sums right: parts of the two differ by nothing but these.
    const std::string mine = checkpoint::read_manifest(files::disk(), where.place() + "/old").head.uuid;
    const std::string theirs = checkpoint::read_manifest(files::disk(), where.place() + "/new").head.uuid;
    const std::string twin = where.place() + "/twin";
    std::filesystem::create_directory(twin);
    for (std::size_t k = 0; k < 2; ++k) {
        const std::string name = std::filesystem::path(where.part(k, "old")).filename();
        write_file(twin + "/" + replaced(name, mine.substr(0, 8), theirs.substr(0, 8)),
                   replaced(read_file(where.part(k, "old")), mine, theirs));
    }
    const auto renamed = [&](const std::string& all) {
        return replaced(replaced(all, mine, theirs), "part-" + mine.substr(0, 8), "part-" + theirs.substr(0, 8));
    };
    std::string manifest = renamed(read_file(where.path("MANIFEST.json", "old")));
    const checkpoint::manifest numbers = checkpoint::from_text(with_sums(manifest), "twin");
    for (int k = 0; k < 2; ++k) {
        const files::disk disk;
        const files::file part = disk.open(parts_of(twin)[static_cast<std::size_t>(k)]);
        manifest = replaced(manifest, crc32c::text(numbers.files[static_cast<std::size_t>(k)].frame),
                            crc32c::text(checkpoint::sum_frame(numbers, k, part)));
    }
    write_file(twin + "/MANIFEST.json", with_sums(manifest));
    load_options back;
    back.tag = "twin";
    REQUIRE(text(load_on(2, where.old, where.place(), back).thrown) == "");
    REQUIRE(load_on(2, where.old, where.place(), back).equal);
    for (std::size_t k = 0; k < 2; ++k) {
        const std::string a = where.part(k), b = parts_of(twin)[k], good_a = read_file(a), good_b = read_file(b);
        REQUIRE(std::filesystem::path(a).filename() == std::filesystem::path(b).filename());
        write_file(a, good_b);
        write_file(b, good_a);
        where.require_found(a, 2);
        const load_result found = load_on(2, where.old, where.place(), back);
        REQUIRE(answer(found.thrown) == code::checkpoint);
        REQUIRE(found.untouched);
        write_file(a, good_a);
        write_file(b, good_b);
    }
    where.require_whole();
}

TEST_CASE("10,000 manifests with forged numbers and right checksums", "[damage]") {
    const scene where;
    const std::string path = where.path("MANIFEST.json"), good = read_file(path);
    REQUIRE(with_sums(good) == good);
    std::mt19937_64 random(5);
    std::vector<std::pair<std::size_t, std::size_t>> numbers;  // place and length, outside of texts
    bool inside = false;
    for (std::size_t k = 0; k < good.size(); ++k) {
        if (good[k] == '"' && good[k - 1] != '\\') inside = !inside;
        if (inside || std::isdigit(static_cast<unsigned char>(good[k])) == 0) continue;
        const std::size_t end = good.find_first_not_of("0123456789", k);
        numbers.push_back({k, end - k});
        k = end - 1;
    }
    REQUIRE(numbers.size() > 50);
    std::int64_t refused = 0, harmless = 0;
    for (int round = 0; round < 10'000; ++round) {
        std::string forged = good;
        for (int edits = 1 + round % 2; edits > 0; --edits) {
            const auto [place, length] = numbers[random() % numbers.size()];
            if (good.compare(place, length, forged, place, length) != 0 || forged.size() != good.size()) continue;
            const std::int64_t was = std::stoll(good.substr(place, length));
            const std::vector<std::string> worst{"0", "1", "-1", "2147483647", "2147483648", "4294967296", "1099511627776",
                                                 "9007199254740993", "9223372036854775807", "-9223372036854775808",
                                                 "18446744073709551615", "1e300", "null", "true", "\"1\"", "[]",
                                                 std::to_string(was + 1), std::to_string(was - 1), std::to_string(2 * was),
                                                 std::to_string(random() % 100)};
            forged.replace(place, length, worst[random() % worst.size()]);
        }
        write_file(path, with_sums(forged));
        const load_result found = where.load(1 + round % 3, "new");
        INFO(forged << "\n" << text(found.thrown));
        REQUIRE((answer(found.thrown) == code::ok || answer(found.thrown) == code::checkpoint));
        if (answer(found.thrown) == code::ok) {
            REQUIRE(found.equal);  // a number that is for people, or of the run
            ++harmless;
        } else {
            REQUIRE(found.untouched);
            ++refused;
        }
        if (round % 10 == 0) {
            largest_allocation = 0;
            const code seen = checked([&] { checkpoint::verify(files::disk(), where.place() + "/new", true); });
            REQUIRE((seen == code::ok || seen == code::checkpoint));  // another format is thrown
            REQUIRE(largest_allocation <= 16 * most_memory);
        }
    }
    write_file(path, good);
    where.require_whole();
    std::printf("%ld refused, %ld harmless\n", refused, harmless);
}
