/* Every function of the contract has exactly the type it was promised: each is assigned to a pointer of that type, so a drift
 * does not compile (with -Werror for the C side). Compiled as C99 and, through signatures_cpp.cpp, as C++17. */
#include "zero/zero.h"

#define SAME(value, expected) typedef char same_##value[(value) == (expected) ? 1 : -1]
SAME(ZERO_F32, 1); SAME(ZERO_F64, 2); SAME(ZERO_BF16, 3); SAME(ZERO_F16, 4); SAME(ZERO_I32, 5); SAME(ZERO_I64, 6);
SAME(ZERO_U8, 7); SAME(ZERO_C64, 8); SAME(ZERO_C128, 9); SAME(ZERO_EVERYONE, -1);
SAME(ZERO_PLACE_DEVICE, 1); SAME(ZERO_PLACE_HOST, 2); SAME(ZERO_PLACE_NVME, 3); SAME(ZERO_REPLICATED, 0); SAME(ZERO_PER_RANK, 1);
SAME(ZERO_LOG_ERROR, 0); SAME(ZERO_LOG_WARNING, 1); SAME(ZERO_LOG_INFO, 2); SAME(ZERO_LOG_DEBUG, 3);
SAME(ZERO_OK, 0); SAME(ZERO_ERR_ARGUMENT, 1); SAME(ZERO_ERR_STATE, 2); SAME(ZERO_ERR_CONFIG, 3); SAME(ZERO_ERR_MEMORY, 4);
SAME(ZERO_ERR_MPI, 5); SAME(ZERO_ERR_CUDA, 6); SAME(ZERO_ERR_NCCL, 7); SAME(ZERO_ERR_IO, 8); SAME(ZERO_ERR_CHECKPOINT, 9);
SAME(ZERO_ERR_MISMATCH, 10); SAME(ZERO_ERR_UNSUPPORTED, 11); SAME(ZERO_ERR_NUMERIC, 12); SAME(ZERO_ERR_INTERNAL, 99);

extern void (*volatile kept_for_the_linker)(void);
void (*volatile kept_for_the_linker)(void);
#define KEEP(pointer) kept_for_the_linker = (void (*)(void))(pointer)

int main(void) {
    struct zero_context *opaque = NULL;
    zero_t handle = opaque;
    void (*line)(int, const char *, void *) = NULL;
    zero_log_fn log_function = line;
    (void)handle;
    (void)log_function;
    int (*p0)(MPI_Comm comm, const char *config, zero_t *z) = zero_init;
    KEEP(p0);
    int (*p1)(MPI_Fint comm, const char *config, zero_t *z) = zero_init_f;
    KEEP(p1);
    int (*p2)(zero_t z, MPI_Comm model) = zero_set_model_comm;
    KEEP(p2);
    int (*p3)(zero_t z, MPI_Fint model) = zero_set_model_comm_f;
    KEEP(p3);
    int (*p4)(zero_t z, const char *key, int64_t value) = zero_set_int;
    KEEP(p4);
    int (*p5)(zero_t z, const char *key, double value) = zero_set_real;
    KEEP(p5);
    int (*p6)(zero_t z, const char *key, const char *value) = zero_set_text;
    KEEP(p6);
    int (*p7)(zero_t z, const char *key, int64_t *value) = zero_get_int;
    KEEP(p7);
    int (*p8)(zero_t z, const char *key, double *value) = zero_get_real;
    KEEP(p8);
    int (*p9)(zero_t z, const char *key, char *text, size_t capacity, size_t *needed) = zero_get_text;
    KEEP(p9);
    int (*p10)(zero_t z, const char *options_json, int *group) = zero_group;
    KEEP(p10);
    int (*p11)(zero_t z, const char *name, int dtype, int ndim, const int64_t *dims, void *values, int group, int
        *id) = zero_register;
    KEEP(p11);
    int (*p12)(zero_t z, const char *name, int *id) = zero_find;
    KEEP(p12);
    int (*p13)(zero_t z, int id, int *dtype, int *ndim, int64_t *dims) = zero_tensor;
    KEEP(p13);
    int (*p14)(zero_t z, int *count) = zero_count;
    KEEP(p14);
    int (*p15)(zero_t z, const char *name, int dtype, int ndim, const int64_t *dims, void *data, int kind) =
        zero_attach;
    KEEP(p15);
    int (*p16)(zero_t z, int id, const int64_t *global_dims, const int64_t *offset, const int64_t *halo_low, const
        int64_t *halo_high) = zero_place;
    KEEP(p16);
    int (*p17)(zero_t z, const char *name) = zero_state;
    KEEP(p17);
    int (*p18)(zero_t z, int place, int64_t *bytes, int64_t *peak) = zero_forecast;
    KEEP(p18);
    int (*p19)(zero_t z) = zero_commit;
    KEEP(p19);
    int (*p20)(zero_t z, int id, const char *kind, double a, double b, uint64_t seed) = zero_fill;
    KEEP(p20);
    int (*p21)(zero_t z, int id, void **values) = zero_gather;
    KEEP(p21);
    int (*p22)(zero_t z, int id) = zero_prefetch;
    KEEP(p22);
    int (*p23)(zero_t z, int id) = zero_release;
    KEEP(p23);
    int (*p24)(zero_t z, int id, int root, const void *values) = zero_scatter;
    KEEP(p24);
    int (*p25)(zero_t z, int id, int root, void *buffer) = zero_gather_to;
    KEEP(p25);
    int (*p26)(zero_t z, int id, const char *state, int root, void *buffer) = zero_gather_state;
    KEEP(p26);
    int (*p27)(zero_t z, int id, const char *state, int root, const void *buffer) = zero_scatter_state;
    KEEP(p27);
    int (*p28)(zero_t z, int n, const int *ids, void **values) = zero_gather_list;
    KEEP(p28);
    int (*p29)(zero_t z, int n, const int *ids) = zero_release_list;
    KEEP(p29);
    int (*p30)(zero_t z, int id, void *values) = zero_rebind;
    KEEP(p30);
    int (*p31)(zero_t z, int id, void **buffer) = zero_gradient;
    KEEP(p31);
    int (*p32)(zero_t z, int id, const void *gradient) = zero_reduce;
    KEEP(p32);
    int (*p33)(zero_t z, int id, double factor, const void *gradient) = zero_reduce_scaled;
    KEEP(p33);
    int (*p34)(zero_t z, int n, const int *ids, const void *const *gradients) = zero_reduce_list;
    KEEP(p34);
    int (*p35)(zero_t z) = zero_step;
    KEEP(p35);
    int (*p36)(zero_t z) = zero_finish;
    KEEP(p36);
    int (*p37)(zero_t z, int id, const char *state, void **data, int64_t *first, int64_t *count) = zero_slice;
    KEEP(p37);
    int (*p38)(zero_t z) = zero_publish;
    KEEP(p38);
    int (*p39)(zero_t z, const char *a, const char *b, int group, double *result) = zero_dot;
    KEEP(p39);
    int (*p40)(zero_t z) = zero_wait;
    KEEP(p40);
    int (*p41)(zero_t z, const char *directory, const char *tag) = zero_save;
    KEEP(p41);
    int (*p42)(zero_t z, const char *directory, const char *tag) = zero_load;
    KEEP(p42);
    int (*p43)(zero_t z, int *flag) = zero_should_stop;
    KEEP(p43);
    int (*p44)(zero_t z, int place, int64_t *bytes, int64_t *peak) = zero_memory;
    KEEP(p44);
    int (*p45)(zero_t z, char *text, size_t capacity, size_t *needed) = zero_report;
    KEEP(p45);
    int (*p46)(const char *config, int dtype, int ranks, int nodes, int64_t elements, int64_t largest, int64_t
        *device_bytes, int64_t *host_bytes, int64_t *nvme_bytes) = zero_estimate;
    KEEP(p46);
    int (*p47)(zero_t z, void *cuda_stream) = zero_set_stream;
    KEEP(p47);
    int (*p48)(zero_t z, zero_log_fn fn, void *user) = zero_set_log;
    KEEP(p48);
    const char *(*p49)(int code) = zero_error_name;
    KEEP(p49);
    const char *(*p50)(void) = zero_last_error;
    KEEP(p50);
    int (*p51)(int *major, int *minor, int *patch) = zero_version;
    KEEP(p51);
    const char *(*p52)(void) = zero_build_info;
    KEEP(p52);
    int (*p53)(zero_t *z) = zero_finalize;
    KEEP(p53);
    return kept_for_the_linker == NULL;
}
