/* Reading sequences of a text at places drawn by a counter, not by a generator with a state: a run that goes on from a
   checkpoint reads what the uninterrupted run would have read. */
#include "text.h"

#include <errno.h>
#include <string.h>

int text_open(struct text *text, const char *path) {
    text->size = 0;
    text->file = fopen(path, "rb");
    if (!text->file) return -1;
    if (fseek(text->file, 0, SEEK_END) == 0) text->size = ftell(text->file);
    if (text->size > 0) return 0;
    text_close(text);
    errno = EINVAL;
    return -1;
}

void text_close(struct text *text) {
    if (text->file) fclose(text->file);
    text->file = NULL;
}

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t mixed_number(uint64_t a, uint64_t b) { return mix(mix(a) + b); }

static int read_at(struct text *text, int64_t start, int count, unsigned char *to) {
    if (fseek(text->file, (long)start, SEEK_SET) != 0) return -1;
    return fread(to, 1, (size_t)count, text->file) == (size_t)count ? 0 : -1;
}

int text_batch(struct text *text, int64_t step, int first, int count, int context, unsigned char *bytes,
               unsigned char *next) {
    const uint64_t starts = (uint64_t)(text->size - context);
    for (int s = 0; s < count; ++s) {
        const int64_t start = (int64_t)(mixed_number((uint64_t)step, (uint64_t)(first + s)) % starts);
        if (read_at(text, start, context, bytes + s * context) != 0) return -1;
        if (read_at(text, start + 1, context, next + s * context) != 0) return -1;
    }
    return 0;
}
