/* The reference kernels against themselves in other settings (layouts, rows, in place), against central differences,
 * and on special values. */
#include "ops/ops.h"
#include "tests/ops/op_cases.h"
#include "tests/ops/op_conform.h"
#include "tests/support/tdm_test.h"

TEST(settings) {
    for (const tdm_kernel *const *kernel = tdm_builtin_kernels; *kernel != NULL; kernel++) {
        bool is_reorder = strcmp((*kernel)->op, "reorder") == 0;
        op_conform_count count = is_reorder ? op_conform_reorder(*kernel) : op_conform(*kernel, 0);
        printf("       %-20s %4d runs, %4d settings declined\n", (*kernel)->op, count.runs, count.declined);
    }
}

TEST(table_is_complete) {
    for (const tdm_op_def *const *op = tdm_builtin_ops; *op != NULL; op++) {
        const tdm_kernel *reference = op_reference((*op)->name);
        REQUIRE(reference != NULL);
        CHECK_TEXT(reference->variant, "ref");
        CHECK((*op)->doc != NULL && (*op)->doc_zh != NULL && (*op)->infer != NULL);
        CHECK((*op)->min_inputs >= 1 && (*op)->max_inputs <= TDM_MAX_INPUTS);
        int mains = 0;
        for (const tdm_field *row = (*op)->attrs; row != NULL && row->key != NULL; row++) {
            CHECK(row->help != NULL && row->help_zh != NULL);
            CHECK((row->initial == NULL) == ((row->flags & TDM_FIELD_REQUIRED) != 0));
            CHECK(row->offset < (*op)->attrs_bytes);
            mains += (row->flags & TDM_FIELD_MAIN) != 0;
        }
        CHECK(mains <= 1);
    }
}

/* ---- gradients against central differences ---- */

/* sum y * dy of a training forward pass, in double: the function whose gradients backward must give. */
static double objective(const tdm_kernel *kernel, const op_data *data, const op_setting *setting) {
    op_result result;
    op_run(&result, kernel, data, setting);
    double sum = 0;
    for (int64_t i = 0; i < result.y_count; i++) sum += (double)result.y[i] * (double)data->dy[i];
    op_result_close(&result);
    return sum;
}

/* Five-point stencil: exact for polynomials of degree four. `step` and multiples are exact in float. */
static double slope(const tdm_kernel *kernel, const op_data *data, const op_setting *setting, float *value,
                    float step) {
    float kept = *value;
    double f[4];
    const float factor[4] = {-2, -1, 1, 2};
    for (int i = 0; i < 4; i++) {
        *value = kept + factor[i] * step;
        f[i] = objective(kernel, data, setting);
    }
    *value = kept;
    return (8 * (f[2] - f[1]) - (f[3] - f[0])) / (12 * (double)step);
}

static void check_slopes(const char *what, const tdm_kernel *kernel, const op_data *data, const op_setting *setting,
                         float *values, const float *gradient, int64_t count, float step, double tolerance) {
    double scale = 1e-3;
    for (int64_t i = 0; i < count; i++) scale = fmax(scale, fabs((double)gradient[i]));
    for (int64_t i = 0; i < count; i++) {
        double wanted = slope(kernel, data, setting, &values[i], step);
        if (fabs((double)gradient[i] - wanted) <= tolerance * scale) continue;
        fprintf(stderr, "%s: d%s[%lld] is %.9g, the difference quotient %.9g\n", op_data_name(data), what, (long long)i,
                (double)gradient[i], wanted);
        tdm_test_failures++;
        return;
    }
}

/* Odd multiples of 1/16, all different: with steps of 1/64 no order between two of them changes and none passes a whole
 * number, so that relu, relu6 and max have no kink on the way. */
static void spread(float *values, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        int64_t place = i * 7919 % count, half = count / 2;
        values[i] = (float)(2 * (place - half) + 1) / 16.0f;
    }
}

/* Multiples of 1/64 make products and sums of the linear ops exact in double. */
static void coarse(float *values, int64_t count) {
    for (int64_t i = 0; i < count; i++) values[i] = nearbyintf(values[i] * 64.0f) / 64.0f;
}

static void check_case(const tdm_kernel *kernel, op_data *data) {
    int inputs = data->infer.input_count;
    op_setting setting = {.training = true, .seed = 3, .step = 4, .stream = 5};
    /* The wider, the less the rounding of y matters. */
    const float step = data->test->kinks ? 1.0f / 64 : data->test->bends ? 1.0f / 32 : 1.0f / 16;
    const double near = data->test->bends ? 1e-3 : 2e-5;
    for (int i = 0; i < inputs; i++) {
        const int64_t count = op_data_count(data, i);
        if (data->test->whole > 0) continue;
        if (data->test->kinks && count % 7919 != 0)
            spread(data->x[i], count);
        else
            coarse(data->x[i], count);
    }
    op_result result;
    op_run(&result, kernel, data, &setting);
    CHECK_INT(result.status, TDM_OK);
    for (int i = 0; data->test->whole == 0 && i < inputs; i++)
        check_slopes("x", kernel, data, &setting, data->x[i], result.dx[i], op_data_count(data, i), step, near);
    for (int i = 0; i < data->infer.param_count; i++)
        check_slopes(data->infer.param[i].suffix, kernel, data, &setting, data->param[i], result.dparam[i],
                     data->param_count[i], step, near);
    op_result_close(&result);
}

TEST(gradients_are_slopes) {
    for (size_t c = 0; c < sizeof all_cases / sizeof *all_cases; c++) {
        int checked = 0;
        for (int i = 0; i < all_cases[c].count; i++) {
            op_data data;
            REQUIRE(op_data_open(&data, all_cases[c].op, &all_cases[c].items[i], 900u + (uint64_t)i));
            if (data.x_count + data.param_count[0] <= 400) {
                check_case(op_reference(all_cases[c].op), &data);
                checked++;
            }
            op_data_close(&data);
        }
        CHECK(checked > 0);
    }
}

/* ---- special values ---- */

/* Runs the reference of `op` on these inputs and gradients; the caller closes all. */
static bool run_values(op_data *data, op_result *out, const char *op, const op_case *test, const float *x,
                       const float *dy) {
    if (!op_data_open(data, op, test, 1)) return false;
    memcpy(data->x[0], x, (size_t)data->x_count * sizeof *x);
    memcpy(data->dy, dy, (size_t)data->y_count * sizeof *dy);
    op_run(out, op_reference(op), data, &(op_setting){.training = true});
    return out->status == TDM_OK;
}

TEST(relu_on_special_values) {
    const float inf = INFINITY, nan = NAN;
    const float x[6] = {-1, -0.0f, 0, 2, inf, nan}, dy[6] = {1, 2, 3, 4, 5, 6};
    op_data data;
    op_result r;
    REQUIRE(run_values(&data, &r, "relu", &(op_case){.rows = 1, .input = {1, {6}}}, x, dy));
    CHECK(op_near("y", r.y, (const float[]){0, 0, 0, 2, inf, nan}, 6, 0));
    CHECK(op_near("dx", r.dx[0], (const float[]){0, 0, 0, 4, 5, 6}, 6, 0));
    op_result_close(&r);
    op_data_close(&data);
}

TEST(relu6_on_special_values) {
    const float inf = INFINITY, nan = NAN;
    const float x[6] = {-1, 0, 5.5f, 6, inf, nan}, dy[6] = {1, 2, 3, 4, 5, 6};
    op_data data;
    op_result r;
    REQUIRE(run_values(&data, &r, "relu6", &(op_case){.rows = 1, .input = {1, {6}}}, x, dy));
    CHECK(op_near("y", r.y, (const float[]){0, 0, 5.5f, 6, 6, nan}, 6, 0));
    CHECK(op_near("dx", r.dx[0], (const float[]){0, 0, 3, 0, 0, 6}, 6, 0));
    op_result_close(&r);
    op_data_close(&data);
}

TEST(maxpool_takes_the_first_maximum_and_the_last_nan) {
    const float nan = NAN, inf = INFINITY;
    const float x[16] = {3, 3, nan, 1, 3, 3, 2, nan, -inf, -inf, 5, 7, -inf, -inf, 7, 7}, dy[4] = {1, 2, 4, 8};
    op_data data;
    op_result r;
    REQUIRE(
        run_values(&data, &r, "maxpool2d", &(op_case){.attrs = "kernel=2", .rows = 1, .input = {3, {1, 4, 4}}}, x, dy));
    CHECK(op_near("y", r.y, (const float[]){3, nan, -inf, 7}, 4, 0));
    CHECK(op_near("dx", r.dx[0], (const float[]){1, 0, 0, 0, 0, 0, 0, 2, 4, 0, 0, 8, 0, 0, 0, 0}, 16, 0));
    op_result_close(&r);
    op_data_close(&data);
}

TEST(maxpool_adds_where_windows_overlap) {
    const float x[5] = {0, 0, 9, 0, 0}, dy[3] = {1, 2, 4};
    op_data data;
    op_result r;
    op_case test = {.attrs = "kernel=[1,3] stride=1", .rows = 1, .input = {3, {1, 1, 5}}};
    REQUIRE(run_values(&data, &r, "maxpool2d", &test, x, dy));
    CHECK(op_near("dx", r.dx[0], (const float[]){0, 0, 7, 0, 0}, 5, 0));
    op_result_close(&r);
    op_data_close(&data);
}

/* A filter of ones on an image of ones counts the points of the filter that lie inside the image. */
TEST(conv_of_ones_counts_taps) {
    float x[9], dy[9];
    for (int i = 0; i < 9; i++) x[i] = dy[i] = 1;
    op_data data;
    op_result r;
    op_case test = {.attrs = "out=1 kernel=3 padding=1 bias=false", .rows = 1, .input = {3, {1, 3, 3}}};
    REQUIRE(op_data_open(&data, "conv2d", &test, 1));
    memcpy(data.x[0], x, sizeof x);
    memcpy(data.dy, dy, sizeof dy);
    for (int i = 0; i < 9; i++) data.param[0][i] = 1;
    op_run(&r, op_reference("conv2d"), &data, &(op_setting){.training = true});
    const float count[9] = {4, 6, 4, 6, 9, 6, 4, 6, 4};
    CHECK(op_near("y", r.y, count, 9, 0));
    CHECK(op_near("dx", r.dx[0], count, 9, 0));
    CHECK(op_near("dw", r.dparam[0], count, 9, 0));
    op_result_close(&r);
    op_data_close(&data);
}

/* ---- batch norm ---- */

static void check_wants_two_values(const char *op, op_case test) {
    op_data data;
    op_result r;
    REQUIRE(op_data_open(&data, op, &test, 1));
    op_run(&r, op_reference(op), &data, &(op_setting){.training = true, .rows = 1});
    CHECK_INT(r.status, TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), op);
    CHECK_HAS(tdm_error_message(), " needs more than 1 value per channel");
    op_run(&r, op_reference(op), &data, &(op_setting){.rows = 1});
    CHECK_INT(r.status, TDM_OK); /* running statistics */
    op_result_close(&r);
    op_data_close(&data);
    test.attrs = "track_running_stats=false";
    REQUIRE(op_data_open(&data, op, &test, 1));
    op_run(&r, op_reference(op), &data, &(op_setting){.rows = 1});
    CHECK_INT(r.status, TDM_E_CONFIG);
    op_data_close(&data);
}

TEST(batchnorm_wants_two_values_per_channel) {
    check_wants_two_values("batchnorm2d", (op_case){.rows = 2, .input = {3, {3, 1, 1}}});
    check_wants_two_values("batchnorm1d", (op_case){.rows = 2, .input = {1, {3}}});
    check_wants_two_values("batchnorm1d", (op_case){.rows = 2, .input = {2, {3, 1}}});
}

/* Two values 1 and 3: mean 2, biased variance 1, unbiased 2; eps is lost beside them. */
static void check_statistics(const char *op, tdm_shape input) {
    const float x[2] = {1, 3}, dy[2] = {1, 1};
    op_data data;
    op_result r;
    op_case test = {.attrs = "momentum=0.25 eps=1.0e-300", .rows = 2, .input = input};
    REQUIRE(op_data_open(&data, op, &test, 1));
    memcpy(data.x[0], x, sizeof x);
    memcpy(data.dy, dy, sizeof dy);
    data.param[0][0] = 10, data.param[1][0] = 100, data.buffer[0][0] = 6, data.buffer[1][0] = 4;
    op_run(&r, op_reference(op), &data, &(op_setting){.training = true});
    CHECK(op_near("y", r.y, (const float[]){90, 110}, 2, 0));
    CHECK(op_near("running_mean", r.buffer[0], (const float[]){5}, 1, 0));
    CHECK(op_near("running_var", r.buffer[1], (const float[]){3.5f}, 1, 0));
    CHECK(op_near("dw", r.dparam[0], (const float[]){0}, 1, 0));
    CHECK(op_near("db", r.dparam[1], (const float[]){2}, 1, 0));
    CHECK(op_near("dx", r.dx[0], (const float[]){0, 0}, 2, 0));
    CHECK_INT(r.counter, 4);
    op_result_close(&r);
    op_run(&r, op_reference(op), &data, &(op_setting){0});
    CHECK(op_near("y of evaluation", r.y, (const float[]){75, 85}, 2, 0));
    CHECK_INT(r.counter, 3);
    op_result_close(&r);
    op_data_close(&data);
}

TEST(batchnorm_statistics) {
    check_statistics("batchnorm2d", (tdm_shape){3, {1, 1, 1}});
    check_statistics("batchnorm1d", (tdm_shape){1, {1}});
    check_statistics("batchnorm1d", (tdm_shape){2, {1, 1}});
}

/* A series of points is an image of height 1, in every bit. */
TEST(batchnorm_of_a_series_is_that_of_an_image) {
    const op_case series = {.rows = 3, .input = {2, {4, 6}}}, image = {.rows = 3, .input = {3, {4, 1, 6}}};
    for (int training = 0; training < 2; training++) {
        op_data of_series, of_image;
        op_result got, want;
        REQUIRE(op_data_open(&of_series, "batchnorm1d", &series, 5));
        REQUIRE(op_data_open(&of_image, "batchnorm2d", &image, 5));
        op_run(&got, op_reference("batchnorm1d"), &of_series, &(op_setting){.training = training});
        op_run(&want, op_reference("batchnorm2d"), &of_image, &(op_setting){.training = training});
        CHECK(op_results_near(&of_series, &got, &want, 0));
        op_result_close(&got);
        op_result_close(&want);
        op_data_close(&of_series);
        op_data_close(&of_image);
    }
}

/* ---- layouts ---- */

/* The index formula of the driver, on which everything about layouts rests, at a few places by hand. */
TEST(layouts_by_hand) {
    tdm_shape shape = {4, {2, 16, 3, 5}};
    enum { COUNT = 2 * 16 * 3 * 5 };
    float plain[COUNT], a[COUNT];
    for (int i = 0; i < COUNT; i++) plain[i] = (float)i;
    op_convert(a, plain, &shape, 2, TDM_LAYOUT_NHWC, false);
    CHECK_NEAR(a[1], 15, 0); /* n 0, h 0, w 0, c 1 */
    CHECK_NEAR(a[((1 * 3 + 2) * 5 + 4) * 16 + 15], COUNT - 1, 0);
    op_convert(a, plain, &shape, 2, TDM_LAYOUT_C8, false);
    CHECK_NEAR(a[8], 1, 0);           /* w 1, c 0 */
    CHECK_NEAR(a[3 * 5 * 8], 120, 0); /* c 8 */
    op_convert(a, plain, &shape, 2, TDM_LAYOUT_C16, false);
    CHECK_NEAR(a[16 + 9], 9 * 15 + 1, 0);
}

/* What lies between vendor kernels must not force reorders. */
TEST(simple_kernels_keep_the_layout) {
    static const char *const names[] = {"relu",       "add",     "maxpool2d", "avgpool2d", "adaptive_avgpool2d",
                                        "leaky_relu", "sigmoid", "tanh",      "silu",      "gelu",
                                        "hardswish",  "concat",  "upsample",  "dropout2d", "adaptive_maxpool2d"};
    const int64_t attrs[16] = {2, 2, 2, 2};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tdm_shape shape = {4, {2, 16, 4, 4}};
        tdm_kernel_desc desc = {.op = names[i], .attrs = attrs, .input_count = 1, .x = {shape}, .y = shape};
        for (int layout = 0; layout < TDM_LAYOUT_COUNT; layout++) {
            tdm_kernel_fit fit = {0};
            desc.x_layout[0] = (tdm_layout)layout;
            CHECK(op_reference(names[i])->fits(&desc, &fit));
            CHECK_INT(fit.x_layout[0], layout);
            CHECK_INT(fit.y_layout, layout);
        }
    }
}

TEST_MAIN(RUN(table_is_complete); RUN(settings); RUN(gradients_are_slopes); RUN(relu_on_special_values);
          RUN(relu6_on_special_values); RUN(maxpool_takes_the_first_maximum_and_the_last_nan);
          RUN(maxpool_adds_where_windows_overlap); RUN(conv_of_ones_counts_taps);
          RUN(batchnorm_wants_two_values_per_channel); RUN(batchnorm_statistics);
          RUN(batchnorm_of_a_series_is_that_of_an_image); RUN(layouts_by_hand); RUN(simple_kernels_keep_the_layout);)
