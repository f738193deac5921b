/* linear and conv2d of the CUDA module against the reference, on emulated CUDA; with cuDNN, or without it where
 * FAKE_LIBRARIES has none.
 *
 * Tolerance: 1e-5 of the largest magnitude of each result, as for the dnnl module. With tf32 the data are numbers that
 * tf32 holds exactly, so that the same tolerance serves. */
#include <pthread.h>

#include <tandem/job.h>

#include "ops/ops.h"
#include "tests/cuda/emulated.h"
#include "tests/ops/op_conform.h"
#include "tests/support/tdm_failing_host.h"

static const double tolerance = 1e-5;

static const tdm_kernel *kernel_of(const emulated *e, const char *op) {
    const tdm_kernel *const *kernel = e->module->kernels;
    while (*kernel != NULL && strcmp((*kernel)->op, op) != 0) kernel++;
    return *kernel;
}

static tdm_device *open_device(const emulated *e, int index, int precision, bool deterministic) {
    const tdm_device_options options = {.index = index, .precision = precision, .deterministic = deterministic};
    tdm_device *device = NULL;
    CHECK_OK(e->ops->open(&device, tdm_host_default(), &options));
    if (device == NULL) exit(1);
    return device;
}

static void conform(const char *op) {
    const emulated *e = emulated_open();
    tdm_device *device = open_device(e, 0, TDM_F32, true);
    const op_conform_count count = op_conform_on(device, kernel_of(e, op), tolerance);
    printf("       %-20s %4d runs, %4d settings declined\n", op, count.runs, count.declined);
    CHECK(count.runs > 50);
    e->ops->close(device);
    CHECK_INT(e->live(), 0);
}

TEST(linear_in_all_settings) {
    conform("linear");
}

TEST(conv2d_in_all_settings) {
    conform("conv2d");
}

/* ---- tf32 ---- */

static void keep_tf32(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bits &= 0xffffe000u;
        memcpy(&x[i], &bits, sizeof bits);
    }
}

static double distance(const float *a, const float *b, int64_t count) {
    double most = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
        largest = fmax(largest, fabs((double)b[i]));
    }
    return most / largest;
}

static void run_tf32(const emulated *e, tdm_device *device, const char *op, const op_case *test, bool graph) {
    op_data data;
    REQUIRE(op_data_open(&data, op, test, 77));
    const op_setting setting = {.training = true, .device = device, .graph = graph, .precision = TDM_TF32};
    op_result got, want;
    op_run(&got, kernel_of(e, op), &data, &setting);
    op_run(&want, op_reference(op), &data, &(op_setting){.training = true});
    CHECK_OK(got.status);
    /* The rounding is seen: it is in the precision asked for. */
    const double rounded = distance(got.y, want.y, got.y_count);
    CHECK(rounded > 1e-5 && rounded < 1e-2);
    op_result_close(&got);
    op_result_close(&want);

    keep_tf32(data.x[0], data.x_count);
    keep_tf32(data.dy, data.y_count);
    for (int i = 0; i < data.infer.param_count; i++) keep_tf32(data.param[i], data.param_count[i]);
    op_run(&got, kernel_of(e, op), &data, &setting);
    op_run(&want, op_reference(op), &data, &(op_setting){.training = true});
    CHECK_OK(got.status);
    CHECK(op_results_near(&data, &got, &want, tolerance));
    op_result_close(&got);
    op_result_close(&want);
    op_data_close(&data);
}

TEST(tf32_rounds_factors_only) {
    static const struct {
        const char *op;
        op_case test;
    } cases[] = {
        {"linear", {.attrs = "out=33", .rows = 17, .input = {1, {50}}}},
        {"conv2d", {.attrs = "out=8 kernel=3 padding=1", .rows = 3, .input = {3, {4, 6, 7}}}},
        {"conv2d", {.attrs = "out=12 kernel=[3,2] stride=[2,1]", .rows = 2, .input = {3, {8, 7, 5}}}},
        {"conv2d", {.attrs = "out=16 kernel=1 bias=false", .rows = 2, .input = {3, {8, 5, 5}}}},
        {"conv2d", {.attrs = "out=6 kernel=3", .rows = 2, .input = {3, {3, 8, 8}}}},
        {"conv2d", {.attrs = "out=8 kernel=3 groups=2", .rows = 2, .input = {3, {8, 6, 6}}}},
    };
    const emulated *e = emulated_open();
    tdm_device *device = open_device(e, 0, TDM_TF32, true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run_tf32(e, device, cases[i].op, &cases[i].test, i % 2 == 1);
    e->ops->close(device);
    CHECK_INT(e->live(), 0);
}

/* With a relu inside, and in evaluation: channels are neighbours. */
TEST(neighbouring_channels_in_all_settings) {
    const op_case test = {.attrs = "out=8 kernel=3 padding=1", .rows = 3, .input = {3, {4, 6, 7}}};
    const emulated *e = emulated_open();
    tdm_device *device = open_device(e, 0, TDM_TF32, true);
    op_data data;
    REQUIRE(op_data_open(&data, "conv2d", &test, 78));
    keep_tf32(data.x[0], data.x_count);
    keep_tf32(data.dy, data.y_count);
    for (int i = 0; i < data.infer.param_count; i++) keep_tf32(data.param[i], data.param_count[i]);
    for (int variant = 0; variant < 16; variant++) {
        op_setting setting = {.relu = variant & 1,
                              .training = (variant & 2) == 0,
                              .without_dx = variant & 4,
                              .odd = variant & 8,
                              .rows = variant & 8 ? 2 : 3};
        op_result got, want;
        op_run(&want, op_reference("conv2d"), &data,
               &(op_setting){.training = setting.training, .without_dx = setting.without_dx, .rows = setting.rows});
        if (setting.relu) { /* the reference has none of its own */
            op_data masked = data;
            float *dy = calloc((size_t)data.y_count, sizeof *dy);
            if (dy == NULL) abort();
            for (int64_t i = 0; i < want.y_count; i++) dy[i] = want.y[i] > 0.0f ? data.dy[i] : 0.0f;
            masked.dy = dy;
            op_result_close(&want);
            op_run(&want, op_reference("conv2d"), &masked,
                   &(op_setting){.training = setting.training, .without_dx = setting.without_dx, .rows = setting.rows});
            for (int64_t i = 0; i < want.y_count; i++) want.y[i] = want.y[i] > 0.0f ? want.y[i] : 0.0f;
            free(dy);
        }
        setting.device = device;
        setting.precision = TDM_TF32;
        op_run(&got, kernel_of(e, "conv2d"), &data, &setting);
        CHECK_OK(got.status);
        CHECK(op_results_near(&data, &got, &want, tolerance));
        op_result_close(&got);
        op_result_close(&want);
    }
    op_data_close(&data);
    e->ops->close(device);
    CHECK_INT(e->live(), 0);
}

/* ---- sizes ---- */

/* Sums of biases in several parts; images in several chunks, the last one shorter. */
TEST(larger_shapes) {
    static const struct {
        const char *op;
        op_case test;
    } cases[] = {
        {"linear", {.attrs = "out=37", .rows = 1100, .input = {1, {3}}}},
        {"conv2d", {.attrs = "out=5 kernel=3 padding=1", .rows = 9, .input = {3, {2, 40, 37}}}},
        {"conv2d", {.attrs = "out=1 kernel=9 padding=4", .rows = 9, .input = {3, {16, 42, 42}}}},
    };
    const emulated *e = emulated_open();
    tdm_device *device = open_device(e, 0, TDM_F32, true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        op_data data;
        op_result got, want;
        REQUIRE(op_data_open(&data, cases[i].op, &cases[i].test, 5));
        op_run(&got, kernel_of(e, cases[i].op), &data, &(op_setting){.training = true, .device = device});
        op_run(&want, op_reference(cases[i].op), &data, &(op_setting){.training = true});
        CHECK_OK(got.status);
        CHECK(op_results_near(&data, &got, &want, tolerance));
        op_result_close(&got);
        op_result_close(&want);
        op_data_close(&data);
    }
    e->ops->close(device);
    CHECK_INT(e->live(), 0);
}

/* ---- NaN, and algorithms that are not steady ---- */

/* Whatever the libraries make of it: the fake cublasLt drops NaN in its relu for every other shape. */
static void check_nan(const emulated *e, tdm_device *device, const char *op, const op_case *test) {
    op_data data;
    op_result got, want;
    REQUIRE(op_data_open(&data, op, test, 6));
    data.x[0][1] = NAN;
    op_run(&got, kernel_of(e, op), &data, &(op_setting){.relu = true, .training = true, .device = device});
    op_run(&want, op_reference(op), &data, &(op_setting){.training = true});
    CHECK_OK(got.status);
    int nans = 0;
    for (int64_t i = 0; i < want.y_count; i++) {
        if (isnan(want.y[i])) nans++;
        CHECK(isnan(got.y[i]) == isnan(want.y[i]));
    }
    CHECK(nans > 0);
    op_result_close(&got);
    op_result_close(&want);
    op_data_close(&data);
}

TEST(nan_passes_the_relu) {
    const emulated *e = emulated_open();
    tdm_device *device = open_device(e, 0, TDM_F32, true);
    check_nan(e, device, "linear", &(op_case){.attrs = "out=7", .rows = 3, .input = {1, {5}}});
    check_nan(e, device, "linear", &(op_case){.attrs = "out=8", .rows = 4, .input = {1, {5}}});
    check_nan(e, device, "linear", &(op_case){.attrs = "out=7 bias=false", .rows = 4, .input = {1, {5}}});
    check_nan(e, device, "conv2d", &(op_case){.attrs = "out=3 kernel=3", .rows = 2, .input = {3, {2, 5, 5}}});
    check_nan(e, device, "conv2d",
              &(op_case){.attrs = "out=3 kernel=3 bias=false", .rows = 2, .input = {3, {2, 5, 5}}});
    e->ops->close(device);
    CHECK_INT(e->live(), 0);
}

TEST(unsteady_algorithms_only_where_allowed) {
    const op_case test = {.attrs = "out=16 kernel=3 padding=1", .rows = 4, .input = {3, {16, 6, 6}}};
    const emulated *e = emulated_open();
    op_data data;
    REQUIRE(op_data_open(&data, "conv2d", &test, 9));
    for (int deterministic = 0; deterministic < 2; deterministic++) {
        tdm_device *device = open_device(e, 0, TDM_F32, deterministic);
        op_result first, again, want;
        const op_setting setting = {.training = true, .device = device};
        op_run(&first, kernel_of(e, "conv2d"), &data, &setting);
        op_run(&again, kernel_of(e, "conv2d"), &data, &setting);
        op_run(&want, op_reference("conv2d"), &data, &(op_setting){.training = true});
        CHECK(op_results_near(&data, &first, &want, tolerance));
        if (deterministic)
            CHECK(memcmp(first.dparam[0], again.dparam[0], (size_t)data.param_count[0] * sizeof(float)) == 0);
        op_result_close(&first);
        op_result_close(&again);
        op_result_close(&want);
        e->ops->close(device);
    }
    op_data_close(&data);
}

/* ---- threads, layouts, captures ---- */

static void *run_elsewhere(void *argument) {
    const op_case test = {.attrs = "out=5 kernel=3", .rows = 2, .input = {3, {2, 6, 6}}};
    op_conform_count *count = argument;
    const emulated *e = emulated_open();
    tdm_device *device = open_device(e, 1, TDM_F32, true);
    op_conform_case_on(count, device, kernel_of(e, "conv2d"), &test, 3, tolerance);
    e->ops->close(device);
    return NULL;
}

TEST(another_thread_another_device) {
    op_conform_count count = {0};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, run_elsewhere, &count) == 0);
    pthread_join(thread, NULL);
    CHECK(count.runs > 0);
}

static tdm_layout layout_for(const emulated *e, const tdm_kernel_desc *desc, size_t *saved) {
    tdm_kernel_fit fit = {0};
    CHECK(kernel_of(e, "conv2d")->fits(desc, &fit));
    CHECK(fit.relu);
    CHECK_INT(fit.x_layout[0], fit.y_layout);
    *saved = fit.saved_bytes;
    return fit.y_layout;
}

TEST(the_plan_gets_layouts_without_a_device) {
    const emulated *e = emulated_open();
    const op_case test = {.attrs = "out=8 kernel=3", .rows = 2, .input = {3, {4, 6, 6}}};
    op_data data;
    size_t saved = 0;
    REQUIRE(op_data_open(&data, "conv2d", &test, 1));
    const long calls = e->calls();
    tdm_kernel_desc desc = {.op = "conv2d",
                            .attrs = data.attrs,
                            .input_count = 1,
                            .x = {data.x_shape},
                            .y = data.y_shape,
                            .param_count = 2};
    CHECK_INT(layout_for(e, &desc, &saved), TDM_LAYOUT_PLAIN);
    CHECK_INT(saved, 0);
    desc.precision = TDM_TF32;
    CHECK_INT(layout_for(e, &desc, &saved), TDM_LAYOUT_NHWC);
    CHECK_INT(saved, 8 * 4 * 9 * sizeof(float));
    desc.x[0].dim[1] = 3;
    CHECK_INT(layout_for(e, &desc, &saved), TDM_LAYOUT_PLAIN);
    CHECK_INT(e->calls(), calls);
    op_data_close(&data);
}

/* A capture holds the workspace's address; kernels that are opened later want a larger one. */
typedef struct {
    const tdm_kernel *kernel;
    tdm_kernel_desc desc;
    tdm_kernel_args args;
    void *state;
    float *memory[5];
} prepared;

static void prepare(const emulated *e, prepared *p, const op_data *data, tdm_device *device) {
    *p = (prepared){.kernel = kernel_of(e, "conv2d")};
    p->desc = (tdm_kernel_desc){.op = "conv2d",
                                .attrs = data->attrs,
                                .input_count = 1,
                                .x = {data->x_shape},
                                .y = data->y_shape,
                                .param_count = 1,
                                .param = {data->infer.param[0].shape}};
    tdm_kernel_fit fit = {0};
    CHECK(p->kernel->fits(&p->desc, &fit));
    const size_t bytes[] = {(size_t)data->x_count * 4, (size_t)data->param_count[0] * 4, (size_t)data->y_count * 4,
                            fit.scratch_bytes, fit.saved_bytes};
    for (int i = 0; i < 5; i++) CHECK_OK(e->ops->allocate(device, (void **)&p->memory[i], bytes[i], "a test"));
    CHECK_OK(e->ops->copy(device, NULL, p->memory[0], data->x[0], bytes[0]));
    CHECK_OK(e->ops->copy(device, NULL, p->memory[1], data->param[0], bytes[1]));
    CHECK_OK(e->ops->finish(device, NULL));
    CHECK_OK(p->kernel->open(device, &p->desc, data->x_shape.dim[0], true, &p->state));
    p->args = (tdm_kernel_args){.desc = &p->desc,
                                .device = device,
                                .state = p->state,
                                .rows = data->x_shape.dim[0],
                                .x = {p->memory[0]},
                                .param = {p->memory[1]},
                                .y = p->memory[2],
                                .scratch = p->memory[3],
                                .saved = p->memory[4],
                                .training = true};
}

static void finish(const emulated *e, prepared *p, tdm_device *device) {
    p->kernel->close(p->state);
    for (int i = 0; i < 5; i++) e->ops->release(device, p->memory[i]);
}

TEST(captured_work_outlives_its_workspace) {
    const op_case small = {.attrs = "out=3 kernel=3 bias=false", .rows = 2, .input = {3, {2, 6, 6}}};
    const op_case large = {.attrs = "out=8 kernel=5 padding=2 bias=false", .rows = 4, .input = {3, {16, 40, 40}}};
    const emulated *e = emulated_open();
    tdm_device *device = open_device(e, 0, TDM_F32, true);
    op_data data[2];
    prepared p[2];
    tdm_capture *capture = NULL;
    REQUIRE(op_data_open(&data[0], "conv2d", &small, 1));
    REQUIRE(op_data_open(&data[1], "conv2d", &large, 2));
    const size_t y_bytes = (size_t)data[0].y_count * sizeof(float);
    float *before = malloc(y_bytes), *after = malloc(y_bytes);
    prepare(e, &p[0], &data[0], device);
    CHECK_OK(e->ops->capture_begin(device));
    CHECK_OK(p[0].kernel->forward(&p[0].args));
    REQUIRE_OK(e->ops->capture_end(device, &capture));
    CHECK_OK(e->ops->capture_run(device, capture));
    CHECK_OK(e->ops->copy(device, NULL, before, p[0].memory[2], y_bytes));
    CHECK_OK(e->ops->finish(device, NULL));
    prepare(e, &p[1], &data[1], device);
    CHECK_OK(p[1].kernel->forward(&p[1].args));
    CHECK_OK(e->ops->fill(device, NULL, p[0].memory[2], 0, y_bytes));
    CHECK_OK(e->ops->capture_run(device, capture));
    CHECK_OK(e->ops->copy(device, NULL, after, p[0].memory[2], y_bytes));
    CHECK_OK(e->ops->finish(device, NULL));
    CHECK(memcmp(before, after, y_bytes) == 0);
    e->ops->capture_free(device, capture);
    for (int i = 0; i < 2; i++) {
        finish(e, &p[i], device);
        op_data_close(&data[i]);
    }
    free(before);
    free(after);
    e->ops->close(device);
    CHECK_INT(e->live(), 0);
}

/* ---- failures ---- */

static void fail_everywhere(const char *op, const op_case *test, int precision) {
    const emulated *e = emulated_open();
    op_data data;
    int failures = 0;
    REQUIRE(op_data_open(&data, op, test, 4));
    for (long k = 1; k < 2000; k++) {
        tdm_failing_host host;
        tdm_failing_host_init(&host, 0);
        tdm_device *device = NULL;
        op_result result;
        emulated_open();
        const tdm_device_options options = {.precision = precision, .deterministic = true};
        REQUIRE_OK(e->ops->open(&device, &host.host, &options));
        prepared p = {.kernel = kernel_of(e, op)};
        (void)result;
        tdm_kernel_fit fit = {.x_layout = {TDM_LAYOUT_PLAIN}};
        p.desc = (tdm_kernel_desc){.op = op,
                                   .attrs = data.attrs,
                                   .input_count = 1,
                                   .x = {data.x_shape},
                                   .y = data.y_shape,
                                   .param_count = data.infer.param_count,
                                   .param = {data.infer.param[0].shape, data.infer.param[1].shape},
                                   .wants_dx = {true},
                                   .precision = precision};
        CHECK(p.kernel->fits(&p.desc, &fit));
        p.desc.x_layout[0] = fit.x_layout[0];
        p.desc.y_layout = fit.y_layout;
        p.desc.relu = true;
        const size_t x = (size_t)data.x_count * 4, y = (size_t)data.y_count * 4, w = (size_t)data.param_count[0] * 4,
                     b = (size_t)data.param_count[1] * 4;
        const size_t bytes[] = {x, x, y, y, w, w, b, b, fit.scratch_bytes, fit.saved_bytes};
        float *memory[10];
        for (int i = 0; i < 10; i++) REQUIRE_OK(e->ops->allocate(device, (void **)&memory[i], bytes[i], "a test"));
        const long before = e->calls();
        e->fail_at(k);
        tdm_status status = p.kernel->open(device, &p.desc, data.x_shape.dim[0], true, &p.state);
        p.args = (tdm_kernel_args){.desc = &p.desc,
                                   .device = device,
                                   .state = p.state,
                                   .rows = data.x_shape.dim[0],
                                   .x = {memory[0]},
                                   .dx = {memory[1]},
                                   .y = memory[2],
                                   .dy = memory[3],
                                   .param = {memory[4], memory[6]},
                                   .dparam = {memory[5], memory[7]},
                                   .scratch = memory[8],
                                   .saved = memory[9],
                                   .training = true};
        if (status != TDM_OK) CHECK(p.state == NULL);
        if (status == TDM_OK) status = p.kernel->forward(&p.args);
        if (status == TDM_OK) status = p.kernel->backward(&p.args);
        p.kernel->close(p.state);
        const long calls = e->calls() - before;
        e->fail_at(0);
        for (int i = 0; i < 10; i++) e->ops->release(device, memory[i]);
        e->ops->close(device);
        CHECK_INT(e->live(), 0);
        CHECK_INT(host.live, 0);
        if (calls < k) {
            CHECK_OK(status);
            break;
        }
        if (status != TDM_OK) failures++;
    }
    CHECK(failures > 10);
    op_data_close(&data);
}

TEST(any_call_may_fail) {
    fail_everywhere("linear", &(op_case){.attrs = "out=5", .rows = 3, .input = {1, {4}}}, TDM_F32);
    fail_everywhere("conv2d", &(op_case){.attrs = "out=3 kernel=3", .rows = 2, .input = {3, {2, 5, 5}}}, TDM_F32);
    fail_everywhere("conv2d", &(op_case){.attrs = "out=4 kernel=3", .rows = 2, .input = {3, {4, 5, 5}}}, TDM_TF32);
}

TEST_MAIN(RUN(linear_in_all_settings); RUN(conv2d_in_all_settings); RUN(tf32_rounds_factors_only);
          RUN(neighbouring_channels_in_all_settings); RUN(larger_shapes); RUN(nan_passes_the_relu);
          RUN(unsteady_algorithms_only_where_allowed); RUN(another_thread_another_device);
          RUN(the_plan_gets_layouts_without_a_device); RUN(captured_work_outlives_its_workspace);
          RUN(any_call_may_fail);)
