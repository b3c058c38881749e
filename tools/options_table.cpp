// Prints docs/options.md from the table of options; with --man the same rows as a part of a man page.
// Not here: the rows (src/config/table.cpp).
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "config/convert.hpp"
#include "config/options.hpp"

namespace {

using namespace zero::config;

const char* const head = R"(# Options

Printed from the table in `src/config/table.cpp` by `zero_options_table`: do not edit.

A configuration is a JSON file or JSON text, in the form of DeepSpeed: a path below such as `fp16.loss_scale` is the key
`loss_scale` inside the section `fp16`. Order of precedence: default, configuration, environment, `zero_set_*`. The
environment variable of a key is `ZERO_` and the path in upper case with `_` for `.`, read once by `zero_init`:
`ZERO_ZERO_OPTIMIZATION_STAGE=2`. Integers may be written `5e8`. Unknown keys in a section are ZERO_ERR_CONFIG with the
nearest known key; unknown top-level keys are logged once; a key given twice is ZERO_ERR_CONFIG.

Columns: *stages* in which the key matters. *Types*: the optimizer or schedule types that have the key. *When*: "any time"
keys may be changed after `zero_commit`. *Here*: what this build does. "No effect" is said once in the log; "only the
default" means that any other value is ZERO_ERR_UNSUPPORTED. `auto` picks from the registered tensors or takes the
default, and the log says what it became.
)";

const char* const formulas = R"(
## Formulas

Words: t = number of applied updates. Skipped updates (a non-finite gradient) change nothing but `skipped_steps`.

- **Adam, AdamW**, t from 1: m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; decoupled decay first: p -= lr wd p; then
  p -= lr (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps). With `bias_correction` false the two divisors are 1. "Adam" decays
  decoupled too, as in DeepSpeed; with `adam_w_mode` false the decay is part of the gradient: g += wd p first.
- **Lion**: u = sign(b1 m + (1-b1) g); p -= lr (u + wd p); m = b2 m + (1-b2) g.
- **SGD**: g += wd p; b = momentum b + g (first step b = g); p -= lr b (nesterov: g + momentum b).
- **Adagrad**: s += g^2; p -= lr g / (sqrt(s) + eps).
- **Lamb**: the direction r of Adam (+ wd p); trust = |p| / |r| over the whole tensor, clamped to
  [`min_coeff`, `max_coeff`], 1 if either norm is 0; p -= lr trust r.
- **Clipping**: factor = min(1, clip / (norm + 1e-6)), norm = L2 over all trainable tensors, squares in fp64.
- **Loss scale**: S = 2^`initial_scale_power`, h = `hysteresis`, iter = 0, last = -1. Overflow: if `hysteresis` = 1 or
  h = 1 then S = max(S/2, min), and an overflow with S already at its minimum is ZERO_ERR_NUMERIC; else h -= 1; last =
  iter. Clean: k = iter - last - 1; if k > 0 and k mod window = 0 then S *= 2 (not beyond 2^127) and h = `hysteresis`
  (with `consecutive_hysteresis`, h = `hysteresis` at every clean update). Then iter += 1. Gradients are divided by the S
  they were produced with.
- **Batch sizes**: `train_batch_size` = `train_micro_batch_size_per_gpu` x `gradient_accumulation_steps` x ranks; any two
  give the third.
- **auto**, with N = elements of the largest tensor: `reduce_bucket_size` N, `stage3_prefetch_bucket_size` 0.9 N,
  `stage3_param_persistence_threshold` 10 sqrt(N); everything else its default.

Schedules, t = index of the last applied update: -1 before the first, so the first update uses the rate at t = -1.
W = max(2, `warmup_num_steps`), T = `total_num_steps`.

- **WarmupLR**: part g = ln(t+1) / ln W (`log`) or t / W (`linear`) for t < W, then 1; lr = min + g (max - min);
  at t = -1 lr = min. With `warmup_min_lr` 0 the first two updates (t = -1 and 0) have rate 0 and change nothing.
- **WarmupDecayLR**: the same, and from t = W on g = max(0, (T-t) / max(1, T-W)).
- **WarmupCosineLR**: lr = `optimizer.params.lr` x ratio; ratio = r0 + (1-r0) g for t < W with r0 = `warmup_min_ratio`;
  then x = min(1, (t-W+1) / max(1, T-W)), ratio = c + (1-c)(1 + cos(pi x)) / 2 with c = `cos_min_ratio`; at t = -1
  ratio = 0.
- **OneCycle**: for t < first + second: height of a triangle at position t + 1 (0 at the ends, 1 at the peak; with
  stairs, rounded down to a stair), lr = min + height (max - min), betas[0] = max_mom - height (max_mom - min_mom), from
  the first update on. Afterwards d = (t - first - second + 1) / `decay_step_size`, lr = min / (1 + `decay_lr_rate` d),
  betas[0] = max_mom (1 + `decay_mom_rate` d), kept at or below 1 - 1e-6. `decay_step_size` 0: no decay.
- **LRRangeTest**: lr = min (1 + `lr_range_test_step_rate` (t+1) / `lr_range_test_step_size`); with staircase the
  fraction is rounded down.

A group with its own `lr` keeps the ratio `groups.<n>.lr` / `optimizer.params.lr` under a schedule.
)";

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '|') out += '\\';
        out += c;
    }
    return out;
}

// Groups stand as <n> in print.
std::string shown_path(const option& row) {
    std::string path(row.path);
    const std::size_t star = path.find('*');
    return star == std::string::npos ? path : path.replace(star, 1, "<n>");
}

std::string section_of(const std::string& path) {
    const std::size_t dot = path.find('.');
    return dot == std::string::npos ? "top level" : path.substr(0, dot);
}

std::string here(const option& row) {
    if (!row.renamed.empty()) return "mapped";
    if (row.support == answer::no_effect) return "no effect: " + std::string(row.advice);
    if (row.support == answer::unsupported) return "only the default: " + std::string(row.advice);
    if (shown_words(row, true) == shown_words(row, false)) return "yes";
    std::string refused;
    const std::string all = shown_words(row, true);
    const std::size_t known = shown_words(row, false).size();
    refused = all.substr(known + 2);  // the table lists refused words last
    return "yes; not in this build: " + refused;
}

std::string defaults(const option& row) {
    if (row.path == "zero_optimization.overlap_comm") return "stage 3: true, else false";
    if (row.path == "gradient_accumulation_steps") return "1";
    return row.standard.empty() ? "none" : std::string(row.standard);
}

void print_row(const option& row) {
    std::string types;
    for (const char c : row.owners) types += c == '|' ? std::string(", ") : std::string(1, c);
    std::printf("| `%s` | %s | %s | %s | %s | %s | %s | %s |\n", shown_path(row).c_str(), defaults(row).c_str(),
                escaped(expectation(row)).c_str(), std::string(row.stages).c_str(), types.c_str(),
                row.when == change::run_time ? "any time" : row.when == change::by_init ? "zero_init" : "before commit", escaped(row.text).c_str(),
                escaped(here(row)).c_str());
}

void print_markdown() {
    std::fputs(head, stdout);
    std::vector<std::string> sections;
    for (const option& row : table()) {
        const std::string section = section_of(std::string(row.path));
        if (std::find(sections.begin(), sections.end(), section) == sections.end()) sections.push_back(section);
    }
    for (const std::string& section : sections) {
        std::printf("\n## %s\n\n| key | default | value | stages | types | when | meaning | here |\n", section.c_str());
        std::puts("|---|---|---|---|---|---|---|---|");
        for (const option& row : table()) {
            if (section_of(std::string(row.path)) == section) print_row(row);
        }
    }
    std::fputs(formulas, stdout);
}

std::string roff(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\\' || c == '-') out += '\\';
        out += c;
    }
    return out;
}

void print_man() {
    std::puts(".SH OPTIONS");
    for (const option& row : table()) {
        std::printf(".TP\n.B %s\n%s.\nValue: %s. Default: %s. Environment: %s.\n", roff(shown_path(row)).c_str(),
                    roff(row.text).c_str(), roff(expectation(row)).c_str(), roff(defaults(row)).c_str(),
                    roff(environment_name(shown_path(row))).c_str());
        if (row.support != answer::honoured) std::printf("This build: %s.\n", roff(here(row)).c_str());
    }
}

}  // namespace

int main(int count, char** words) {
    if (count == 2 && std::strcmp(words[1], "--man") == 0) {
        print_man();
    } else {
        print_markdown();
    }
    return 0;
}
