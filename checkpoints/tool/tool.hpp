// zero-ckpt: what its commands share. Exit codes are part of its manual (checkpoints/FORMAT.md).
#pragma once
#include <string>

namespace zero::tool {

enum exit_code : int {
    fine = 0,
    damaged_found = 1,  // verify: something is not as written; show: the checkpoint is damaged
    usage = 2,          // wrong arguments
    nothing_there = 3,  // no such folder, or no checkpoint in it
    not_readable = 4,   // an input or output error, or another format
};

struct options {
    std::string path;
    bool json = false, full = false;
};

int list(const options& what);
int show(const options& what);
int verify(const options& what);

// A folder of one checkpoint as it is; a folder of checkpoints: its newest one, damaged ones first. Empty: none.
std::string checkpoint_at(const std::string& path);
std::string size_text(double bytes);  // "1.5 GiB"

}  // namespace zero::tool
