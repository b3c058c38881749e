// One save, in three parts: begin (collective) makes the staging folder and lays the parts out; write (no
// communication, so a background thread may do it) brings the bytes to disk; finish (collective) writes index and
// manifest and commits. Not here: what a context's state is (context.cpp).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/ledger.hpp"
#include "core/log.hpp"
#include "crew.hpp"
#include "files.hpp"
#include "index.hpp"
#include "plan.hpp"
#include "state.hpp"

namespace zero::checkpoint {

struct save_request {
    std::string directory, tag;  // tag empty: step-<12 digits>
    int ranks_per_file = 1;
    std::int64_t keep_last = 0, keep_every = 0;
};

class saving {
public:
    saving(const contents& state, crew& ranks, const files::disk& disk, ledger& book, log& said,
           const save_request& what);

    void begin();
    void write();
    void finish();
    void abandon() noexcept;  // rank 0 removes the staging folder

private:
    void phase(const char* doing, const std::function<void()>& local);
    std::vector<std::string> gather_all(const std::string& mine);
    std::string same_everywhere(const std::string& uuid);
    std::string staged(const std::string& name) const;
    int file_number() const { return plan_.file_of_rank[static_cast<std::size_t>(ranks_.rank())]; }
    const file_entry& part() const { return plan_.skeleton.files[static_cast<std::size_t>(file_number())]; }
    bool leads() const;  // the first rank of a file makes it

    void open_staging();
    void make_part(part_layout& layout);
    void take_layouts(const std::vector<std::string>& layouts);
    void write_extent(files::file& to, const extent& where, const stream& run, std::byte* scratch,
                      std::int64_t capacity);
    void write_integrity(files::file& to);
    std::uint32_t frame_sum() const;
    std::string scalar_values() const;
    void take_results(const std::vector<std::string>& results);
    void write_index();
    void write_manifest();
    void commit();
    void tidy() noexcept;

    const contents& state_;
    crew& ranks_;
    const files::disk& disk_;
    ledger& book_;
    log& said_;
    save_request what_;
    std::string uuid_;
    bool staging_made_ = false;
    contribution mine_;
    plan plan_;
    std::vector<std::uint32_t> sums_;  // of this rank's blocks
    scalars scalars_;
};

// All of it, with the staging folder removed on failure. Throws the same error on all ranks.
void save(const contents& state, crew& ranks, const files::disk& disk, ledger& book, log& said,
          const save_request& what);

}  // namespace zero::checkpoint
