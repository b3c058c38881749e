// Values on their way: owned slices become whole values (publish), one root's values become everybody's (spread), owned
// parts come together on one rank or all (collect). Not here: the on-demand gathers of stage 3 (gathered.hpp).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stage/storage.hpp"

namespace zero::stage {

// Bytes of staging that publish needs at commit for values in the callers' arrays (0 where every slice lands directly).
std::int64_t publish_bytes(const partition::layout& space, std::int64_t allgather_bucket_size);

class values {
public:
    values(const context& all, storage& memory);

    void publish(int bucket);                            // owned value slices -> whole values, all ranks
    void send_out(int bucket);                           // the same, but for what exists once per node a fence is still due
    void round_masters(int bucket);                      // 16-bit: masters of the held states -> own values
    void refresh_masters(int bucket, partition::range part);  // 16-bit: values held here -> masters held here
    void spread_bucket(int bucket, int root, const buffer& passage);  // initial values in the callers' arrays; root -1: keep each rank's
    void gather_vector(int bucket, std::byte* base, dtype type);  // stage 0: owned slices of a whole vector -> everywhere

    // New values from `root` (-1: each rank has its own equal copy in `from`), in the tensor's own type, into every
    // place held here; masters follow.
    void spread(int id, int root, const void* from, const buffer& passage);
    void spread_vector(int id, const std::string& name, int root, const void* from, const buffer& passage);
    // Memory through which a root's values pass; empty where none do. The caller takes it inside an agreement, for a rank that
    // cannot have it would leave the others waiting.
    buffer passage(int id, const std::string& name, int root) const;  // "": spread, else spread_vector
    buffer passage_for_all(int root) const;              // of initial values

    // Owned parts of a vector ("" = value in the tensor's own type) to `root` or, with -1, everyone.
    void collect(int id, const std::string& name, int root, void* to, const buffer& passage);
    // Host memory through which a collection leaves a device, taken before any rank is on its way; nothing elsewhere.
    buffer passage_up(int id, const std::string& name) const;

private:
    void receive(const tensor& t, dtype type, bool whole, partition::range part, std::byte* held, int root, const void* from,
                 const buffer& passage);
    partition::range cover_of(int bucket, const std::string& vector) const;  // elements of a state, master or gradient held here
    enum class lies { privately, visibly, once };        // the own part; once: and so do the landings, per node
    void gather_into(std::vector<comm::landing> landings, lies how);
    template <typename Place>
    void gather_in_pieces(int bucket, lies how, Place place_of);
    void gather_vector(int bucket, std::byte* base, dtype type, lies how);
    void publish_staged(int bucket);
    void collect_in_pieces(int id, const std::string& name, int root, void* to, const buffer& passage);
    void convert(int bucket, dtype to_type, void* to, dtype from_type, const void* from, std::int64_t count);
    void copy_slice(int bucket, partition::range part, std::byte* packed, bool pack);

    const context& all_;
    storage& memory_;
    buffer staging_;
};

}  // namespace zero::stage
