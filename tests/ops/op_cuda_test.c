/* The CUDA kernels that are our own code against the reference kernels: all cases, layouts and settings, with the guard
 * bytes of op_driver.h in the device's memory, twice with equal bits, captured and run later. Tolerances: <op>_cases.h.
 */
#include "ops/ops.h"
#include "tests/ops/batchnorm_special.h"
#include "tests/ops/cuda_device.h"
#include "tests/ops/op_cases.h"
#include "tests/ops/op_conform.h"

/* Products have tests of their own (cuda_products_test), and so has reorder, which is no layer. */
static const char *const elsewhere[] = {"linear", "conv2d", "conv1d", "reorder"};

static bool is_tested_elsewhere(const char *op) {
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (strcmp(elsewhere[i], op) == 0) return true;
    return false;
}

static tdm_device *device;

static void check_settings(op_conform_count (*conform)(tdm_device *, const tdm_kernel *, double)) {
    for (const tdm_kernel *const *k = cuda_module()->kernels; *k != NULL; k++) {
        const tdm_kernel *kernel = *k;
        if (is_tested_elsewhere(kernel->op)) continue;
        CHECK_TEXT(kernel->variant, "cuda");
        op_conform_count count = conform(device, kernel, op_cases_of(kernel->op)->tolerance->cuda);
        printf("       %-20s %4d runs, %4d settings declined\n", kernel->op, count.runs, count.declined);
        CHECK(count.runs > 0);
    }
}

TEST(settings) {
    check_settings(op_conform_on);
}

TEST(settings_bf16) {
    check_settings(op_conform_bf16);
}

TEST(reorder) {
    REQUIRE(cuda_kernel("reorder") != NULL);
    const int runs = 8 * 2 * 2; /* shapes, directions, numbers of rows */
    CHECK_INT(op_conform_reorder_on(device, cuda_kernel("reorder")).runs, runs);
    CHECK_INT(op_conform_reorder_bf16(device, cuda_kernel("reorder")).runs, runs);
}

TEST(large_cases) {
    op_conform_count count = {0};
    for (const tdm_kernel *const *k = cuda_module()->kernels; *k != NULL; k++) {
        const op_cases *cases = op_cases_of((*k)->op);
        for (int i = 0; cases != NULL && i < cases->count; i++) {
            const op_case *test = &cases->items[i];
            if (!test->large) continue;
            op_conform_case_on(&count, device, *k, test, 40u + (uint64_t)i, cases->tolerance->cuda_large);
            op_conform_case_bf16(&count, device, *k, test, 40u + (uint64_t)i, cases->tolerance->cuda_large);
        }
    }
    CHECK(count.runs > 0);
}

/* ---- special values ---- */

/* The reference with a relu: what is in front of it, and then its own kernel. */
static void relu_reference(op_result *want, const op_data *data) {
    for (int64_t i = 0; i < want->y_count; i++) want->y[i] = want->y[i] < 0.0f ? 0.0f : want->y[i];
    op_data masked = *data;
    op_result gradient;
    masked.dy = calloc((size_t)data->y_count, sizeof *masked.dy);
    for (int64_t i = 0; i < want->y_count; i++) masked.dy[i] = want->y[i] <= 0.0f ? 0.0f : data->dy[i];
    op_run(&gradient, op_reference(data->def->name), &masked, &(op_setting){.training = true});
    for (int i = 0; i < data->infer.input_count; i++)
        memcpy(want->dx[i], gradient.dx[i], (size_t)want->x_count[i] * sizeof *want->dx[i]);
    op_result_close(&gradient);
    free(masked.dy);
}

/* To the bit, the sign of 0 too: x has only numbers that bf16 has. */
static void check_equal(const char *op, const op_case *test, const op_setting *how, const float *x) {
    for (int precision = TDM_F32; precision <= TDM_BF16; precision += TDM_BF16 - TDM_F32) {
        op_data data;
        op_result got, want;
        op_setting setting = *how;
        setting.training = true;
        setting.device = device;
        setting.precision = precision;
        REQUIRE(op_data_open(&data, op, test, 3));
        memcpy(data.x[0], x, (size_t)data.x_count * sizeof *x);
        if (precision == TDM_BF16) op_data_round(&data);
        op_run(&want, op_reference(op), &data, &(op_setting){.training = true});
        if (how->relu) relu_reference(&want, &data);
        op_run(&got, cuda_kernel(op), &data, &setting);
        CHECK_INT(got.status, TDM_OK);
        CHECK((precision == TDM_BF16 ? op_results_near_bf16 : op_results_near)(&data, &got, &want, 0));
        for (int64_t i = 0; i < want.y_count; i++) CHECK(signbit(got.y[i]) == signbit(want.y[i]) || isnan(want.y[i]));
        op_result_close(&got);
        op_result_close(&want);
        op_data_close(&data);
    }
}

TEST(special_values) {
    const float inf = INFINITY, nan = NAN;
    const float x[16] = {3, 3, nan, 1, 3, 3, 2, nan, -inf, -inf, 5, 7, -inf, -inf, 7, 7};
    const float below[16] = {-1, -0.0f, -2, -3, -1, -0.0f, nan, -1, -0.0f, 0, -inf, -inf, 0, -1, -inf, -inf};
    const op_case image = {.attrs = "kernel=2", .rows = 1, .input = {3, {1, 4, 4}}};
    const op_case channels = {.attrs = "kernel=[1,2]", .rows = 1, .input = {3, {4, 1, 4}}};
    const op_case sliding = {.attrs = "kernel=3 stride=1 padding=1", .rows = 1, .input = {3, {1, 4, 4}}};
    const op_case large = {.attrs = "kernel=[16,17] stride=1 padding=8", .rows = 1, .input = {3, {1, 4, 4}}};
    const op_case drop = {.attrs = "p=1.0", .rows = 1, .input = {1, {16}}};
    const op_case *const pools[] = {&image, &channels, &sliding, &large};
    const op_case line = {.rows = 1, .input = {1, {16}}};
    check_equal("relu", &line, &(op_setting){0}, x);
    check_equal("relu", &line, &(op_setting){0}, below);
    check_equal("dropout", &drop, &(op_setting){0}, x);
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
        for (int variant = 0; variant < 4; variant++) {
            const op_setting how = {.layout = variant & 1 ? TDM_LAYOUT_NHWC : TDM_LAYOUT_PLAIN, .relu = variant & 2};
            check_equal("maxpool2d", pools[i], &how, x);
            check_equal("maxpool2d", pools[i], &how, below);
        }
    }
}

/* ---- max pooling that adds up what it sends back ---- */

/* Numbers that floats add exactly in any order: a window that is missing, or counted twice, cannot hide. */
static void make_whole(float *numbers, int64_t count) {
    for (int64_t i = 0; i < count; i++) numbers[i] = roundf(8 * numbers[i]);
}

static void check_sums(const op_data *data, const op_result *got) {
    const int64_t points = data->x_shape.dim[2] * data->x_shape.dim[3];
    REQUIRE(got->sums != NULL);
    for (int64_t c = 0; c < got->channels; c++) {
        double sum = 0;
        for (int64_t i = c * points; i < got->x_count[0]; i += got->channels * points)
            for (int64_t k = 0; k < points; k++) sum += (double)got->dx[0][i + k];
        CHECK((double)got->sums[c] == sum);
    }
}

static const op_case pools_apart[] = {
    {.attrs = "kernel=2", .rows = 1, .input = {3, {4, 5, 7}}},
    {.attrs = "kernel=2", .rows = 3, .input = {3, {12, 19, 20}}},
    {.attrs = "kernel=[2,3]", .rows = 2, .input = {3, {264, 9, 10}}},
    {.attrs = "kernel=2", .rows = 3, .input = {3, {130, 9, 8}}}, /* from here on in several parts, but for the last */
    {.attrs = "kernel=2", .rows = 3, .input = {3, {64, 16, 17}}},
    {.attrs = "kernel=2", .rows = 3, .input = {3, {4, 37, 41}}},
    {.attrs = "kernel=2", .rows = 1, .input = {3, {8, 64, 63}}},
    {.attrs = "kernel=1", .rows = 2, .input = {3, {64, 15, 15}}},
    {.attrs = "kernel=[4,3]", .rows = 9, .input = {3, {128, 32, 31}}}, /* nearly as many parts as there may be */
    {.attrs = "kernel=[8,16]", .rows = 2, .input = {3, {8, 65, 129}}},
    {.attrs = "kernel=[16,17]", .rows = 2, .input = {3, {5, 33, 35}}},
};
enum { SMALL_POOLS = 5 }; /* the first of them */

TEST(maxpool2d_sums) {
    for (size_t i = 0; i < sizeof pools_apart / sizeof *pools_apart; i++) {
        for (int variant = 0; variant < 8; variant += TDM_EVERY(3)) {
            op_data data;
            op_result got;
            const op_setting how = {.layout = TDM_LAYOUT_NHWC,
                                    .training = true,
                                    .sums = true,
                                    .relu = variant & 1,
                                    .graph = variant & 2,
                                    .precision = variant & 4 ? TDM_BF16 : TDM_F32,
                                    .device = device};
            REQUIRE(op_data_open(&data, "maxpool2d", &pools_apart[i], 70 + i));
            make_whole(data.dy, data.y_count);
            if (how.precision == TDM_BF16) op_data_round(&data);
            op_run(&got, cuda_kernel("maxpool2d"), &data, &how);
            CHECK_INT(got.status, TDM_OK);
            check_sums(&data, &got);
            op_result_close(&got);
            op_data_close(&data);
        }
    }
}

/* And with numbers whose sum is not exact, against the reference, twice with equal bits. */
TEST(maxpool2d_sums_near) {
    op_conform_count count = {0};
    for (size_t i = 0; i < SMALL_POOLS; i++) {
        op_conform_case_on(&count, device, cuda_kernel("maxpool2d"), &pools_apart[i], 80 + i, 0);
        op_conform_case_bf16(&count, device, cuda_kernel("maxpool2d"), &pools_apart[i], 80 + i, 0);
    }
    CHECK(count.runs > 0);
}

TEST(who_adds_up) {
    static const struct {
        const char *attrs;
        tdm_layout layout;
        bool adds;
    } asked[] = {{"kernel=2", TDM_LAYOUT_NHWC, true},           {"kernel=2", TDM_LAYOUT_PLAIN, false},
                 {"kernel=3 stride=2", TDM_LAYOUT_NHWC, false}, {"kernel=2 padding=1", TDM_LAYOUT_NHWC, false},
                 {"kernel=2 stride=3", TDM_LAYOUT_NHWC, false}, {"kernel=[2,4]", TDM_LAYOUT_NHWC, true}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        const op_case test = {.attrs = asked[i].attrs, .rows = 1, .input = {3, {8, 6, 6}}};
        op_data data;
        op_result got;
        REQUIRE(op_data_open(&data, "maxpool2d", &test, 1));
        op_run(&got, cuda_kernel("maxpool2d"), &data,
               &(op_setting){.layout = asked[i].layout, .training = true, .sums = true, .device = device});
        CHECK(got.ran == asked[i].adds);
        op_result_close(&got);
        op_data_close(&data);
    }
}

/* ---- batch norm ---- */

static void check_wants_two_values(const char *op, const op_case *test) {
    op_data data;
    op_result r;
    REQUIRE(op_data_open(&data, op, test, 1));
    op_run(&r, cuda_kernel(op), &data, &(op_setting){.training = true, .rows = 1, .device = device});
    CHECK_INT(r.status, TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "more than 1 value per channel");
    op_run(&r, cuda_kernel(op), &data, &(op_setting){.rows = 1, .device = device});
    CHECK_INT(r.status, TDM_OK);
    op_result_close(&r);
    op_data_close(&data);
}

TEST(batchnorm_wants_two_values_per_channel) {
    check_wants_two_values("batchnorm2d", &(op_case){.rows = 2, .input = {3, {3, 1, 1}}});
    check_wants_two_values("batchnorm1d", &(op_case){.rows = 2, .input = {1, {3}}});
}

/* A mean a million times the deviation: squares of x alone would have no digit of the variance left in float, and a
 * rounded mean would shift y. */
TEST(batchnorm_of_large_means) {
    const op_case test = {.rows = 4, .input = {3, {4, 40, 40}}};
    op_data data;
    REQUIRE(op_data_open(&data, "batchnorm2d", &test, 9));
    for (int64_t i = 0; i < data.x_count; i++) data.x[0][i] = 65536.0f + (float)(i * 7919 % 31) / 128.0f;
    for (int layout = TDM_LAYOUT_PLAIN; layout <= TDM_LAYOUT_NHWC; layout++) {
        op_result got, want;
        op_run(&want, op_reference("batchnorm2d"), &data, &(op_setting){.training = true});
        op_run(&got, cuda_kernel("batchnorm2d"), &data,
               &(op_setting){.training = true, .layout = (tdm_layout)layout, .device = device});
        CHECK(op_results_near(&data, &got, &want, 1e-5));
        op_result_close(&got);
        op_result_close(&want);
    }
    op_data_close(&data);
}

TEST(batchnorm_of_infinities) {
    const op_case image = {.rows = 3, .input = {3, {12, 3, 5}}}, features = {.rows = 9, .input = {1, {12}}};
    for (int variant = 0; variant < 4; variant++) {
        const op_setting setting = {.layout = variant & 1 ? TDM_LAYOUT_NHWC : TDM_LAYOUT_PLAIN,
                                    .replicas = variant & 2 ? 2 : 1,
                                    .training = true,
                                    .device = device};
        CHECK(special_check(cuda_kernel("batchnorm2d"), &image, &setting));
        if (setting.layout == TDM_LAYOUT_PLAIN) CHECK(special_check(cuda_kernel("batchnorm1d"), &features, &setting));
    }
}

/* ---- what the plan asks ---- */

TEST(layouts_that_are_kept) {
    static const char *const names[] = {"relu",        "add",    "maxpool2d", "avgpool2d", "adaptive_avgpool2d",
                                        "batchnorm2d", "concat", "upsample",  "dropout2d", "adaptive_maxpool2d"};
    const int64_t attrs[16] = {2, 2, 2, 2};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tdm_shape shape = {4, {2, 16, 4, 4}};
        tdm_kernel_desc desc = {.op = names[i], .attrs = attrs, .input_count = 1, .x = {shape}, .y = shape};
        for (int layout = 0; layout < TDM_LAYOUT_COUNT; layout++) {
            tdm_kernel_fit fit = {0};
            const bool kept = layout == TDM_LAYOUT_PLAIN || layout == TDM_LAYOUT_NHWC;
            desc.x_layout[0] = (tdm_layout)layout;
            CHECK(cuda_kernel(names[i])->fits(&desc, &fit));
            CHECK_INT(fit.x_layout[0], kept ? layout : TDM_LAYOUT_PLAIN);
            CHECK_INT(fit.y_layout, fit.x_layout[0]);
            if (strcmp(names[i], "maxpool2d") == 0) CHECK_INT(fit.saved_bytes, 2 * 16 * 4 * 4); /* a byte each */
            CHECK(((fit.epilogue & TDM_EPILOGUE_RELU) != 0) == (i == 1 || i == 2 || i == 5));
        }
    }
}

TEST_MAIN({
    device = cuda_open();
    RUN(settings);
    RUN(settings_bf16);
    RUN(reorder);
    RUN(large_cases);
    RUN(special_values);
    RUN(maxpool2d_sums);
    RUN(maxpool2d_sums_near);
    RUN(who_adds_up);
    RUN(batchnorm_wants_two_values_per_channel);
    RUN(batchnorm_of_large_means);
    RUN(batchnorm_of_infinities);
    RUN(layouts_that_are_kept);
    device->ops->close(device);
})
