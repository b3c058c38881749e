/* libzero: the Zero Redundancy Optimizer (ZeRO, stages 0 to 3) for simulation codes. This header is the whole
 * contract and the manual: C99 and C++17, needing only MPI. C++ callers may prefer zero.hpp, Fortran has module
 * zero_optimizer.
 *
 * A program's life:   zero_init, zero_register ..., zero_commit, { zero_gather, compute, zero_release; zero_reduce
 *                     per tensor; zero_step } ..., zero_save, zero_finalize
 *
 * How to read a declaration
 *   (c)          Collective: every rank of the context's communicator makes this call, in the same order of such
 *                calls. Where a model communicator was set, "(c) over both" says that its ranks take part as well. A
 *                collective call that fails, fails with the same code and the failing rank's sentence on every rank,
 *                and nothing hangs. Two limits: a rank whose handle or communicator is unusable answers alone, and
 *                argument errors of gather, prefetch and release stay on the failing rank where the call needs no
 *                communication (stages 0 to 2; stage 3 where the ranks share memory), unless
 *                "zero_optimization.enable_sanity_checks" is on.
 *   local        Everything else. A local call never waits for another rank.
 *   Errors       Every int function returns ZERO_OK or a ZERO_ERR_ code; zero_error_name gives its name,
 *                zero_last_error the sentence that says what to change. Any function may return ZERO_ERR_ARGUMENT for
 *                a handle that is NULL, finalized or no handle at all, ZERO_ERR_STATE where MPI is needed and not
 *                usable, ZERO_ERR_MEMORY, ZERO_ERR_MPI and ZERO_ERR_INTERNAL; the lines below name the others. A call
 *                that fails changes nothing unless it says so, and the context stays usable.
 *   No function prints, exits, aborts or lets a C++ exception out. Every entry saves the floating-point environment,
 *   works with traps masked and round-to-nearest, and restores it: no new sticky flag is left.
 *
 * Threads: one context is used by one thread at a time. Several contexts may live at once, also over overlapping
 * communicators, and from several threads if MPI gave MPI_THREAD_MULTIPLE. Every MPI thread level works.
 *
 * Words: P = ranks of the communicator. A tensor is one registered parameter array; dims are row-major (the last
 * index runs fastest). Text is UTF-8 and ends with NUL. Sizes are int64_t; "bytes" are bytes, "elements" are
 * elements. Output pointers that "may be NULL" are then not written; others must not be NULL. */
#ifndef ZERO_ZERO_H
#define ZERO_ZERO_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#ifndef ZERO_API
#if defined(__GNUC__) || defined(__clang__)
#define ZERO_API __attribute__((visibility("default")))
#else
#define ZERO_API
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* One optimizer over one communicator. Opaque and never reused: a copy kept after zero_finalize is recognised as
 * dead. */
typedef struct zero_context *zero_t;

/* Element types. 16-bit values are held as uint16_t bits. Gradients of a tensor have its type; sums, masters and
 * states are fp32 (fp64 for F64). A parameter of F32 or F64 is its own master, BF16 and F16 have an fp32 master
 * behind them. */
enum {
    ZERO_F32 = 1,
    ZERO_F64 = 2,
    ZERO_BF16 = 3,
    ZERO_F16 = 4,
    ZERO_I32 = 5, /* I32, I64, U8: attached data only (zero_attach) */
    ZERO_I64 = 6,
    ZERO_U8 = 7,
    ZERO_C64 = 8, /* C64, C128: pairs of F32, F64; ZERO_ERR_UNSUPPORTED in this build */
    ZERO_C128 = 9
};

/* As root: every rank is a root. Of zero_gather_to and zero_gather_state: all receive. Of zero_scatter(_state): all
 * hold equal values and each keeps its own part. */
enum { ZERO_EVERYONE = -1 };

/* Where bytes live. Without a GPU everything counts as HOST and DEVICE is 0. */
enum { ZERO_PLACE_DEVICE = 1, ZERO_PLACE_HOST = 2, ZERO_PLACE_NVME = 3 };

/* Kinds of attached arrays: rank 0's is stored and all get it back, or each rank stores its own. */
enum { ZERO_REPLICATED = 0, ZERO_PER_RANK = 1 };

enum { ZERO_LOG_ERROR = 0, ZERO_LOG_WARNING = 1, ZERO_LOG_INFO = 2, ZERO_LOG_DEBUG = 3 };

enum {
    ZERO_OK = 0,
    ZERO_ERR_ARGUMENT = 1,     /* bad id, pointer, dims, root, name, tag or dead handle */
    ZERO_ERR_STATE = 2,        /* the call does not fit the present state of the context (order of calls, dead MPI) */
    ZERO_ERR_CONFIG = 3,       /* a key or a value of the configuration is wrong; the sentence names the key */
    ZERO_ERR_MEMORY = 4,       /* memory could not be had, or a limit on it was reached */
    ZERO_ERR_MPI = 5,          /* an MPI call failed */
    ZERO_ERR_CUDA = 6,         /* a CUDA call failed */
    ZERO_ERR_NCCL = 7,         /* a NCCL call failed */
    ZERO_ERR_IO = 8,           /* a file could not be read or written */
    ZERO_ERR_CHECKPOINT = 9,   /* a checkpoint is missing, damaged, of another model, or exists already */
    ZERO_ERR_MISMATCH = 10,    /* ranks differ in tensors, options, arguments or calls */
    ZERO_ERR_UNSUPPORTED = 11, /* known, but not in this build or not built yet */
    ZERO_ERR_NUMERIC = 12,     /* numbers left the usable range */
    ZERO_ERR_INTERNAL = 99     /* a fault of the library: please report it */
};

/* Receives log lines: level ZERO_LOG_*, one line of text without newline, valid during the call, and the caller's
 * pointer. Called on the thread that called the library; it must not call the library with the same context, nor
 * throw. */
typedef void (*zero_log_fn)(int level, const char *text, void *user);

/* ---- life of a context ----------------------------------------------------------------------------------------- */

/* (c) over comm. Makes a context. comm is duplicated, so traffic on it never meets the library's, and it may be freed
 * by the caller afterwards. config: path of a JSON file, or JSON text (its first non-blank is '{'), or NULL or "" for
 * defaults; a DeepSpeed file works as it is. The environment (ZERO_<PATH>) is read once, here, and lies over the
 * file. Takes next to no memory. *z is NULL after an error.
 * Errors: ARGUMENT z NULL, MPI_COMM_NULL (that rank alone); STATE MPI not initialised or already finalized; CONFIG
 * a wrong, unknown, duplicate or contradictory key; UNSUPPORTED a key this build does not know how to honour; IO
 * the file; MISMATCH options differ between ranks. */
ZERO_API int zero_init(MPI_Comm comm, const char *config, zero_t *z);

/* (c) over comm. zero_init with a Fortran communicator (an INTEGER of `use mpi`, or comm%MPI_VAL of `use mpi_f08`). */
ZERO_API int zero_init_f(MPI_Fint comm, const char *config, zero_t *z);

/* (c) over both, before commit. Says that the model itself is split over the ranks of `model` (domain or tensor
 * parallel): the gradient norm, the overflow test, clipping and zero_dot are taken over it as well, and save and load
 * write one checkpoint. The group option "model_replicated": true counts a tensor once in that norm. `model` is
 * duplicated.
 * Errors: ARGUMENT MPI_COMM_NULL; STATE after commit or a second time. */
ZERO_API int zero_set_model_comm(zero_t z, MPI_Comm model);

/* (c) over both. The same with a Fortran communicator. */
ZERO_API int zero_set_model_comm_f(zero_t z, MPI_Fint model);

/* (c) Freezes the list of tensors, compares it and the options over the ranks, partitions, allocates, and gives every
 * rank the initial values of communicator rank 0 (option "libzero.broadcast_initial", default true; library-owned
 * tensors start at 0).
 * Errors: STATE committed already; MISMATCH names, shapes, types, order or options differ; CONFIG options
 * contradict each other; MEMORY with the bytes that were wanted, the context stays uncommitted. */
ZERO_API int zero_commit(zero_t z);

/* (c), over both while a save is under way (checkpoint.async). Returns when all background work is done and committed.
 * Reductions that are under way end in zero_step or zero_finish.
 * Errors: those of that work (IO, CHECKPOINT ...). */
ZERO_API int zero_wait(zero_t z);

/* (c) Waits for background work, frees everything, sets *z to NULL. The caller's arrays keep their present contents.
 * Errors: STATE after MPI_Finalize: local memory is freed and *z set to NULL all the same; IO, CHECKPOINT of a save
 * still under way (freed all the same); MISMATCH another rank makes another call: nothing is freed. ARGUMENT z or
 * *z NULL, or dead. */
ZERO_API int zero_finalize(zero_t *z);

/* ---- options and readings -------------------------------------------------------------------------------------- */

/* Local, but the same on every rank (compared at commit and at the next step). Sets the option at a JSON path, such
 * as "zero_optimization.stage", "optimizer.params.lr", "gradient_clipping", "groups.1.lr". Before commit any key;
 * afterwards the run-time ones: learning rate, weight decay, betas, eps, limits, frozen, clipping, log level,
 * "libzero.end_window". _int: integers, reals and booleans (0 or 1). _real: reals (and integers with an integral
 * value). _text: words, paths, and JSON text for arrays and booleans ("[0.9, 0.95]", "true").
 * Errors: ARGUMENT key or value NULL; CONFIG unknown key (the nearest known one is named), wrong type or out of
 * range; STATE a fixed key after commit; UNSUPPORTED. */
ZERO_API int zero_set_int(zero_t z, const char *key, int64_t value);
ZERO_API int zero_set_real(zero_t z, const char *key, double value);
ZERO_API int zero_set_text(zero_t z, const char *key, const char *value);

/* Local. Reads an option by its path, or a reading of the context: "step" applied updates; "micro_step" micro-steps
 * since the last boundary; "skipped_steps" updates skipped for a non-finite gradient; "grad_norm" L2 norm of the last
 * update's gradient before clipping (inf or nan if it was skipped; STATE with "libzero.check_grad_overflow": false); "loss_scale"; "lr" the rate that the next update
 * will use; "overflow" 1 if the last update was skipped; "rank", "size", "nodes", "threads" of this rank;
 * "owned_elements" elements of which this rank holds the state, without padding; "live_elements" elements whose values
 * this rank holds now, whole or in slices; "ranks_sharing_values" by how many ranks of a node the library's values are
 * held together, 1 if each has its own; "sent.reduce_bytes", "sent.gather_bytes" what this rank sent over MPI,
 * "sent.off_node_bytes" what of it went to other nodes; "memory.parameters" and the other purposes of docs/memory.md:
 * bytes held now.
 * zero_get_real reads integers too; booleans are 0 or 1.
 * Errors: ARGUMENT key or value NULL; CONFIG unknown key, or a key of another type. */
ZERO_API int zero_get_int(zero_t z, const char *key, int64_t *value);
ZERO_API int zero_get_real(zero_t z, const char *key, double *value);

/* Local. Reads any option or reading as text. Up to capacity bytes are written to `text`, always ending with NUL;
 * *needed (may be NULL) gets the size of the whole text including its NUL. text NULL or capacity 0: only *needed.
 * Errors: as zero_get_int; ARGUMENT too when the text was cut and `needed` is NULL (with `needed`, compare it). */
ZERO_API int zero_get_text(zero_t z, const char *key, char *text, size_t capacity, size_t *needed);

/* ---- describing the model: before commit ----------------------------------------------------------------------- */

/* Local; the same on every rank. Makes a parameter group with its own options as JSON text, NULL or "" for none:
 *   "lr", "weight_decay"          of any optimizer
 *   "betas", "eps"                of those that have them (Lion has no eps, Adagrad no betas, SGD neither)
 *   "momentum", "nesterov"        of SGD; "max_coeff", "min_coeff" of Lamb. Not at run time, unlike the others
 *   "frozen"                      true: values are kept and saved, not trained
 *   "lower", "upper"              values are clamped to them after each update
 *   "model_replicated"            true: the tensors are equal on all ranks of the model communicator and count once
 *                                 in norms and zero_dot. Not at run time
 * What is not given is that of optimizer.params. *group is its number; group 0 always exists. A group without tensors
 * is allowed.
 * Errors: ARGUMENT group NULL; CONFIG; STATE after commit. */
ZERO_API int zero_group(zero_t z, const char *options_json, int *group);

/* Local; same names, types, shapes and order on every rank. Registers a parameter tensor. name: 1 to 255 bytes, '/'
 * and '.' allowed, no empty, "." or ".." component; NULL or "" becomes "t<id>". dtype F32, F64, BF16, F16. ndim 0 to
 * 7 (0: one number, dims may be NULL), dims row-major, extents may be 0. values: the caller's contiguous array, which
 * must outlive the context: stages 0 to 2 update it in place; in stage 3 it is read at commit and may go afterwards
 * (except where the tensor stays whole under "stage3_param_persistence_threshold"). NULL: the library owns the
 * storage. *id (may be NULL) counts from 0 in order of registration. Between steps, outside gather..release, a
 * caller's F32 or F64 array may be edited in stages 0 to 2, equally on all ranks.
 * Errors: ARGUMENT name taken or not allowed, unknown dtype or group, ndim, negative or overflowing dims, memory
 * that overlaps another tensor's; UNSUPPORTED complex types; STATE after commit. */
ZERO_API int zero_register(zero_t z, const char *name, int dtype, int ndim, const int64_t *dims, void *values,
                           int group, int *id);

/* Local. The id of a registered name.
 * Errors: ARGUMENT name or id NULL, or no such tensor. */
ZERO_API int zero_find(zero_t z, const char *name, int *id);

/* Local. What was registered under id. dtype, ndim, dims (room for 7; ndim of them are written) may each be NULL.
 * Errors: ARGUMENT unknown id. */
ZERO_API int zero_tensor(zero_t z, int id, int *dtype, int *ndim, int64_t *dims);

/* Local. The number of registered tensors.
 * Errors: ARGUMENT count NULL. */
ZERO_API int zero_count(zero_t z, int *count);

/* Local; the same on every rank. An array of the caller's that travels in checkpoints: zero_save writes it, zero_load
 * fills it. Any dtype but the complex ones; ndim, dims as in zero_register (dims may differ between ranks for
 * ZERO_PER_RANK). kind ZERO_REPLICATED: rank 0's is stored, every rank gets it. ZERO_PER_RANK: each its own; a
 * checkpoint that holds such arrays is refused on another number of ranks unless they are not attached there. data
 * must outlive the context. May also be called after commit.
 * Errors: ARGUMENT name, dtype, dims, kind, or data NULL where there are elements; UNSUPPORTED complex types. */
ZERO_API int zero_attach(zero_t z, const char *name, int dtype, int ndim, const int64_t *dims, void *data, int kind);

/* Local, before commit, with a model communicator: where this rank's tensor sits in a global array (all ndim long,
 * elements; halos may be NULL for 0).
 * Errors: UNSUPPORTED always in this build. */
ZERO_API int zero_place(zero_t z, int id, const int64_t *global_dims, const int64_t *offset, const int64_t *halo_low,
                        const int64_t *halo_high);

/* Local; the same on every rank. One more sharded vector per trainable tensor, zero at commit, in the state's type
 * (fp32, or fp64 for F64), for an optimizer of the caller's: saved, loaded and counted with the others; reached by
 * zero_slice.
 * Errors: ARGUMENT name taken or not allowed; STATE after commit. */
ZERO_API int zero_state(zero_t z, const char *name);

/* Local. The bytes that commit will take on this rank at a place, and the peak of a step with one tensor gathered at
 * a time: from the tensors registered so far, equal to what zero_memory reads later. bytes, peak may be NULL. Errors:
 * ARGUMENT place; STATE after commit; CONFIG. */
ZERO_API int zero_forecast(zero_t z, int place, int64_t *bytes, int64_t *peak);

/* ---- values: after commit (STATE before) ----------------------------------------------------------------------- */

/* (c) New values for tensor id: kind "constant" a; "uniform" in [a, b); "normal" mean a, deviation b. Counter-based:
 * the value of an element depends on (seed, name, element) alone, whatever P and stage; no rank ever holds the whole.
 * Errors: ARGUMENT id, kind, or a, b not finite or not a range; MISMATCH arguments differ. */
ZERO_API int zero_fill(zero_t z, int id, const char *kind, double a, double b, uint64_t seed);

/* (c) Makes the whole tensor readable at *values, in the registered type and shape, until zero_release. Stages 0 to
 * 2: the registered (or the library's) array itself. Counted: n gathers need n releases. Read-only unless followed by
 * zero_scatter. A rank that calls this alone in stage 3 waits for ever: ranks that generate alone use zero_gather_to
 * before.
 * Errors: ARGUMENT id, values NULL; MEMORY beyond "zero_optimization.stage3_max_live_parameters"; MISMATCH other
 * calls. */
ZERO_API int zero_gather(zero_t z, int id, void **values);

/* (c) Starts a gather that will be wanted soon; never needed, no release.
 * Errors: ARGUMENT id. */
ZERO_API int zero_prefetch(zero_t z, int id);

/* Local. The whole values may go. Edits of a gathered copy are discarded in stage 3 and for 16-bit types, and
 * undefined in stages 0 to 2 until zero_scatter.
 * Errors: ARGUMENT id; STATE not gathered. */
ZERO_API int zero_release(zero_t z, int id);

/* (c) New values from rank `root` (0 .. P-1; values NULL elsewhere) into every copy, shard and master. ZERO_EVERYONE:
 * all ranks hold the same values. values may be the gathered or the registered array itself.
 * Errors: ARGUMENT id, root, values NULL on the root; MISMATCH id or root differ. */
ZERO_API int zero_scatter(zero_t z, int id, int root, const void *values);

/* (c) Copies the whole tensor into `buffer` (registered type, all elements) on rank `root`, or on every rank for
 * ZERO_EVERYONE. Other ranks may pass NULL and take at most one chunk of memory.
 * Errors: ARGUMENT id, root, buffer NULL where one is needed; MISMATCH id or root differ. */
ZERO_API int zero_gather_to(zero_t z, int id, int root, void *buffer);

/* (c) zero_gather_to and zero_scatter for a state in its own type (fp32, or fp64 for F64): "master" (of F32 and F64:
 * the value), "value", "gradient" (reduced, unscaled, unclipped; until the next micro-step), "exp_avg", "exp_avg_sq"
 * (Adam, LAMB; Lion has exp_avg), "momentum" (SGD), "sum" (Adagrad), and the names of zero_state.
 * Errors: as above; ARGUMENT a state this tensor does not have; STATE no gradient at hand. */
ZERO_API int zero_gather_state(zero_t z, int id, const char *state, int root, void *buffer);
ZERO_API int zero_scatter_state(zero_t z, int id, const char *state, int root, const void *buffer);

/* (c) and local: n gathers or releases in one call, all or nothing. values has room for n pointers. n may be 0.
 * Errors: as zero_gather, zero_release; ARGUMENT n negative, ids or values NULL. */
ZERO_API int zero_gather_list(zero_t z, int n, const int *ids, void **values);
ZERO_API int zero_release_list(zero_t z, int n, const int *ids);

/* Local, stages 0 to 2, outside gather..release: the caller's array has moved to `values` and holds the current
 * values there (Fortran assignment moves allocatables).
 * Errors: ARGUMENT id, values NULL, memory that overlaps another tensor's; STATE the storage is the library's, the
 * tensor is gathered, or stage 3. */
ZERO_API int zero_rebind(zero_t z, int id, void *values);

/* ---- training: after commit (STATE before) --------------------------------------------------------------------- */

/* Local. A buffer of the library (registered type, all elements) in which to build this rank's gradient without a
 * copy: zeros at the first call in a micro-step, the same pointer and content at later ones until handed over by
 * zero_reduce(z, id, NULL).
 * Errors: ARGUMENT id, buffer NULL; STATE a frozen tensor. */
ZERO_API int zero_gradient(zero_t z, int id, void **buffer);

/* Not collective, though it may start communication, and in stages 2 and 3 wait for the other ranks when its staging
 * is full (at most half a second): ranks may call for different tensors in different orders. Adds this rank's gradient
 * (registered type, all elements) of this micro-step; NULL hands over the buffer of zero_gradient. A host array may be
 * reused on return. A second hand-over in a micro-step adds; a tensor that a rank does not hand over counts as 0 there.
 * The gradient used is the mean over ranks and micro-steps ("libzero.gradient_reduction": "sum" for the sum). Gradients
 * of frozen tensors are dropped.
 * Errors: ARGUMENT id, NULL without zero_gradient; STATE with "libzero.reproducible" where a second hand-over of a
 * tensor comes after its bucket has left (add the parts up and hand them over once). */
ZERO_API int zero_reduce(zero_t z, int id, const void *gradient);

/* As zero_reduce with factor x gradient, multiplied in the precision of the sum; factor 0 reads nothing. */
ZERO_API int zero_reduce_scaled(zero_t z, int id, double factor, const void *gradient);

/* n zero_reduce in one call, all or nothing; gradients[i] may be NULL as in zero_reduce.
 * Errors: as zero_reduce; ARGUMENT n negative, ids or gradients NULL. */
ZERO_API int zero_reduce_list(zero_t z, int n, const int *ids, const void *const *gradients);

/* (c) over both. Ends a micro-step: zero_finish, and at the window's end (every "gradient_accumulation_steps"-th
 * call) update and zero_publish. An update whose gradient is not finite is skipped on all ranks, in every dtype, and
 * returns ZERO_OK: parameters, states, step count and schedule stay, "skipped_steps" counts. With
 * "libzero.check_grad_overflow": false it is applied, in the same pass over memory that sums it where that is possible,
 * and the gradient is not kept.
 * Errors: STATE before commit; STATE also when a tensor received a gradient but was neither gathered nor
 * gathered-to on some rank since the last update in stage 3 (the caller trains a stale copy; "libzero.stale_check":
 * false switches the check off), or had none where "ignore_unused_parameters" is false; NUMERIC an overflow with
 * the loss scale at its minimum (counts as skipped); MISMATCH another rank makes another call. */
ZERO_API int zero_step(zero_t z);

/* (c) over both. The step in parts, for an optimizer of the caller's. zero_finish ends the micro-step as zero_step
 * does; at the window's end the owned slices of the reduced gradient (unscaled, not clipped) are complete and may be
 * read and written until zero_step (updates with them), zero_publish (drops them) or the next zero_reduce. */
ZERO_API int zero_finish(zero_t z);

/* Local. This rank's elements of the flattened tensor: *data points at elements *first .. *first + *count - 1 (first
 * from 0), in the state's type (fp32, or fp64 for F64). state: "value" (the master where there is one), "gradient"
 * (after zero_finish), "exp_avg" ..., or a name of zero_state. Every element has exactly one owner; *count may be 0.
 * data, first, count may each be NULL. Valid until the next collective call.
 * Errors: ARGUMENT id or state; STATE no gradient at hand. */
ZERO_API int zero_slice(zero_t z, int id, const char *state, void **data, int64_t *first, int64_t *count);

/* (c) The owned "value" slices become the values everywhere; drops the gradient, counts no update. */
ZERO_API int zero_publish(zero_t z);

/* (c) over both. *result = the sum of a[i] * b[i] in fp64 over the owned elements of all trainable tensors (group <
 * 0) or of one group; a and b are states as in zero_slice. Tensors replicated over the model communicator count once.
 * Errors: ARGUMENT a or b no state, group unknown, result NULL; STATE no gradient at hand; MISMATCH arguments
 * differ. */
ZERO_API int zero_dot(zero_t z, const char *a, const char *b, int group, double *result);

/* ---- checkpoints: after commit --------------------------------------------------------------------------------- */

/* (c) over both. Writes directory/tag: partitioned HDF5, complete or absent, readable on any P and stage. tag NULL or
 * "": "step-<12 digits>". Makes the directory, and those above it, where they are missing. With "checkpoint.async" it
 * returns after a copy in memory; a later call (zero_wait, save, load, finalize, step) commits what a thread has
 * written by then. An earlier save that failed this way is the error of this call.
 * Errors: ARGUMENT directory NULL or empty, tag with '/' or a leading '.'; STATE inside an accumulation window;
 * CHECKPOINT the tag exists; IO with path and reason (nothing is left behind); MISMATCH directory or tag differ;
 * UNSUPPORTED built without HDF5. */
ZERO_API int zero_save(zero_t z, const char *directory, const char *tag);

/* (c) over both. Restores parameters, states, counters and attached arrays, whatever P, stage, place and dtype wrote
 * them. tag NULL or "": the newest complete one (a damaged newest is reported in the log and the one before is
 * taken). All or nothing. "checkpoint.load": "weights" takes the parameters alone.
 * Errors: CHECKPOINT none there, damaged, or of another model (all differences listed); otherwise as zero_save. */
ZERO_API int zero_load(zero_t z, const char *directory, const char *tag);

/* (c) *flag = 1 on all ranks when some rank says that it is time to save and stop: SIGUSR1 or SIGTERM arrived (only
 * if "libzero.checkpoint_signals" is true: the handlers are then installed at init or commit and given back at
 * finalize), or the end of the job is near: "libzero.end_time", else SLURM_JOB_END_TIME (both seconds since 1970).
 * Near is less than one minute plus twice the longest time between two of these calls. Also before commit. Errors:
 * ARGUMENT flag NULL. */
ZERO_API int zero_should_stop(zero_t z, int *flag);

/* ---- memory, reports, estimates -------------------------------------------------------------------------------- */

/* Local. Bytes that the library holds on this rank at a place now, and the most it ever held. bytes, peak may be
 * NULL.
 * Errors: ARGUMENT place. */
ZERO_API int zero_memory(zero_t z, int place, int64_t *bytes, int64_t *peak);

/* (c) A table of memory by purpose (least and most over the ranks), traffic and times, the same text on all ranks.
 * text, capacity, needed as in zero_get_text. */
ZERO_API int zero_report(zero_t z, char *text, size_t capacity, size_t *needed);

/* Local, without MPI and without a context. Bytes per rank of the model states (parameters, gradients, masters,
 * optimizer states) of a model of `elements` elements of type dtype, the largest tensor having `largest` (0: one
 * tensor has them all), on `ranks` ranks of `nodes` nodes. config as in zero_init. The same arithmetic as
 * zero_forecast. device_bytes, host_bytes, nvme_bytes may be NULL.
 * Errors: ARGUMENT dtype, ranks or nodes < 1, nodes > ranks, elements or largest negative, largest > elements, more
 * than 2^20 tensors of that size (elements / largest); CONFIG; IO; UNSUPPORTED. */
ZERO_API int zero_estimate(const char *config, int dtype, int ranks, int nodes, int64_t elements, int64_t largest,
                           int64_t *device_bytes, int64_t *host_bytes, int64_t *nvme_bytes);

/* ---- surroundings ---------------------------------------------------------------------------------------------- */

/* Local. The CUDA stream (cudaStream_t) that produces gradients and uses values. NULL is the default stream.
 * Errors: UNSUPPORTED a stream where the context works in host memory. */
ZERO_API int zero_set_stream(zero_t z, void *cuda_stream);

/* Local. Log lines go to fn with `user`; fn NULL: back to the default, which is silence unless ZERO_LOG_LEVEL is set
 * in the environment (then stderr, with the rank). "libzero.log_level" chooses the least important level that is
 * passed on. */
ZERO_API int zero_set_log(zero_t z, zero_log_fn fn, void *user);

/* Local, never fails. "ZERO_ERR_STATE" for ZERO_ERR_STATE ...; "ZERO_ERR_UNKNOWN" for a number that is no code.
 * Static. */
ZERO_API const char *zero_error_name(int code);

/* Local, never NULL. The full sentence of the last call that failed on this thread; "" if none did. Valid until the
 * next call that fails on this thread. */
ZERO_API const char *zero_last_error(void);

/* Local. The version of the library at run time (that of the headers: zero/version.h). Each pointer may be NULL. */
ZERO_API int zero_version(int *major, int *minor, int *patch);

/* Local, never NULL. Compilers, MPI, HDF5, options, git id of this build, one per line. Static. */
ZERO_API const char *zero_build_info(void);

#ifdef __cplusplus
}
#endif

#endif
