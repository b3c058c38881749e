// The memory of a stage: per bucket the values, the sums of gradients, the masters and the states, each whole or the own
// slice as the stage demands, and the addresses of single elements in them. Not here: when anything is sent or updated.
#pragma once
#include <string>
#include <vector>

#include "device/memory.hpp"
#include "device/node_memory.hpp"
#include "partition/layout.hpp"
#include "stage/context.hpp"

namespace zero::stage {

// Which elements of a bucket a vector covers.
struct coverage {
    bool whole_gradients = false;  // stages 0 and 1
    bool whole_states = false;     // stage 0; masters follow the states
};

// A contiguous stretch of a bucket whose values are contiguous too: the unit of an update.
struct stretch {
    std::int64_t offset = 0, count = 0;  // in the bucket
    int tensor = -1;                     // the tensor, where values lie in the caller's array; -1: library memory
    std::int64_t first = 0;              // first element of that tensor
};

// Memory for what others are to read: in the node's memory, where the ranks share some.
buffer visible_buffer(const context& all, std::int64_t bytes);

class storage {
public:
    storage(const context& all, const coverage& how);

    // Two calls, so that initial values can be spread before the rest is taken: the peak stays the planner's.
    void take_values();
    void take_rest(const std::vector<std::string>& optimizer_states, const std::vector<std::string>& user_states);

    bool trainable(int bucket) const { return all_.bucket(bucket).trainable; }
    // The values exist once for all ranks of a node, whole; each rank writes its slice alone. publish() brings it to the
    // other nodes, and a fence makes it known.
    bool exists_once(int bucket) const { return all_.exists_once(all_.bucket(bucket)); }
    bool values_in_library(int bucket) const;             // false: stages 0 to 2 (or persistent), the caller's arrays
    partition::range values_part(int bucket) const;       // elements of the bucket whose values are held
    partition::range states_part(int bucket) const;
    partition::range gradient_part(int bucket) const;

    // Every rank updates all states, but of values that exist once it writes its share only (stage 0).
    bool writes_share(int bucket) const { return how_.whole_states && exists_once(bucket); }
    partition::range written_values(int bucket) const;    // of those, what this rank writes where all write equal values

    // Base addresses, of the first element of the part above.
    std::byte* values(int bucket) const { return shelf(bucket).first_value; }
    std::byte* gradients(int bucket) const { return shelf(bucket).gradients.data(); }

    // Address of bucket element `offset` in a vector. `state`: index into state_names().
    std::byte* value_at(int bucket, std::int64_t offset) const;     // library memory only
    const std::shared_ptr<const node_memory::stretch>& values_of_node() const noexcept { return values_of_node_; }  // null: none exist once
    std::byte* gradient_at(int bucket, std::int64_t offset) const;
    std::byte* master_at(int bucket, std::int64_t offset) const;    // 16-bit types only
    std::byte* state_at(int bucket, std::size_t state, std::int64_t offset) const;

    // Address of element `first` of a tensor.
    std::byte* value(int tensor, std::int64_t first) const;         // in the tensor's own type
    std::byte* vector(int tensor, const std::string& name, std::int64_t first) const;  // "value", "gradient" or a state; null: no such vector
    dtype vector_type(int tensor, const std::string& name) const;   // "value" of a frozen 16-bit tensor is 16-bit

    // On a device: what lies in host memory all the same (offload_optimizer, offload_param of slices).
    bool states_offloaded(int bucket) const { return states_offloaded_[static_cast<std::size_t>(bucket)]; }
    bool values_offloaded(int bucket) const { return !all_.work.on_host() && all_.how.offload_param && !all_.bucket(bucket).whole_values; }

    bool passes(int bucket) const { return states_offloaded(bucket) || (trainable(bucket) && values_offloaded(bucket)); }  // either is

    bool has_master(int bucket) const { return trainable(bucket) && is_16bit(all_.bucket(bucket).type); }
    const std::vector<std::string>& state_names() const noexcept { return names_; }
    std::size_t optimizer_states() const noexcept { return optimizer_states_; }
    std::vector<stretch> stretches(int bucket, partition::range part) const;

private:
    struct shelf_of_bucket {
        buffer values, gradients, master;
        std::byte* first_value = nullptr;
        std::vector<buffer> states;
    };
    void take_values_of_node(memory_kind kind);
    buffer take(purpose why, std::int64_t bytes, bool offloaded, memory_kind kind) const;
    void take_gradients();
    const shelf_of_bucket& shelf(int bucket) const { return shelves_[static_cast<std::size_t>(bucket)]; }

    const context& all_;
    coverage how_;
    std::shared_ptr<const node_memory::stretch> values_of_node_;
    std::vector<shelf_of_bucket> shelves_;
    std::vector<bool> states_offloaded_;  // by bucket
    std::vector<std::string> names_;
    std::size_t optimizer_states_ = 0;
};

}  // namespace zero::stage
