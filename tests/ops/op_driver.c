/* See op_driver.h. */
#include "tests/ops/op_driver.h"

#include <float.h>

#include <tandem/job.h>

#include "ops/ops.h"
#include "runtime/base/bf16.h"
#include "runtime/device/threads.h"
#include "tests/ops/op_memory.h"
#include "tests/support/tdm_test.h"

static float *copy_floats(const float *from, int64_t count) {
    float *to = op_take((size_t)count * sizeof *to);
    if (count > 0) memcpy(to, from, (size_t)count * sizeof *to);
    return to;
}

void (*op_thread_begin)(void);

/* ---- one run ---- */

typedef struct {
    const tdm_kernel *kernel;
    const op_data *data;
    const op_setting *setting;
    tdm_device cpu; /* where the setting has no device */
    tdm_kernel_desc desc;
    tdm_kernel_fit fit;
    tdm_kernel_args args;
    op_memory memory;
    int64_t rows, x_count[TDM_MAX_INPUTS], y_count; /* numbers of this run's rows */
    size_t size;                                    /* bytes of a number of x, y, dy and dx */
    void *x[TDM_MAX_INPUTS], *dy;                   /* as the kernel sees them */
    void *kept_y;                                   /* of forward, during backward */
    void *scratch_forward, *scratch_backward;
    bool in_place;
} run;

static bool ask(run *r) {
    memset(&r->fit, 0, sizeof r->fit);
    if (r->kernel->fits == NULL) return true;
    return r->kernel->fits(&r->desc, &r->fit);
}

/* Does the kernel offer this, and fit with it? */
static bool take_in(run *r, bool wanted, unsigned what) {
    if (!wanted) return true;
    if ((r->fit.epilogue & what) == 0) return false;
    r->desc.epilogue |= what;
    return ask(r);
}

/* Fills desc and fit as the planner does. */
static bool describe(run *r) {
    const op_data *data = r->data;
    r->desc = (tdm_kernel_desc){.op = data->def->name,
                                .attrs = data->attrs,
                                .input_count = data->infer.input_count + r->setting->adds,
                                .param_count = data->infer.param_count + r->setting->biased,
                                .buffer_count = data->infer.buffer_count,
                                .y = data->y_shape,
                                .training = r->setting->training,
                                .replicas = r->setting->replicas > 1 ? r->setting->replicas : 1,
                                .threads = r->setting->threads > 0 ? r->setting->threads : 1,
                                .fast = r->setting->fast,
                                .precision = r->setting->precision};
    if (r->desc.replicas > 1 && r->kernel->statistics == NULL) return false;
    if (r->desc.input_count > TDM_MAX_INPUTS || r->desc.param_count > TDM_MAX_PARAMS) return false;
    for (int i = 0; i < r->desc.input_count; i++) {
        r->desc.x[i] = op_data_shape(data, i);
        if (!op_layout_applies(r->setting->layout, &r->desc.x[i])) return false;
        r->desc.x_layout[i] = r->setting->layout;
        r->desc.needs_dx[i] = r->setting->training && !r->setting->without_dx;
    }
    for (int i = 0; i < data->infer.param_count; i++) r->desc.param[i] = data->infer.param[i].shape;
    if (r->setting->biased)
        r->desc.param[data->infer.param_count] = (tdm_shape){1, {data->param_count[data->infer.param_count]}};
    if (!ask(r) || !take_in(r, r->setting->biased, TDM_EPILOGUE_BIAS) ||
        !take_in(r, r->setting->adds, TDM_EPILOGUE_ADD) || !take_in(r, r->setting->relu, TDM_EPILOGUE_RELU) ||
        !take_in(r, r->setting->sums, TDM_EPILOGUE_SUM_DX))
        return false;
    for (int i = 0; i < r->desc.input_count; i++) {
        r->desc.x_layout[i] = r->fit.x_layout[i];
        if (!op_layout_applies(r->fit.x_layout[i], &r->desc.x[i])) return false;
    }
    r->desc.y_layout = r->fit.y_layout;
    r->desc.weight_channels = r->fit.weight_channels;
    if (r->fit.weight_channels != 0) CHECK_INT(r->fit.weight_channels, r->desc.param[0].dim[1]);
    r->in_place = r->setting->in_place && (data->def->flags & TDM_OP_IN_PLACE) != 0 &&
                  (data->def->flags & TDM_OP_READS_X) == 0 && r->fit.x_layout[0] == r->fit.y_layout;
    return op_layout_applies(r->fit.y_layout, &data->y_shape) && r->in_place == r->setting->in_place;
}

/* From floats in plain layout to what the kernel reads. */
static void give(const run *r, void *to, const float *plain, const tdm_shape *shape, tdm_layout layout) {
    if (r->size == sizeof(float)) {
        op_convert(to, plain, shape, r->rows, layout, false);
        return;
    }
    int64_t count = tdm__shape_count(shape) / shape->dim[0] * r->rows;
    float *floats = op_take((size_t)count * sizeof *floats);
    uint16_t *narrow = to;
    op_convert(floats, plain, shape, r->rows, layout, false);
    for (int64_t i = 0; i < count; i++) narrow[i] = tdm__bf16_of(floats[i]);
    free(floats);
}

/* And back, as a copy. */
static float *plain_copy(const run *r, const void *from, const tdm_shape *shape, tdm_layout layout) {
    int64_t count = tdm__shape_count(shape) / shape->dim[0] * r->rows;
    float *floats = op_take((size_t)count * sizeof *floats), *plain = op_take((size_t)count * sizeof *plain);
    const uint16_t *narrow = from;
    if (r->size == sizeof(float)) memcpy(floats, from, (size_t)count * sizeof *floats);
    for (int64_t i = 0; i < count && r->size != sizeof(float); i++) floats[i] = tdm__bf16_float(narrow[i]);
    op_convert(plain, floats, shape, r->rows, layout, true);
    free(floats);
    return plain;
}

/* Filters are like images: their channels are neighbours where the kernel asked for it. */
static void convert_param(const run *r, int i, float *to, const float *from, bool to_plain) {
    const tdm_shape *shape = &r->desc.param[i];
    const bool neighbours = i == 0 && r->desc.weight_channels > 0;
    op_convert(to, from, shape, shape->dim[0], neighbours ? TDM_LAYOUT_NHWC : TDM_LAYOUT_PLAIN, to_plain);
}

static void bind_params(run *r) {
    const op_data *data = r->data;
    tdm_kernel_args *args = &r->args;
    for (int i = 0; i < r->desc.param_count; i++) {
        int64_t count = data->param_count[i];
        float *param = op_memory_floats(&r->memory, count, "a parameter");
        convert_param(r, i, param, data->param[i], false);
        args->param[i] = param;
        if (r->desc.precision == TDM_BF16) {
            uint16_t *narrow = op_memory_numbers(&r->memory, count, sizeof *narrow, "a parameter in bf16");
            for (int64_t k = 0; k < count; k++) narrow[k] = tdm__bf16_of(param[k]);
            args->param_bf16[i] = narrow;
        }
        if (r->setting->training) args->dparam[i] = op_memory_floats(&r->memory, count, "a parameter's gradient");
    }
}

/* Of one replica's statistics. */
static size_t block_bytes(const run *r) {
    return (size_t)r->data->infer.statistics * sizeof(double);
}

static tdm_device *device_of(run *r) {
    return r->setting->device != NULL ? r->setting->device : &r->cpu;
}

static void bind(run *r) {
    const op_data *data = r->data;
    r->rows = r->setting->rows > 0 ? r->setting->rows : data->test->rows;
    for (int i = 0; i < r->desc.input_count; i++) r->x_count[i] = op_data_count(data, i) / data->test->rows * r->rows;
    r->y_count = data->y_count / data->test->rows * r->rows;
    r->size = r->desc.precision == TDM_BF16 ? sizeof(uint16_t) : sizeof(float);
    r->memory = (op_memory){.device = r->setting->device, .odd = r->setting->odd};
    tdm_kernel_args *args = &r->args;
    tdm_step_values *values = op_memory_new(&r->memory, sizeof *values, "the values of the step");
    *values = (tdm_step_values){.step = r->setting->step};
    int64_t *position = op_memory_new(&r->memory, (size_t)r->rows * sizeof *position, "the positions");
    memcpy(position, data->position, (size_t)r->rows * sizeof *position);
    *args = (tdm_kernel_args){.desc = &r->desc,
                              .device = device_of(r),
                              .rows = r->rows,
                              .training = r->setting->training,
                              .seed = r->setting->seed,
                              .values = values,
                              .stream = r->setting->stream,
                              .position = position};
    for (int i = 0; i < r->desc.input_count; i++) {
        args->x[i] = r->x[i] = op_memory_numbers(&r->memory, r->x_count[i], r->size, "x");
        give(r, r->x[i], data->x[i], &r->desc.x[i], r->desc.x_layout[i]);
    }
    args->y = r->in_place ? r->x[0] : op_memory_numbers(&r->memory, r->y_count, r->size, "y");
    bind_params(r);
    for (int i = 0; i < data->infer.buffer_count; i++) {
        bool is_counter = data->infer.buffer[i].is_counter;
        size_t bytes = is_counter ? sizeof(int64_t) : (size_t)data->buffer_count[i] * sizeof(float);
        void *buffer = op_memory_new(&r->memory, bytes, "a buffer");
        memcpy(buffer, is_counter ? (const void *)&data->counter : (const void *)data->buffer[i], bytes);
        if (is_counter)
            args->counter = buffer;
        else
            args->buffer[i] = buffer;
    }
    if (r->desc.replicas > 1)
        args->statistics = op_memory_new(&r->memory, block_bytes(r) * (size_t)r->desc.replicas, "statistics");
    if (r->fit.saved_bytes > 0) args->saved = op_memory_new(&r->memory, r->fit.saved_bytes, "saved");
    if (r->fit.scratch_bytes > 0) {
        r->scratch_forward = op_memory_new(&r->memory, r->fit.scratch_bytes, "scratch of forward");
        r->scratch_backward = op_memory_new(&r->memory, r->fit.scratch_bytes, "scratch of backward");
    }
}

static void check_same(const run *r, const void *got, const float *want, const tdm_shape *shape, tdm_layout layout,
                       const char *when) {
    int64_t count = tdm__shape_count(shape) / shape->dim[0] * r->rows;
    float *plain = plain_copy(r, got, shape, layout);
    if (memcmp(plain, want, (size_t)count * sizeof *plain) != 0) {
        fprintf(stderr, "%s: changed what it may only read\n", when);
        tdm_test_failures++;
    }
    free(plain);
}

/* What the kernel is given: on a device, the twins. */
static tdm_kernel_args args_there(const run *r) {
    const op_memory *m = &r->memory;
    tdm_kernel_args args = r->args;
    for (int i = 0; i < TDM_MAX_INPUTS; i++) {
        args.x[i] = op_memory_there(m, args.x[i]);
        args.dx[i] = op_memory_there(m, args.dx[i]);
    }
    for (int i = 0; i < TDM_MAX_PARAMS; i++) {
        args.param[i] = op_memory_there(m, args.param[i]);
        args.param_bf16[i] = op_memory_there(m, args.param_bf16[i]);
        args.dparam[i] = op_memory_there(m, args.dparam[i]);
    }
    args.channel_sums = op_memory_there(m, args.channel_sums);
    for (int i = 0; i < TDM_MAX_BUFFERS; i++) args.buffer[i] = op_memory_there(m, args.buffer[i]);
    args.y = op_memory_there(m, args.y);
    args.dy = op_memory_there(m, args.dy);
    args.counter = op_memory_there(m, args.counter);
    args.saved = op_memory_there(m, args.saved);
    args.scratch = op_memory_there(m, args.scratch);
    args.statistics = op_memory_there(m, args.statistics);
    args.values = op_memory_there(m, args.values);
    args.position = op_memory_there(m, args.position);
    return args;
}

/* Captured before its operands are there, so that what it reads too early is seen, and run twice. */
static tdm_status run_captured(const run *r, tdm_status (*pass)(const tdm_kernel_args *args)) {
    tdm_device *device = r->setting->device;
    const tdm_kernel_args args = args_there(r);
    tdm_capture *capture = NULL;
    CHECK_OK(device->ops->captures->begin(device));
    tdm_status status = pass(&args);
    if (status == TDM_OK)
        CHECK_OK(device->ops->captures->end(device, &capture));
    else
        (void)device->ops->captures->end(device, &capture);
    for (int i = 0; i < 2 && capture != NULL && status == TDM_OK; i++) {
        op_memory_send(&r->memory);
        status = device->ops->captures->run(device, capture);
    }
    op_memory_fetch(&r->memory);
    device->ops->captures->free(device, capture);
    return status;
}

static tdm_status run_pass(const run *r, tdm_status (*pass)(const tdm_kernel_args *args)) {
    if (r->setting->graph) return run_captured(r, pass);
    const tdm_kernel_args args = args_there(r);
    op_memory_send(&r->memory);
    tdm_status status = pass(&args);
    op_memory_fetch(&r->memory);
    return status;
}

/* With the first parameter in the kernel's own layout, and nowhere else, forward writes the same bits again. */
static tdm_status forward_packed(run *r) {
    const size_t bytes = r->kernel->packed_bytes != NULL ? r->kernel->packed_bytes(r->args.state) : 0;
    const tdm_kernel_args plain = r->args;
    if (bytes == 0 || r->in_place) return TDM_OK;
    void *y = op_take((size_t)r->y_count * r->size);
    memcpy(y, r->args.y, (size_t)r->y_count * r->size);
    memset(r->args.y, OP_DIRT, (size_t)r->y_count * r->size);
    r->args.packed = op_memory_new(&r->memory, bytes, "packed");
    tdm_status status = run_pass(r, r->kernel->pack);
    r->args.param[0] = NULL;
    r->args.param_bf16[0] = NULL;
    if (status == TDM_OK) status = run_pass(r, r->kernel->forward);
    if (status == TDM_OK && memcmp(r->args.y, y, (size_t)r->y_count * r->size) != 0) {
        fprintf(stderr, "  packed: not forward's y\n");
        tdm_test_failures++;
    }
    free(y);
    r->args = plain;
    return status;
}

static tdm_status forward(run *r) {
    r->args.scratch = r->scratch_forward;
    tdm_status status = run_pass(r, r->kernel->forward);
    if (status == TDM_OK) status = forward_packed(r);
    op_memory_check(&r->memory, "forward");
    for (int i = r->in_place ? 1 : 0; i < r->desc.input_count; i++)
        check_same(r, r->x[i], r->data->x[i], &r->desc.x[i], r->desc.x_layout[i], "forward");
    return status;
}

/* What the plan may have given to others in between is overwritten. */
static void forget(run *r, const void *y_kept) {
    unsigned flags = r->data->def->flags;
    const int kept = (flags & TDM_OP_READS_X) != 0 ? r->data->infer.input_count : 0;
    for (int i = kept; i < r->desc.input_count; i++) memset(r->x[i], OP_DIRT, (size_t)r->x_count[i] * r->size);
    if ((flags & TDM_OP_READS_Y) != 0 || tdm_has_epilogue(&r->desc, TDM_EPILOGUE_RELU))
        memcpy(r->args.y, y_kept, (size_t)r->y_count * r->size);
    else
        memset(r->args.y, OP_DIRT, (size_t)r->y_count * r->size);
    if (r->scratch_backward != NULL) memset(r->scratch_backward, OP_DIRT, r->fit.scratch_bytes);
}

/* y from what backward may read, into memory that holds something else. */
static tdm_status recompute(run *r, const void *y) {
    memset(r->args.y, OP_DIRT, (size_t)r->y_count * r->size);
    const tdm_status status = run_pass(r, r->kernel->recompute);
    op_memory_check(&r->memory, "recompute");
    if (status == TDM_OK && memcmp(r->args.y, y, (size_t)r->y_count * r->size) != 0) {
        fprintf(stderr, "  recompute: not forward's y\n");
        tdm_test_failures++;
    }
    return status;
}

static tdm_status prepare_backward(run *r) {
    const op_data *data = r->data;
    if (r->setting->rounds_y) op_round(r->args.y, r->y_count);
    r->kept_y = op_take((size_t)r->y_count * r->size);
    memcpy(r->kept_y, r->args.y, (size_t)r->y_count * r->size);
    forget(r, r->kept_y);
    r->args.scratch = r->scratch_backward;
    const bool keeps_x = (data->def->flags & TDM_OP_READS_X) != 0 && !r->setting->adds;
    if (r->kernel->recompute != NULL && keeps_x) {
        const tdm_status status = recompute(r, r->kept_y);
        if (status != TDM_OK) return status;
        forget(r, r->kept_y);
    }
    r->args.dy = r->dy = op_memory_numbers(&r->memory, r->y_count, r->size, "dy");
    give(r, r->dy, data->dy, &data->y_shape, r->desc.y_layout);
    for (int i = 0; i < r->desc.input_count && !r->setting->without_dx; i++) {
        const bool over = (r->in_place && i == 0) || (r->setting->over_dy && i == r->desc.input_count - 1);
        r->args.dx[i] = over ? r->dy : op_memory_numbers(&r->memory, r->x_count[i], r->size, "dx");
    }
    if (tdm_has_epilogue(&r->desc, TDM_EPILOGUE_SUM_DX))
        r->args.channel_sums = op_memory_floats(&r->memory, data->x_shape.dim[1], "sums of channels");
    return TDM_OK;
}

static tdm_status backward(run *r) {
    const op_data *data = r->data;
    tdm_status status = run_pass(r, r->kernel->backward);
    op_memory_check(&r->memory, "backward");
    if (!r->in_place && !r->setting->over_dy)
        check_same(r, r->dy, data->dy, &data->y_shape, r->desc.y_layout, "backward");
    memcpy(r->args.y, r->kept_y, (size_t)r->y_count * r->size);
    return status;
}

/* Before forward, or before backward. */
static tdm_status statistics(run *r) {
    void *scratch = r->args.dy == NULL ? r->scratch_forward : r->scratch_backward;
    r->args.scratch = scratch;
    tdm_status status = run_pass(r, r->kernel->statistics);
    op_memory_check(&r->memory, "statistics");
    if (scratch != NULL) memset(scratch, OP_DIRT, r->fit.scratch_bytes);
    return status;
}

static void collect(op_result *out, const run *r) {
    const op_data *data = r->data;
    memcpy(out->x_count, r->x_count, sizeof out->x_count);
    out->y_count = r->y_count;
    out->channels = data->x_shape.dim[1];
    out->y = plain_copy(r, r->args.y, &data->y_shape, r->desc.y_layout);
    for (int i = 0; i < r->desc.input_count; i++)
        if (r->args.dx[i] != NULL) out->dx[i] = plain_copy(r, r->args.dx[i], &r->desc.x[i], r->desc.x_layout[i]);
    if (r->args.channel_sums != NULL) out->sums = copy_floats(r->args.channel_sums, out->channels);
    for (int i = 0; i < r->desc.param_count; i++)
        if (r->args.dparam[i] != NULL) {
            out->dparam[i] = op_take((size_t)data->param_count[i] * sizeof(float));
            convert_param(r, i, out->dparam[i], r->args.dparam[i], true);
        }
    for (int i = 0; i < data->infer.buffer_count; i++)
        if (r->args.buffer[i] != NULL) out->buffer[i] = copy_floats(r->args.buffer[i], data->buffer_count[i]);
    if (r->args.counter != NULL) out->counter = *r->args.counter;
}

static void name_run(const run *r) {
    const op_setting *setting = r->setting;
    fprintf(stderr, "  by %s/%s, %s, %lld rows, layout %d%s%s%s%s%s%s%s%s%s%s\n", r->kernel->op, r->kernel->variant,
            op_data_name(r->data), (long long)r->rows, (int)setting->layout,
            setting->precision == TDM_BF16 ? ", bf16" : "", setting->training ? ", training" : "",
            setting->relu ? ", relu" : "", setting->sums ? ", sums" : "", setting->adds ? ", adds" : "",
            setting->biased ? ", biased" : "", setting->in_place ? ", in place" : "", setting->odd ? ", odd" : "",
            setting->graph ? ", captured" : "", setting->replicas > 1 ? ", replicas" : "");
}

static tdm_status open_run(run *r) {
    r->cpu = (tdm_device){.host = tdm_host_default()};
    CHECK_OK(tdm__threads_open(&r->cpu.threads, r->cpu.host, r->desc.threads, 0, op_thread_begin));
    bind(r);
    if (r->kernel->open == NULL) return TDM_OK;
    return r->kernel->open(device_of(r), &r->desc, r->rows, r->setting->training, &r->args.state);
}

static void close_run(run *r, bool opened) {
    if (opened && r->kernel->close != NULL) r->kernel->close(r->args.state);
    tdm__threads_close(r->cpu.threads);
    op_memory_free(&r->memory);
    free(r->kept_y);
}

/* ---- several replicas ---- */

enum { REPLICAS_MAX = 4 };

/* The last replica but one has no rows where there are three, so that one is absent. */
static int64_t rows_of_replica(int64_t rows, int replicas, int replica) {
    if (replicas == 3) return replica == 1 ? 0 : replica == 0 ? rows - rows / 2 : rows / 2;
    return rows / replicas + (replica < rows % replicas);
}

typedef struct {
    run of[REPLICAS_MAX];
    op_data data[REPLICAS_MAX];
    op_setting setting[REPLICAS_MAX];
    int count; /* of those with rows */
} group;

static void open_replica(group *g, const run *whole, int replica, int64_t first, int64_t rows) {
    const int i = g->count++;
    op_data *data = &g->data[i];
    *data = *whole->data;
    for (int k = 0; k < TDM_MAX_INPUTS; k++)
        if (data->x[k] != NULL) data->x[k] += first * (op_data_count(data, k) / data->test->rows);
    data->dy += first * (data->y_count / data->test->rows);
    data->position += first;
    g->setting[i] = *whole->setting;
    g->setting[i].rows = rows;
    run *r = &g->of[i];
    *r = (run){.kernel = whole->kernel, .data = data, .setting = &g->setting[i]};
    CHECK(describe(r));
    CHECK_OK(open_run(r));
    r->args.replica = replica;
}

static tdm_status exchange(group *g) {
    for (int i = 0; i < g->count; i++) {
        const tdm_status status = statistics(&g->of[i]);
        if (status != TDM_OK) return status;
    }
    for (int i = 0; i < g->count; i++)
        for (int k = 0; k < g->count; k++) {
            const size_t bytes = block_bytes(&g->of[i]), at = bytes * (size_t)g->of[k].args.replica;
            if (i != k) memcpy((char *)g->of[i].args.statistics + at, (char *)g->of[k].args.statistics + at, bytes);
        }
    return TDM_OK;
}

static tdm_status each(group *g, tdm_status (*pass)(run *r)) {
    tdm_status status = TDM_OK;
    for (int i = 0; i < g->count && status == TDM_OK; i++) status = pass(&g->of[i]);
    return status;
}

/* One replica's results behind those of the ones before; what belongs to parameters is added. */
static void append(op_result *all, const op_result *one, const op_data *data, const op_result *first) {
    memcpy(all->y + all->y_count, one->y, (size_t)one->y_count * sizeof *one->y);
    for (int i = 0; i < TDM_MAX_INPUTS; i++)
        if (one->dx[i] != NULL)
            memcpy(all->dx[i] + all->x_count[i], one->dx[i], (size_t)one->x_count[i] * sizeof *one->dx[i]);
    all->y_count += one->y_count;
    for (int i = 0; i < TDM_MAX_INPUTS; i++) all->x_count[i] += one->x_count[i];
    for (int i = 0; i < data->infer.param_count; i++)
        for (int64_t k = 0; one->dparam[i] != NULL && k < data->param_count[i]; k++)
            all->dparam[i][k] += one->dparam[i][k];
    /* Replicas that exchanged statistics have the same running ones. */
    for (int i = 0; i < data->infer.buffer_count; i++)
        if (one->buffer[i] != NULL)
            CHECK_INT(memcmp(one->buffer[i], first->buffer[i], (size_t)data->buffer_count[i] * sizeof(float)), 0);
    CHECK_INT(one->counter, first->counter);
}

static void collect_all(op_result *out, const group *g, const op_data *data) {
    op_result one[REPLICAS_MAX] = {{0}};
    for (int i = 0; i < g->count; i++) collect(&one[i], &g->of[i]);
    out->y = op_take((size_t)data->y_count * sizeof *out->y);
    for (int i = 0; i < TDM_MAX_INPUTS; i++)
        if (one[0].dx[i] != NULL) out->dx[i] = op_take((size_t)op_data_count(data, i) * sizeof *out->dx[i]);
    for (int i = 0; i < TDM_MAX_PARAMS; i++)
        if (one[0].dparam[i] != NULL) out->dparam[i] = op_take((size_t)data->param_count[i] * sizeof(float));
    for (int i = 0; i < data->infer.buffer_count; i++)
        if (one[0].buffer[i] != NULL) out->buffer[i] = copy_floats(one[0].buffer[i], data->buffer_count[i]);
    out->counter = one[0].counter;
    out->channels = one[0].channels;
    for (int i = 0; i < g->count; i++) append(out, &one[i], data, &one[0]);
    for (int i = 0; i < g->count; i++) op_result_close(&one[i]);
}

static void run_replicas(op_result *out, const run *whole) {
    group g = {.count = 0};
    const int64_t rows = whole->setting->rows > 0 ? whole->setting->rows : whole->data->test->rows;
    const int replicas = whole->setting->replicas;
    uint64_t present = 0;
    int64_t first = 0;
    for (int i = 0; i < replicas; i++) {
        const int64_t count = rows_of_replica(rows, replicas, i);
        if (count == 0) continue;
        open_replica(&g, whole, i, first, count);
        present |= UINT64_C(1) << i;
        first += count;
    }
    for (int i = 0; i < g.count; i++) g.of[i].args.present = present;
    out->status = exchange(&g);
    if (out->status == TDM_OK) out->status = each(&g, forward);
    if (out->status == TDM_OK) out->status = each(&g, prepare_backward);
    if (out->status == TDM_OK) out->status = exchange(&g);
    if (out->status == TDM_OK) out->status = each(&g, backward);
    if (out->status == TDM_OK) collect_all(out, &g, whole->data);
    for (int i = 0; i < g.count; i++) close_run(&g.of[i], true);
}

/* ---- all of it ---- */

static void run_alone(op_result *out, run *r) {
    out->status = open_run(r);
    const bool opened = out->status == TDM_OK;
    if (opened) out->status = forward(r);
    if (out->status == TDM_OK && r->setting->training) out->status = prepare_backward(r);
    if (out->status == TDM_OK && r->setting->training) out->status = backward(r);
    if (out->status == TDM_OK) collect(out, r);
    close_run(r, opened);
}

void op_run(op_result *out, const tdm_kernel *kernel, const op_data *data, const op_setting *setting) {
    *out = (op_result){0};
    int failures = tdm_test_failures;
    run r = {.kernel = kernel, .data = data, .setting = setting};
    if (!describe(&r)) {
        memcpy(out->why, r.fit.why, sizeof out->why);
        return;
    }
    out->ran = true;
    if (setting->replicas > 1)
        run_replicas(out, &r);
    else
        run_alone(out, &r);
    if (tdm_test_failures != failures) name_run(&r);
}

void op_result_close(op_result *result) {
    free(result->y);
    free(result->sums);
    for (int i = 0; i < TDM_MAX_INPUTS; i++) free(result->dx[i]);
    for (int i = 0; i < TDM_MAX_PARAMS; i++) free(result->dparam[i]);
    for (int i = 0; i < TDM_MAX_BUFFERS; i++) free(result->buffer[i]);
    *result = (op_result){0};
}
