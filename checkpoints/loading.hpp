// One load: choose a checkpoint, compare it with the context, read what this rank needs, keep what was there until all ranks
// agree, or put it back. Not here: what a context's state is (context.cpp).
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

// "checkpoint.load": everything, which must fit; values alone; or what fits, and the rest stays as it is here.
enum class taking { strict, weights, partial };

struct load_request {
    std::string directory, tag;  // tag empty: the newest that is whole
    taking how = taking::strict;
};

// Into `state`: what the vectors' data and the attached arrays point to holds the checkpoint on success, and else what it
// held before. Returns what else was saved. Throws the same error on all ranks.
run_state load(const contents& state, crew& ranks, const files::disk& disk, ledger& book, log& said,
               const load_request& what);

// Everything that keeps the checkpoint from fitting the context, in one text; empty when it fits.
std::string differences(const contents& state, const manifest& saved, const crew& ranks, taking how);
// States of another optimizer mean something else. Then a new run begins as well.
bool values_alone(const run_state& mine, const run_state& saved, taking how);
// What a partial load leaves out. Null: it is not in the checkpoint.
bool fits(const tensor_state& mine, const tensor_entry* saved);
bool fits(const vector_state& mine, const vector_entry* saved);
bool fits(const attached_state& mine, const attachment_entry* saved, bool as_many_ranks);

}  // namespace zero::checkpoint
