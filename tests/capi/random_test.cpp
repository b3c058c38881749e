// Random programs against a serial reference in double: odd sizes, more ranks than elements, tensors without elements,
// hand-overs in another order on every rank, some missing and some twice, windows ended early, gathers held over steps, values
// written in all ways, groups frozen and thawed, two contexts at once. ZERO_TEST_PROGRAMS: how many.
#include <cmath>
#include <cstdlib>
#include <random>

#include "support.hpp"

using namespace zero_test;

namespace {

int programs() {
    const char* const wanted = std::getenv("ZERO_TEST_PROGRAMS");
    return wanted != nullptr ? std::atoi(wanted) : 10;
}

// The same numbers on all ranks; where ranks differ, the rank is an argument.
class dice {
public:
    explicit dice(unsigned seed) : engine_(seed) {}
    int operator()(int below) { return static_cast<int>(engine_() % static_cast<unsigned>(below)); }
    bool one_in(int n) { return (*this)(n) == 0; }

private:
    std::mt19937 engine_;
};

struct tensor {
    int id = -1, group = 0;
    bool wide = false;  // fp64
    int held = 0;
    std::vector<double> p, sum;                           // reference: values, sum over ranks and micro-steps
    std::vector<double> whole_wide;                       // the caller's array, where it has one
    std::vector<float> whole;
    std::size_t n() const { return p.size(); }
};

// Small and dyadic: sums are exact in fp32.
double gradient_of(int rank, unsigned salt, std::size_t i) {
    return static_cast<double>(static_cast<int>((salt * 31 + i * 7 + static_cast<unsigned>(rank) * 13) % 17) - 8) / 4;
}

class program {
public:
    explicit program(unsigned seed) : draw_(seed), seed_(seed), accumulation_(1 + draw_(3)) {
        const int buckets[] = {1, 7, 64, 1000, 500000000};
        const std::string bucket = std::to_string(buckets[draw_(5)]), overlap = draw_.one_in(2) ? "true" : "false";
        const std::string config =
            "{\"zero_optimization\": {\"stage\": " + std::to_string(draw_(4)) + ", \"reduce_bucket_size\": " + bucket +
            ", \"overlap_comm\": " + overlap + ", \"stage3_param_persistence_threshold\": " + std::to_string(draw_(3) * 20) +
            ", \"stage3_prefetch_bucket_size\": " + std::to_string(draw_(2) * 300) + ", \"stage3_max_reuse_distance\": " +
            std::to_string(draw_(2) * 500) + ", \"enable_sanity_checks\": " + (draw_.one_in(4) ? "true" : "false") +
            "}, \"libzero\": {\"stale_check\": false}, \"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 0.5}}, "
            "\"gradient_accumulation_steps\": " + std::to_string(accumulation_) + "}";
        WORKS(zero_init(MPI_COMM_WORLD, config.c_str(), &z_));
        int group = 0;
        WORKS(zero_group(z_, "{\"lr\": 0.25, \"upper\": 40}", &group));
        const int sizes[] = {0, 1, 2, 3, 7, 16, 33, 97, 211};
        tensors_.resize(static_cast<std::size_t>(1 + draw_(7)));
        for (tensor& t : tensors_) {
            const std::int64_t n = sizes[draw_(9)];
            t.group = draw_(2);
            t.wide = draw_.one_in(2);
            t.p.assign(static_cast<std::size_t>(n), 0.0);
            t.sum = t.p;
            void* values = nullptr;
            if (draw_.one_in(2) && n > 0) {
                t.whole.resize(t.n());
                t.whole_wide.resize(t.n());
                values = t.wide ? static_cast<void*>(t.whole_wide.data()) : static_cast<void*>(t.whole.data());
            }
            WORKS(zero_register(z_, nullptr, t.wide ? ZERO_F64 : ZERO_F32, 1, &n, values, t.group, &t.id));
        }
        WORKS(zero_commit(z_));
    }
    program(const program&) = delete;
    program& operator=(const program&) = delete;
    ~program() {
        if (z_ != nullptr) zero_finalize(&z_);
    }

    void turn() {
        INFO("seed " << seed_);
        switch (draw_(9)) {
            case 0: hold(); break;
            case 1: write(); break;
            case 2: look_at(any()); break;
            case 3: change_options(); break;
            default: micro_step(); break;
        }
    }
    void end() {
        INFO("seed " << seed_);
        if (draw_.one_in(3)) hand_over();  // an open window at the end
        else for (tensor& t : tensors_) look_at(t);
        WORKS(zero_finalize(&z_));
    }

private:
    tensor& any() { return tensors_[static_cast<std::size_t>(draw_(static_cast<int>(tensors_.size())))]; }

    void micro_step() {
        hand_over();
        const bool early = draw_.one_in(6);
        if (early) WORKS(zero_set_int(z_, "libzero.end_window", 1));
        const bool boundary = ++micro_ == accumulation_ || early;
        if (draw_.one_in(3)) {
            WORKS(zero_finish(z_));
            if (boundary && draw_.one_in(3)) {  // the caller's own step
                for (tensor& t : tensors_) own_step(t);
                WORKS(zero_publish(z_));
                return new_window();
            }
        }
        WORKS(zero_step(z_));
        if (!boundary) return;
        for (tensor& t : tensors_) {
            if (frozen(t)) continue;
            for (std::size_t i = 0; i < t.n(); ++i) {
                t.p[i] -= lr_ * (t.group == 1 ? 0.5 : 1) * mean(t, i);
                if (t.group == 1) t.p[i] = std::min(t.p[i], 40.0);
            }
        }
        new_window();
    }
    double mean(const tensor& t, std::size_t i) const { return t.sum[i] / (micro_ * size_of()); }
    bool frozen(const tensor& t) const { return t.group == 1 && frozen_; }
    void new_window() {
        micro_ = 0;
        for (tensor& t : tensors_) t.sum.assign(t.n(), 0.0);
    }

    // Every tensor up to twice from every rank, in another order on each.
    void hand_over() {
        const unsigned salt = static_cast<unsigned>(draw_(1000));
        const int count = static_cast<int>(tensors_.size()), shift = draw_(count);
        for (int k = 0; k < count; ++k) {
            const int turned = (k * (rank_of() % 2 == 0 ? 1 : count - 1) + shift * rank_of()) % count;
            hand_over(tensors_[static_cast<std::size_t>(turned)], salt);
        }
        for (tensor& t : tensors_)
            for (int rank = 0; rank < size_of(); ++rank)
                for (int time = 0; time < times(t, salt, rank); ++time)
                    for (std::size_t i = 0; i < t.n(); ++i)
                        t.sum[i] += factor(t, salt, rank, time) * gradient_of(rank, salt + static_cast<unsigned>(t.id), i);
    }
    static int times(const tensor& t, unsigned salt, int rank) {
        const unsigned mixed = (salt / 3 + static_cast<unsigned>(t.id) * 5 + static_cast<unsigned>(rank) * 3) % 8;
        return mixed == 0 ? 0 : mixed == 1 ? 2 : 1;
    }
    static double factor(const tensor& t, unsigned salt, int rank, int time) {
        const double factors[] = {1, 1, 1, 2, 0.5, 0};
        return factors[(salt + static_cast<unsigned>(t.id + rank * 2 + time)) % 6];
    }
    void hand_over(tensor& t, unsigned salt) {
        for (int time = 0; time < times(t, salt, rank_of()); ++time) {
            const double f = factor(t, salt, rank_of(), time);
            std::vector<double> g(t.n());
            for (std::size_t i = 0; i < t.n(); ++i) g[i] = gradient_of(rank_of(), salt + static_cast<unsigned>(t.id), i);
            const std::vector<float> narrow(g.begin(), g.end());
            const void* from = t.wide ? static_cast<const void*>(g.data()) : static_cast<const void*>(narrow.data());
            void* place = nullptr;
            if (salt % 4 == 0 && !frozen(t)) {
                WORKS(zero_gradient(z_, t.id, &place));
                if (t.n() > 0) std::copy_n(static_cast<const char*>(from), t.n() * (t.wide ? 8 : 4), static_cast<char*>(place));
                from = nullptr;
            }
            WORKS(zero_reduce_scaled(z_, t.id, f, from));
        }
    }
    // p = p - 2 x mean, on the owned slices.
    void own_step(tensor& t) {
        void* value = nullptr;
        void* gradient = nullptr;
        std::int64_t count = 0;
        if (frozen(t)) return;
        WORKS(zero_slice(z_, t.id, "gradient", &gradient, nullptr, nullptr));
        WORKS(zero_slice(z_, t.id, "value", &value, nullptr, &count));
        for (std::int64_t i = 0; i < count; ++i) {
            if (t.wide) static_cast<double*>(value)[i] -= 2 * static_cast<double*>(gradient)[i];
            else static_cast<float*>(value)[i] -= 2 * static_cast<float*>(gradient)[i];
        }
        for (std::size_t i = 0; i < t.n(); ++i) t.p[i] -= 2 * mean(t, i);
    }

    void hold() {
        tensor& t = any();
        if (t.held > 0 && draw_.one_in(2)) {
            WORKS(zero_release(z_, t.id));
            --t.held;
            return;
        }
        if (draw_.one_in(3)) WORKS(zero_prefetch(z_, any().id));
        void* whole = nullptr;
        WORKS(zero_gather(z_, t.id, &whole));
        ++t.held;
        compare(t, whole);
    }
    void write() {
        tensor& t = any();
        if (micro_ > 0) return;  // the reference has no window to keep apart
        if (draw_.one_in(3)) {
            const double a = draw_(9);
            WORKS(zero_fill(z_, t.id, "constant", a, 0, 1));
            t.p.assign(t.n(), a);
            return;
        }
        for (std::size_t i = 0; i < t.n(); ++i) t.p[i] = static_cast<double>(i % 5) + draw_(3);
        const std::vector<float> narrow(t.p.begin(), t.p.end());
        const void* from = t.wide ? static_cast<const void*>(t.p.data()) : static_cast<const void*>(narrow.data());
        const int root = draw_(size_of() + 1) - 1;
        const bool gives = root < 0 || root == rank_of();
        if (draw_.one_in(2)) WORKS(zero_scatter(z_, t.id, root, gives ? from : nullptr));
        else WORKS(zero_scatter_state(z_, t.id, "value", root, gives ? from : nullptr));
    }
    void change_options() {
        if (micro_ > 0) return;
        if (draw_.one_in(2)) {
            lr_ = draw_.one_in(2) ? 0.5 : 0.25;
            WORKS(zero_set_real(z_, "optimizer.params.lr", lr_));
            WORKS(zero_set_real(z_, "groups.1.lr", lr_ / 2));
        } else {
            frozen_ = !frozen_;
            WORKS(zero_set_int(z_, "groups.1.frozen", frozen_ ? 1 : 0));
        }
    }
    void look_at(tensor& t) {
        std::vector<double> buffer(t.n() + 1);
        const int root = draw_(size_of() + 1) - 1;
        const bool takes = root < 0 || root == rank_of();
        if (draw_.one_in(2)) WORKS(zero_gather_to(z_, t.id, root, takes ? buffer.data() : nullptr));
        else WORKS(zero_gather_state(z_, t.id, "value", root, takes ? buffer.data() : nullptr));
        if (takes) compare(t, buffer.data());
    }
    void compare(const tensor& t, const void* values) {
        for (std::size_t i = 0; i < t.n(); ++i) {
            const double got = t.wide ? static_cast<const double*>(values)[i]
                                      : static_cast<double>(static_cast<const float*>(values)[i]);
            INFO("tensor " << t.id << " element " << i);
            REQUIRE(got == Approx(t.p[i]).epsilon(1e-5).margin(1e-4));
        }
    }

    dice draw_;
    unsigned seed_;
    int accumulation_, micro_ = 0;
    double lr_ = 0.5;
    bool frozen_ = false;
    zero_t z_ = nullptr;
    std::vector<tensor> tensors_;
};

}  // namespace

TEST_CASE("random programs train as their serial references") {
    dice order(99);
    for (unsigned seed = 1; seed <= static_cast<unsigned>(programs()); ++seed) {
        program one(2 * seed), other(2 * seed + 1);
        for (int turn = 0; turn < 40; ++turn) (order.one_in(2) ? one : other).turn();
        one.end();
        other.end();
    }
}
