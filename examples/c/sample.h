/* Text sampled from the trained model. Rank 0 alone generates; because a gather is collective, it cannot gather alone,
   so the parameters are first made whole in its own arrays. */
#ifndef TEXT_MODEL_SAMPLE_H
#define TEXT_MODEL_SAMPLE_H

#include <stdint.h>

#include "training.h"

/* Collective. `count` bytes into `out` on rank 0 of the context's communicator; elsewhere out is not touched. The text
   goes on from `prompt`. */
void sample_text(const struct training *training, int rank, const char *prompt, int count, uint64_t seed, char *out);

#endif
