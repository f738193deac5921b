/* Elementwise kernels, which take any layout, if all operands have the same one; and kernels of one layout. */
#ifndef TDM_OPS_ELEMENTWISE_H
#define TDM_OPS_ELEMENTWISE_H

#include <string.h>

#include <tandem/sys/op.h>

/* Goes before a loop whose operands are either the same memory or disjoint (TDM_OP_IN_PLACE), which the compiler cannot
 * know. */
#if defined(__clang__)
#define TDM_SAME_OR_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define TDM_SAME_OR_APART _Pragma("GCC ivdep")
#endif

/* Keeps the layout that the first producer offers. */
static inline bool tdm__elementwise_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    for (int i = 0; i < desc->input_count; i++) fit->x_layout[i] = desc->x_layout[0];
    fit->y_layout = desc->x_layout[0];
    return true;
}

/* The kernel takes the plain layout only. */
static inline bool tdm__plain_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    (void)desc;
    fit->x_layout[0] = fit->y_layout = TDM_LAYOUT_PLAIN;
    return true;
}

static inline int64_t tdm__elementwise_count(const tdm_kernel_args *args) {
    int64_t count = args->rows;
    for (int i = 1; i < args->desc->y.ndim; i++) count *= args->desc->y.dim[i];
    return count;
}

/* y = x */
static inline tdm_status tdm__copy_to_y(const tdm_kernel_args *args) {
    if (args->y != args->x[0]) memcpy(args->y, args->x[0], (size_t)tdm__elementwise_count(args) * sizeof(float));
    return TDM_OK;
}

#endif
