/* lstm and gru with oneDNN's sgemm. Inputs of all steps are multiplied by the weights at once; only the products with h
 * go from step to step. Rows are independent until the gradients of the weights, so a thread takes some rows through
 * all steps of a layer.
 *
 * A part has few rows, and h w^T reads both matrices along their rows, which costs sgemm half its speed. w h^T is as
 * fast as any, so forward computes that and adds its transposed result. */
#include "ops/recurrent/recurrent_dnnl.h"

#include <string.h>

#include "ops/recurrent/recurrent_lanes.h"
#include "runtime/backends/dnnl/kit/gemm.h"
#include "runtime/backends/dnnl/kit/passes.h"
#include "runtime/backends/dnnl/kit/sgemm.h"

/* Rows of a part: the sizes alone decide the parts, because sgemm adds in an order that depends on the rows. */
enum { PART_ROWS = 16 };

typedef struct {
    const tdm_kernel_args *args;
    tdm_recurrent r;
    const tdm_recurrent_lanes *lanes;
    int64_t layer, in, wide;
    const float *const *param;
    float *carried, *kept;
    float *biases;   /* of a step: the sums with x begin with them */
    float *products; /* of a step: w h^T of each part; in backward room for gradients of weights */
    int64_t parts;
    _Atomic int status; /* dnnl_status_t */
} call;

/* Of what forward needs for products, and backward for the gradients of weights. */
static int64_t working(const tdm_recurrent *r) {
    const int64_t wide = r->gates * r->hidden, products = tdm__dnnl_round_floats(r->rows * wide);
    const int64_t room = tdm__dnnl_round_floats(tdm__dnnl_sgemm_room(wide, r->rows * r->steps));
    return room > products ? room : products;
}

static int64_t biased(const tdm_recurrent *r) {
    return tdm__dnnl_round_floats((r->gates + 1) * r->hidden);
}

/* Of one of the parts, each as large as the last one: with the inputs, with the states, and in training the gradients
 * of both, and of the weights of all rows. */
static size_t part_bytes(const tdm_recurrent *r, int64_t rows, bool training) {
    const int64_t wide = r->gates * r->hidden, in = r->in > r->hidden ? r->in : r->hidden;
    const int64_t sizes[][3] = {{rows * r->steps, wide, in},
                                {wide, rows, r->hidden},
                                {rows * r->steps, in, wide},
                                {rows, r->hidden, wide},
                                {wide, in, r->rows * r->steps}};
    size_t most = 0;
    for (int i = 0; i < (training ? 5 : 2); i++)
        most = tdm__larger(most, tdm__dnnl_gemm_bytes(sizes[i][0], sizes[i][1], sizes[i][2], sizeof(float)));
    return most;
}

bool tdm__recurrent_dnnl_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit, bool is_gru) {
    const tdm_recurrent r = tdm__recurrent_of(desc, is_gru, desc->y.dim[0]);
    const int64_t parts = r.rows < PART_ROWS ? 1 : r.rows / PART_ROWS;
    const int64_t together = parts < desc->threads ? parts : desc->threads;
    fit->call_bytes = (size_t)together * part_bytes(&r, (r.rows + parts - 1) / parts, desc->training);
    return tdm__recurrent_take(desc, fit, &r, biased(&r) + working(&r) + tdm__dnnl_round_floats(r.rows * 2 * r.hidden));
}

static call call_of(const tdm_kernel_args *args, bool is_gru) {
    call j = {.args = args, .lanes = TDM_LANES(tdm__recurrent_lanes)};
    j.r = tdm__recurrent_of(args->desc, is_gru, args->rows);
    j.wide = j.r.gates * j.r.hidden;
    j.biases = args->scratch;
    j.products = j.biases + biased(&j.r);
    j.carried = j.products + working(&j.r);
    j.kept = args->saved != NULL ? args->saved : j.carried + tdm__dnnl_round_floats(j.r.rows * 2 * j.r.hidden);
    j.parts = j.r.rows < PART_ROWS ? 1 : j.r.rows / PART_ROWS;
    return j;
}

static void set_layer(call *j, int64_t layer) {
    j->layer = layer;
    j->in = tdm__recurrent_in(&j->r, layer);
    j->param = j->args->param + layer * TDM_RECURRENT_PARAMS;
}

static float *at(const call *j, int64_t n, int64_t t) {
    return j->kept + tdm__recurrent_at(&j->r, j->layer, n, t);
}

/* The layer's inputs from row n on; *stride: numbers from step to step. */
static const float *inputs(const call *j, int64_t n, int64_t *stride) {
    *stride = j->layer == 0 ? j->r.in : j->r.stride;
    return j->layer == 0 ? j->args->x[0] + n * j->r.steps * j->r.in
                         : j->kept + tdm__recurrent_at(&j->r, j->layer - 1, n, 0) + j->r.h;
}

static tdm_status share(call *j, tdm_dnnl_work_fn work) {
    const int64_t numbers = j->r.rows * j->r.steps * j->wide;
    TDM_MODULE_TRY(
        tdm__dnnl_share(j->args->device, tdm__dnnl_threads(j->args->desc->threads, numbers), j->parts, work, j));
    return tdm__dnnl_check((dnnl_status_t)j->status, j->r.is_gru ? "gru" : "lstm");
}

static void multiply(call *j, const tdm_dnnl_sgemm *product) {
    const dnnl_status_t status = tdm__dnnl_sgemm_run(product);
    if (status != dnnl_success) j->status = (int)status;
}

typedef struct {
    int64_t first, end;
} rows;

static rows rows_of(const call *j, int64_t part) {
    return (rows){j->r.rows * part / j->parts, j->r.rows * (part + 1) / j->parts};
}

/* ---- forward ---- */

/* Those of x and of h; of gru's new gate they are apart. */
static void set_biases(call *j) {
    const int64_t shared = j->r.is_gru ? 2 * j->r.hidden : j->wide;
    for (int64_t k = 0; k < j->wide; k++) j->biases[k] = j->param[2][k] + (k < shared ? j->param[3][k] : 0.0f);
    if (j->r.is_gru) memcpy(j->biases + j->wide, j->param[3] + shared, (size_t)j->r.hidden * sizeof(float));
}

static void add_inputs(call *j, rows of) {
    int64_t stride;
    const float *x = inputs(j, of.first, &stride);
    const int64_t steps = (of.end - of.first) * j->r.steps, count = j->wide + (j->r.is_gru ? j->r.hidden : 0);
    for (int64_t i = 0; i < steps; i++)
        memcpy(at(j, of.first, 0) + i * j->r.stride, j->biases, (size_t)count * sizeof(float));
    multiply(j, &(tdm_dnnl_sgemm){'N', 'T', steps, j->wide, j->in, x, stride, j->param[0], j->in, at(j, of.first, 0),
                                  j->r.stride, true});
}

/* Adds the products with the states before step t. */
static void add_states(call *j, rows of, int64_t t) {
    const tdm_dnnl_passes *passes = TDM_LANES(tdm__dnnl_passes);
    const int64_t count = of.end - of.first, shared = j->r.is_gru ? 2 * j->r.hidden : j->wide;
    const int64_t apart = j->r.steps * j->r.stride;
    float *products = j->products + of.first * j->wide, *sums = at(j, of.first, t);
    multiply(j, &(tdm_dnnl_sgemm){'N', 'T', j->wide, count, j->r.hidden, j->param[1], j->r.hidden,
                                  at(j, of.first, t - 1) + j->r.h, apart, products, count, false});
    passes->add_transposed(sums, apart, products, shared, count);
    if (j->r.is_gru) passes->add_transposed(sums + j->wide, apart, products + shared * count, j->r.hidden, count);
}

static void forward_rows(call *j, rows of) {
    add_inputs(j, of);
    for (int64_t t = 0; t < j->r.steps; t++) {
        if (t > 0) add_states(j, of, t);
        for (int64_t n = of.first; n < of.end; n++)
            j->lanes->forward(&j->r, at(j, n, t), t > 0 ? at(j, n, t - 1) : NULL);
    }
}

static void forward_parts(void *data, int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; part++) forward_rows(data, rows_of(data, part));
}

static tdm_status run_forward(call *j) {
    for (int64_t layer = 0; layer < j->r.layers; layer++) {
        set_layer(j, layer);
        set_biases(j);
        TDM_MODULE_TRY(share(j, forward_parts));
    }
    tdm__recurrent_give_y(j->args, &j->r, j->kept);
    return TDM_OK;
}

tdm_status tdm__recurrent_dnnl_forward(const tdm_kernel_args *args, bool is_gru) {
    call j = call_of(args, is_gru);
    const tdm_dnnl_caller caller = tdm__dnnl_enter();
    const tdm_status status = run_forward(&j);
    tdm__dnnl_leave(&caller);
    return status;
}

/* ---- backward ---- */

/* Carries the gradients of gates [from, from + count) of step t, which weights [to, to + count) multiply, to the state
 * before. */
static void carry(call *j, rows of, int64_t t, int64_t from, int64_t count, int64_t to) {
    multiply(j, &(tdm_dnnl_sgemm){'N', 'N', of.end - of.first, j->r.hidden, count, at(j, of.first, t) + from,
                                  j->r.steps * j->r.stride, j->param[1] + to * j->r.hidden, j->r.hidden,
                                  j->carried + of.first * 2 * j->r.hidden, 2 * j->r.hidden, true});
}

/* Gradients of the layer's input: dx, or those of the states of the layer below. */
static void give_inputs(call *j, rows of) {
    const bool is_first = j->layer == 0;
    float *to = is_first ? j->args->dx[0] : j->kept + tdm__recurrent_at(&j->r, j->layer - 1, of.first, 0) + j->r.dh;
    if (to == NULL) return;
    if (is_first) to += of.first * j->r.steps * j->r.in;
    multiply(j, &(tdm_dnnl_sgemm){'N', 'N', (of.end - of.first) * j->r.steps, j->in, j->wide, at(j, of.first, 0),
                                  j->r.stride, j->param[0], j->in, to, is_first ? j->r.in : j->r.stride, false});
}

/* The state before a step takes the place of the gradient of h, which is used up: the gradients of weights then find
 * pairs of a gate and a state side by side, and a first step has zeros. */
static void keep_state(const call *j, float *now, const float *before) {
    const size_t bytes = (size_t)j->r.hidden * sizeof(float);
    if (before != NULL)
        memcpy(now + j->r.dh, before + j->r.h, bytes);
    else
        memset(now + j->r.dh, 0, bytes);
}

static void backward_rows(call *j, rows of) {
    const tdm_recurrent *r = &j->r;
    memset(j->carried + of.first * 2 * r->hidden, 0, (size_t)((of.end - of.first) * 2 * r->hidden) * sizeof(float));
    for (int64_t t = r->steps - 1; t >= 0; t--) {
        for (int64_t n = of.first; n < of.end; n++) {
            float *now = at(j, n, t);
            const float *before = t > 0 ? at(j, n, t - 1) : NULL;
            j->lanes->backward(r, now, before, j->carried + n * 2 * r->hidden);
            keep_state(j, now, before);
        }
        if (t > 0) carry(j, of, t, 0, r->is_gru ? 2 * r->hidden : j->wide, 0);
        if (t > 0 && r->is_gru) carry(j, of, t, 3 * r->hidden, r->hidden, 2 * r->hidden);
    }
    give_inputs(j, of);
}

static void backward_parts(void *data, int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; part++) backward_rows(data, rows_of(data, part));
}

static tdm_status multiply_long(call *j, const tdm_dnnl_sgemm *product) {
    float *room = tdm__dnnl_sgemm_room(product->m, product->k) > 0 ? j->products : NULL;
    return tdm__dnnl_sgemm_share_long(j->args->device, j->args->desc->threads, product, room,
                                      j->r.is_gru ? "gru" : "lstm");
}

/* Gradients of rows [to, to + count) of the weights with h and of their biases; their gates lie at `from`. */
static tdm_status add_of_states(call *j, int64_t from, int64_t count, int64_t to) {
    float *const *out = j->args->dparam + j->layer * TDM_RECURRENT_PARAMS;
    const int64_t steps = j->r.rows * j->r.steps, stride = j->r.stride, hidden = j->r.hidden;
    const float *gates = at(j, 0, 0) + from;
    const tdm_dnnl_sgemm dw = {
        'T',    'N',  count, hidden, steps, gates, stride, at(j, 0, 0) + j->r.dh, stride, out[1] + to * hidden,
        hidden, false};
    j->lanes->columns(out[3] + to, gates, steps, count, stride);
    return multiply_long(j, &dw);
}

static tdm_status add_weights(call *j) {
    float *const *out = j->args->dparam + j->layer * TDM_RECURRENT_PARAMS;
    if (out[0] == NULL) return TDM_OK;
    const int64_t steps = j->r.rows * j->r.steps, hidden = j->r.hidden;
    int64_t stride;
    const float *x = inputs(j, 0, &stride);
    const tdm_dnnl_sgemm dw = {'T',         'N', j->wide, j->in,  steps, at(j, 0, 0),
                               j->r.stride, x,   stride,  out[0], j->in, false};
    j->lanes->columns(out[2], at(j, 0, 0), steps, j->wide, j->r.stride);
    TDM_MODULE_TRY(multiply_long(j, &dw));
    TDM_MODULE_TRY(add_of_states(j, 0, j->r.is_gru ? 2 * hidden : j->wide, 0));
    return j->r.is_gru ? add_of_states(j, 3 * hidden, hidden, 2 * hidden) : TDM_OK;
}

static tdm_status run_backward(call *j) {
    tdm__recurrent_take_dy(j->args, &j->r, j->kept);
    for (int64_t layer = j->r.layers - 1; layer >= 0; layer--) {
        set_layer(j, layer);
        TDM_MODULE_TRY(share(j, backward_parts));
        TDM_MODULE_TRY(add_weights(j));
    }
    return TDM_OK;
}

tdm_status tdm__recurrent_dnnl_backward(const tdm_kernel_args *args, bool is_gru) {
    call j = call_of(args, is_gru);
    const tdm_dnnl_caller caller = tdm__dnnl_enter();
    const tdm_status status = run_backward(&j);
    tdm__dnnl_leave(&caller);
    return status;
}
