/* log_softmax: the kernel of the CPU, the loops that losses over classes have (ops/loss/classes_lanes.c). */
#include "ops/loss/classes.h"
#include "ops/ops.h"

/* y = (x - max) - log(sum exp(x - max)): no exp overflows. A NaN, or an infinity as the largest, makes its row NaN, as
 * in PyTorch. */
static tdm_status forward(const tdm_kernel_args *args) {
    const tdm_class_lanes *lanes = tdm__class_lanes();
    const int64_t classes = args->desc->y.dim[1];
    for (int64_t n = 0; n < args->rows; n++) {
        const float *x = args->x[0] + n * classes;
        const tdm_softmax_row row = tdm__softmax_row(x, classes, lanes->max(x, classes));
        lanes->log_softmax(args->y + n * classes, &row);
    }
    return TDM_OK;
}

static tdm_status backward(const tdm_kernel_args *args) {
    const tdm_class_lanes *lanes = tdm__class_lanes();
    const int64_t classes = args->desc->y.dim[1];
    for (int64_t n = 0; n < args->rows; n++) {
        const int64_t at = n * classes;
        lanes->log_softmax_gradient(args->dx[0] + at, args->y + at, args->dy + at, classes);
    }
    return TDM_OK;
}

TDM_REF_KERNEL(log_softmax, NULL);
