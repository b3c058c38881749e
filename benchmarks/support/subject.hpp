// The library as a program uses it: public C interface, parameters owned by the library or in arrays of the caller,
// `tensors` equal tensors. A step has two timed parts; between them the caller writes its gradient, which belongs to the model and is not timed. Any error
// ends the benchmark with the library's sentence. `checked`: libzero.check_grad_overflow.
#pragma once
#include <zero/zero.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tensor/dtype.hpp"

namespace benchmark {

inline void check(int code) {
    if (code == ZERO_OK) return;
    std::fprintf(stderr, "%s: %s\n", zero_error_name(code), zero_last_error());
    std::exit(1);
}

class subject {
public:
    enum class owner { library, caller };

    subject(zero::dtype type, int stage, std::int64_t count, int tensors, MPI_Comm comm, owner whose = owner::library,
            bool overlap = false, bool checked = true)
        : type_(type), stage_(stage), each_(count / tensors) {
        if (whose == owner::caller) arrays_.resize(static_cast<std::size_t>(count * zero::size_of(type)));
        std::byte* values = whose == owner::caller ? arrays_.data() : nullptr;
        const std::string config = R"({"optimizer": {"type": "AdamW", "params": {"lr": 0.001, "weight_decay": 0.01}},
            "zero_optimization": {"stage": )" +
                                   std::to_string(stage) + R"(, "stage3_param_persistence_threshold": 0)" +
                                   (overlap ? R"(, "overlap_comm": true, "reduce_bucket_size": )" + std::to_string(each_) : "") +
                                   R"(}, "libzero": {"check_grad_overflow": )" + (checked ? "true}}" : "false}}");
        check(zero_init(comm, config.c_str(), &context_));
        const int number = type == zero::dtype::f64 ? ZERO_F64 : type == zero::dtype::bf16 ? ZERO_BF16 : ZERO_F32;
        for (int i = 0; i < tensors; ++i) {
            int id = 0;
            const std::int64_t elements = i + 1 < tensors ? each_ : count - each_ * (tensors - 1);
            check(zero_register(context_, nullptr, number, 1, &elements, values, 0, &id));
            if (values != nullptr) values += elements * zero::size_of(type);
            ids_.push_back(id);
            counts_.push_back(elements);
        }
        check(zero_commit(context_));
    }
    ~subject() { zero_finalize(&context_); }
    subject(const subject&) = delete;
    subject& operator=(const subject&) = delete;

    zero_t context() const { return context_; }
    std::size_t tensors() const { return ids_.size(); }
    std::int64_t elements(std::size_t tensor) const { return counts_[tensor]; }

    // The values, once per step in stage 3 (elsewhere they are in place already): as much traffic as the peer's
    // allgather.
    void values() {
        if (stage_ != 3) return;
        for (const int id : ids_) {
            void* whole = nullptr;
            check(zero_gather(context_, id, &whole));
            check(zero_release(context_, id));
        }
    }
    void* buffer(std::size_t tensor) {
        void* place = nullptr;
        check(zero_gradient(context_, ids_[tensor], &place));
        return place;
    }
    void hand_over(std::size_t tensor) { check(zero_reduce(context_, ids_[tensor], nullptr)); }
    void hand_over() {
        for (const int id : ids_) check(zero_reduce(context_, id, nullptr));
    }
    void hand_over(const std::byte* gradient) {
        for (std::size_t i = 0; i < ids_.size(); ++i) {
            check(zero_reduce(context_, ids_[i], gradient));
            gradient += counts_[i] * zero::size_of(type_);
        }
    }
    void finish() { check(zero_finish(context_)); }
    void step() { check(zero_step(context_)); }

private:
    zero::dtype type_;
    int stage_;
    std::int64_t each_;
    std::vector<std::byte> arrays_;
    zero_t context_ = nullptr;
    std::vector<int> ids_;
    std::vector<std::int64_t> counts_;
};

}  // namespace benchmark
