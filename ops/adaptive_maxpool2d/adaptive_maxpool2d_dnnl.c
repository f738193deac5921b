/* adaptive_maxpool2d in the dnnl module, in C, for every layout. Threads share the planes. */
#include <string.h>

#include "ops/adaptive_maxpool2d/adaptive_maxpool2d.h"
#include "ops/adaptive_maxpool2d/adaptive_maxpool2d_lanes.h"
#include "runtime/backends/dnnl/kit/dnnl.h"

typedef struct {
    const tdm_kernel_args *args;
    tdm_planes x, y;
    const tdm_adaptive_maxpool2d_lanes *lanes;
} call;

static int64_t numbers(const tdm_planes *of) {
    return of->height * of->width * of->inner;
}

static tdm_status share(const tdm_kernel_args *args, tdm_dnnl_work_fn work) {
    call j = {.args = args,
              .x = tdm__planes_of(&args->desc->x[0], args->rows, args->desc->x_layout[0]),
              .y = tdm__planes_of(&args->desc->y, args->rows, args->desc->y_layout),
              .lanes = TDM_LANES(tdm__adaptive_maxpool2d_lanes)};
    const int threads = tdm__dnnl_threads(args->desc->threads, j.x.count * numbers(&j.x));
    return tdm__dnnl_share(args->device, threads, j.x.count, work, &j);
}

static void forward_planes(void *data, int64_t begin, int64_t end) {
    const call *j = data;
    int32_t *winner = j->args->training ? j->args->saved : NULL;
    for (int64_t plane = begin; plane < end; plane++) {
        const int64_t at = plane * numbers(&j->y);
        j->lanes->forward(&j->x, &j->y, j->args->x[0] + plane * numbers(&j->x), j->args->y + at,
                          winner != NULL ? winner + at : NULL);
    }
}

/* dx[winner] += dy, in the order of the outputs */
static void backward_planes(void *data, int64_t begin, int64_t end) {
    const call *j = data;
    const int64_t inner = j->y.inner, each = numbers(&j->y);
    for (int64_t plane = begin; plane < end; plane++) {
        const float *dy = j->args->dy + plane * each;
        const int32_t *winner = (const int32_t *)j->args->saved + plane * each;
        float *dx = j->args->dx[0] + plane * numbers(&j->x);
        memset(dx, 0, (size_t)numbers(&j->x) * sizeof *dx);
        for (int64_t i = 0; i < each; i += inner)
            for (int64_t k = 0; k < inner; k++) dx[winner[i + k] * inner + k] += dy[i + k];
    }
}

static tdm_status forward(const tdm_kernel_args *args) {
    return share(args, forward_planes);
}

static tdm_status backward(const tdm_kernel_args *args) {
    return share(args, backward_planes);
}

const tdm_kernel tdm__adaptive_maxpool2d_dnnl = {.op = "adaptive_maxpool2d",
                                                 .variant = "dnnl",
                                                 .fits = tdm__adaptive_maxpool2d_fits,
                                                 .forward = forward,
                                                 .backward = backward};
