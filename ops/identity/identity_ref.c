/* identity: reference kernel. A planner that gives both values the same bytes never calls it. */
#include <string.h>

#include "ops/elementwise.h"
#include "ops/ops.h"

static tdm_status forward(const tdm_kernel_args *args) {
    if (args->y != args->x[0]) memcpy(args->y, args->x[0], (size_t)tdm__elementwise_count(args) * sizeof(float));
    return TDM_OK;
}

static tdm_status backward(const tdm_kernel_args *args) {
    if (args->dx[0] != NULL && args->dx[0] != args->dy)
        memcpy(args->dx[0], args->dy, (size_t)tdm__elementwise_count(args) * sizeof(float));
    return TDM_OK;
}

TDM_REF_KERNEL(identity, NULL);
