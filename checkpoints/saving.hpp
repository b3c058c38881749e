// One save, in three parts: begin (collective) makes the staging folder and lays the parts out; write brings the bytes
// to disk; finish (collective) writes index and manifest and commits. With write_behind after begin the bytes are
// copied, and a thread of this rank brings them to disk; write, at any later time, waits for it. Not here: what a
// context's state is, and who calls when (context.cpp, behind.cpp).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/ledger.hpp"
#include "core/log.hpp"
#include "crew.hpp"
#include "device/memory.hpp"
#include "files.hpp"
#include "index.hpp"
#include "plan.hpp"
#include "state.hpp"
#include "threads.hpp"

namespace zero::checkpoint {

struct save_request {
    std::string directory, tag;  // tag empty: step-<12 digits>
    int ranks_per_file = 1;
    std::int64_t keep_last = 0, keep_every = 0;
};

class saving {
public:
    saving(contents state, crew& ranks, const files::disk& disk, ledger& book, log& said, const save_request& what);
    ~saving();

    void begin();
    void write_behind(
        buffer& kept);  // collective; `kept` holds the copies, is enlarged where too small, and outlives this
    bool written() const noexcept { return !behind_.started() || behind_.done(); }  // write() need not wait
    void write();                                                                   // collective
    void finish();
    void abandon() noexcept;  // rank 0 removes the staging folder
    const save_request& request() const noexcept { return what_; }

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
    std::size_t first_extent() const {
        return static_cast<std::size_t>(plan_.first_extent_of_rank[static_cast<std::size_t>(ranks_.rank())]);
    }
    struct portion;  // of an extent: what one request writes
    std::vector<portion> portions() const;
    std::int64_t own_bytes() const;
    std::int64_t copy_bytes() const;
    void take_copies(std::byte* to);
    void bring_to_disk(std::byte* scratch, int lanes);
    const std::byte* prepare(const portion& one, std::byte* scratch);
    void write_integrity(files::file& to);
    std::uint32_t frame_sum() const;
    std::string scalar_values() const;
    void take_scalars(const std::string& values);
    void take_sums(const std::vector<std::string>& results);
    void write_index();
    void write_manifest();
    void commit();
    void tidy() noexcept;

    contents state_;
    crew& ranks_;
    const files::disk& disk_;
    ledger& book_;
    log& said_;
    save_request what_;
    std::string named_;  // directory and tag as the caller gave them
    std::string uuid_;
    bool staging_made_ = false;
    contribution mine_;
    plan plan_;
    std::vector<std::uint32_t> sums_;  // of this rank's blocks
    scalars scalars_;
    std::atomic<bool> given_up_{false};
    helper behind_;  // last: it works on all the others
};

// All of it, with the staging folder removed on failure. Throws the same error on all ranks.
void save(contents state, crew& ranks, const files::disk& disk, ledger& book, log& said, const save_request& what);

}  // namespace zero::checkpoint
