/* linear, conv2d and conv1d of the CUDA module in bf16, and the first convolution on a batch whose channels are filled
 * up: against sums in double over the same bf16 numbers. On emulated CUDA, with and without cuDNN, and on GPUs.
 *
 * What a result may be off by is counted: half a unit in the last place (2^-8) for every time it, or a part of it, is
 * rounded to bf16, and float's rounding of the sum. With tf32, which holds bf16 numbers exactly, only the latter. */
#include <tandem/job.h>

#include "ops/conv1d/conv1d.h"
#include "ops/conv2d/conv2d.h"
#include "runtime/base/bf16.h"
#include "runtime/base/field/field.h"
#include "tests/ops/cuda_device.h"
#include "tests/ops/op_driver.h"
#include "tests/support/device_fill.h"

/* Half a unit, as 8 bits of significand give it; for sums of float, relative to the sum of the terms' magnitudes. */
static const double half_unit = 1.0 / 256, sum_error = 2e-6;

typedef struct {
    const char *op;
    op_case test;
    int precision;
    bool relu, may_fill, without_dx, graph;
    int64_t rows;      /* 0: all of the case */
    tdm_layout layout; /* that the kernel is to choose for x */
    int64_t filled;    /* and for how many channels of it; 0: those that it has */
} setting;

/* A tensor of 4 dimensions. */
typedef struct {
    int64_t n, c, h, w;
} size4;

static int64_t count_of(size4 s) {
    return s.n * s.c * s.h * s.w;
}

static int64_t at(size4 s, int64_t n, int64_t c, int64_t h, int64_t w) {
    return ((n * s.c + c) * s.h + h) * s.w + w;
}

/* ---- the reference ---- */

/* A convolution; linear is one of 1 x 1 on one point, conv1d one with a height of 1. */
typedef struct {
    size4 x, w, y;
    tdm_window window;
    int64_t groups;
} convolution;

static convolution convolution_of(const op_data *data, int64_t rows) {
    const int64_t *x = data->x_shape.dim, *y = data->y_shape.dim, *w = data->infer.param[0].shape.dim;
    if (data->x_shape.ndim == 2)
        return (convolution){.x = {rows, x[1], 1, 1},
                             .w = {w[0], w[1], 1, 1},
                             .y = {rows, y[1], 1, 1},
                             .window = {.kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}},
                             .groups = 1};
    if (data->x_shape.ndim == 3) {
        const tdm_conv2d_attrs image = tdm__conv1d_image(data->attrs);
        return (convolution){.x = {rows, x[1], 1, x[2]},
                             .w = {w[0], w[1], 1, w[2]},
                             .y = {rows, y[1], 1, y[2]},
                             .window = tdm__conv2d_window(&image),
                             .groups = image.groups};
    }
    const tdm_conv2d_attrs *attrs = data->attrs;
    return (convolution){.x = {rows, x[1], x[2], x[3]},
                         .w = {w[0], w[1], w[2], w[3]},
                         .y = {rows, y[1], y[2], y[3]},
                         .window = attrs->window,
                         .groups = attrs->groups};
}

/* Sums, and the sums of the magnitudes of their terms. */
typedef struct {
    double *sum, *most;
} sums;

static sums new_sums(int64_t count) {
    sums s = {calloc((size_t)count, sizeof(double)), calloc((size_t)count, sizeof(double))};
    if (s.sum == NULL || s.most == NULL) abort();
    return s;
}

static void free_sums(sums s) {
    free(s.sum);
    free(s.most);
}

static void add(sums to, int64_t index, double a, double b) {
    to.sum[index] += a * b;
    to.most[index] += fabs(a * b);
}

typedef struct {
    const float *x, *w, *dy;
    sums y, dw, dx, db;
} reference;

static void take_point(const convolution *c, reference *r, int64_t n, int64_t k, int64_t p, int64_t q) {
    const tdm_window *v = &c->window;
    const int64_t first = k / (c->w.n / c->groups) * c->w.c, y = at(c->y, n, k, p, q);
    for (int64_t i = 0; i < c->w.c * c->w.h * c->w.w; i++) {
        const int64_t own = i / (c->w.h * c->w.w), tap_p = i / c->w.w % c->w.h, tap_q = i % c->w.w;
        const int64_t h = p * v->stride[0] - v->padding[0] + tap_p * v->dilation[0];
        const int64_t column = q * v->stride[1] - v->padding[1] + tap_q * v->dilation[1];
        if (h < 0 || h >= c->x.h || column < 0 || column >= c->x.w) continue;
        const int64_t x = at(c->x, n, first + own, h, column), w = at(c->w, k, own, tap_p, tap_q);
        if (r->dy == NULL) {
            add(r->y, y, (double)r->x[x], (double)r->w[w]);
        } else {
            add(r->dw, w, (double)r->dy[y], (double)r->x[x]);
            add(r->dx, x, (double)r->dy[y], (double)r->w[w]);
        }
    }
    if (r->dy != NULL) add(r->db, k, (double)r->dy[y], 1);
}

static void take_all(const convolution *c, reference *r) {
    for (int64_t i = 0; i < count_of(c->y); i++)
        take_point(c, r, i / (c->y.c * c->y.h * c->y.w), i / (c->y.h * c->y.w) % c->y.c, i / c->y.w % c->y.h,
                   i % c->y.w);
}

/* ---- numbers on the device ---- */

/* A tensor as the kernel sees it: in its layout and its numbers; `stored` channels where they are neighbours. */
typedef struct {
    size4 size;
    int64_t stored;
    bool neighbours, narrow;
    void *memory;
} tensor;

static size_t bytes_of(const tensor *t) {
    return (size_t)(t->size.n * t->stored * t->size.h * t->size.w) * (t->narrow ? 2 : 4);
}

/* `filled`: channels in memory; 0: as many as there are. */
static tensor new_tensor(tdm_device *device, size4 size, tdm_layout layout, int64_t filled, bool narrow) {
    tensor t = {size, filled > 0 ? filled : size.c, layout != TDM_LAYOUT_PLAIN, narrow, NULL};
    CHECK_OK(device->ops->allocate(device, &t.memory, bytes_of(&t), "a tensor"));
    return t;
}

static int64_t place_of(const tensor *t, int64_t i) {
    const size4 s = t->size;
    const int64_t w = i % s.w, h = i / s.w % s.h, c = i / (s.w * s.h) % s.c, n = i / (s.w * s.h * s.c);
    return t->neighbours ? ((n * s.h + h) * s.w + w) * t->stored + c : i;
}

static void *new_host(size_t bytes, int byte) {
    void *memory = malloc(bytes);
    if (memory == NULL) abort();
    memset(memory, byte, bytes);
    return memory;
}

static void send(tdm_device *device, const tensor *t, const float *values) {
    void *host = new_host(bytes_of(t), 0);
    for (int64_t i = 0; i < count_of(t->size); i++) {
        const int64_t place = place_of(t, i);
        if (t->narrow)
            ((uint16_t *)host)[place] = tdm__bf16_of(values[i]);
        else
            ((float *)host)[place] = values[i];
    }
    CHECK_OK(device->ops->queues->copy(device, NULL, t->memory, host, bytes_of(t)));
    CHECK_OK(device->ops->queues->finish(device, NULL));
    free(host);
}

static float number_at(const tensor *t, const void *host, int64_t place) {
    return t->narrow ? tdm__bf16_float(((const uint16_t *)host)[place]) : ((const float *)host)[place];
}

/* Zeros behind the channels stay zeros. */
static void check_filling(const tensor *t, const void *host) {
    const int64_t count = count_of(t->size) / t->size.c * t->stored;
    for (int64_t i = 0; i < count && t->stored > t->size.c; i++)
        if (i % t->stored >= t->size.c) CHECK(number_at(t, host, i) == 0.0f);
}

static void fetch(tdm_device *device, const tensor *t, float *values) {
    void *host = new_host(bytes_of(t), 0);
    CHECK_OK(device->ops->queues->copy(device, NULL, host, t->memory, bytes_of(t)));
    CHECK_OK(device->ops->queues->finish(device, NULL));
    for (int64_t i = 0; i < count_of(t->size); i++) values[i] = number_at(t, host, place_of(t, i));
    check_filling(t, host);
    free(host);
}

static void keep_bf16(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++) x[i] = tdm__bf16_float(tdm__bf16_of(x[i]));
}

/* ---- a run ---- */

typedef struct {
    float *y, *dx, *dw, *db;
} results;

static results new_results(const convolution *c) {
    return (results){new_host((size_t)count_of(c->y) * 4, 0xff), new_host((size_t)count_of(c->x) * 4, 0xff),
                     new_host((size_t)count_of(c->w) * 4, 0xff), new_host((size_t)c->y.c * 4, 0xff)};
}

static void free_results(results r) {
    free(r.y);
    free(r.dx);
    free(r.dw);
    free(r.db);
}

typedef struct {
    tdm_device *device;
    const setting *how;
    convolution shape;
    const tdm_kernel *kernel;
    tdm_kernel_desc desc;
    tdm_kernel_fit fit;
    tdm_kernel_args args;
    tensor x, dx, y, dy, param[2], narrow[2], dparam[2];
    void *scratch;
} run;

static void describe(run *r, const op_data *data) {
    const setting *how = r->how;
    r->kernel = cuda_kernel(how->op);
    r->desc = (tdm_kernel_desc){.op = how->op,
                                .attrs = data->attrs,
                                .input_count = 1,
                                .param_count = data->infer.param_count,
                                .x = {data->x_shape},
                                .y = data->y_shape,
                                .param = {data->infer.param[0].shape, data->infer.param[1].shape},
                                .needs_dx = {!how->without_dx},
                                .may_fill = how->may_fill,
                                .threads = 1,
                                .precision = how->precision};
    CHECK(r->kernel->fits(&r->desc, &r->fit));
    CHECK_INT(r->fit.x_layout[0], how->layout);
    CHECK_INT(r->fit.y_layout, how->layout == TDM_LAYOUT_PLAIN ? TDM_LAYOUT_PLAIN : TDM_LAYOUT_NHWC);
    CHECK_INT(r->fit.x_channels, how->filled);
    CHECK_INT(r->fit.saved_bytes, 0);
    r->desc.x_layout[0] = r->fit.x_layout[0];
    r->desc.y_layout = r->fit.y_layout;
    r->desc.weight_channels = r->fit.weight_channels;
    r->desc.x_channels = r->fit.x_channels;
    if (how->relu) r->desc.epilogue = TDM_EPILOGUE_RELU;
}

static void bind(run *r) {
    const bool narrow = r->how->precision == TDM_BF16;
    const tdm_layout x = r->desc.x_layout[0], y = r->desc.y_layout;
    const convolution *c = &r->shape;
    const size4 bias = {c->y.c, 1, 1, 1};
    r->x = new_tensor(r->device, c->x, x, r->how->filled, narrow);
    r->dx = new_tensor(r->device, c->x, x, r->how->filled, narrow);
    r->y = new_tensor(r->device, c->y, y, 0, narrow);
    r->dy = new_tensor(r->device, c->y, y, 0, narrow);
    CHECK_OK(r->device->ops->allocate(r->device, &r->scratch, r->fit.scratch_bytes, "scratch"));
    r->args = (tdm_kernel_args){.desc = &r->desc,
                                .device = r->device,
                                .rows = c->x.n,
                                .x = {r->x.memory},
                                .y = r->y.memory,
                                .dy = r->dy.memory,
                                .dx = {r->how->without_dx ? NULL : r->dx.memory},
                                .scratch = r->scratch,
                                .training = true};
    CHECK_INT(r->desc.weight_channels, x == TDM_LAYOUT_PLAIN ? 0 : r->x.stored);
    for (int i = 0; i < r->desc.param_count; i++) {
        const size4 size = i == 0 ? c->w : bias;
        const tdm_layout layout = i == 0 ? x : TDM_LAYOUT_PLAIN; /* filters lie as images do */
        const int64_t filled = i == 0 ? r->how->filled : 0;
        r->param[i] = new_tensor(r->device, size, layout, filled, false);
        r->narrow[i] = new_tensor(r->device, size, layout, filled, true);
        r->dparam[i] = new_tensor(r->device, size, layout, filled, false);
        r->args.param[i] = r->param[i].memory;
        r->args.param_bf16[i] = narrow ? r->narrow[i].memory : NULL;
        r->args.dparam[i] = r->dparam[i].memory;
    }
}

static void release(run *r) {
    const tdm_device_ops *ops = r->device->ops;
    void *memory[] = {r->x.memory, r->dx.memory, r->y.memory, r->dy.memory, r->scratch};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) ops->release(r->device, memory[i]);
    for (int i = 0; i < 2; i++) {
        ops->release(r->device, r->param[i].memory);
        ops->release(r->device, r->narrow[i].memory);
        ops->release(r->device, r->dparam[i].memory);
    }
}

static tdm_status both_passes(const run *r) {
    const tdm_status status = r->kernel->forward(&r->args);
    return status == TDM_OK ? r->kernel->backward(&r->args) : status;
}

/* Captured before anything is there, and run twice. */
static tdm_status run_captured(const run *r) {
    const tdm_device_ops *ops = r->device->ops;
    tdm_capture *capture = NULL;
    CHECK_OK(ops->captures->begin(r->device));
    const tdm_status status = both_passes(r);
    CHECK_OK(ops->captures->end(r->device, &capture));
    for (int i = 0; i < 2 && capture != NULL; i++) CHECK_OK(ops->captures->run(r->device, capture));
    CHECK_OK(ops->queues->finish(r->device, NULL));
    ops->captures->free(r->device, capture);
    return status;
}

static void dirty(tdm_device *device, void *memory, size_t bytes) {
    CHECK_OK(tdm_test_fill(device, memory, 0xff, bytes)); /* NaN */
}

static void run_once(tdm_device *device, const setting *how, const op_data *data, results *out) {
    const int64_t rows = how->rows > 0 ? how->rows : how->test.rows;
    run r = {.device = device, .how = how, .shape = convolution_of(data, rows)};
    *out = new_results(&r.shape);
    describe(&r, data);
    bind(&r);
    CHECK_OK(r.kernel->open(device, &r.desc, rows, true, &r.args.state));
    send(device, &r.x, data->x[0]);
    send(device, &r.dy, data->dy);
    dirty(device, r.y.memory, bytes_of(&r.y));
    dirty(device, r.dx.memory, bytes_of(&r.dx));
    for (int i = 0; i < r.desc.param_count; i++) {
        send(device, &r.param[i], data->param[i]);
        send(device, &r.narrow[i], data->param[i]);
        dirty(device, r.dparam[i].memory, bytes_of(&r.dparam[i]));
    }
    dirty(device, r.scratch, r.fit.scratch_bytes);
    CHECK_OK(how->graph ? run_captured(&r) : both_passes(&r));
    CHECK_OK(device->ops->queues->finish(device, NULL));
    fetch(device, &r.y, out->y);
    if (!how->without_dx) fetch(device, &r.dx, out->dx);
    fetch(device, &r.dparam[0], out->dw);
    if (r.desc.param_count > 1) fetch(device, &r.dparam[1], out->db);
    r.kernel->close(r.args.state);
    release(&r);
}

/* ---- comparing ---- */

/* `units` of 2^-8 of the value's magnitude `size[i]`, and float's error of the sum. */
static bool near(const char *what, const float *got, sums want, const double *size, double units, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const double off = fabs((double)got[i] - want.sum[i]);
        const double allowed = units * half_unit * fabs(size[i]) + sum_error * want.most[i];
        if (off <= allowed) continue;
        fprintf(stderr, "%s[%lld] is %.9g, wanted %.9g; off by %g, allowed %g\n", what, (long long)i, (double)got[i],
                want.sum[i], off, allowed);
        tdm_test_failures++;
        return false;
    }
    return true;
}

/* y of a product that is rounded, and once more behind the bias where that is a pass of its own. */
static bool near_y(const setting *how, const op_data *data, const convolution *c, const float *got, sums product) {
    const bool bias = data->infer.param_count > 1, narrow = how->precision == TDM_BF16;
    const int64_t count = count_of(c->y);
    sums want = new_sums(count);
    double *size = calloc((size_t)count, sizeof *size);
    if (size == NULL) abort();
    for (int64_t i = 0; i < count; i++) {
        const double add = bias ? (double)data->param[1][i / (c->y.h * c->y.w) % c->y.c] : 0;
        want.sum[i] = product.sum[i] + add;
        want.most[i] = product.most[i] + fabs(add);
        size[i] = fabs(want.sum[i]) + (bias ? fabs(product.sum[i]) : 0);
        if (how->relu && want.sum[i] < 0) want.sum[i] = 0;
    }
    const bool good = near("y", got, want, size, narrow, count);
    free(size);
    free_sums(want);
    return good;
}

static bool compare(const setting *how, const op_data *data, const results *got) {
    const convolution c = convolution_of(data, how->rows > 0 ? how->rows : how->test.rows);
    const bool narrow = how->precision == TDM_BF16, conv = data->x_shape.ndim > 2;
    reference r = {.x = data->x[0], .w = data->param[0], .y = new_sums(count_of(c.y))};
    take_all(&c, &r);
    bool good = near_y(how, data, &c, got->y, r.y);
    float *dy = new_host((size_t)count_of(c.y) * 4, 0); /* the relu lets through what its own y says */
    for (int64_t i = 0; i < count_of(c.y); i++) dy[i] = how->relu && got->y[i] <= 0 ? 0 : data->dy[i];
    r.dy = dy;
    r.dw = new_sums(count_of(c.w));
    r.dx = new_sums(count_of(c.x));
    r.db = new_sums(c.y.c);
    take_all(&c, &r);
    /* cuDNN rounds the weights' gradient; linear's stays float. */
    good = near("dw", got->dw, r.dw, r.dw.sum, narrow && conv, count_of(c.w)) && good;
    if (data->infer.param_count > 1) good = near("db", got->db, r.db, r.db.sum, 0, c.y.c) && good;
    /* Without cuDNN what each tap adds to a point is rounded, then their sum: at most all of their magnitudes, twice.
     */
    if (!how->without_dx)
        good = near("dx", got->dx, r.dx, conv ? r.dx.most : r.dx.sum, narrow * (conv ? 2 : 1), count_of(c.x)) && good;
    free(dy);
    free_sums(r.y);
    free_sums(r.dw);
    free_sums(r.dx);
    free_sums(r.db);
    return good;
}

static bool same_bits(const convolution *c, const results *a, const results *b) {
    return memcmp(a->y, b->y, (size_t)count_of(c->y) * 4) == 0 &&
           memcmp(a->dx, b->dx, (size_t)count_of(c->x) * 4) == 0 &&
           memcmp(a->dw, b->dw, (size_t)count_of(c->w) * 4) == 0 && memcmp(a->db, b->db, (size_t)c->y.c * 4) == 0;
}

static void open_data(op_data *data, const setting *how, uint64_t seed) {
    REQUIRE(op_data_open(data, how->op, &how->test, seed));
    keep_bf16(data->x[0], data->x_count);
    keep_bf16(data->dy, data->y_count);
    for (int i = 0; i < data->infer.param_count; i++) keep_bf16(data->param[i], data->param_count[i]);
}

static tdm_device *open_device(int precision) {
    const tdm_device_options options = {.index = 0, .precision = precision, .deterministic = true};
    tdm_device *device = NULL;
    CHECK_OK(cuda_module()->device->open(&device, tdm_host_default(), &options));
    if (device == NULL) exit(1);
    return device;
}

/* Right; the same bits a second time, and in a graph. */
static void check(tdm_device *device, setting how) {
    const int failures = tdm_test_failures;
    op_data data;
    results first, again, captured;
    open_data(&data, &how, 21);
    const convolution c = convolution_of(&data, how.rows > 0 ? how.rows : how.test.rows);
    run_once(device, &how, &data, &first);
    run_once(device, &how, &data, &again);
    CHECK(compare(&how, &data, &first));
    CHECK(same_bits(&c, &first, &again));
    how.graph = true;
    run_once(device, &how, &data, &captured);
    CHECK(same_bits(&c, &first, &captured));
    if (tdm_test_failures != failures)
        fprintf(stderr, "  %s, %lld rows%s%s\n", op_data_name(&data), (long long)c.x.n, how.relu ? ", relu" : "",
                how.may_fill ? ", from the batch" : "");
    free_results(first);
    free_results(again);
    free_results(captured);
    op_data_close(&data);
}

/* ---- tests ---- */

TEST(linear_in_bf16) {
    static const op_case cases[] = {
        {.attrs = "out=33", .rows = 17, .input = {1, {50}}},
        {.attrs = "out=64", .rows = 32, .input = {1, {128}}},
        {.attrs = "out=8 bias=false", .rows = 4, .input = {1, {16}}},
        {.attrs = "out=1", .rows = 1, .input = {1, {1}}},
        {.attrs = "out=40", .rows = 1100, .input = {1, {3}}},
        {.attrs = "out=10", .rows = 700, .input = {1, {5}}},
    };
    tdm_device *device = open_device(TDM_BF16);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int variant = 0; variant < 4; variant++)
            check(device, (setting){.op = "linear",
                                    .test = cases[i],
                                    .precision = TDM_BF16,
                                    .relu = variant & 1,
                                    .without_dx = variant & 2,
                                    .rows = variant == 3 && cases[i].rows > 1 ? cases[i].rows - 1 : 0});
    }
    device->ops->close(device);
}

TEST(conv2d_in_bf16) {
    static const struct {
        op_case test;
        tdm_layout layout;
    } cases[] = {
        {{.attrs = "out=8 kernel=3 padding=1", .rows = 3, .input = {3, {8, 6, 7}}}, TDM_LAYOUT_NHWC},
        {{.attrs = "out=16 kernel=[3,2] stride=[2,1]", .rows = 2, .input = {3, {8, 7, 5}}}, TDM_LAYOUT_NHWC},
        {{.attrs = "out=16 kernel=1 bias=false", .rows = 2, .input = {3, {16, 5, 5}}}, TDM_LAYOUT_NHWC},
        {{.attrs = "out=8 kernel=3 dilation=2 padding=2", .rows = 2, .input = {3, {8, 7, 6}}}, TDM_LAYOUT_NHWC},
        {{.attrs = "out=24 kernel=3 padding=1", .rows = 9, .input = {3, {8, 17, 16}}}, TDM_LAYOUT_NHWC},
        {{.attrs = "out=8 kernel=3", .rows = 2, .input = {3, {4, 6, 6}}}, TDM_LAYOUT_PLAIN},
        {{.attrs = "out=6 kernel=3", .rows = 2, .input = {3, {3, 8, 8}}}, TDM_LAYOUT_PLAIN},
        {{.attrs = "out=6 kernel=1", .rows = 2, .input = {3, {5, 3, 3}}}, TDM_LAYOUT_PLAIN},
        {{.attrs = "out=8 kernel=3 groups=2", .rows = 2, .input = {3, {8, 6, 6}}}, TDM_LAYOUT_PLAIN},
        {{.attrs = "out=6 kernel=[2,3] stride=2 padding=[0,1] dilation=[2,1] groups=3 bias=false",
          .rows = 3,
          .input = {3, {3, 9, 8}}},
         TDM_LAYOUT_PLAIN},
        {{.attrs = "out=4 kernel=3 padding=1", .rows = 5, .input = {3, {2, 40, 36}}}, TDM_LAYOUT_PLAIN},
    };
    tdm_device *device = open_device(TDM_BF16);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int variant = 0; variant < 4; variant++)
            check(device, (setting){.op = "conv2d",
                                    .test = cases[i].test,
                                    .layout = cases[i].layout,
                                    .precision = TDM_BF16,
                                    .relu = variant & 1,
                                    .without_dx = variant & 2,
                                    .rows = variant == 3 ? 1 : 0});
    }
    device->ops->close(device);
}

/* In planes, whatever the channels. */
TEST(conv1d_in_bf16) {
    static const op_case cases[] = {
        {.attrs = "out=8 kernel=3 padding=1", .rows = 3, .input = {2, {8, 7}}},
        {.attrs = "out=6 kernel=4 stride=2 bias=false", .rows = 2, .input = {2, {3, 11}}},
        {.attrs = "out=8 kernel=4 padding=same groups=2", .rows = 2, .input = {2, {8, 9}}},
        {.attrs = "out=4 kernel=3 dilation=3 padding=3", .rows = 5, .input = {2, {2, 130}}},
    };
    tdm_device *device = open_device(TDM_BF16);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int variant = 0; variant < 4; variant++)
            check(device, (setting){.op = "conv1d",
                                    .test = cases[i],
                                    .precision = TDM_BF16,
                                    .relu = variant & 1,
                                    .without_dx = variant & 2,
                                    .may_fill = variant == 2,
                                    .rows = variant == 3 ? 1 : 0});
    }
    device->ops->close(device);
}

/* A batch with fewer channels than a group has, filled up with zeros by the device's ingest. */
TEST(the_first_convolution_fills_channels_up) {
    static const struct {
        op_case test;
        int64_t tf32, bf16; /* channels in memory; 0: planes */
    } cases[] = {
        {{.attrs = "out=8 kernel=3 padding=1", .rows = 3, .input = {3, {3, 6, 7}}}, 4, 8},
        {{.attrs = "out=16 kernel=5 stride=2", .rows = 2, .input = {3, {1, 9, 9}}}, 4, 8},
        {{.attrs = "out=8 kernel=1 bias=false", .rows = 2, .input = {3, {3, 4, 4}}}, 4, 8},
        {{.attrs = "out=8 kernel=3", .rows = 2, .input = {3, {4, 5, 5}}}, 4, 8},
        {{.attrs = "out=8 kernel=2", .rows = 2, .input = {3, {6, 5, 5}}}, 0, 8},
        {{.attrs = "out=8 kernel=2", .rows = 2, .input = {3, {8, 5, 5}}}, 8, 8},
        {{.attrs = "out=12 kernel=2", .rows = 2, .input = {3, {3, 5, 5}}}, 4, 0},
        {{.attrs = "out=6 kernel=2", .rows = 2, .input = {3, {3, 5, 5}}}, 0, 0},
        {{.attrs = "out=9 kernel=2 groups=3", .rows = 2, .input = {3, {3, 5, 5}}}, 0, 0},
    };
    for (int precision = TDM_TF32; precision <= TDM_BF16; precision++) {
        tdm_device *device = open_device(precision);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const int64_t stored = precision == TDM_BF16 ? cases[i].bf16 : cases[i].tf32;
            for (int relu = 0; relu < 2; relu++)
                check(device, (setting){.op = "conv2d",
                                        .test = cases[i].test,
                                        .layout = stored > 0 ? TDM_LAYOUT_NHWC : TDM_LAYOUT_PLAIN,
                                        .filled = stored > cases[i].test.input.dim[0] ? stored : 0,
                                        .precision = precision,
                                        .relu = relu,
                                        .may_fill = true,
                                        .without_dx = true,
                                        .rows = relu});
        }
        device->ops->close(device);
    }
}

/* An input whose gradient is wanted is not the batch, even if the plan calls it so. */
TEST(f32_and_gradients_of_x_stay_as_they_are) {
    const setting how = {
        .op = "conv2d", .test = {.attrs = "out=8 kernel=3", .rows = 2, .input = {3, {3, 6, 6}}}, .may_fill = true};
    tdm_device *device = open_device(TDM_F32);
    check(device, how);
    device->ops->close(device);
    device = open_device(TDM_BF16);
    setting narrow = how;
    narrow.precision = TDM_BF16;
    check(device, narrow);
    device->ops->close(device);
}

TEST_MAIN(RUN(linear_in_bf16); RUN(conv2d_in_bf16); RUN(conv1d_in_bf16); RUN(the_first_convolution_fills_channels_up);
          RUN(f32_and_gradients_of_x_stay_as_they_are);)
