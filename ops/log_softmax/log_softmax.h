/* log_softmax of some rows, with the loops that losses over classes have (ops/loss/classes_lanes.c). */
#ifndef TDM_OPS_LOG_SOFTMAX_H
#define TDM_OPS_LOG_SOFTMAX_H

#include "ops/loss/classes.h"

/* y = (x - max) - log(sum exp(x - max)): no exp overflows. A NaN, or an infinity as the largest, makes its row NaN, as
 * in PyTorch. */
static inline void tdm__log_softmax_rows(const tdm_class_lanes *lanes, const tdm_kernel_args *args, int64_t begin,
                                         int64_t end) {
    const int64_t classes = args->desc->y.dim[1];
    for (int64_t n = begin; n < end; n++) {
        const float *x = args->x[0] + n * classes;
        const tdm_softmax_row row = tdm__softmax_row(lanes, x, classes, lanes->max(x, classes));
        lanes->log_softmax(args->y + n * classes, &row);
    }
}

static inline void tdm__log_softmax_gradients(const tdm_class_lanes *lanes, const tdm_kernel_args *args, int64_t begin,
                                              int64_t end) {
    const int64_t classes = args->desc->y.dim[1];
    for (int64_t at = begin * classes; at < end * classes; at += classes)
        lanes->log_softmax_gradient(args->dx[0] + at, args->y + at, args->dy + at, classes);
}

#endif
