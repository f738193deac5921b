/* Runs kernels that know only floats in a plan of bf16 (runtime/plan/widened.h). `args` are as the plan has them. */
#ifndef TDM_EXEC_WIDEN_H
#define TDM_EXEC_WIDEN_H

#include "runtime/plan/widened.h"

/* With `statistics` the kernel computes only the statistics that replicas exchange; without, all the rest of the pass. */
tdm_status tdm__widened_forward(const tdm_plan_node *node, const tdm_kernel_args *args, bool statistics);
tdm_status tdm__widened_backward(const tdm_plan_node *node, const tdm_kernel_args *args, bool statistics);

#endif
