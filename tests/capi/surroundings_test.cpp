// What the library does to the MPI around it, counted by the PMPI shim over every collective call: nothing on
// MPI_COMM_WORLD, no object left (S22, B30). Not here: bytes and counts (tests/engine/traffic_test.cpp).
#include "support.hpp"
#include "support/pmpi_count.hpp"

using namespace zero_test;

TEST_CASE("S22 and B30: every call keeps off MPI_COMM_WORLD and leaves no MPI object behind") {
    for (const int stage : {0, 1, 2, 3}) {
        pmpi_count_reset();
        {
            model m(stage, false);
            WORKS(zero_set_model_comm(m.z, MPI_COMM_SELF));
            WORKS(zero_state(m.z, "mine"));
            WORKS(zero_commit(m.z));
            std::vector<double> buffer(15);
            void* whole[2] = {nullptr, nullptr};
            const int ids[2] = {m.id_a, m.id_b};
            double number = 0;
            int flag = 0;
            WORKS(zero_fill(m.z, m.id_b, "normal", 0, 1, 5));
            WORKS(zero_prefetch(m.z, m.id_a));
            WORKS(zero_gather_list(m.z, 2, ids, whole));
            WORKS(zero_release_list(m.z, 2, ids));
            m.train_one_step();
            WORKS(zero_reduce(m.z, m.id_b, m.gradient_b.data()));
            if (rank_of() == 0) WORKS(zero_reduce(m.z, m.id_b, m.gradient_b.data()));
            WORKS(zero_finish(m.z));
            WORKS(zero_gather_state(m.z, m.id_b, "gradient", 0, buffer.data()));
            WORKS(zero_scatter_state(m.z, m.id_b, "mine", 0, buffer.data()));
            WORKS(zero_dot(m.z, "gradient", "mine", -1, &number));
            WORKS(zero_publish(m.z));
            WORKS(zero_scatter(m.z, m.id_b, size_of() - 1, buffer.data()));
            WORKS(zero_gather_to(m.z, m.id_b, ZERO_EVERYONE, buffer.data()));
            WORKS(zero_should_stop(m.z, &flag));
            std::size_t needed = 0;
            WORKS(zero_report(m.z, nullptr, 0, &needed));
            EXPECT(ZERO_ERR_ARGUMENT, zero_fill(m.z, last_rank() ? 9 : 0, "constant", 1, 0, 0));
            const std::string folder = "stage" + std::to_string(stage);
            const int saved = zero_save(m.z, folder.c_str(), nullptr);
            if (saved != ZERO_ERR_UNSUPPORTED) {  // built without HDF5
                CHECK(saved == ZERO_OK);
                WORKS(zero_load(m.z, folder.c_str(), nullptr));
            }
            WORKS(zero_wait(m.z));
            WORKS(zero_finalize(&m.z));
        }
        const pmpi_counts now = pmpi_count_get();
        CHECK(now.world_uses == 0);
        CHECK(now.communicators == 0);
        CHECK(now.operations + now.types + now.windows + now.files + now.groups == 0);
    }
}
