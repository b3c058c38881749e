/* One table of options with a value, read in order; nothing is accepted and ignored. */
#include "options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *options_help(void) {
    return "text_model: a byte-level transformer language model, trained by the ranks of MPI with libzero.\n"
           "Usage: mpiexec -n P text_model [options]\n"
           "\n"
           "training\n"
           "  --text FILE       text to learn (default /usr/share/common-licenses/GPL-3)\n"
           "  --steps N         updates to make in this run (default 150)\n"
           "  --stage S         stage of ZeRO, 0 to 3 (default: as the configuration says; the built-in one says 3)\n"
           "  --config C        configuration in place of the built-in one: a JSON file, or JSON text\n"
           "  --set KEY=VALUE   one option of the configuration by its path, e.g. optimizer.params.lr=0.001\n"
           "                    (may be repeated)\n"
           "  --every N         print every N steps (default 25)\n"
           "  --seed N          of the initial values and the sampled text (default 1)\n"
           "model\n"
           "  --batch N         sequences per step over all ranks, a multiple of P (default 16)\n"
           "  --context N       bytes per sequence (default 64)\n"
           "  --width N         elements per token, a multiple of the heads (default 64)\n"
           "  --heads N         attention heads (default 4)\n"
           "  --blocks N        transformer blocks (default 3)\n"
           "checkpoints\n"
           "  --load DIR        go on from the newest checkpoint in DIR (any number of ranks, any stage)\n"
           "  --save DIR        save into DIR after the last step\n"
           "results\n"
           "  --losses FILE     write the loss of every step, decimal and exact\n"
           "  --verify FILE     write digests of all parameters and moments: with --load right after loading, else\n"
           "                    after the last step\n"
           "  --ledger          print the memory per rank beside the formula of ZeRO; exit status 3 where they differ\n"
           "  --sample N        write N bytes of text sampled from the model\n"
           "  --prompt TEXT     what the sampled text goes on from (default \"The \")\n"
           "  --help            this text\n";
}

static int read_number(const char *text, int least, int *number) {
    char *end = NULL;
    errno = 0;
    const long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < least || value > INT_MAX) return -1;
    *number = (int)value;
    return 0;
}

static void defaults(struct options *options) {
    memset(options, 0, sizeof *options);
    options->text = "/usr/share/common-licenses/GPL-3";
    options->prompt = "The ";
    options->stage = -1;
    options->steps = 150;
    options->every = 25;
    options->seed = 1;
    options->shape.sequences = 16;
    options->shape.context = 64;
    options->shape.width = 64;
    options->shape.heads = 4;
    options->shape.blocks = 3;
}

static int read_value(struct options *options, const char *name, const char *value) {
    const struct { const char *name; const char **to; } texts[] = {
        {"--text", &options->text},     {"--save", &options->save},     {"--load", &options->load},
        {"--config", &options->config}, {"--losses", &options->losses}, {"--verify", &options->verify},
        {"--prompt", &options->prompt}};
    const struct { const char *name; int least; int *to; } numbers[] = {
        {"--stage", 0, &options->stage},           {"--steps", 0, &options->steps},
        {"--every", 1, &options->every},           {"--sample", 0, &options->sample},
        {"--seed", 0, &options->seed},             {"--batch", 1, &options->shape.sequences},
        {"--context", 1, &options->shape.context}, {"--width", 1, &options->shape.width},
        {"--heads", 1, &options->shape.heads},     {"--blocks", 1, &options->shape.blocks}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i)
        if (strcmp(name, texts[i].name) == 0) {
            *texts[i].to = value;
            return *value ? 0 : -1;
        }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
        if (strcmp(name, numbers[i].name) == 0) return read_number(value, numbers[i].least, numbers[i].to);
    if (strcmp(name, "--set") == 0 && options->setting_count < MOST_SETTINGS && strchr(value, '=')) {
        options->settings[options->setting_count++] = value;
        return 0;
    }
    return -1;
}

int options_read(int argc, char **argv, struct options *options, char *problem, int capacity) {
    defaults(options);
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--help") == 0) {
            options->help = 1;
        } else if (strcmp(argv[i], "--ledger") == 0) {
            options->ledger = 1;
        } else if (i + 1 >= argc || read_value(options, argv[i], argv[i + 1]) != 0) {
            snprintf(problem, (size_t)capacity, "'%s%s%s' is no option with a valid value; see --help", argv[i],
                     i + 1 < argc ? " " : "", i + 1 < argc ? argv[i + 1] : "");
            return -1;
        } else {
            ++i;
        }
    }
    if (options->shape.width % options->shape.heads != 0) {
        snprintf(problem, (size_t)capacity, "--width %d must be a multiple of --heads %d", options->shape.width,
                 options->shape.heads);
        return -1;
    }
    if (options->prompt[0] == 0) options->prompt = " ";
    return 0;
}
