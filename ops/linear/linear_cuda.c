/* linear on CUDA: three matrix products. The first includes bias and relu. One pass before the other two computes the
 * gradient of the bias and the mask of the relu. */

#include <tandem/job.h>

#include "runtime/backends/cuda/kit/cuda.h"
#include "runtime/backends/cuda/kit/passes.h"
#include "ops/fused.h"
#include "ops/linear/linear.h"
#include "runtime/backends/cuda/kit/library.h"

typedef struct {
    tdm_cuda_matmul *forward, *weight, *input;
} products;

/* Bytes of scratch for the masked dy; the room for the sums follows it. */
static size_t masked_bytes(const tdm_kernel_desc *desc) {
    const tdm_linear_sizes of = tdm__linear_sizes_of(desc, desc->y.dim[0]);
    return tdm__cuda_part((size_t)(of.points * of.out) * tdm__cuda_size(tdm__cuda_number_of(desc)));
}

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const tdm_linear_sizes of = tdm__linear_sizes_of(desc, desc->y.dim[0]);
    fit->x_layout[0] = fit->y_layout = TDM_LAYOUT_PLAIN;
    fit->epilogue = TDM_EPILOGUE_RELU;
    fit->scratch_bytes = masked_bytes(desc) + tdm__cuda_part(tdm__cuda_mask_room(of.points, of.out, 1));
    return true;
}

static void close_state(void *state) {
    products *p = state;
    if (p == NULL) return;
    tdm__cuda_matmul_close(p->input);
    tdm__cuda_matmul_close(p->weight);
    tdm__cuda_matmul_close(p->forward);
    tdm__module_delete(p);
}

/* y[rows,out] = x[rows,in] w[out,in]^T;  dw[out,in] = dy^T x;  dx[rows,in] = dy w */
static tdm_status open_products(products *p, tdm_cuda_device *device, const tdm_kernel_desc *desc, int64_t rows,
                                bool training) {
    const tdm_linear_sizes of = tdm__linear_sizes_of(desc, rows);
    const int64_t points = of.points, in = of.in, out = of.out;
    const tdm_cuda_number number = tdm__cuda_number_of(desc);
    const tdm_cuda_matmul_shape forward = {.m = points,
                                           .n = out,
                                           .k = in,
                                           .transpose_b = true,
                                           .factors = number,
                                           .result = number,
                                           .bias = desc->param_count > 1,
                                           .clamp = tdm_has_epilogue(desc, TDM_EPILOGUE_RELU),
                                           .batch = 1};
    const tdm_cuda_matmul_shape weight = {
        .m = out, .n = in, .k = points, .transpose_a = true, .factors = number, .result = TDM_CUDA_FLOAT, .batch = 1};
    const tdm_cuda_matmul_shape input = {
        .m = points, .n = in, .k = out, .factors = number, .result = number, .batch = 1};
    TDM_MODULE_TRY(tdm__cuda_matmul_open(&p->forward, device, &forward));
    if (!training) return TDM_OK;
    TDM_MODULE_TRY(tdm__cuda_matmul_open(&p->weight, device, &weight));
    return desc->needs_dx[0] ? tdm__cuda_matmul_open(&p->input, device, &input) : TDM_OK;
}

static tdm_status open_state(tdm_device *device, const tdm_kernel_desc *desc, int64_t rows, bool training,
                             void **state) {
    products *p = tdm__module_new(device->host, sizeof *p);
    *state = NULL;
    if (p == NULL) TDM_MODULE_FAIL(TDM_E_MEMORY, "linear: out of memory for %zu bytes of state", sizeof *p);
    const tdm_status status = open_products(p, tdm__cuda_device(device), desc, rows, training);
    if (status != TDM_OK) {
        close_state(p);
        return status;
    }
    *state = p;
    return TDM_OK;
}

static void algorithms(const void *state, tdm_algorithms *out) {
    const products *p = state;
    tdm__cuda_matmul_algorithm(p->forward, "forward", tdm__fused_names, out);
    tdm__cuda_matmul_algorithm(p->weight, "dw", tdm__fused_names, out);
    tdm__cuda_matmul_algorithm(p->input, "dx", tdm__fused_names, out);
}

static tdm_status forward(const tdm_kernel_args *args) {
    const products *p = args->state;
    TDM_CUDA_ENTER(args->device);
    return tdm__cuda_matmul_run(p->forward, args->x[0], tdm__cuda_parameter(args, 0),
                                args->desc->param_count > 1 ? tdm__cuda_parameter(args, 1) : NULL, args->y);
}

static tdm_status backward(const tdm_kernel_args *args) {
    const products *p = args->state;
    const tdm_kernel_desc *desc = args->desc;
    const tdm_linear_sizes of = tdm__linear_sizes_of(desc, args->rows);
    const bool relu = tdm_has_epilogue(desc, TDM_EPILOGUE_RELU);
    void *masked = args->scratch;
    TDM_CUDA_ENTER(args->device);
    TDM_MODULE_TRY(tdm__cuda_mask(tdm__cuda_device(args->device), tdm__cuda_number_of(desc), masked, args->dy,
                                  relu ? args->y : NULL, args->dparam[1], (char *)args->scratch + masked_bytes(desc),
                                  of.points, of.out, 1));
    const void *dy = relu ? masked : args->dy;
    if (args->dparam[0] != NULL) TDM_MODULE_TRY(tdm__cuda_matmul_run(p->weight, dy, args->x[0], NULL, args->dparam[0]));
    if (args->dx[0] == NULL) return TDM_OK;
    return tdm__cuda_matmul_run(p->input, dy, tdm__cuda_parameter(args, 0), NULL, args->dx[0]);
}

const tdm_kernel tdm__linear_cuda = {
    .op = "linear",
    .variant = "cuda",
    .fits = fits,
    .open = open_state,
    .close = close_state,
    .forward = forward,
    .backward = backward,
    .algorithms = algorithms,
    .takes_bf16 = true,
};
