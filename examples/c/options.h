/* The command line of text_model. */
#ifndef TEXT_MODEL_OPTIONS_H
#define TEXT_MODEL_OPTIONS_H

#include "model.h"

enum { MOST_SETTINGS = 16 };

struct options {
    const char *text, *save, *load, *config, *losses, *verify, *prompt;
    const char *settings[MOST_SETTINGS]; /* KEY=VALUE */
    int setting_count;
    int stage; /* -1: as the configuration says */
    int steps, every, sample, ledger, help, seed;
    struct shape shape; /* sequences: of the whole batch, over all ranks */
};

/* 0, or -1 with a sentence in `problem`. */
int options_read(int argc, char **argv, struct options *options, char *problem, int capacity);
const char *options_help(void);

#endif
