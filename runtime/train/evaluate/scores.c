#include "runtime/train/evaluate/scores.h"

#include <math.h>

/* A label is among the highest if fewer than TDM_TOP classes come before it in the order of a stable descending sort.
 */
int64_t tdm__top5_hits(const float *y, int64_t rows, int64_t width, const int64_t *label, int64_t ignored) {
    int64_t hits = 0;
    for (int64_t n = 0; n < rows; n++, y += width) {
        if (label[n] == ignored) continue;
        const float own = y[label[n]];
        int before = 0;
        for (int64_t c = 0; c < width && before < TDM_TOP; c++) {
            bool above = isnan(own) ? false : y[c] > own || isnan(y[c]);
            bool equal = isnan(own) ? isnan(y[c]) : y[c] == own;
            before += above || (equal && c < label[n]);
        }
        hits += before < TDM_TOP;
    }
    return hits;
}

double tdm__rows_that_count(const tdm_loss_def *loss, const tdm_loss_section *section, int64_t rows, int64_t width,
                            const void *target) {
    tdm_loss_section unweighted = *section;
    unweighted.weight.count = 0;
    return loss->denominator(&unweighted, rows, width, target);
}
