/* Rows of dropout and dropout2d, for kernels of the CPU. */
#ifndef TDM_OPS_DROPOUT_ROWS_H
#define TDM_OPS_DROPOUT_ROWS_H

#include <tandem/sys/op.h>

#include "ops/dropout/dropout.h"
#include "ops/dropout/dropout_draw.h"
#include "ops/elementwise.h"

/* Elements of a row. */
static inline int64_t tdm__dropout_width(const tdm_kernel_desc *desc) {
    int64_t width = 1;
    for (int i = 1; i < desc->y.ndim; i++) width *= desc->y.dim[i];
    return width;
}

/* The mask is defined on the plain layout; in another each element would have to be looked up. */
static inline bool tdm__dropout_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    fit->x_layout[0] = fit->y_layout = TDM_LAYOUT_PLAIN;
    fit->saved_bytes = (size_t)(desc->y.dim[0] * tdm__dropout_width(desc));
    return true;
}

/* Writes one row of the mask: 1 where an element is kept. */
static inline void tdm__dropout_mask(uint8_t *keep, int64_t count, const tdm_dropout_draw *draw) {
    uint64_t threshold = tdm__dropout_threshold(draw->p), key = tdm__dropout_key(draw->seed);
    for (int64_t e = 0; e < count; e += 4) {
        uint32_t word[4];
        tdm__dropout_words(word, key, e / 4, draw->position, draw->step, draw->stream);
        for (int64_t j = 0; j < 4 && e + j < count; j++) keep[e + j] = word[j] >= threshold;
    }
}

/* The same for row n of the batch. */
static inline void tdm__dropout_draw_row(const tdm_kernel_args *args, uint8_t *keep, int64_t n, int64_t count) {
    tdm__dropout_mask(keep, count,
                      &(tdm_dropout_draw){.p = ((const tdm_dropout_attrs *)args->desc->attrs)->p,
                                          .seed = args->seed,
                                          .step = args->values->step,
                                          .stream = args->stream,
                                          .position = args->position[n]});
}

/* The same for all rows. */
static inline void tdm__dropout_draw_rows(const tdm_kernel_args *args, int64_t count) {
    for (int64_t n = 0; n < args->rows; n++) tdm__dropout_draw_row(args, (uint8_t *)args->saved + n * count, n, count);
}

/* The factor is 0 or the scale. It is a product so that NaN and infinity show even where they are dropped, as in
 * PyTorch. */
static inline void tdm__dropout_apply(float *out, const float *in, const uint8_t *keep, int64_t count, float scale) {
    TDM_SAME_OR_APART
    for (int64_t i = 0; i < count; i++) out[i] = in[i] * (keep[i] ? scale : 0.0f);
}

#endif
