/* The training text: any file, read where a batch needs it, so that its size does not matter. A rank reads only the
   sequences of its own part of the batch. */
#ifndef TEXT_MODEL_TEXT_H
#define TEXT_MODEL_TEXT_H

#include <stdint.h>
#include <stdio.h>

struct text {
    FILE *file;
    int64_t size; /* bytes */
};

/* 0, or -1 with errno set where the file cannot be read. */
int text_open(struct text *text, const char *path);
void text_close(struct text *text);

/* A well mixed number for the pair (a, b): splitmix64 (Steele, Lea and Flood, 2014) applied twice. */
uint64_t mixed_number(uint64_t a, uint64_t b);

/* Sequences first .. first + count - 1 of the batch of this step: their bytes and for each the byte that follows it,
   count x context each. Which part of the text a sequence is depends on (step, its number) alone, so the batch is the
   same however many ranks share it. The text must hold more than `context` bytes. 0, or -1 where reading fails. */
int text_batch(struct text *text, int64_t step, int first, int count, int context, unsigned char *bytes,
               unsigned char *next);

#endif
