/* The kernels of activations in the dnnl module: loops of several instruction sets, shared by threads. oneDNN has such
 * passes, too, with other bits on each processor. */
#ifndef TDM_OPS_ACTIVATION_DNNL_H
#define TDM_OPS_ACTIVATION_DNNL_H

#include "ops/activation_lanes.h"
#include "runtime/backends/dnnl/kit/dnnl.h"
#include "runtime/backends/dnnl/kit/passes.h"

enum { TDM_ACTIVATION_PIECE = 4096 }; /* numbers that a thread takes at a time */

typedef struct tdm_activation_job {
    const tdm_activation_lanes *lanes;
    const float *v, *dy; /* dy NULL: forward, and v is x */
    float p, *out;
    int64_t count;
} tdm_activation_job;

static inline void tdm__activation_pieces(void *data, int64_t begin, int64_t end) {
    const tdm_activation_job *j = data;
    const int64_t at = begin * TDM_ACTIVATION_PIECE, last = end * TDM_ACTIVATION_PIECE;
    const int64_t count = (last < j->count ? last : j->count) - at;
    if (j->dy == NULL)
        j->lanes->forward(j->v + at, j->p, j->out + at, count);
    else
        j->lanes->backward(j->v + at, j->dy + at, j->p, j->out + at, count);
}

static inline tdm_status tdm__activation_share(const tdm_kernel_args *args, tdm_activation_job j) {
    j.count = tdm__elementwise_count(args);
    return tdm__dnnl_share(args->device, tdm__dnnl_threads(args->desc->threads, j.count),
                           (j.count + TDM_ACTIVATION_PIECE - 1) / TDM_ACTIVATION_PIECE, tdm__activation_pieces, &j);
}

#define TDM_ACTIVATION_DNNL(name, v_pointer, p_value)                                                             \
    TDM_LANES_TABLES(tdm_activation_lanes, tdm__##name##_lanes);                                                  \
    static tdm_status forward(const tdm_kernel_args *args) {                                                      \
        return tdm__activation_share(                                                                             \
            args, (tdm_activation_job){                                                                           \
                      .lanes = TDM_LANES(tdm__##name##_lanes), .v = args->x[0], .p = (p_value), .out = args->y}); \
    }                                                                                                             \
    static tdm_status backward(const tdm_kernel_args *args) {                                                     \
        return tdm__activation_share(args, (tdm_activation_job){.lanes = TDM_LANES(tdm__##name##_lanes),          \
                                                                .v = (v_pointer),                                 \
                                                                .dy = args->dy,                                   \
                                                                .p = (p_value),                                   \
                                                                .out = args->dx[0]});                             \
    }                                                                                                             \
    const tdm_kernel tdm__##name##_dnnl = {                                                                       \
        .op = #name, .variant = "dnnl", .fits = tdm__elementwise_fits, .forward = forward, .backward = backward}

#endif
