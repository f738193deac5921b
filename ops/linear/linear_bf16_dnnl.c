/* linear in bf16, with oneDNN's product of matrices. */
#include <stdio.h>
#include <string.h>

#include "ops/linear/linear.h"
#include "ops/linear/linear_dnnl.h"
#include "runtime/backends/dnnl/kit/product.h"
#include "runtime/base/bf16.h"

enum { FORWARD, DATA, WEIGHTS, PASSES };

typedef struct {
    tdm_dnnl_context context;
    tdm_dnnl_parts pass[PASSES];
    size_t masked; /* where the masked dy begins in scratch, behind what the products need */
} linear;

static tdm_dnnl_product product_of(const tdm_kernel_desc *desc, int64_t rows, int pass) {
    const tdm_linear_sizes of = tdm__linear_sizes_of(desc, rows);
    const int64_t points = of.points, in = of.in, out = of.out;
    const tdm_dnnl_product products[PASSES] = {
        [FORWARD] = {.m = points,
                     .n = out,
                     .k = in,
                     .a = {in, 1},
                     .b = {1, in},
                     .c = {out, 1},
                     .biased = desc->param_count > 1},
        [DATA] = {.m = points, .n = in, .k = out, .a = {out, 1}, .b = {in, 1}, .c = {in, 1}},
        [WEIGHTS] = {.m = out,
                     .n = in,
                     .k = points,
                     .a = {1, out},
                     .b = {in, 1},
                     .c = {in, 1},
                     .floats = true,
                     .by_rows = true},
    };
    return products[pass];
}

static dnnl_status_t needs_of(tdm_dnnl_needs *needs, const tdm_dnnl_context *context, const tdm_kernel_desc *desc,
                              int64_t rows, bool training) {
    dnnl_status_t status = dnnl_success;
    *needs = (tdm_dnnl_needs){0};
    for (int i = 0; i < (training ? PASSES : DATA) && status == dnnl_success; i++) {
        const tdm_dnnl_product product = product_of(desc, rows, i);
        status = tdm__dnnl_product_needs(needs, context, &product, desc->threads);
    }
    return status;
}

bool tdm__linear_bf16_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const tdm_linear_sizes of = tdm__linear_sizes_of(desc, desc->y.dim[0]);
    tdm_dnnl_context context = {0};
    tdm_dnnl_needs needs = {0};
    const tdm_dnnl_caller caller = tdm__dnnl_enter();
    dnnl_status_t status = tdm__dnnl_context_init(&context);
    if (status == dnnl_success) status = needs_of(&needs, &context, desc, desc->y.dim[0], true);
    tdm__dnnl_context_deinit(&context);
    tdm__dnnl_leave(&caller);
    fit->epilogue = TDM_EPILOGUE_RELU;
    fit->scratch_bytes = needs.scratch + (size_t)(of.points * of.out) * sizeof(uint16_t);
    fit->call_bytes = needs.call;
    fit->kept_bytes = needs.kept;
    fit->no_memory = status == dnnl_out_of_memory;
    if (status != dnnl_success)
        snprintf(fit->why, sizeof fit->why, "oneDNN %s",
                 fit->no_memory ? "is out of memory" : "has only its slow reference code for this shape in bf16");
    return status == dnnl_success;
}

static dnnl_status_t prepare(linear *l, const tdm_kernel_desc *desc, int64_t rows, bool training) {
    tdm_dnnl_needs needs = {0};
    dnnl_status_t status = tdm__dnnl_context_init(&l->context);
    if (status == dnnl_success) status = needs_of(&needs, &l->context, desc, rows, training);
    l->masked = needs.scratch;
    for (int i = 0; i < (training ? PASSES : DATA) && status == dnnl_success; i++) {
        const tdm_dnnl_product product = product_of(desc, rows, i);
        status = tdm__dnnl_parts_open(&l->pass[i], &l->context, &product);
    }
    return status;
}

void tdm__linear_bf16_close(void *state) {
    linear *l = state;
    if (l == NULL) return;
    for (int i = 0; i < PASSES; i++) tdm__dnnl_parts_close(&l->pass[i]);
    tdm__dnnl_context_deinit(&l->context);
    tdm__module_delete(l);
}

tdm_status tdm__linear_bf16_open(tdm_device *device, const tdm_kernel_desc *desc, int64_t rows, bool training,
                                 void **state) {
    linear *l = tdm__module_new(device->host, sizeof *l);
    *state = NULL;
    if (l == NULL) TDM_MODULE_FAIL(TDM_E_MEMORY, "linear: out of memory for %zu bytes of state", sizeof *l);
    const tdm_dnnl_caller caller = tdm__dnnl_enter();
    const tdm_status status = tdm__dnnl_check(prepare(l, desc, rows, training), "linear");
    tdm__dnnl_leave(&caller);
    if (status == TDM_OK)
        *state = l;
    else
        tdm__linear_bf16_close(l);
    return status;
}

/* ---- running ---- */

static tdm_status multiply(const tdm_kernel_args *args, linear *l, int pass, const void *a, const void *b,
                           const void *bias, void *c) {
    return tdm__dnnl_parts_run(&l->pass[pass], args->device, args->desc->threads, args->scratch, a, b, bias, c,
                               "linear");
}

tdm_status tdm__linear_bf16_forward(const tdm_kernel_args *args, void *state) {
    const void *bias = args->desc->param_count > 1 ? args->param_bf16[1] : NULL;
    TDM_MODULE_TRY(multiply(args, state, FORWARD, args->x[0], args->param_bf16[0], bias, args->y));
    const tdm_linear_sizes of = tdm__linear_sizes_of(args->desc, args->rows);
    if (tdm_has_epilogue(args->desc, TDM_EPILOGUE_RELU))
        TDM_LANES(tdm__dnnl_passes)->clamp_bf16((uint16_t *)(void *)args->y, of.points * of.out);
    return TDM_OK;
}

/* db[o] = sum_n dy[n][o], in row order */
static void sum_rows(float *restrict db, const uint16_t *restrict dy, int64_t rows, int64_t out) {
    memset(db, 0, (size_t)out * sizeof *db);
    for (int64_t n = 0; n < rows; n++)
        for (int64_t o = 0; o < out; o++) db[o] += tdm__bf16_float(dy[n * out + o]);
}

tdm_status tdm__linear_bf16_backward(const tdm_kernel_args *args, void *state) {
    const linear *l = state;
    const tdm_linear_sizes of = tdm__linear_sizes_of(args->desc, args->rows);
    const int64_t out = of.out, count = of.points * out;
    const uint16_t *dy = (const uint16_t *)(const void *)args->dy;
    if (tdm_has_epilogue(args->desc, TDM_EPILOGUE_RELU)) {
        uint16_t *masked = (uint16_t *)(void *)((char *)args->scratch + l->masked);
        TDM_LANES(tdm__dnnl_passes)->mask_bf16(masked, dy, (const uint16_t *)(const void *)args->y, count);
        dy = masked;
    }
    if (args->dparam[0] != NULL) TDM_MODULE_TRY(multiply(args, state, WEIGHTS, dy, args->x[0], NULL, args->dparam[0]));
    if (args->dparam[1] != NULL) sum_rows(args->dparam[1], dy, of.points, out);
    if (args->dx[0] == NULL) return TDM_OK;
    return multiply(args, state, DATA, dy, args->param_bf16[0], NULL, args->dx[0]);
}
