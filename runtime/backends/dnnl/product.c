#include "runtime/backends/dnnl/kit/product.h"

#include "runtime/backends/dnnl/kit/gemm.h"

enum { NARROWEST = 128, STEP = 32, NUMBER = 2 };
enum { CODE = 512 << 10 }; /* of many small kernels; 412 KiB were the most */

/* ---- plans ---- */

static dnnl_status_t plan_product(dnnl_primitive_desc_t *out, const tdm_dnnl_context *context,
                                  const tdm_dnnl_product *p) {
    dnnl_memory_desc_t desc[4] = {0};
    const dnnl_data_type_t number = p->floats ? dnnl_f32 : dnnl_bf16;
    const int64_t row[2] = {p->n, 1};
    *out = NULL;
    dnnl_status_t status = tdm__dnnl_matrix_init(&desc[0], p->m, p->k, p->a, dnnl_bf16);
    if (status == dnnl_success) status = tdm__dnnl_matrix_init(&desc[1], p->k, p->n, p->b, dnnl_bf16);
    if (status == dnnl_success) status = tdm__dnnl_matrix_init(&desc[2], 1, p->n, row, dnnl_bf16);
    if (status == dnnl_success) status = tdm__dnnl_matrix_init(&desc[3], p->m, p->n, p->c, number);
    if (status == dnnl_success)
        status =
            tdm__dnnl_matmul_plan(out, context->engine, context->attr, tdm__dnnl_ref(&desc[0]), tdm__dnnl_ref(&desc[1]),
                                  p->biased ? tdm__dnnl_ref(&desc[2]) : NULL, tdm__dnnl_ref(&desc[3]));
    if (status == dnnl_success) status = tdm__dnnl_refuse_fallback(*out);
    for (size_t i = 0; i < sizeof desc / sizeof desc[0]; i++) tdm__dnnl_desc_deinit(&desc[i]);
    if (status == dnnl_success) return status;
    tdm__dnnl_plan_free(*out);
    *out = NULL;
    return status;
}

static int64_t parts_of(int64_t length) {
    for (int64_t parts = TDM_DNNL_MOST_PARTS; parts > 1; parts--)
        if (length % (parts * STEP) == 0 && length / parts >= NARROWEST) return parts;
    return 1;
}

/* One part of the product, and how far the parts lie apart. */
static tdm_dnnl_product cut(const tdm_dnnl_product *whole, tdm_dnnl_parts *parts) {
    tdm_dnnl_product part = *whole;
    const int64_t wide = whole->floats ? (int64_t)sizeof(float) : NUMBER;
    parts->count = parts_of(whole->by_rows ? whole->m : whole->n);
    if (whole->by_rows) {
        part.m /= parts->count;
        parts->step[0] = (size_t)(part.m * whole->a[0] * NUMBER);
        parts->step[3] = (size_t)(part.m * whole->c[0] * wide);
    } else {
        part.n /= parts->count;
        parts->step[1] = (size_t)(part.n * whole->b[1] * NUMBER);
        parts->step[2] = (size_t)(part.n * NUMBER);
        parts->step[3] = (size_t)(part.n * whole->c[1] * wide);
    }
    return part;
}

dnnl_status_t tdm__dnnl_product_needs(tdm_dnnl_needs *needs, const tdm_dnnl_context *context,
                                      const tdm_dnnl_product *whole, int threads) {
    tdm_dnnl_parts parts = {0};
    const tdm_dnnl_product part = cut(whole, &parts);
    dnnl_primitive_desc_t plan;
    const dnnl_status_t status = plan_product(&plan, context, &part);
    if (status != dnnl_success) return status;
    const size_t pads = (size_t)parts.count * tdm__dnnl_round(tdm__dnnl_scratchpad_bytes(plan));
    needs->scratch = tdm__larger(needs->scratch, pads);
    if (needs->kept == 0) needs->kept = tdm__dnnl_kept_bytes(plan, CODE, parts.count);
    if (tdm__dnnl_is_gemm(plan)) {
        const size_t together = (size_t)(parts.count < threads ? parts.count : threads);
        needs->call = tdm__larger(needs->call, together * tdm__dnnl_gemm_bytes(part.m, part.n, part.k, NUMBER));
    }
    tdm__dnnl_plan_free(plan);
    return status;
}

/* ---- open and close ---- */

static dnnl_status_t open_part(tdm_dnnl_parts *parts, int64_t index, const tdm_dnnl_context *context,
                               dnnl_primitive_desc_t plan) {
    static const int arguments[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS,    DNNL_ARG_BIAS,
                                    DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD, 0};
    tdm_dnnl_context *own = &parts->part[index].context;
    *own = *context;
    const dnnl_status_t status = TDM_DNNL(dnnl_stream_create)(&own->stream, context->engine, dnnl_stream_default_flags);
    if (status != dnnl_success) own->stream = NULL;
    return status == dnnl_success ? tdm__dnnl_call_init(&parts->part[index].call, own, plan, arguments) : status;
}

dnnl_status_t tdm__dnnl_parts_open(tdm_dnnl_parts *out, const tdm_dnnl_context *context,
                                   const tdm_dnnl_product *whole) {
    *out = (tdm_dnnl_parts){0};
    const tdm_dnnl_product part = cut(whole, out);
    dnnl_primitive_desc_t plan;
    dnnl_status_t status = plan_product(&plan, context, &part);
    if (status == dnnl_success) out->pad = tdm__dnnl_round(tdm__dnnl_scratchpad_bytes(plan));
    for (int64_t i = 0; i < out->count && status == dnnl_success; i++) status = open_part(out, i, context, plan);
    tdm__dnnl_plan_free(plan);
    return status;
}

void tdm__dnnl_parts_close(tdm_dnnl_parts *parts) {
    for (int i = 0; i < TDM_DNNL_MOST_PARTS; i++) {
        tdm__dnnl_call_deinit(&parts->part[i].call);
        if (parts->part[i].context.stream != NULL) dnnl_stream_destroy(parts->part[i].context.stream);
    }
    *parts = (tdm_dnnl_parts){0};
}

/* ---- running ---- */

typedef struct {
    tdm_dnnl_parts *parts;
    char *scratch;
    const void *operand[4]; /* a, b, bias, c */
} work;

static void multiply(void *data, int64_t begin, int64_t end) {
    const work *w = data;
    for (int64_t i = begin; i < end; i++) {
        const void *pointer[TDM_DNNL_MAX_ARGS];
        for (int k = 0; k < 4; k++)
            pointer[k] = w->operand[k] != NULL ? (const char *)w->operand[k] + (size_t)i * w->parts->step[k] : NULL;
        pointer[4] = w->scratch + (size_t)i * w->parts->pad;
        w->parts->part[i].status = tdm__dnnl_call_run(&w->parts->part[i].call, &w->parts->part[i].context, pointer);
    }
}

tdm_status tdm__dnnl_parts_run(tdm_dnnl_parts *parts, tdm_device *device, int threads, void *scratch, const void *a,
                               const void *b, const void *bias, void *c, const char *what) {
    work w = {.parts = parts, .scratch = scratch, .operand = {a, b, bias, c}};
    TDM_MODULE_TRY(tdm__dnnl_share(device, threads, parts->count, multiply, &w));
    for (int64_t i = 0; i < parts->count; i++) TDM_MODULE_TRY(tdm__dnnl_check(parts->part[i].status, what));
    return TDM_OK;
}
