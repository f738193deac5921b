/* All cases of all losses. A case is a name, settings as a job has them, and sizes; lists of them:
 * ops/loss/<loss>/<loss>_cases.def. */
#ifndef TDM_TESTS_LOSS_CASE_H
#define TDM_TESTS_LOSS_CASE_H

#include <math.h>
#include <string.h>

#include <tandem/sys/label.h>

#include "ops/ops.h"
#include "runtime/exec/loss.h"
#include "tests/support/tdm_test.h"

enum { LOSS_SIZES = 8, LOSS_MOST = 200000 / TDM_EVERY(4) };

typedef struct {
    const char *loss;
    tdm_loss_section section;
    /* Each number of rows is tried with each width, if that makes fewer than LOSS_MOST outputs; 0: no more sizes. */
    int64_t rows[LOSS_SIZES], width[LOSS_SIZES];
    /* How far CUDA's numbers may be from the CPU's: of the sum, relative; of the gradient, times the seed. 0: equal. */
    double cuda_sum, cuda_dy;
    bool kinks; /* the loss is not differentiable everywhere, so gradients are not compared with differences */
} loss_case;

static const loss_case loss_cases[] = {
#include "ops/loss_cases.def" /* generated from losses.def */
};
enum { LOSS_CASES = sizeof loss_cases / sizeof *loss_cases };

/* NULL: there is none. */
static inline const tdm_loss_def *loss_named(const char *name) {
    const tdm_loss_def *const *loss = tdm_builtin_losses;
    while (*loss != NULL && strcmp((*loss)->name, name) != 0) loss++;
    return *loss;
}

/* mixed: most labels are mixed (tandem/sys/label.h). */
typedef void loss_check(const loss_case *c, int64_t rows, int64_t width, bool mixed);

static inline void each_size_of(const loss_case *c, bool mixed, loss_check *check) {
    for (int w = 0; w < LOSS_SIZES && c->width[w] > 0; w += TDM_EVERY(2))
        for (int r = 0; r < LOSS_SIZES && c->rows[r] > 0; r++)
            if (c->rows[r] * c->width[w] < LOSS_MOST) check(c, c->rows[r], c->width[w], mixed);
}

static inline void each_loss_size(loss_check *check) {
    for (int i = 0; i < LOSS_CASES; i++) {
        each_size_of(&loss_cases[i], false, check);
        if (loss_named(loss_cases[i].loss)->takes_mixed) each_size_of(&loss_cases[i], true, check);
    }
}

/* Multiples of 2^-16 in [-1, 1) times `factor`. */
static inline void loss_numbers(uint32_t seed, float *out, int64_t count, float factor) {
    uint32_t x = seed;
    for (int64_t i = 0; i < count; i++) {
        x = x * 1664525u + 1013904223u;
        out[i] = (float)((int32_t)(x >> 15) - 65536) / 65536.0f * factor;
    }
}

static inline void loss_shares(float *row, int64_t width) {
    float total = 0;
    for (int64_t c = 0; c < width; c++) total += row[c] = fabsf(row[c]);
    for (int64_t c = 0; c < width; c++) row[c] /= total;
}

static inline size_t loss_target_bytes(const tdm_loss_def *loss, int64_t rows, int64_t width) {
    return loss->target == TDM_TARGET_CLASS ? (size_t)rows * sizeof(int64_t) : (size_t)(rows * width) * sizeof(float);
}

static inline void loss_targets(const loss_case *c, int64_t rows, int64_t width, bool mixed, void *target) {
    const tdm_loss_def *loss = loss_named(c->loss);
    if (loss->target == TDM_TARGET_VALUES) {
        loss_numbers(12, target, rows * width, 4);
        const bool shares = strcmp(c->loss, "soft_cross_entropy") == 0; /* probabilities, which add up to 1 */
        for (int64_t n = 0; shares && n < rows; n++) loss_shares((float *)target + n * width, width);
        return;
    }
    for (int64_t n = 0; n < rows; n++) {
        const int64_t first = n * 7919 % width, second = n * 104729 % width;
        const bool is_plain = !mixed || n % 4 == 3 || first == c->section.ignore_index;
        ((int64_t *)target)[n] = is_plain ? first : tdm_label_pack(first, second, 1 + n * 1048573 % 4194303);
    }
}

#endif
