/* conv2d with oneDNN.
 *
 * Rows are processed in chunks that stay in the second-level cache: the relu, its mask in backward and the two backward
 * convolutions find their operands there. Weights are in PyTorch's layout, and each call brings them into oneDNN's,
 * unless `pack` has done so for all calls. The gradient of the weights is summed over the chunks in their order and
 * brought back once.
 *
 * Several threads work on a chunk each. Neither the chunks nor the order of that sum depends on the number of threads,
 * so neither do the bits.
 *
 * The relu is a pass of its own: oneDNN's relu turns NaN into 0, and PyTorch's lets it through. */

#include "ops/conv2d/conv2d_columns_dnnl.h"
#include "ops/conv2d/conv2d_dnnl.h"

/* Processes one chunk at a time; this is what it has for itself. */
typedef struct {
    tdm_dnnl_context context; /* its engine and attributes belong to the state */
    tdm_dnnl_call pass[TDM_CONV_PASSES];
    dnnl_status_t status;
} worker;

typedef struct {
    tdm_dnnl_context context;
    worker *workers;
    int64_t worker_count, chunk_count;
    tdm_dnnl_call reorder[TDM_CONV_PASSES];
    tdm_conv_ways ways;
    tdm_conv_offsets at;
    int64_t chunk_x, chunk_y;  /* elements of x and of y in one chunk */
    size_t element;            /* bytes of one */
    size_t weight_count;       /* elements of the gradient in oneDNN's layout */
    size_t packed_bytes;       /* of the weights in forward's layout; 0: that is PyTorch's */
    tdm_conv_columns *columns; /* does all instead of what is above; else NULL */
    void *scratch; /* the state's own scratch, if the plan has booked less than this number of rows needs; else NULL */
} conv;

/* ---- open and close ---- */

static void close_worker(worker *own) {
    for (int i = 0; i < TDM_CONV_PASSES; i++) tdm__dnnl_call_deinit(&own->pass[i]);
    if (own->context.stream != NULL) dnnl_stream_destroy(own->context.stream);
}

static void close_state(void *state) {
    conv *c = state;
    if (c == NULL) return;
    for (int64_t i = 0; c->workers != NULL && i < c->worker_count; i++) close_worker(&c->workers[i]);
    for (int i = 0; i < TDM_CONV_PASSES; i++) tdm__dnnl_call_deinit(&c->reorder[i]);
    tdm__dnnl_context_deinit(&c->context);
    tdm__conv_columns_close(c->columns);
    tdm__module_delete(c->workers);
    tdm__module_delete(c->scratch);
    tdm__module_delete(c);
}

static dnnl_status_t open_worker(worker *own, const conv *c, const tdm_conv_plans *p) {
    static const int argument[TDM_CONV_PASSES][TDM_DNNL_MAX_ARGS + 1] = {
        {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD},
        {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC, DNNL_ARG_SCRATCHPAD},
        {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS, DNNL_ARG_SCRATCHPAD},
    };
    own->context = c->context;
    dnnl_status_t status =
        TDM_DNNL(dnnl_stream_create)(&own->context.stream, c->context.engine, dnnl_stream_default_flags);
    if (status != dnnl_success) own->context.stream = NULL;
    for (int i = 0; i < TDM_CONV_PASSES && status == dnnl_success; i++) {
        if (p->pass[i] != NULL && !c->ways.is_direct[i])
            status = tdm__dnnl_call_init(&own->pass[i], &own->context, p->pass[i], argument[i]);
    }
    return status;
}

static dnnl_status_t make_calls(conv *c, const tdm_conv_plans *p) {
    static const int reorder[] = {DNNL_ARG_FROM, DNNL_ARG_TO, DNNL_ARG_SCRATCHPAD, 0};
    dnnl_status_t status = dnnl_success;
    for (int64_t i = 0; i < c->worker_count && status == dnnl_success; i++) status = open_worker(&c->workers[i], c, p);
    for (int i = 0; i < TDM_CONV_PASSES && status == dnnl_success; i++) {
        if (p->reorder[i] != NULL && !c->ways.packs[i])
            status = tdm__dnnl_call_init(&c->reorder[i], &c->context, p->reorder[i], reorder);
    }
    return status;
}

/* Allocates scratch of its own if the plan has booked too little: it was computed for the most rows, and another number
 * of rows has other chunks. */
static tdm_status book_scratch(conv *c, const tdm_host *host, const tdm_kernel_desc *desc, int64_t rows) {
    tdm_conv_plans most;
    if (rows == desc->y.dim[0]) return TDM_OK;
    TDM_MODULE_TRY(tdm__dnnl_check(
        tdm__conv_plans_choose(&most, &c->context, desc, desc->y.dim[0], desc->x_layout[0], desc->y_layout, true, true),
        "conv2d"));
    const size_t booked = tdm__conv_offsets_of(&most, desc, desc->y.dim[0]).total;
    tdm__conv_plans_deinit(&most);
    if (c->at.total <= booked) return TDM_OK;
    c->scratch = tdm__module_new(host, c->at.total);
    if (c->scratch == NULL)
        TDM_MODULE_FAIL(
            TDM_E_MEMORY,
            "conv2d: out of memory for %zu bytes of scratch; make train.batch.per_device or eval.batch smaller",
            c->at.total);
    return TDM_OK;
}

static tdm_status prepare(conv *c, const tdm_host *host, const tdm_kernel_desc *desc, int64_t rows, bool training) {
    tdm_conv_plans p;
    TDM_MODULE_TRY(tdm__dnnl_check(tdm__dnnl_context_init(&c->context), "conv2d"));
    TDM_MODULE_TRY(tdm__dnnl_check(
        tdm__conv_plans_choose(&p, &c->context, desc, rows, desc->x_layout[0], desc->y_layout, true, training),
        "conv2d"));
    const int64_t *x = desc->x[0].dim, *y = desc->y.dim;
    c->at = tdm__conv_offsets_of(&p, desc, rows);
    c->worker_count = tdm__conv_workers_of(&p, desc, rows);
    c->chunk_count = rows / p.chunk;
    c->chunk_x = p.chunk * x[1] * x[2] * x[3];
    c->chunk_y = p.chunk * y[1] * y[2] * y[3];
    c->element = tdm__conv_element_bytes(desc);
    c->workers = tdm__module_new(host, (size_t)c->worker_count * sizeof *c->workers);
    c->weight_count = tdm__conv_weight_bytes(&p, TDM_DNNL_BACKWARD_WEIGHTS) / sizeof(float);
    if (p.reorder[TDM_DNNL_FORWARD] != NULL) c->packed_bytes = tdm__conv_weight_bytes(&p, TDM_DNNL_FORWARD);
    tdm__conv_direct_choose(&c->ways, &p, desc);
    const dnnl_status_t status = c->workers != NULL ? make_calls(c, &p) : dnnl_out_of_memory;
    tdm__conv_plans_deinit(&p);
    TDM_MODULE_TRY(tdm__dnnl_check(status, "conv2d"));
    return book_scratch(c, host, desc, rows);
}

static tdm_status open_state(tdm_device *device, const tdm_kernel_desc *desc, int64_t rows, bool training,
                             void **state) {
    conv *c = tdm__module_new(device->host, sizeof *c);
    *state = NULL;
    if (c == NULL) TDM_MODULE_FAIL(TDM_E_MEMORY, "conv2d: out of memory for %zu bytes of state", sizeof *c);
    const tdm_dnnl_caller caller = tdm__dnnl_enter();
    const tdm_status status = tdm__conv_columns_wanted(desc)
                                  ? tdm__conv_columns_open(&c->columns, device->host, desc, rows, training)
                                  : prepare(c, device->host, desc, rows, training);
    tdm__dnnl_leave(&caller);
    if (status != TDM_OK) {
        close_state(c);
        return status;
    }
    *state = c;
    return TDM_OK;
}

/* ---- running ---- */

static const void *param(const tdm_kernel_args *args, int index) {
    if (args->desc->param_count <= index) return NULL;
    return args->desc->precision == TDM_BF16 ? args->param_bf16[index] : (const void *)args->param[index];
}

/* Chunk `chunk` of x or dx, which have chunk_x elements in each, or of y or dy. */
static void *chunk_of(const conv *c, const float *tensor, int64_t elements, int64_t chunk) {
    return (char *)(uintptr_t)tensor + (size_t)(chunk * elements) * c->element;
}

/* Chunks [first, first + count) of one pass over the rows. */
typedef struct {
    conv *c;
    const tdm_kernel_args *args;
    char *scratch;
    const void *weights;
    float *sum;
    int64_t first, count;
} work;

/* The weights between PyTorch's layout and that of a pass. */
typedef struct {
    const tdm_conv_direct *direct;
    float *packed, *plain; /* of which the other is only read */
} layouts;

static void pack_pairs(void *data, int64_t begin, int64_t end) {
    const layouts *l = data;
    TDM_LANES(tdm__conv_direct_lanes)->pack(l->direct, l->packed, l->plain, begin, end);
}

static void unpack_pairs(void *data, int64_t begin, int64_t end) {
    const layouts *l = data;
    TDM_LANES(tdm__conv_direct_lanes)->unpack(l->direct, l->plain, l->packed, begin, end);
}

static tdm_status share_pairs(const work *w, layouts *l, tdm_dnnl_work_fn run) {
    const tdm_conv_direct *d = l->direct;
    const int64_t pairs = d->in_blocks * d->out_blocks;
    const int64_t weights = pairs * d->kernel[0] * d->kernel[1] * TDM_CONV_BLOCK * TDM_CONV_BLOCK;
    return tdm__dnnl_share(w->args->device, tdm__dnnl_threads(w->args->desc->threads, weights), pairs, run, l);
}

/* Whether the weights of `pass`, or their gradient, lie otherwise than PyTorch's. */
static bool is_reordered(const conv *c, tdm_dnnl_pass pass) {
    return c->ways.packs[pass] || c->reorder[pass].primitive != NULL;
}

/* Writes the weights in the layout of `pass`. */
static tdm_status reorder_weights(const work *w, tdm_dnnl_pass pass, void *packed, const char *what) {
    conv *c = w->c;
    const void *plain = param(w->args, 0);
    layouts l = {&c->ways.conv[pass], packed, (float *)(uintptr_t)plain};
    if (c->ways.packs[pass]) return share_pairs(w, &l, pack_pairs);
    const void *const args[] = {plain, packed, w->scratch + c->at.pad};
    return tdm__dnnl_check(tdm__dnnl_call_run(&c->reorder[pass], &c->context, args), what);
}

/* Finds the weights in the layout of `pass`. */
static tdm_status bring_weights(work *w, tdm_dnnl_pass pass, const char *what) {
    const conv *c = w->c;
    void *packed = w->scratch + c->at.weights;
    w->weights = pass == TDM_DNNL_FORWARD ? w->args->packed : NULL;
    if (w->weights != NULL) return TDM_OK;
    w->weights = is_reordered(c, pass) ? packed : param(w->args, 0);
    return w->weights == packed ? reorder_weights(w, pass, packed, what) : TDM_OK;
}

/* Brings the sum of the gradients back into PyTorch's layout. */
static tdm_status return_gradient(work *w, const char *what) {
    conv *c = w->c;
    layouts l = {&c->ways.conv[TDM_DNNL_BACKWARD_WEIGHTS], w->sum, w->args->dparam[0]};
    if (c->ways.packs[TDM_DNNL_BACKWARD_WEIGHTS]) return share_pairs(w, &l, unpack_pairs);
    const void *const args[] = {w->sum, w->args->dparam[0], w->scratch + c->at.pad};
    return tdm__dnnl_check(tdm__dnnl_call_run(&c->reorder[TDM_DNNL_BACKWARD_WEIGHTS], &c->context, args), what);
}

static char *worker_scratch(const work *w, int64_t index) {
    return w->scratch + w->c->at.workers + (size_t)index * w->c->at.worker;
}

static dnnl_status_t first_failure(const conv *c) {
    dnnl_status_t status = dnnl_success;
    for (int64_t i = 0; i < c->worker_count && status == dnnl_success; i++) status = c->workers[i].status;
    return status;
}

static void relu(const tdm_kernel_desc *desc, void *y, int64_t count) {
    const tdm_dnnl_passes *passes = TDM_LANES(tdm__dnnl_passes);
    if (desc->precision == TDM_BF16)
        passes->clamp_bf16(y, count);
    else
        passes->clamp(y, count);
}

static void mask(const tdm_kernel_desc *desc, void *out, const void *dy, const void *y, int64_t count) {
    const tdm_dnnl_passes *passes = TDM_LANES(tdm__dnnl_passes);
    if (desc->precision == TDM_BF16)
        passes->mask_bf16(out, dy, y, count);
    else
        passes->mask(out, dy, y, count);
}

/* ---- one chunk of one pass, by oneDNN or directly ---- */

/* With the relu, if it does all. */
static dnnl_status_t find_y(const work *w, int64_t index, const void *x, void *y) {
    const tdm_conv_ways *ways = &w->c->ways;
    worker *own = &w->c->workers[index];
    const void *bias = param(w->args, 1);
    if (!ways->is_direct[TDM_DNNL_FORWARD])
        return tdm__dnnl_call_run(
            &own->pass[TDM_DNNL_FORWARD], &own->context,
            (const void *const[]){x, w->weights, bias, y, worker_scratch(w, index) + w->c->at.worker_pad});
    TDM_LANES(tdm__conv_direct_lanes)
        ->points(&ways->conv[TDM_DNNL_FORWARD], y, x, w->weights, bias,
                 tdm_has_epilogue(w->args->desc, TDM_EPILOGUE_RELU));
    return dnnl_success;
}

static dnnl_status_t find_dx(const work *w, int64_t index, const void *dy, void *dx) {
    const tdm_conv_ways *ways = &w->c->ways;
    worker *own = &w->c->workers[index];
    if (!ways->is_direct[TDM_DNNL_BACKWARD_DATA])
        return tdm__dnnl_call_run(
            &own->pass[TDM_DNNL_BACKWARD_DATA], &own->context,
            (const void *const[]){dy, w->weights, dx, worker_scratch(w, index) + w->c->at.worker_pad});
    TDM_LANES(tdm__conv_direct_lanes)->points(&ways->conv[TDM_DNNL_BACKWARD_DATA], dx, dy, w->weights, NULL, false);
    return dnnl_success;
}

/* Return where one chunk writes its gradients of the weights and of the bias. The first chunk writes straight into the
 * sum, to which the others are added. */
static float *weights_part(const work *w, int64_t index) {
    return w->first + index == 0 ? w->sum : (float *)(worker_scratch(w, index) + w->c->at.part);
}

static float *bias_part(const work *w, int64_t index) {
    if (w->args->desc->param_count < 2) return NULL;
    if (w->first + index == 0) return w->args->dparam[1];
    return (float *)(worker_scratch(w, index) + w->c->at.bias_part);
}

static dnnl_status_t find_weights(const work *w, int64_t index, const void *x, const void *dy) {
    const tdm_conv_ways *ways = &w->c->ways;
    float *dweights = weights_part(w, index), *dbias = bias_part(w, index);
    worker *own = &w->c->workers[index];
    if (!ways->is_direct[TDM_DNNL_BACKWARD_WEIGHTS])
        return tdm__dnnl_call_run(
            &own->pass[TDM_DNNL_BACKWARD_WEIGHTS], &own->context,
            (const void *const[]){x, dy, dweights, dbias, worker_scratch(w, index) + w->c->at.worker_pad});
    TDM_LANES(tdm__conv_direct_lanes)->weights(&ways->conv[TDM_DNNL_BACKWARD_WEIGHTS], dweights, dbias, x, dy);
    return dnnl_success;
}

/* ---- forward ---- */

static dnnl_status_t forward_chunk(const work *w, int64_t index, int64_t chunk) {
    const tdm_kernel_args *args = w->args;
    const conv *c = w->c;
    void *y = chunk_of(c, args->y, c->chunk_y, chunk);
    const dnnl_status_t status = find_y(w, index, chunk_of(c, args->x[0], c->chunk_x, chunk), y);
    if (!c->ways.is_direct[TDM_DNNL_FORWARD] && tdm_has_epilogue(args->desc, TDM_EPILOGUE_RELU))
        relu(args->desc, y, c->chunk_y);
    return status;
}

static void forward_workers(void *data, int64_t begin, int64_t end) {
    const work *w = data;
    for (int64_t i = begin; i < end; i++) {
        worker *own = &w->c->workers[i];
        const int64_t last = w->count * (i + 1) / w->c->worker_count;
        own->status = dnnl_success;
        for (int64_t chunk = w->count * i / w->c->worker_count; chunk < last && own->status == dnnl_success; chunk++)
            own->status = forward_chunk(w, i, chunk);
    }
}

static tdm_status run_forward(conv *c, const tdm_kernel_args *args) {
    static const char what[] = "conv2d forward";
    work w = {.c = c, .args = args, .count = c->chunk_count};
    w.scratch = c->scratch != NULL ? c->scratch : args->scratch;
    TDM_MODULE_TRY(bring_weights(&w, TDM_DNNL_FORWARD, what));
    TDM_MODULE_TRY(tdm__dnnl_share(args->device, args->desc->threads, c->worker_count, forward_workers, &w));
    return tdm__dnnl_check(first_failure(c), what);
}

/* ---- backward ---- */

static dnnl_status_t backward_chunk(const work *w, int64_t index) {
    const conv *c = w->c;
    const tdm_kernel_args *args = w->args;
    const int64_t chunk = w->first + index;
    const void *dy = chunk_of(c, args->dy, c->chunk_y, chunk);
    dnnl_status_t status = dnnl_success;
    if (tdm_has_epilogue(args->desc, TDM_EPILOGUE_RELU)) {
        void *masked = worker_scratch(w, index) + c->at.masked;
        mask(args->desc, masked, dy, chunk_of(c, args->y, c->chunk_y, chunk), c->chunk_y);
        dy = masked;
    }
    if (args->dx[0] != NULL) status = find_dx(w, index, dy, chunk_of(c, args->dx[0], c->chunk_x, chunk));
    if (status != dnnl_success || args->dparam[0] == NULL) return status;
    return find_weights(w, index, chunk_of(c, args->x[0], c->chunk_x, chunk), dy);
}

static void backward_workers(void *data, int64_t begin, int64_t end) {
    const work *w = data;
    for (int64_t i = begin; i < end; i++) w->c->workers[i].status = backward_chunk(w, i);
}

enum { ADDED_TOGETHER = 4096 }; /* elements: a range stays in the first-level cache while all parts are added to it */

static void add_ranges(void *data, int64_t begin, int64_t end) {
    const work *w = data;
    const int64_t total = (int64_t)w->c->weight_count;
    for (int64_t at = begin * ADDED_TOGETHER; at < total && at < end * ADDED_TOGETHER; at += ADDED_TOGETHER) {
        const int64_t count = total - at < ADDED_TOGETHER ? total - at : ADDED_TOGETHER;
        for (int64_t i = w->first == 0; i < w->count; i++)
            TDM_LANES(tdm__dnnl_passes)->add(w->sum + at, weights_part(w, i) + at, count);
    }
}

/* Adds the chunks' gradients, in the order of the chunks. */
static tdm_status add_gradients(work *w) {
    const int64_t count = (int64_t)w->c->weight_count, ranges = (count + ADDED_TOGETHER - 1) / ADDED_TOGETHER;
    const int threads = tdm__dnnl_threads(w->args->desc->threads, count * w->count);
    TDM_MODULE_TRY(tdm__dnnl_share(w->args->device, threads, ranges, add_ranges, w));
    for (int64_t i = w->first == 0; w->args->desc->param_count > 1 && i < w->count; i++)
        TDM_LANES(tdm__dnnl_passes)->add(w->args->dparam[1], bias_part(w, i), w->args->desc->y.dim[1]);
    return TDM_OK;
}

static tdm_status run_backward(conv *c, const tdm_kernel_args *args) {
    static const char what[] = "conv2d backward";
    const bool back = is_reordered(c, TDM_DNNL_BACKWARD_WEIGHTS);
    work w = {.c = c, .args = args};
    w.scratch = c->scratch != NULL ? c->scratch : args->scratch;
    w.sum = back ? (float *)(w.scratch + c->at.sum) : args->dparam[0];
    if (args->dx[0] != NULL) TDM_MODULE_TRY(bring_weights(&w, TDM_DNNL_BACKWARD_DATA, what));
    for (; w.first < c->chunk_count; w.first += w.count) {
        const int64_t left = c->chunk_count - w.first;
        w.count = left < c->worker_count ? left : c->worker_count;
        TDM_MODULE_TRY(tdm__dnnl_share(args->device, args->desc->threads, w.count, backward_workers, &w));
        TDM_MODULE_TRY(tdm__dnnl_check(first_failure(c), what));
        if (args->dparam[0] != NULL) TDM_MODULE_TRY(add_gradients(&w));
    }
    return back && args->dparam[0] != NULL ? return_gradient(&w, what) : TDM_OK;
}

static tdm_status forward(const tdm_kernel_args *args) {
    conv *c = args->state;
    if (c->ways.is_direct[TDM_DNNL_FORWARD]) return run_forward(c, args); /* nothing of oneDNN runs */
    const tdm_dnnl_caller caller = tdm__dnnl_enter();
    const tdm_status status = c->columns != NULL ? tdm__conv_columns_forward(c->columns, args) : run_forward(c, args);
    tdm__dnnl_leave(&caller);
    return status;
}

static tdm_status backward(const tdm_kernel_args *args) {
    const tdm_dnnl_caller caller = tdm__dnnl_enter();
    conv *c = args->state;
    const tdm_status status = c->columns != NULL ? tdm__conv_columns_backward(c->columns, args) : run_backward(c, args);
    tdm__dnnl_leave(&caller);
    return status;
}

static size_t packed_bytes(const void *state) {
    const conv *c = state;
    return c->columns != NULL ? tdm__conv_columns_packed_bytes(c->columns) : c->packed_bytes;
}

static tdm_status pack(const tdm_kernel_args *args) {
    const tdm_dnnl_caller caller = tdm__dnnl_enter();
    conv *c = args->state;
    const work w = {.c = c, .args = args, .scratch = c->scratch != NULL ? c->scratch : args->scratch};
    const tdm_status status = c->columns != NULL
                                  ? tdm__conv_columns_pack(c->columns, args)
                                  : reorder_weights(&w, TDM_DNNL_FORWARD, args->packed, "conv2d weights");
    tdm__dnnl_leave(&caller);
    return status;
}

const tdm_kernel tdm__conv2d_dnnl = {
    .op = "conv2d",
    .variant = "dnnl",
    .fits = tdm__conv_dnnl_fits,
    .open = open_state,
    .close = close_state,
    .forward = forward,
    .backward = backward,
    .takes_bf16 = true,
    .packed_bytes = packed_bytes,
    .pack = pack,
};
