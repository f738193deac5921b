/* log_softmax in the dnnl module: threads share the rows. */
#include "ops/elementwise.h"
#include "ops/log_softmax/log_softmax.h"
#include "runtime/backends/dnnl/kit/dnnl.h"

static void rows_of(void *data, int64_t begin, int64_t end) {
    tdm__log_softmax_rows(TDM_LANES(tdm__class_lanes), data, begin, end);
}

static void gradients_of(void *data, int64_t begin, int64_t end) {
    tdm__log_softmax_gradients(TDM_LANES(tdm__class_lanes), data, begin, end);
}

static tdm_status share(const tdm_kernel_args *args, tdm_dnnl_work_fn work) {
    const int threads = tdm__dnnl_threads(args->desc->threads, tdm__elementwise_count(args));
    tdm_kernel_args same = *args;
    return tdm__dnnl_share(args->device, threads, args->rows, work, &same);
}

static tdm_status forward(const tdm_kernel_args *args) {
    return share(args, rows_of);
}

static tdm_status backward(const tdm_kernel_args *args) {
    return share(args, gradients_of);
}

const tdm_kernel tdm__log_softmax_dnnl = {
    .op = "log_softmax", .variant = "dnnl", .fits = tdm__plain_fits, .forward = forward, .backward = backward};
