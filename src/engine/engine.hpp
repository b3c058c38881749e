// The one object behind a handle. It checks the caller's order of calls, takes part in agreements, and hands the work to
// the stage. Public functions correspond to zero.h one to one; "(c)" = collective. All failures are zero::error.
// Not here: the C ABI (capi/), files (checkpoints/), the ZeRO schedules (stage/).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/options.hpp"
#include "config/settings.hpp"
#include "core/agreement.hpp"
#include "core/crew.hpp"
#include "core/exact_sum.hpp"
#include "core/ledger.hpp"
#include "core/log.hpp"
#include "core/postponed.hpp"
#include "optimizer/loss_scale.hpp"
#include "partition/plan.hpp"
#include "tensor/registry.hpp"

namespace zero {

class buffer;

namespace compute {
class processor;
struct totals;
}

namespace stage {
class sharded;
struct update_numbers;
struct context;
}  // namespace stage

// The caller's own array that travels in checkpoints.
struct attachment {
    std::string name;
    dtype type = dtype::f64;
    std::vector<std::int64_t> dims;
    std::int64_t count = 0;
    void* data = nullptr;
    bool per_rank = false;
};

// A vector of one tensor as a checkpoint sees it. "value" is the master where there is one.
struct owned_part {
    int tensor = -1;
    std::int64_t first = 0, count = 0;  // elements of the flattened tensor that this rank owns
    dtype type = dtype::f32;            // type of the data
    void* data = nullptr;               // may be written (load), then adopt() makes it known everywhere
};

// What is restored besides vectors.
struct progress_state {
    std::int64_t step = 0, skipped = 0;
    optimizer::loss_scale::snapshot scale;
    double lr = 0;
};

// What goes on behind the engine between two calls of a context: an asynchronous save (checkpoints/behind.hpp). At its end
// it gives up what is not done, without communication.
class pending {
public:
    virtual ~pending() = default;
    virtual bool ready() const = 0;                           // nothing is under way, or progress() would not wait
    virtual void progress() = 0;                              // (c) completes what is ready everywhere; a failure is kept
    virtual void join() = 0;                                  // (c) waits, completes; throws what failed since the last one
};

class engine {
    friend class turn;

public:
    engine(const void* mpi_comm, const std::string& config);                            // (c)
    ~engine();
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;

    void set_model_comm(const void* mpi_comm);                                          // (c)
    void set(const std::string& key, std::int64_t value);
    void set(const std::string& key, double value);
    void set(const std::string& key, const std::string& value);
    std::int64_t get_integer(const std::string& key) const;
    double get_real(const std::string& key) const;
    std::string get_text(const std::string& key) const;
    int add_group(const std::string& json);
    int add_tensor(const std::string& name, dtype type, std::span<const std::int64_t> dims, void* values, int group);
    void add_state(const std::string& name);
    void attach(const attachment& what);
    std::pair<std::int64_t, std::int64_t> forecast(place where) const;                  // bytes, peak

    void commit();                                                                      // (c)
    void fill(int id, const std::string& kind, double a, double b, std::uint64_t seed); // (c)

    void* gather(int id);                                                               // (c)
    void prefetch(int id);                                                              // (c)
    void release(int id);
    void gather_list(std::span<const int> ids, void** values);                          // (c)
    void release_list(std::span<const int> ids);
    void scatter(int id, int root, const void* values);                                 // (c)
    void gather_to(int id, int root, void* buffer);                                     // (c)
    void gather_state(int id, const std::string& state, int root, void* buffer);        // (c)
    void scatter_state(int id, const std::string& state, int root, const void* buffer); // (c)
    void rebind(int id, void* values);

    void* gradient(int id);
    void reduce(int id, double factor, const void* gradient);
    void reduce_list(std::span<const int> ids, const void* const* gradients);
    void step();                                                                        // (c)
    void finish();                                                                      // (c)
    owned_part slice(int id, const std::string& state);
    void publish();                                                                     // (c)
    double dot(const std::string& a, const std::string& b, int group);                  // (c)
    void wait();                                                                        // (c)

    std::pair<std::int64_t, std::int64_t> memory(place where) const;                    // bytes, peak
    std::string report();                                                               // (c)
    void close();                                                                       // (c) the collective half of finalize
    void set_stream(void* cuda_stream);

    // --- for checkpoints: local looks at a committed context; every one of them throws code::state before commit ---
    const registry& tensors() const noexcept { return registry_; }
    const partition::layout& space() const noexcept { return layout_; }
    const config::options& options() const noexcept { return options_; }
    const config::settings& settings() const noexcept { return settings_; }
    std::span<const attachment> attachments() const noexcept { return attachments_; }
    void require_committed(const char* call) const;           // code::state, naming the call
    std::vector<std::string> state_names(int tensor) const;   // optimizer and user states kept for it; empty when frozen
    owned_part owned(int tensor, const std::string& state);   // "value" or one of state_names: what this rank saves (1/P in every stage)
    bool on_device() const noexcept { return device_ >= 0; }  // owned parts lie there
    void copy(void* to, const void* from, std::int64_t bytes);  // to or from owned parts
    progress_state progress() const;
    void restore(const progress_state& from);
    void adopt();                                             // (c) owned parts were rewritten: values (and in stage 0 states) everywhere follow
    bool gathers_meet() const noexcept;                       // gathers communicate: some tensor is held in slices, or calls are compared
    bool window_open() const noexcept;                        // between the first reduce and the step that ends the window
    agreement& agree() noexcept { return *agreement_; }
    std::unique_ptr<pending>& behind() noexcept { return behind_; }  // null: nothing ever went on behind
    comm::communicator& ranks() noexcept { return *ranks_; }
    comm::communicator* model_ranks() noexcept { return model_.get(); }
    zero::log& logger() noexcept { return *log_; }
    ledger& book() noexcept { return ledger_; }

private:
    struct run;                                               // what changes from step to step (engine/run.hpp)
    struct ballot;                                            // what a step brings to its agreement (step.cpp)

    bool committed() const noexcept;
    template <typename Value>
    void set_option(const std::string& key, const Value& value);
    void refresh_groups();
    config::settings resolved() const;                        // the options as they are now, with what is registered
    std::optional<std::int64_t> resolved_integer(const std::string& key) const;
    std::int64_t largest_tensor() const;
    std::optional<std::int64_t> state_integer(const std::string& key) const;
    std::int64_t owned_elements() const;
    std::int64_t live_elements() const;
    double rate_of_next_update() const;

    // join.cpp
    void choose_place();                                      // (c) device or host memory
    void join_ranks(const void* mpi_comm);                    // (c) the way that the ranks talk from now on
    void check_reachable(const void* address, const char* what, const std::string& of) const;
    void check_any(const void* address, const char* what, const std::string& of) const;  // host memory will do as well

    // commit.cpp
    partition::layout make_layout(const config::settings& how) const;
    partition::forecast make_forecast(const partition::layout& space, const config::settings& how) const;
    void compare_options(const call& what);                   // (c) code::mismatch with the first that differs
    void compare_tensors();                                   // (c) likewise
    void expect_memory() const;                               // throws code::memory
    void start_overlap();
    void spread_initial_values(const buffer& passage);

    // whole.cpp
    const tensor& checked(int id, const char* call) const;
    const tensor& checked_root(int id, int root, const char* call) const;
    void check_state(const tensor& t, const std::string& state, const char* call) const;
    void received(int id);
    void check_alone_or_together(const call& what, const std::function<void()>& check);

    // step.cpp
    bool trains(const partition::bucket& b) const;            // now: neither frozen at commit nor since
    bool frozen(int id) const;                                // at commit or now
    std::vector<char> active_buckets() const;
    std::int64_t window_digest() const;
    void open_window();
    double divisor(std::int64_t micro_steps) const;
    void check_stale() const;
    void check_unused();
    bool finish_micro_step(bool late_anywhere, stage::update_numbers* numbers);
    void reduce_scaled_list(std::span<const int> ids, double factor, const void* const* gradients);
    double sum_over_ranks(exact_sum mine, bool& finite, std::exception_ptr failed = {});
    void agree_on_norm(const compute::totals& mine, std::exception_ptr failed = {});
    stage::update_numbers numbers_of_update() const;
    void apply_update(stage::update_numbers numbers, bool written_anywhere, bool copies_open_anywhere);
    postponed attempt(const std::function<void()>& body);     // a failure ends what the others wait for, and is kept
    void before_renewal(bool copies_open_anywhere, const std::function<void()>& body);
    void follow_values(bool copies_open_anywhere);
    void follow_slices(bool copies_open_anywhere);
    void close_window();
    compute::totals own_products(const std::string& a, const std::string& b, int group);
    void add_product_on_host(const owned_part& x, const owned_part& y, compute::totals& all);
    bool judges_moments() const;
    void look_at_moments(std::size_t group, ballot& mine) const;
    call with_phase(call what) const;

    ledger ledger_;                                           // first: outlives every buffer
    std::unique_ptr<crew> threads_;
    std::unique_ptr<compute::processor> work_;
    std::unique_ptr<comm::communicator> ranks_, model_;
    std::unique_ptr<zero::log> log_;
    std::unique_ptr<agreement> agreement_;
    config::options options_;
    config::settings settings_;
    registry registry_;
    partition::layout layout_;
    std::vector<attachment> attachments_;
    std::vector<std::string> user_states_;
    std::unique_ptr<stage::context> context_;
    std::unique_ptr<stage::sharded> stage_;
    std::unique_ptr<run> run_;
    bool some_in_slices_ = false;                             // gathers of some tensor communicate
    std::string why_plain_;                                   // why the ranks do not share memory, where they were to
    std::string why_host_;                                    // ... do not use devices; ... do not reach each other's
    std::string why_staged_;
    int device_ = -1;                                         // where values and gradients live; -1: host memory
    int groups_ = 1;
    std::unique_ptr<pending> behind_;                         // last: it may work on all the others
};

// zero_estimate: model states per rank (parameters, gradients, masters, optimizer states), no MPI, no allocation.
struct estimate { std::int64_t device = 0, host = 0, nvme = 0; };
estimate estimate_memory(const std::string& config, dtype type, int ranks, int nodes, std::int64_t elements, std::int64_t largest);

}  // namespace zero
