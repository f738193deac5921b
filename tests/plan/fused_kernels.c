/* See fused_kernels.h. */
#include "tests/plan/fused_kernels.h"

#include <string.h>

#include "ops/dot.h"
#include "runtime/base/memory.h"
#include "runtime/graph/graph.h"

enum { MAX_KERNELS = 64 };

static const tdm_kernel *reference_of(const char *op) {
    const tdm_kernel *const *kernel = tdm_builtin_kernels;
    while (strcmp((*kernel)->op, op) != 0) kernel++;
    return *kernel;
}

static bool adds_bias_last(const tdm_kernel_desc *desc) {
    return strcmp(desc->op, "conv2d") == 0;
}

/* What the reference kernel is to run. */
static tdm_kernel_desc without_epilogue(const tdm_kernel_desc *desc) {
    tdm_kernel_desc bare = *desc;
    bare.epilogue = 0;
    if (tdm_has_epilogue(desc, TDM_EPILOGUE_ADD)) bare.input_count--;
    if (tdm_has_epilogue(desc, TDM_EPILOGUE_BIAS)) bare.param_count--;
    return bare;
}

/* ---- memory: the reference kernel's scratch, dy behind the relu, gradients that nobody wants ---- */

static size_t aligned(size_t bytes) {
    return (bytes + TDM_ALIGN - 1) / TDM_ALIGN * TDM_ALIGN;
}

typedef struct {
    size_t masked, unwanted, total;
} places;

static places places_of(const tdm_kernel_desc *desc) {
    const tdm_kernel_desc bare = without_epilogue(desc);
    const tdm_kernel *reference = reference_of(desc->op);
    tdm_kernel_fit fit = {.scratch_bytes = 0};
    if (reference->fits != NULL) reference->fits(&bare, &fit);
    places at = {.masked = aligned(fit.scratch_bytes)};
    at.unwanted = at.masked + aligned((size_t)tdm__shape_count(&desc->y) * sizeof(float));
    at.total = at.unwanted + aligned((size_t)desc->y.dim[1] * sizeof(float));
    return at;
}

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const tdm_kernel_desc bare = without_epilogue(desc);
    const tdm_kernel *reference = reference_of(desc->op);
    if (reference->fits != NULL && !reference->fits(&bare, fit)) return false;
    fit->epilogue = TDM_EPILOGUE_BIAS | TDM_EPILOGUE_ADD | TDM_EPILOGUE_RELU;
    if (desc->x[0].ndim == 4) fit->epilogue |= TDM_EPILOGUE_SUM_DX;
    if (adds_bias_last(desc)) fit->epilogue |= TDM_EPILOGUE_GIVES_BIAS;
    fit->scratch_bytes = places_of(desc).total;
    return true;
}

/* ---- forward ---- */

static int64_t count_of(const tdm_kernel_args *args, const tdm_shape *shape) {
    return tdm__shape_count(shape) / shape->dim[0] * args->rows;
}

static void add_bias(const tdm_kernel_args *args, const float *bias) {
    const tdm_shape *y = &args->desc->y;
    const int64_t channels = y->dim[1], points = count_of(args, y) / (args->rows * channels);
    for (int64_t i = 0; i < args->rows * channels * points; i++) args->y[i] += bias[i / points % channels];
}

static tdm_status forward(const tdm_kernel_args *args) {
    const tdm_kernel_desc *desc = args->desc;
    const int64_t count = count_of(args, &desc->y);
    const bool last = adds_bias_last(desc) && desc->param_count > 1;
    tdm_kernel_desc bare = without_epilogue(desc);
    tdm_kernel_args inner = *args;
    if (last) bare.param_count = 1;
    inner.desc = &bare;
    const tdm_status status = reference_of(desc->op)->forward(&inner);
    if (last) add_bias(args, args->param[1]);
    if (tdm_has_epilogue(desc, TDM_EPILOGUE_BIAS)) add_bias(args, args->param[desc->param_count - 1]);
    const float *other = tdm_has_epilogue(desc, TDM_EPILOGUE_ADD) ? args->x[desc->input_count - 1] : NULL;
    for (int64_t i = 0; other != NULL && i < count; i++) args->y[i] += other[i];
    for (int64_t i = 0; tdm_has_epilogue(desc, TDM_EPILOGUE_RELU) && i < count; i++)
        args->y[i] = args->y[i] < 0.0f ? 0.0f : args->y[i];
    return status;
}

/* Forward once more, of an op without buffers: it moves nothing, and saves what it saved. */
static tdm_status recompute(const tdm_kernel_args *args) {
    return forward(args);
}

static bool has_buffers(const char *op) {
    return strcmp(op, "batchnorm2d") == 0 || strcmp(op, "batchnorm1d") == 0;
}

/* ---- backward ---- */

static void mask(float *out, const float *dy, const float *y, int64_t count) {
    for (int64_t i = 0; i < count; i++) out[i] = y[i] <= 0.0f ? 0.0f : dy[i];
}

/* In the order in which conv2d's reference kernel sums its own. */
static void sum_channels(const tdm_kernel_args *args) {
    const int64_t channels = args->desc->x[0].dim[1], points = args->desc->x[0].dim[2] * args->desc->x[0].dim[3];
    for (int64_t c = 0; c < channels; c++) {
        double sum = 0;
        for (int64_t n = 0; n < args->rows; n++) sum += tdm__sum(args->dx[0] + (n * channels + c) * points, points);
        args->channel_sums[c] = (float)sum;
    }
}

static tdm_status backward(const tdm_kernel_args *args) {
    const tdm_kernel_desc *desc = args->desc;
    const places at = places_of(desc);
    const int64_t count = count_of(args, &desc->y);
    const tdm_kernel_desc bare = without_epilogue(desc);
    tdm_kernel_args inner = *args;
    float *dy = (float *)(void *)((char *)args->scratch + at.masked);
    inner.desc = &bare;
    inner.dy = dy;
    if (tdm_has_epilogue(desc, TDM_EPILOGUE_RELU))
        mask(dy, args->dy, args->y, count);
    else
        memcpy(dy, args->dy, (size_t)count * sizeof(float));
    for (int k = 1; k < bare.param_count && inner.dparam[0] != NULL; k++) /* another kernel sums the bias's */
        if (inner.dparam[k] == NULL) inner.dparam[k] = (float *)(void *)((char *)args->scratch + at.unwanted);
    float *other = tdm_has_epilogue(desc, TDM_EPILOGUE_ADD) ? args->dx[desc->input_count - 1] : NULL;
    if (other != NULL) memcpy(other, dy, (size_t)count * sizeof(float));
    const tdm_status status = reference_of(desc->op)->backward(&inner);
    if (tdm_has_epilogue(desc, TDM_EPILOGUE_SUM_DX)) sum_channels(args);
    return status;
}

/* ---- the list ---- */

const tdm_kernel *const *fused_kernels(void) {
    static tdm_kernel kernel[MAX_KERNELS];
    static const tdm_kernel *list[MAX_KERNELS + 1];
    for (int i = 0; tdm_builtin_kernels[i] != NULL && i < MAX_KERNELS; i++) {
        kernel[i] = (tdm_kernel){.op = tdm_builtin_kernels[i]->op,
                                 .variant = "fused",
                                 .fits = fits,
                                 .forward = forward,
                                 .backward = backward,
                                 .recompute = has_buffers(tdm_builtin_kernels[i]->op) ? NULL : recompute};
        list[i] = strcmp(kernel[i].op, tdm_builtin_layout_op->name) == 0 ? tdm_builtin_kernels[i] : &kernel[i];
    }
    return list;
}
