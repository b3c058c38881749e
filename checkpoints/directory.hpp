// The folder of checkpoints: tags, the order of commits, staging folders and their owners, retention.
// Not here: what is in one checkpoint (manifest.hpp).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "files.hpp"
#include "manifest.hpp"

namespace zero::checkpoint {

void check_tag(const std::string& tag);      // one path component that a scan can find; code::argument
std::string default_tag(std::int64_t step);  // "step-000000001200"
std::string new_uuid();
std::string time_text();  // now, UTC, ISO 8601

std::string staging_path(const std::string& directory, const std::string& uuid);
std::string trash_path(const std::string& directory, const std::string& uuid);
inline constexpr const char* latest_name = "LATEST";  // a file that names the newest checkpoint

// Out of the way under another name, which is returned: a half-removed checkpoint must not look like one.
std::string move_to_trash(const files::disk& disk, const std::string& directory, const std::string& path);

struct candidate {
    std::string tag;
    std::optional<checkpoint::head> head;  // none: `problem` says why
    std::string problem;
    bool disk_failed = false;  // which says nothing about what stands there
};
// Every folder with a manifest, newest commit first; before all others those whose head is damaged, or that could not be
// looked into.
std::vector<candidate> candidates(const files::disk& disk, const std::string& directory);
std::int64_t highest_sequence(const files::disk& disk, const std::string& directory);

// Who is writing: host, boot, pid namespace, pid and its start. `gone` is certain only on the owner's own machine;
// for another one it takes an hour without a sign of life, by the file system's own clock (`now`).
std::string owner_text();
bool owner_is_gone(const std::string& text, std::int64_t last_sign, std::int64_t now);

// Makes the staging folder, its owner's file first; takes both away again.
void make_staging(const files::disk& disk, const std::string& directory, const std::string& uuid);
void remove_staging(const files::disk& disk, const std::string& directory, const std::string& uuid);
void forget_owner(const files::disk& disk, const std::string& directory, const std::string& uuid);

// Leftovers of writers that are gone.
void remove_stale(const files::disk& disk, const std::string& directory, std::int64_t now);

// Keeps the newest `keep_last` (0: all) and every step divisible by `keep_every` (0: none); never touches `newest`.
void retain(const files::disk& disk, const std::string& directory, const std::string& newest, std::int64_t keep_last,
            std::int64_t keep_every);

}  // namespace zero::checkpoint
