/* linear, conv2d and conv1d of the CUDA module against the reference: on emulated CUDA, with and without cuDNN, and on
 * GPUs.
 *
 * Tolerance: 1e-5 of the largest magnitude of each result, as for the dnnl module. With tf32 the data are numbers that
 * tf32 holds exactly, so that the same tolerance serves. */
#include <pthread.h>

#include <tandem/job.h>

#include "ops/ops.h"
#include "tests/ops/cuda_device.h"
#include "tests/ops/op_conform.h"

static const double tolerance = 1e-5;

static tdm_device *open_device(int index, int precision, bool deterministic) {
    const tdm_device_options options = {.index = index, .precision = precision, .deterministic = deterministic};
    tdm_device *device = NULL;
    CHECK_OK(cuda_module()->device->open(&device, tdm_host_default(), &options));
    if (device == NULL) exit(1);
    return device;
}

static void conform(const char *op) {
    tdm_device *device = open_device(0, TDM_F32, true);
    const op_conform_count count = op_conform_on(device, cuda_kernel(op), tolerance);
    printf("       %-20s %4d runs, %4d settings declined\n", op, count.runs, count.declined);
    CHECK(count.runs > 50);
    device->ops->close(device);
}

TEST(linear_in_all_settings) {
    conform("linear");
}

TEST(conv2d_in_all_settings) {
    conform("conv2d");
}

TEST(conv1d_in_all_settings) {
    conform("conv1d");
}

/* ---- tf32 ---- */

static double distance(const float *a, const float *b, int64_t count) {
    double most = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
        largest = fmax(largest, fabs((double)b[i]));
    }
    return most / largest;
}

/* The fakes round wherever they may. The real libraries need not: for small or odd shapes they also have kernels
 * without tensor cores. */
static bool surely_rounds(tdm_device *device) {
    tdm_device_info info;
    CHECK_OK(device->ops->info(device->index, &info));
    return strcmp(info.name, "Emulated GPU") == 0;
}

static void run_tf32(tdm_device *device, const char *op, const op_case *test, bool graph) {
    op_data data;
    REQUIRE(op_data_open(&data, op, test, 77));
    const op_setting setting = {.training = true, .device = device, .graph = graph, .precision = TDM_TF32};
    op_result got, want;
    op_run(&got, cuda_kernel(op), &data, &setting);
    op_run(&want, op_reference(op), &data, &(op_setting){.training = true});
    CHECK_OK(got.status);
    const double rounded = distance(got.y, want.y, got.y_count);
    CHECK(rounded < 1e-2);
    CHECK(rounded > 1e-5 || !surely_rounds(device));
    op_result_close(&got);
    op_result_close(&want);

    op_data_keep_tf32(&data);
    op_run(&got, cuda_kernel(op), &data, &setting);
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
        {"conv1d", {.attrs = "out=8 kernel=3 padding=1", .rows = 3, .input = {2, {4, 9}}}},
        {"conv1d", {.attrs = "out=12 kernel=4 stride=2 padding=1", .rows = 2, .input = {2, {8, 12}}}},
    };
    tdm_device *device = open_device(0, TDM_TF32, true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run_tf32(device, cases[i].op, &cases[i].test, i % 2 == 1);
    device->ops->close(device);
}

/* With a relu inside, and in evaluation: channels are neighbours. */
TEST(neighbouring_channels_in_all_settings) {
    const op_case test = {.attrs = "out=8 kernel=3 padding=1", .rows = 3, .input = {3, {4, 6, 7}}};
    tdm_device *device = open_device(0, TDM_TF32, true);
    op_data data;
    REQUIRE(op_data_open(&data, "conv2d", &test, 78));
    op_data_keep_tf32(&data);
    for (int variant = 0; variant < 16; variant++) {
        op_setting setting = {.relu = variant & 1,
                              .training = (variant & 2) == 0,
                              .without_dx = variant & 4,
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
        op_run(&got, cuda_kernel("conv2d"), &data, &setting);
        CHECK_OK(got.status);
        CHECK(op_results_near(&data, &got, &want, tolerance));
        op_result_close(&got);
        op_result_close(&want);
    }
    op_data_close(&data);
    device->ops->close(device);
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
    tdm_device *device = open_device(0, TDM_F32, true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        op_data data;
        op_result got, want;
        REQUIRE(op_data_open(&data, cases[i].op, &cases[i].test, 5));
        op_run(&got, cuda_kernel(cases[i].op), &data, &(op_setting){.training = true, .device = device});
        op_run(&want, op_reference(cases[i].op), &data, &(op_setting){.training = true});
        CHECK_OK(got.status);
        CHECK(op_results_near(&data, &got, &want, tolerance));
        op_result_close(&got);
        op_result_close(&want);
        op_data_close(&data);
    }
    device->ops->close(device);
}

/* ---- NaN, and algorithms that are not steady ---- */

/* Whatever the libraries make of it: the fake cublasLt drops NaN in its relu for every other shape. */
static void check_nan(tdm_device *device, const char *op, const op_case *test) {
    op_data data;
    op_result got, want;
    REQUIRE(op_data_open(&data, op, test, 6));
    data.x[0][1] = NAN;
    op_run(&got, cuda_kernel(op), &data, &(op_setting){.relu = true, .training = true, .device = device});
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
    tdm_device *device = open_device(0, TDM_F32, true);
    check_nan(device, "linear", &(op_case){.attrs = "out=7", .rows = 3, .input = {1, {5}}});
    check_nan(device, "linear", &(op_case){.attrs = "out=8", .rows = 4, .input = {1, {5}}});
    check_nan(device, "linear", &(op_case){.attrs = "out=7 bias=false", .rows = 4, .input = {1, {5}}});
    check_nan(device, "conv2d", &(op_case){.attrs = "out=3 kernel=3", .rows = 2, .input = {3, {2, 5, 5}}});
    check_nan(device, "conv2d", &(op_case){.attrs = "out=3 kernel=3 bias=false", .rows = 2, .input = {3, {2, 5, 5}}});
    check_nan(device, "conv1d", &(op_case){.attrs = "out=3 kernel=3", .rows = 2, .input = {2, {2, 5}}});
    device->ops->close(device);
}

TEST(unsteady_algorithms_only_where_allowed) {
    const op_case test = {.attrs = "out=16 kernel=3 padding=1", .rows = 4, .input = {3, {16, 6, 6}}};
    op_data data;
    REQUIRE(op_data_open(&data, "conv2d", &test, 9));
    for (int deterministic = 0; deterministic < 2; deterministic++) {
        tdm_device *device = open_device(0, TDM_F32, deterministic);
        op_result first, again, want;
        const op_setting setting = {.training = true, .device = device};
        op_run(&first, cuda_kernel("conv2d"), &data, &setting);
        op_run(&again, cuda_kernel("conv2d"), &data, &setting);
        op_run(&want, op_reference("conv2d"), &data, &(op_setting){.training = true});
        CHECK(op_results_near(&data, &first, &want, tolerance));
        if (deterministic)
            CHECK(memcmp(first.dparam[0], again.dparam[0], (size_t)data.param_count[0] * sizeof(float)) == 0);
        op_result_close(&first);
        op_result_close(&again);
        op_result_close(&want);
        device->ops->close(device);
    }
    op_data_close(&data);
}

/* ---- threads ---- */

static void *run_elsewhere(void *argument) {
    const op_case test = {.attrs = "out=5 kernel=3", .rows = 2, .input = {3, {2, 6, 6}}};
    op_conform_count *count = argument;
    int devices = 0;
    CHECK_OK(cuda_module()->device->count(&devices));
    tdm_device *device = open_device(devices - 1, TDM_F32, true);
    op_conform_case_on(count, device, cuda_kernel("conv2d"), &test, 3, tolerance);
    device->ops->close(device);
    return NULL;
}

TEST(another_thread_another_device) {
    op_conform_count count = {0};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, run_elsewhere, &count) == 0);
    pthread_join(thread, NULL);
    CHECK(count.runs > 0);
}

TEST_MAIN(RUN(linear_in_all_settings); RUN(conv2d_in_all_settings); RUN(conv1d_in_all_settings);
          RUN(tf32_rounds_factors_only); RUN(neighbouring_channels_in_all_settings); RUN(larger_shapes);
          RUN(nan_passes_the_relu); RUN(unsteady_algorithms_only_where_allowed); RUN(another_thread_another_device);)
