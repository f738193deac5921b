/* Kernels of the dnnl module for ops that move numbers or add them: threads share the rows of the reference kernel,
 * which is compiled into the module, too (ops.cmake). Memory decides how fast these are, not the instructions. */
#ifndef TDM_DNNL_ROWS_H
#define TDM_DNNL_ROWS_H

#include "runtime/backends/dnnl/kit/dnnl.h"

typedef struct tdm_rows_job {
    const tdm_kernel_args *args;
    tdm_status (*work)(const tdm_kernel_args *args); /* cannot fail */
} tdm_rows_job;

static inline int64_t tdm__row_numbers(const tdm_shape *shape) {
    int64_t count = 1;
    for (int i = 1; i < shape->ndim; i++) count *= shape->dim[i];
    return count;
}

static inline void tdm__rows_part(void *data, int64_t begin, int64_t end) {
    const tdm_rows_job *j = data;
    tdm_kernel_args part = *j->args;
    const int64_t at = begin * tdm__row_numbers(&part.desc->y);
    part.rows = end - begin;
    if (part.y != NULL) part.y += at;
    if (part.dy != NULL) part.dy += at;
    for (int k = 0; k < part.desc->input_count; k++) {
        const int64_t from = begin * tdm__row_numbers(&part.desc->x[k]);
        if (part.x[k] != NULL) part.x[k] += from;
        if (part.dx[k] != NULL) part.dx[k] += from;
    }
    (void)j->work(&part);
}

static inline tdm_status tdm__rows_share(const tdm_kernel_args *args, tdm_status (*work)(const tdm_kernel_args *args)) {
    tdm_rows_job j = {args, work};
    const int threads = tdm__dnnl_threads(args->desc->threads, args->rows * tdm__row_numbers(&args->desc->y));
    return tdm__dnnl_share(args->device, threads, args->rows, tdm__rows_part, &j);
}

#define TDM_ROWS_DNNL(name)                                                         \
    extern const tdm_kernel tdm__##name##_ref;                                      \
    static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {            \
        return tdm__##name##_ref.fits == NULL || tdm__##name##_ref.fits(desc, fit); \
    }                                                                               \
    static tdm_status forward(const tdm_kernel_args *args) {                        \
        return tdm__rows_share(args, tdm__##name##_ref.forward);                    \
    }                                                                               \
    static tdm_status backward(const tdm_kernel_args *args) {                       \
        return tdm__rows_share(args, tdm__##name##_ref.backward);                   \
    }                                                                               \
    const tdm_kernel tdm__##name##_dnnl = {                                         \
        .op = #name, .variant = "dnnl", .fits = fits, .forward = forward, .backward = backward}

#endif
