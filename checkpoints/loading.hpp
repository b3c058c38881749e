// One load: choose a checkpoint, compare it with the context, read what this rank needs into buffers of its own, agree,
// and only then hand it over. Not here: what a context's state is (context.cpp).
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/ledger.hpp"
#include "core/log.hpp"
#include "crew.hpp"
#include "files.hpp"
#include "manifest.hpp"
#include "state.hpp"

namespace zero::checkpoint {

struct load_request {
    std::string directory, tag;  // tag empty: the newest that is whole
    bool weights_only = false;
};

// Into `state`: where the vectors' data point to is written on success, and only then; so is what the attached arrays
// point to. Returns what else was saved. Throws the same error on all ranks.
run_state load(const contents& state, crew& ranks, const files::disk& disk, ledger& book, log& said,
               const load_request& what);

// Everything that keeps the checkpoint from fitting the context, in one text; empty when it fits.
std::string differences(const contents& state, const manifest& saved, const crew& ranks, bool weights_only);

}  // namespace zero::checkpoint
