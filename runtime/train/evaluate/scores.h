/* What an evaluation counts of a model's outputs, beside the loss. */
#ifndef TDM_TRAIN_SCORES_H
#define TDM_TRAIN_SCORES_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/sys/op.h>

enum { TDM_TOP = 5 }; /* tdm_scores.top5 */

/* Rows of y[rows, width] whose label is one of the TDM_TOP highest outputs, in tdm_scores's order. Labels are in range,
 * or `ignored`: these rows do not count. */
int64_t tdm__top5_hits(const float *y, int64_t rows, int64_t width, const int64_t *label, int64_t ignored);

/* Rows whose label is not ignored, whatever weights the classes have; without labels, as the loss counts. */
double tdm__rows_that_count(const tdm_loss_def *loss, const tdm_loss_section *section, int64_t rows, int64_t width,
                            const void *target);

#endif
