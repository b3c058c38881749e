// libzero.check_grad_overflow = false: gradients are summed and applied in one pass, with the bits of the two passes.
#include "support.hpp"

#include <limits>

using namespace engine_test;
using zero::dtype;

namespace {

const std::string unchecked = R"(, "libzero": {"check_grad_overflow": false})";

setup without_check(setup s) {
    s.more += unchecked;
    return s;
}

}  // namespace

TEST_CASE("without the check of gradients every stage, bucket size, owner and type gives the same bits") {
    for (const dtype type : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16}) {
        for (const int accumulation : {1, 3}) {
            setup base;
            base.type = type;
            base.accumulation = accumulation;
            model checked(base);
            checked.train(3);
            const auto expected = checked.bits();
            for (const int stage : {0, 1, 2, 3}) {
                for (const std::int64_t bucket : {1, 100, 500'000'000}) {
                    setup s = without_check(base);
                    s.stage = stage;
                    s.bucket = bucket;
                    s.library_owned = (bucket == 100) != (stage % 2 == 0);
                    s.persistence = bucket == 100 ? 40 : 0;
                    if (bucket != 100) s.more_zero = ", \"overlap_comm\": " + std::string(bucket == 1 ? "true" : "false");
                    model m(s);
                    m.train(3);
                    INFO("stage " << stage << " bucket " << bucket << " type " << name(type) << " A " << accumulation);
                    CHECK(m.bits() == expected);
                    CHECK(m.z.get_integer("step") == 3);
                }
            }
        }
    }
}

TEST_CASE("without the check every optimizer keeps its states and bits, also with several threads and exact sums") {
    for (const char* optimizer : {R"("type": "SGD", "params": {"lr": 0.01, "momentum": 0.9})", R"("type": "Lion", "params": {"lr": 0.01})",
                                  R"("type": "Adagrad", "params": {"lr": 0.01})", R"("type": "Lamb", "params": {"lr": 0.01})"}) {
        for (const char* more : {"", R"(, "libzero": {"threads": 2})", R"(, "libzero": {"reproducible": true})"}) {
            setup s;
            s.optimizer = optimizer;
            s.more = more;
            for (const int stage : {1, 3}) {
                s.stage = stage;
                s.accumulation = stage == 3 ? 2 : 1;
                model checked(s);
                checked.train(2);
                setup other = s;
                other.more = s.more.empty() ? unchecked : s.more.substr(0, s.more.size() - 1) + R"(, "check_grad_overflow": false})";
                model m(other);
                m.train(2);
                INFO(optimizer << more << " stage " << stage);
                CHECK(m.bits() == checked.bits());
                const std::string state = std::string(optimizer).find("SGD") != std::string::npos       ? "momentum"
                                          : std::string(optimizer).find("Adagrad") != std::string::npos ? "sum"
                                                                                                        : "exp_avg";
                CHECK(m.numbers(7, state) == checked.numbers(7, state));
            }
        }
    }
}

TEST_CASE("without the check a gradient that is not finite is applied, and its norm is not known") {
    for (const int stage : {0, 1, 2, 3}) {
        setup s;
        s.stage = stage;
        s.optimizer = sgd;
        model m(without_check(s));
        m.fetch();
        m.hand_over(0, false);
        std::vector<float> bad(5, std::numeric_limits<float>::infinity());
        m.z.reduce(0, 1, bad.data());
        m.z.step();
        INFO("stage " << stage);
        CHECK(m.z.get_integer("step") == 1);
        CHECK(m.z.get_integer("skipped_steps") == 0);
        CHECK(m.z.get_integer("overflow") == 0);
        CHECK(std::isinf(m.numbers(0)[0]));
        CHECK(m.numbers(3)[0] == Approx(initial_value(3, 0) - [] {
            double mean = 0;
            for (int r = 0; r < size(); ++r) mean += gradient_of(r, 0, 3, 0) / size();
            return mean;
        }()).epsilon(1e-6));
        CHECK(code_of([&] { m.z.get_real("grad_norm"); }) == zero::code::state);
    }
}

TEST_CASE("without the check the step in parts, late parts, frozen groups and silent ranks train as with it") {
    for (const int stage : {1, 2, 3}) {
        for (const std::int64_t bucket : {40, 500'000'000}) {
            std::vector<std::vector<std::byte>> results;
            for (const bool check : {true, false}) {
                setup s;
                s.stage = stage;
                s.bucket = bucket;
                s.more = std::string(R"(, "libzero": {"gradient_reduction": "sum", "check_grad_overflow": )") + (check ? "true}" : "false}");
                model m(s);  // sums, for what comes late is divided by itself
                m.train(1);
                m.fetch();
                m.hand_over(m.micro++, true);  // in parts
                m.z.finish();
                CHECK(m.numbers(3, "gradient").size() == 33);
                m.z.step();
                m.fetch();
                m.hand_over(m.micro, false);  // one rank again, when buckets may have left
                if (rank() == 0) m.hand_over(m.micro, false);
                ++m.micro;
                m.z.step();
                m.fetch();
                if (rank() != 0) m.hand_over(m.micro, false);  // and one that has nothing
                ++m.micro;
                m.z.step();
                m.train(1);
                CHECK(m.z.get_integer("step") == 5);
                results.push_back(m.bits());
            }
            INFO("stage " << stage << " bucket " << bucket);
            CHECK(results[0] == results[1]);
        }
    }
}

TEST_CASE("without the check a gradient that was applied on its way can no longer be read") {
    setup s;
    s.stage = 2;
    model m(without_check(s));
    m.train(1);
    CHECK(code_of([&] { m.numbers(3, "gradient"); }) == zero::code::state);
}

TEST_CASE("what needs the norm or the overflow is refused without the check") {
    for (const char* needs : {R"(, "gradient_clipping": 1)", R"(, "fp16": {"enabled": true})"}) {
        setup s;
        s.more = needs;
        CHECK(code_of([&] { model m(without_check(s)); }) == zero::code::config);
    }
    model m(without_check({}));
    CHECK(code_of([&] { m.z.set("gradient_clipping", 1.0); }) == zero::code::config);
    m.train(1);
    CHECK(m.z.get_integer("step") == 1);
}
