// Catch2 itself. Nothing of this project is under test here: compiled without optimisation and sanitizers.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include <cstdio>

#include "support/catch_runner.hpp"

namespace {

int this_rank = 0;
int all_ranks = 1;

class at_once : public Catch::TestEventListenerBase {
public:
    using TestEventListenerBase::TestEventListenerBase;

    bool assertionEnded(const Catch::AssertionStats& stats) override {
        const Catch::AssertionResult& result = stats.assertionResult;
        if (all_ranks > 1 && !result.isOk()) {
            const Catch::SourceLineInfo place = result.getSourceInfo();
            std::fprintf(stderr, "rank %d: %s:%zu: %s\n", this_rank, place.file, place.line,
                         result.getExpandedExpression().c_str());
        }
        return TestEventListenerBase::assertionEnded(stats);
    }
};
CATCH_REGISTER_LISTENER(at_once)

}  // namespace

int zero::test::run_catch(int argc, char** argv, int rank, int ranks) {
    this_rank = rank;
    all_ranks = ranks;
    return Catch::Session().run(argc, argv);
}
