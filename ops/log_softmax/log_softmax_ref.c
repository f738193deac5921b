/* log_softmax: reference kernel. */
#include "ops/log_softmax/log_softmax.h"

#include "ops/ops.h"

static tdm_status forward(const tdm_kernel_args *args) {
    tdm__log_softmax_rows(tdm__class_lanes(), args, 0, args->rows);
    return TDM_OK;
}

static tdm_status backward(const tdm_kernel_args *args) {
    tdm__log_softmax_gradients(tdm__class_lanes(), args, 0, args->rows);
    return TDM_OK;
}

TDM_REF_KERNEL(log_softmax, NULL);
