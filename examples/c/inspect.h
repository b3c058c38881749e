/* Looking at a training from outside: digests of every parameter and moment, and the library's ledger beside the
   formulas of ZeRO (Rajbhandari et al., 2020, section 5). */
#ifndef TEXT_MODEL_INSPECT_H
#define TEXT_MODEL_INSPECT_H

#include <stdio.h>

#include "training.h"

/* Collective. Rank 0 writes one line per tensor and vector to `file` (NULL on the other ranks): name, vector, digest
   of its bytes. Two runs that hold the same bits write the same lines, whatever their stages and numbers of ranks. */
void write_digests(const struct training *training, int rank, FILE *file);

/* Collective. Rank 0 prints how many bytes a rank holds (the largest over the ranks), as the library counts them,
   beside the formula. Returns 1 where they agree within the padding, else 0 (the same on every rank). */
int print_ledger(const struct training *training, MPI_Comm comm);

#endif
