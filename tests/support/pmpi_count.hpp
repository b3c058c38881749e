/* What the PMPI shim counted on this rank since the last reset. C, so that pmpi_count.c and the C++ tests share it. */
#pragma once
#ifdef __cplusplus
extern "C" {
#endif

/* Payload bytes that this rank sends. Collectives by the usual bound (n = its bytes, P = ranks): all-gather n (P-1),
   reduce-scatter n (P-1) with n the bytes of a slot, all-reduce 2 n (P-1) / P, broadcast n on the root, gather n
   elsewhere. */
typedef struct pmpi_counts {
    long long sends, send_bytes;                 /* point to point */
    long long off_node_bytes;                    /* of them: to other nodes of pmpi_count_nodes_of() */
    long long collectives, collective_bytes;     /* blocking and not */
    long long reductions;                        /* of them: all-reduce, reduce, reduce-scatter */
    long long exchanges[3];                      /* by tag: reduce-scatters, gathers, texts */
    long long largest_count;                     /* of all calls */
    long long world_uses;                        /* communication on MPI_COMM_WORLD (duplicating it is allowed) */
    long long communicators, operations, types, windows, files, groups;  /* made minus freed */
    long long communicators_made;
} pmpi_counts;

pmpi_counts pmpi_count_get(void);
void pmpi_count_reset(void);                     /* the balances too */
void pmpi_count_nodes_of(int ranks);             /* so many ranks of MPI_COMM_WORLD in a row are a node; 0: all of them */

#ifdef __cplusplus
}
#endif
