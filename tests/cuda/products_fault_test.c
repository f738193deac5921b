/* linear and conv2d of the CUDA module where something is against them: any call of CUDA failing, a workspace that
 * grows behind a capture's back, a plan that is made without a device. On emulated CUDA; with cuDNN, or without it
 * where FAKE_LIBRARIES has none. */
#include <tandem/job.h>

#include "tests/cuda/emulated.h"
#include "tests/ops/op_driver.h"
#include "tests/support/tdm_failing_host.h"

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
    tdm_device *device = open_device(e);
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
        emulated_open();
        const tdm_device_options options = {.precision = precision, .deterministic = true};
        REQUIRE_OK(e->ops->open(&device, &host.host, &options));
        prepared p = {.kernel = kernel_of(e, op)};
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

TEST_MAIN(RUN(the_plan_gets_layouts_without_a_device); RUN(captured_work_outlives_its_workspace);
          RUN(any_call_may_fail);)
