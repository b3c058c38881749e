// zero-ckpt: what its commands share. Exit codes are part of its manual (checkpoints/FORMAT.md).
#pragma once
#include <cstdint>
#include <string>

namespace zero::tool {

enum exit_code : int {
    fine = 0,
    damaged_found = 1,  // verify: something is not as written; show: the checkpoint is damaged
    usage = 2,          // wrong arguments
    nothing_there = 3,  // no such folder, or no checkpoint in it
    not_readable = 4,   // an input or output error, or another format
    // diff, export, import, merge and prune, as diff(1) and most programs have it:
    different = 1,
    trouble = 2,  // nothing there, damage, an input or output error, or wrong arguments
};

struct options {
    std::string path, other, tag, file, type = "registered";
    std::int64_t keep_last = 0, keep_every = 0;
    bool json = false, full = false, states = false, dry_run = false, statistics = false;
};

int list(const options& what);
int show(const options& what);
int verify(const options& what);
int diff(const options& what);
int export_safetensors(const options& what);
int import_safetensors(const options& what);
int merge(const options& what);
int prune(const options& what);

// A folder of one checkpoint as it is; a folder of checkpoints: its newest one, damaged ones first. Empty: none.
std::string checkpoint_at(const std::string& path);
std::string size_text(double bytes);  // "1.5 GiB"

}  // namespace zero::tool
