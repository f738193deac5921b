/* linear and conv2d of the CUDA module where something is against them: any call of CUDA failing, a workspace that
 * grows behind a capture's back, a plan that is made without a device. On emulated CUDA; with cuDNN, or without it
 * where FAKE_LIBRARIES has none. */
#include <tandem/job.h>

#include "tests/cuda/emulated.h"
#include "tests/ops/op_driver.h"
#include "tests/support/tdm_failing_host.h"
#include "tests/support/device_fill.h"

static const tdm_kernel *kernel_of(const emulated *e, const char *op) {
    const tdm_kernel *const *kernel = e->module->kernels;
    while (*kernel != NULL && strcmp((*kernel)->op, op) != 0) kernel++;
    return *kernel;
}

static tdm_device *open_device(const emulated *e) {
    const tdm_device_options options = {.precision = TDM_F32, .deterministic = true};
    tdm_device *device = NULL;
    CHECK_OK(e->ops->open(&device, tdm_host_default(), &options));
    if (device == NULL) exit(1);
    return device;
}

static tdm_layout layout_for(const emulated *e, const tdm_kernel_desc *desc, int64_t *weight_channels) {
    tdm_kernel_fit fit = {0};
    CHECK(kernel_of(e, "conv2d")->fits(desc, &fit));
    CHECK_INT(fit.epilogue & ~(unsigned)TDM_EPILOGUE_GIVES_BIAS, TDM_EPILOGUE_RELU);
    CHECK_INT(fit.x_layout[0], fit.y_layout);
    CHECK_INT(fit.saved_bytes, 0);
    *weight_channels = fit.weight_channels;
    return fit.y_layout;
}

TEST(the_plan_gets_layouts_without_a_device) {
    const emulated *e = emulated_open();
    const op_case test = {.attrs = "out=8 kernel=3", .rows = 2, .input = {3, {4, 6, 6}}};
    op_data data;
    int64_t channels = -1;
    REQUIRE(op_data_open(&data, "conv2d", &test, 1));
    const long calls = e->calls();
    tdm_kernel_desc desc = {.op = "conv2d",
                            .attrs = data.attrs,
                            .input_count = 1,
                            .x = {data.x_shape},
                            .y = data.y_shape,
                            .param_count = 2};
    CHECK_INT(layout_for(e, &desc, &channels), TDM_LAYOUT_PLAIN);
    CHECK_INT(channels, 0);
    desc.precision = TDM_TF32;
    CHECK_INT(layout_for(e, &desc, &channels), TDM_LAYOUT_NHWC);
    CHECK_INT(channels, 4);
    desc.precision = TDM_BF16;
    CHECK_INT(layout_for(e, &desc, &channels), TDM_LAYOUT_PLAIN);
    desc.x[0].dim[1] = 8;
    CHECK_INT(layout_for(e, &desc, &channels), TDM_LAYOUT_NHWC);
    CHECK_INT(channels, 8);
    desc.x[0].dim[1] = 3;
    CHECK_INT(layout_for(e, &desc, &channels), TDM_LAYOUT_PLAIN);
    desc.precision = TDM_TF32;
    CHECK_INT(layout_for(e, &desc, &channels), TDM_LAYOUT_PLAIN);
    CHECK_INT(e->calls(), calls);
    op_data_close(&data);
}

/* A capture holds the workspace's address; kernels that are opened later want a larger one. */
typedef struct {
    const tdm_kernel *kernel;
    tdm_kernel_desc desc;
    tdm_kernel_args args;
    void *state;
    float *memory[4];
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
                            fit.scratch_bytes};
    for (int i = 0; i < 4; i++) CHECK_OK(e->ops->allocate(device, (void **)&p->memory[i], bytes[i], "a test"));
    CHECK_OK(e->ops->queues->copy(device, NULL, p->memory[0], data->x[0], bytes[0]));
    CHECK_OK(e->ops->queues->copy(device, NULL, p->memory[1], data->param[0], bytes[1]));
    CHECK_OK(e->ops->queues->finish(device, NULL));
    CHECK_OK(p->kernel->open(device, &p->desc, data->x_shape.dim[0], true, &p->state));
    p->args = (tdm_kernel_args){.desc = &p->desc,
                                .device = device,
                                .state = p->state,
                                .rows = data->x_shape.dim[0],
                                .x = {p->memory[0]},
                                .param = {p->memory[1]},
                                .y = p->memory[2],
                                .scratch = p->memory[3],
                                .training = true};
}

static void finish(const emulated *e, prepared *p, tdm_device *device) {
    p->kernel->close(p->state);
    for (int i = 0; i < 4; i++) e->ops->release(device, p->memory[i]);
}

TEST(captured_work_outlives_its_workspace) {
    const op_case small = {.attrs = "out=3 kernel=3 bias=false", .rows = 2, .input = {3, {2, 6, 6}}};
    const op_case large = {.attrs = "out=8 kernel=5 padding=2 bias=false", .rows = 4, .input = {3, {16, 40, 40}}};
    const emulated *e = emulated_open();
    tdm_device *device = open_device(e);
    op_data data[2];
    prepared p[2];
    tdm_capture *capture = NULL;
    REQUIRE(op_data_open(&data[0], "conv2d", &small, 1));
    REQUIRE(op_data_open(&data[1], "conv2d", &large, 2));
    const size_t y_bytes = (size_t)data[0].y_count * sizeof(float);
    float *before = malloc(y_bytes), *after = malloc(y_bytes);
    prepare(e, &p[0], &data[0], device);
    CHECK_OK(e->ops->captures->begin(device));
    CHECK_OK(p[0].kernel->forward(&p[0].args));
    REQUIRE_OK(e->ops->captures->end(device, &capture));
    CHECK_OK(e->ops->captures->run(device, capture));
    CHECK_OK(e->ops->queues->copy(device, NULL, before, p[0].memory[2], y_bytes));
    CHECK_OK(e->ops->queues->finish(device, NULL));
    prepare(e, &p[1], &data[1], device);
    CHECK_OK(p[1].kernel->forward(&p[1].args));
    CHECK_OK(tdm_test_fill(device, p[0].memory[2], 0, y_bytes));
    CHECK_OK(e->ops->captures->run(device, capture));
    CHECK_OK(e->ops->queues->copy(device, NULL, after, p[0].memory[2], y_bytes));
    CHECK_OK(e->ops->queues->finish(device, NULL));
    CHECK(memcmp(before, after, y_bytes) == 0);
    e->ops->captures->free(device, capture);
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

enum { BLOCKS = 9 };

/* A kernel with all that it may be given: no bytes in particular. */
typedef struct {
    const tdm_kernel *kernel;
    tdm_kernel_desc desc;
    tdm_kernel_args args;
    void *memory[BLOCKS];
} arranged;

/* `filled`: x is the batch; it, and the weights, have at most as many numbers as with 8 channels for each. */
static void arrange(const emulated *e, arranged *p, const op_data *data, tdm_device *device, int precision,
                    bool filled) {
    tdm_kernel_fit fit = {.x_layout = {TDM_LAYOUT_PLAIN}};
    *p = (arranged){.kernel = kernel_of(e, data->def->name)};
    p->desc = (tdm_kernel_desc){.op = data->def->name,
                                .attrs = data->attrs,
                                .input_count = 1,
                                .x = {data->x_shape},
                                .y = data->y_shape,
                                .param_count = data->infer.param_count,
                                .param = {data->infer.param[0].shape, data->infer.param[1].shape},
                                .needs_dx = {!filled},
                                .may_fill = filled,
                                .precision = precision};
    CHECK(p->kernel->fits(&p->desc, &fit));
    p->desc.x_layout[0] = fit.x_layout[0];
    p->desc.y_layout = fit.y_layout;
    p->desc.weight_channels = fit.weight_channels;
    p->desc.x_channels = fit.x_channels;
    p->desc.epilogue = TDM_EPILOGUE_RELU;
    const size_t x = (size_t)data->x_count * 4 * (filled ? 8 : 1), y = (size_t)data->y_count * 4,
                 w = (size_t)data->param_count[0] * 4 * (filled ? 8 : 1), b = (size_t)data->param_count[1] * 4;
    const size_t bytes[BLOCKS] = {x, x, y, y, w, w, b, b, fit.scratch_bytes};
    for (int i = 0; i < BLOCKS; i++) REQUIRE_OK(e->ops->allocate(device, &p->memory[i], bytes[i], "a test"));
    p->args = (tdm_kernel_args){.desc = &p->desc,
                                .device = device,
                                .rows = data->x_shape.dim[0],
                                .x = {p->memory[0]},
                                .dx = {filled ? NULL : p->memory[1]},
                                .y = p->memory[2],
                                .dy = p->memory[3],
                                .param = {p->memory[4], p->memory[6]},
                                .param_bf16 = {p->memory[4], p->memory[6]},
                                .dparam = {p->memory[5], p->memory[7]},
                                .scratch = p->memory[8],
                                .training = true};
}

static void clear_away(const emulated *e, arranged *p, tdm_device *device) {
    p->kernel->close(p->args.state);
    for (int i = 0; i < BLOCKS; i++) e->ops->release(device, p->memory[i]);
}

static tdm_status open_arranged(arranged *p) {
    return p->kernel->open(p->args.device, &p->desc, p->args.rows, true, &p->args.state);
}

static void fail_everywhere(const char *op, const op_case *test, int precision, bool filled) {
    const emulated *e = emulated_open();
    op_data data;
    int failures = 0;
    REQUIRE(op_data_open(&data, op, test, 4));
    for (long k = 1; k < 2000; k++) {
        tdm_failing_host host;
        tdm_failing_host_init(&host, 0);
        tdm_device *device = NULL;
        arranged p;
        emulated_open();
        const tdm_device_options options = {.precision = precision, .deterministic = true};
        REQUIRE_OK(e->ops->open(&device, &host.host, &options));
        arrange(e, &p, &data, device, precision, filled);
        const long before = e->calls();
        e->fail_at(k);
        tdm_status status = open_arranged(&p);
        if (status != TDM_OK) CHECK(p.args.state == NULL);
        if (status == TDM_OK) status = p.kernel->forward(&p.args);
        if (status == TDM_OK) status = p.kernel->backward(&p.args);
        const long calls = e->calls() - before;
        e->fail_at(0);
        clear_away(e, &p, device);
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
    const op_case linear = {.attrs = "out=5", .rows = 3, .input = {1, {4}}};
    fail_everywhere("linear", &linear, TDM_F32, false);
    fail_everywhere("linear", &linear, TDM_BF16, false);
    fail_everywhere("conv2d", &(op_case){.attrs = "out=3 kernel=3", .rows = 2, .input = {3, {2, 5, 5}}}, TDM_F32,
                    false);
    fail_everywhere("conv2d", &(op_case){.attrs = "out=4 kernel=3", .rows = 2, .input = {3, {4, 5, 5}}}, TDM_TF32,
                    false);
    fail_everywhere("conv2d", &(op_case){.attrs = "out=3 kernel=3", .rows = 2, .input = {3, {2, 5, 5}}}, TDM_BF16,
                    false);
    fail_everywhere("conv2d", &(op_case){.attrs = "out=8 kernel=3", .rows = 2, .input = {3, {3, 5, 5}}}, TDM_BF16,
                    true);
}

/* ---- matrices at odd places ---- */

/* y[4, 16] of small numbers; operands begin a number later where `odd`. */
enum { IN = 8, OUT = 16, ROWS = 4 };
static const op_case odd_case = {.attrs = "out=16", .rows = ROWS, .input = {1, {IN}}};

static void run_linear(const emulated *e, bool odd, uint16_t *y, tdm_status *status) {
    const tdm_device_options options = {.precision = TDM_BF16, .deterministic = true};
    uint16_t numbers[IN * OUT];
    tdm_device *device = NULL;
    op_data data;
    arranged p;
    REQUIRE(op_data_open(&data, "linear", &odd_case, 3));
    REQUIRE_OK(e->ops->open(&device, tdm_host_default(), &options));
    arrange(e, &p, &data, device, TDM_BF16, false);
    for (int i = 0; i < IN * OUT; i++) numbers[i] = (uint16_t)(0x3f80 + i); /* from 1 on */
    char *x = (char *)p.memory[0] + (odd ? 2 : 0), *w = (char *)p.memory[4] + (odd ? 2 : 0);
    p.args.x[0] = (const float *)(const void *)x;
    p.args.param_bf16[0] = w;
    CHECK_OK(e->ops->queues->copy(device, NULL, x, numbers, ROWS * IN * sizeof *numbers));
    CHECK_OK(e->ops->queues->copy(device, NULL, w, numbers, IN * OUT * sizeof *numbers));
    CHECK_OK(open_arranged(&p));
    *status = p.kernel->forward(&p.args);
    CHECK_OK(e->ops->queues->copy(device, NULL, y, p.args.y, ROWS * OUT * sizeof *y));
    CHECK_OK(e->ops->queues->finish(device, NULL));
    clear_away(e, &p, device);
    e->ops->close(device);
    op_data_close(&data);
}

/* Only where they come is it a fault that cublasLt has no algorithm for them. */
TEST(matrices_at_odd_places) {
    const emulated *e = emulated_open();
    uint16_t whole[ROWS * OUT], odd[ROWS * OUT];
    tdm_status status = TDM_E_INTERNAL;
    run_linear(e, false, whole, &status);
    CHECK_OK(status);
    run_linear(e, true, odd, &status);
    CHECK_OK(status);
    CHECK(memcmp(whole, odd, sizeof whole) == 0);
    setenv("CUBLASLT_EMULATED_ALIGNMENT", "16", 1);
    run_linear(e, false, odd, &status);
    CHECK_OK(status);
    CHECK(memcmp(whole, odd, sizeof whole) == 0);
    run_linear(e, true, odd, &status);
    CHECK_STATUS(status, TDM_E_UNSUPPORTED);
    CHECK_HAS(tdm_error_message(), "no algorithm for a product of 4 x 16 x 8 (batch 1, bf16) whose matrices do not");
    unsetenv("CUBLASLT_EMULATED_ALIGNMENT");
    CHECK_INT(e->live(), 0);
}

/* cublasLt has several words for "none". */
TEST(whatever_a_query_for_odd_places_is_answered) {
    static const char *const statuses[] = {"1", "3", "7", "8", "11", "13", "14", "15", "16"};
    const emulated *e = emulated_open();
    uint16_t y[ROWS * OUT];
    tdm_status status = TDM_E_INTERNAL;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        setenv("CUBLASLT_EMULATED_ODD_STATUS", statuses[i], 1);
        run_linear(e, false, y, &status);
        CHECK_OK(status);
        run_linear(e, true, y, &status);
        CHECK_STATUS(status, TDM_E_UNSUPPORTED);
    }
    unsetenv("CUBLASLT_EMULATED_ODD_STATUS");
    CHECK_INT(e->live(), 0);
}

/* ---- how much is started ---- */

static void count_work(const char *op, const op_case *test, int precision, bool filled, int forward, int backward) {
    const emulated *e = emulated_open();
    const tdm_device_options options = {.precision = precision, .deterministic = true};
    tdm_device *device = NULL;
    op_data data;
    arranged p;
    REQUIRE(op_data_open(&data, op, test, 3));
    REQUIRE_OK(e->ops->open(&device, tdm_host_default(), &options));
    arrange(e, &p, &data, device, precision, filled);
    CHECK_OK(open_arranged(&p));
    CHECK_OK(e->ops->queues->finish(device, NULL));
    const long before = e->work_done();
    CHECK_OK(p.kernel->forward(&p.args));
    CHECK_OK(e->ops->queues->finish(device, NULL));
    CHECK_INT(e->work_done() - before, forward);
    CHECK_OK(p.kernel->backward(&p.args));
    CHECK_OK(e->ops->queues->finish(device, NULL));
    CHECK_INT(e->work_done() - before - forward, backward);
    clear_away(e, &p, device);
    e->ops->close(device);
    op_data_close(&data);
}

/* A launch costs as much as a small kernel: bias and relu go along with products, and a sum of many rows is one. */
TEST(few_launches) {
    const bool cudnn = strstr(FAKE_LIBRARIES, "without_cudnn") == NULL;
    const op_case linear = {.attrs = "out=8", .rows = 1100, .input = {1, {4}}};
    const op_case plain = {.attrs = "out=5 kernel=3", .rows = 9, .input = {3, {2, 40, 37}}};
    const op_case neighbours = {.attrs = "out=8 kernel=3 padding=1", .rows = 9, .input = {3, {8, 20, 16}}};
    const op_case batch = {.attrs = "out=8 kernel=3 padding=1", .rows = 9, .input = {3, {3, 20, 16}}};
    count_work("linear", &linear, TDM_F32, false, 1, 3);
    count_work("linear", &linear, TDM_BF16, false, 1, 3);
    if (!cudnn) return;
    count_work("conv2d", &plain, TDM_F32, false, 1, 3);
    count_work("conv2d", &plain, TDM_BF16, false, 1, 4); /* + the weights' gradient becomes float */
    count_work("conv2d", &neighbours, TDM_TF32, false, 1, 3);
    count_work("conv2d", &neighbours, TDM_BF16, false, 1, 4);
    count_work("conv2d", &batch, TDM_TF32, true, 1, 2);
    count_work("conv2d", &batch, TDM_BF16, true, 1, 3);
}

TEST_MAIN(RUN(the_plan_gets_layouts_without_a_device); RUN(captured_work_outlives_its_workspace);
          RUN(any_call_may_fail); RUN(matrices_at_odd_places); RUN(whatever_a_query_for_odd_places_is_answered);
          RUN(few_launches);)
