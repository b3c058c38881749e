/* A PMPI shim linked into tests: counts what this rank's MPI calls send and what they create and free, then does the
   call. Not part of the library. The figures: pmpi_count.hpp. */
#include "support/pmpi_count.hpp"

#include <mpi.h>
#include <string.h>

static pmpi_counts now;
static int last_tag[3] = {-1, -1, -1};
static int node_size = 0;

pmpi_counts pmpi_count_get(void) {
    return now;
}
void pmpi_count_reset(void) {
    memset(&now, 0, sizeof now);
    last_tag[0] = last_tag[1] = last_tag[2] = -1;
}

void pmpi_count_nodes_of(int ranks) {
    node_size = ranks;
}

static int on_own_node(int to, MPI_Comm comm) {
    MPI_Group there = MPI_GROUP_NULL, all = MPI_GROUP_NULL;
    int world = 0, own = 0;
    if (node_size == 0) return 1;
    PMPI_Comm_group(comm, &there);
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Group_translate_ranks(there, 1, &to, all, &world);
    PMPI_Group_free(&there);
    PMPI_Group_free(&all);
    PMPI_Comm_rank(MPI_COMM_WORLD, &own);
    return world / node_size == own / node_size;
}

static void saw(int count, MPI_Comm comm) {
    if (count > now.largest_count) now.largest_count = count;
    if (comm == MPI_COMM_WORLD) ++now.world_uses;
}

static long long bytes_of(int count, MPI_Datatype type) {
    int size = 0;
    if (type != MPI_DATATYPE_NULL) PMPI_Type_size(type, &size);
    return (long long)count * size;
}

static int size_of(MPI_Comm comm) {
    int size = 1;
    PMPI_Comm_size(comm, &size);
    return size;
}

static int is_rank(int root, MPI_Comm comm) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    return rank == root;
}

static void sends(int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    const int kind = tag % 4;
    saw(count, comm);
    if (to == MPI_PROC_NULL) return;
    ++now.sends;
    now.send_bytes += bytes_of(count, type);
    if (!on_own_node(to, comm)) now.off_node_bytes += bytes_of(count, type);
    if (tag >= 0 && kind < 3 && last_tag[kind] != tag) {
        last_tag[kind] = tag;
        ++now.exchanges[kind];
    }
}

static void collective(int count, long long bytes, MPI_Comm comm) {
    saw(count, comm);
    ++now.collectives;
    now.collective_bytes += bytes;
}

static void reduction(int count, long long bytes, MPI_Comm comm) {
    collective(count, bytes, comm);
    ++now.reductions;
}

/* ---- point to point */
#define SEND(name)                                                                                   \
    int MPI_##name(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) { \
        sends(count, type, to, tag, comm);                                                           \
        return PMPI_##name(data, count, type, to, tag, comm);                                        \
    }
#define ISEND(name)                                                                                                  \
    int MPI_##name(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* r) { \
        sends(count, type, to, tag, comm);                                                                           \
        return PMPI_##name(data, count, type, to, tag, comm, r);                                                     \
    }
SEND(Send)
SEND(Ssend) SEND(Bsend) SEND(Rsend) ISEND(Isend) ISEND(Issend) ISEND(Ibsend) ISEND(Irsend)

    int MPI_Recv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status) {
    saw(count, comm);
    return PMPI_Recv(data, count, type, from, tag, comm, status);
}
int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* r) {
    saw(count, comm);
    return PMPI_Irecv(data, count, type, from, tag, comm, r);
}
int MPI_Sendrecv(const void* out, int n, MPI_Datatype t, int to, int tag, void* in, int m, MPI_Datatype u, int from,
                 int tag_in, MPI_Comm comm, MPI_Status* status) {
    sends(n, t, to, tag, comm);
    return PMPI_Sendrecv(out, n, t, to, tag, in, m, u, from, tag_in, comm, status);
}

/* ---- collectives, blocking and not */
#define BOTH(name, parameters, arguments, counting) \
    int MPI_##name parameters {                     \
        counting;                                   \
        return PMPI_##name arguments;               \
    }
#define LIST(...) (__VA_ARGS__)

BOTH(Barrier, LIST(MPI_Comm comm), LIST(comm), collective(0, 0, comm))
BOTH(Ibarrier, LIST(MPI_Comm comm, MPI_Request* r), LIST(comm, r), collective(0, 0, comm))
#define BCAST collective(n, is_rank(root, comm) ? bytes_of(n, t) : 0, comm)
BOTH(Bcast, LIST(void* a, int n, MPI_Datatype t, int root, MPI_Comm comm), LIST(a, n, t, root, comm), BCAST)
BOTH(Ibcast, LIST(void* a, int n, MPI_Datatype t, int root, MPI_Comm comm, MPI_Request* r),
     LIST(a, n, t, root, comm, r), BCAST)
#define REDUCE_ALL reduction(n, 2 * bytes_of(n, t) * (size_of(comm) - 1) / size_of(comm), comm)
BOTH(Allreduce, LIST(const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm comm), LIST(a, b, n, t, o, comm),
     REDUCE_ALL)
BOTH(Iallreduce, LIST(const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm comm, MPI_Request* r),
     LIST(a, b, n, t, o, comm, r), REDUCE_ALL)
#define REDUCE reduction(n, is_rank(root, comm) ? 0 : bytes_of(n, t), comm)
BOTH(Reduce, LIST(const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, int root, MPI_Comm comm),
     LIST(a, b, n, t, o, root, comm), REDUCE)
BOTH(Ireduce, LIST(const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, int root, MPI_Comm comm, MPI_Request* r),
     LIST(a, b, n, t, o, root, comm, r), REDUCE)
#define SCATTER_SUMS reduction(n, bytes_of(n, t) * (size_of(comm) - 1), comm)
BOTH(Reduce_scatter_block, LIST(const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm comm),
     LIST(a, b, n, t, o, comm), SCATTER_SUMS)
BOTH(Ireduce_scatter_block,
     LIST(const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm comm, MPI_Request* r),
     LIST(a, b, n, t, o, comm, r), SCATTER_SUMS)

/* n is this rank's own count; in place it stands in the receive arguments. */
static long long own_bytes(const void* a, int n, MPI_Datatype t, int m, MPI_Datatype u) {
    return a == MPI_IN_PLACE ? bytes_of(m, u) : bytes_of(n, t);
}
static int own_rank(MPI_Comm comm) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    return rank;
}
#define GATHER_ALL collective(m, own_bytes(a, n, t, m, u) * (size_of(comm) - 1), comm)
BOTH(Allgather, LIST(const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u, MPI_Comm comm),
     LIST(a, n, t, b, m, u, comm), GATHER_ALL)
BOTH(Iallgather,
     LIST(const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u, MPI_Comm comm, MPI_Request* r),
     LIST(a, n, t, b, m, u, comm, r), GATHER_ALL)
#define GATHER_ALL_V collective(n, own_bytes(a, n, t, m[own_rank(comm)], u) * (size_of(comm) - 1), comm)
BOTH(Allgatherv,
     LIST(const void* a, int n, MPI_Datatype t, void* b, const int* m, const int* d, MPI_Datatype u, MPI_Comm comm),
     LIST(a, n, t, b, m, d, u, comm), GATHER_ALL_V)
BOTH(Iallgatherv,
     LIST(const void* a, int n, MPI_Datatype t, void* b, const int* m, const int* d, MPI_Datatype u, MPI_Comm comm,
          MPI_Request* r),
     LIST(a, n, t, b, m, d, u, comm, r), GATHER_ALL_V)
#define GATHER collective(n, is_rank(root, comm) ? 0 : bytes_of(n, t), comm)
BOTH(Gather, LIST(const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u, int root, MPI_Comm comm),
     LIST(a, n, t, b, m, u, root, comm), GATHER)
BOTH(Gatherv,
     LIST(const void* a, int n, MPI_Datatype t, void* b, const int* m, const int* d, MPI_Datatype u, int root,
          MPI_Comm comm),
     LIST(a, n, t, b, m, d, u, root, comm), GATHER)
BOTH(Alltoall, LIST(const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u, MPI_Comm comm),
     LIST(a, n, t, b, m, u, comm), collective(n, bytes_of(n, t) * (size_of(comm) - 1), comm))

/* ---- what is made and freed */
#define MAKES(what, name, parameters, arguments)  \
    int MPI_##name parameters {                   \
        const int result = PMPI_##name arguments; \
        if (result == MPI_SUCCESS) ++now.what;    \
        return result;                            \
    }
#define FREES(what, name, type)     \
    int MPI_##name(type* handle) {  \
        --now.what;                 \
        return PMPI_##name(handle); \
    }
#define MAKES_COMM(name, parameters, arguments)                \
    int MPI_##name parameters {                                \
        const int result = PMPI_##name arguments;              \
        if (result == MPI_SUCCESS && *made != MPI_COMM_NULL) { \
            ++now.communicators;                               \
            ++now.communicators_made;                          \
        }                                                      \
        return result;                                         \
    }
MAKES_COMM(Comm_dup, LIST(MPI_Comm comm, MPI_Comm* made), LIST(comm, made))
MAKES_COMM(Comm_dup_with_info, LIST(MPI_Comm comm, MPI_Info i, MPI_Comm* made), LIST(comm, i, made))
MAKES_COMM(Comm_split, LIST(MPI_Comm comm, int color, int key, MPI_Comm* made), LIST(comm, color, key, made))
MAKES_COMM(Comm_split_type, LIST(MPI_Comm comm, int type, int key, MPI_Info i, MPI_Comm* made),
           LIST(comm, type, key, i, made))
MAKES_COMM(Comm_create, LIST(MPI_Comm comm, MPI_Group g, MPI_Comm* made), LIST(comm, g, made))
FREES(communicators, Comm_free, MPI_Comm)
MAKES(operations, Op_create, LIST(MPI_User_function* f, int commute, MPI_Op* made), LIST(f, commute, made))
FREES(operations, Op_free, MPI_Op)
MAKES(types, Type_contiguous, LIST(int n, MPI_Datatype t, MPI_Datatype* made), LIST(n, t, made))
MAKES(types, Type_vector, LIST(int n, int b, int s, MPI_Datatype t, MPI_Datatype* made), LIST(n, b, s, t, made))
MAKES(types, Type_dup, LIST(MPI_Datatype t, MPI_Datatype* made), LIST(t, made))
MAKES(types, Type_create_struct,
      LIST(int n, const int* b, const MPI_Aint* d, const MPI_Datatype* t, MPI_Datatype* made), LIST(n, b, d, t, made))
MAKES(types, Type_create_resized, LIST(MPI_Datatype t, MPI_Aint l, MPI_Aint e, MPI_Datatype* made), LIST(t, l, e, made))
FREES(types, Type_free, MPI_Datatype)
MAKES(windows, Win_create, LIST(void* a, MPI_Aint n, int unit, MPI_Info i, MPI_Comm comm, MPI_Win* made),
      LIST(a, n, unit, i, comm, made))
MAKES(windows, Win_allocate, LIST(MPI_Aint n, int unit, MPI_Info i, MPI_Comm comm, void* a, MPI_Win* made),
      LIST(n, unit, i, comm, a, made))
MAKES(windows, Win_allocate_shared, LIST(MPI_Aint n, int unit, MPI_Info i, MPI_Comm comm, void* a, MPI_Win* made),
      LIST(n, unit, i, comm, a, made))
FREES(windows, Win_free, MPI_Win)
MAKES(files, File_open, LIST(MPI_Comm comm, const char* name, int mode, MPI_Info i, MPI_File* made),
      LIST(comm, name, mode, i, made))
FREES(files, File_close, MPI_File)
MAKES(groups, Comm_group, LIST(MPI_Comm comm, MPI_Group* made), LIST(comm, made))
FREES(groups, Group_free, MPI_Group)
