/* Elementwise kernels: they take any layout, if all operands have the same one. */
#ifndef TDM_OPS_ELEMENTWISE_H
#define TDM_OPS_ELEMENTWISE_H

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

static inline int64_t tdm__elementwise_count(const tdm_kernel_args *args) {
    int64_t count = args->rows;
    for (int i = 1; i < args->desc->y.ndim; i++) count *= args->desc->y.dim[i];
    return count;
}

#endif
