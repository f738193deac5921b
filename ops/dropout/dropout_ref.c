/* dropout: reference kernel, also used by default. */
#include <string.h>

#include "ops/dropout/dropout.h"
#include "ops/dropout/dropout_draw.h"
#include "ops/elementwise.h"
#include "ops/ops.h"

void tdm__dropout_mask(uint8_t *keep, int64_t count, const tdm_dropout_draw *draw) {
    uint64_t threshold = tdm__dropout_threshold(draw->p), key = tdm__dropout_key(draw->seed);
    for (int64_t e = 0; e < count; e += 4) {
        uint32_t word[4];
        tdm__dropout_words(word, key, e / 4, draw->position, draw->step, draw->stream);
        for (int64_t j = 0; j < 4 && e + j < count; j++) keep[e + j] = word[j] >= threshold;
    }
}

/* The mask is defined on the plain layout; in another layout each element would have to be looked up. */
static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    fit->x_layout[0] = fit->y_layout = TDM_LAYOUT_PLAIN;
    fit->saved_bytes = (size_t)desc->y.dim[0];
    for (int i = 1; i < desc->y.ndim; i++) fit->saved_bytes *= (size_t)desc->y.dim[i];
    return true;
}

/* The factor is 0 or the scale. It is a product so that NaN and infinity show even where they are dropped, as in
 * PyTorch. */
static void apply(float *out, const float *in, const uint8_t *keep, int64_t count, float scale) {
    TDM_SAME_OR_APART
    for (int64_t i = 0; i < count; i++) out[i] = in[i] * (keep[i] ? scale : 0.0f);
}

/* y = x * keep / (1 - p) */
static tdm_status forward(const tdm_kernel_args *args) {
    const tdm_dropout_attrs *attrs = args->desc->attrs;
    int64_t count = tdm__elementwise_count(args), width = count / args->rows;
    if (!args->training) {
        if (args->y != args->x[0]) memcpy(args->y, args->x[0], (size_t)count * sizeof(float));
        return TDM_OK;
    }
    uint8_t *keep = args->saved;
    for (int64_t n = 0; n < args->rows; n++)
        tdm__dropout_mask(keep + n * width, width,
                          &(tdm_dropout_draw){.p = attrs->p,
                                              .seed = args->seed,
                                              .step = args->values->step,
                                              .stream = args->stream,
                                              .position = args->position[n]});
    apply(args->y, args->x[0], keep, count, tdm__dropout_scale(attrs->p));
    return TDM_OK;
}

/* dx = dy * keep / (1 - p) */
static tdm_status backward(const tdm_kernel_args *args) {
    const tdm_dropout_attrs *attrs = args->desc->attrs;
    apply(args->dx[0], args->dy, args->saved, tdm__elementwise_count(args), tdm__dropout_scale(attrs->p));
    return TDM_OK;
}

TDM_REF_KERNEL(dropout, fits);
