/* See op_conform.h. */
#include "tests/ops/op_conform.h"

#include "ops/ops.h"
#include "tests/ops/op_cases.h"
#include "tests/support/tdm_test.h"

static const op_cases *cases_of(const char *op) {
    for (size_t i = 0; i < sizeof all_cases / sizeof *all_cases; i++)
        if (strcmp(all_cases[i].op, op) == 0) return &all_cases[i];
    return NULL;
}

static void relu_forward(float *y, int64_t count) {
    for (int64_t i = 0; i < count; i++) y[i] = y[i] < 0.0f ? 0.0f : y[i];
}

/* The reference, unfused: with a relu its dy is masked by a first run. */
static void run_reference(op_result *out, const op_data *data, const op_setting *setting) {
    op_setting plain = *setting;
    plain.layout = TDM_LAYOUT_PLAIN;
    plain.relu = plain.in_place = false;
    plain.threads = 1;
    const tdm_kernel *reference = op_reference(data->def->name);
    op_run(out, reference, data, &plain);
    if (!setting->relu || !out->ran || out->status != TDM_OK) return;

    op_data masked = *data;
    masked.dy = calloc((size_t)data->y_count, sizeof *masked.dy);
    if (masked.dy == NULL) abort();
    for (int64_t i = 0; i < out->y_count; i++) masked.dy[i] = out->y[i] <= 0.0f ? 0.0f : data->dy[i];
    op_result_close(out);
    op_run(out, reference, &masked, &plain);
    free(masked.dy);
    if (out->y != NULL) relu_forward(out->y, out->y_count);
}

static bool equal_floats(const float *a, const float *b, int64_t count) {
    return a == NULL || b == NULL || count == 0 || memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

static bool equal_bits(const op_data *data, const op_result *a, const op_result *b) {
    bool equal = equal_floats(a->y, b->y, a->y_count);
    for (int i = 0; i < data->infer.input_count; i++) equal = equal && equal_floats(a->dx[i], b->dx[i], a->x_count);
    for (int i = 0; i < data->infer.param_count; i++)
        equal = equal && equal_floats(a->dparam[i], b->dparam[i], data->param_count[i]);
    for (int i = 0; i < data->infer.buffer_count; i++)
        equal = equal && equal_floats(a->buffer[i], b->buffer[i], data->buffer_count[i]);
    return equal;
}

static void conform_to(const tdm_kernel *kernel, const op_data *data, const op_setting *setting, double tolerance,
                       op_conform_count *count) {
    op_result got, again, want;
    op_run(&got, kernel, data, setting);
    if (!got.ran) {
        count->declined++;
        return;
    }
    int failures = tdm_test_failures;
    op_run(&again, kernel, data, setting);
    run_reference(&want, data, setting);
    CHECK_INT(got.status, want.status);
    if (got.status == TDM_OK && want.status == TDM_OK) {
        (void)op_results_near(data, &got, &want, tolerance);
        CHECK(equal_bits(data, &got, &again));
    }
    if (tdm_test_failures != failures)
        fprintf(stderr, "  by %s/%s, %lld rows, layout %d%s%s%s%s\n", kernel->op, kernel->variant,
                (long long)setting->rows, (int)setting->layout, setting->training ? ", training" : "",
                setting->relu ? ", relu" : "", setting->in_place ? ", in place" : "",
                setting->without_dx ? ", without dx" : "");
    count->runs++;
    op_result_close(&got);
    op_result_close(&again);
    op_result_close(&want);
}

static void conform_on(const tdm_kernel *kernel, const op_data *data, double tolerance, op_conform_count *count) {
    int64_t most = data->test->rows;
    for (int layout = 0; layout < TDM_LAYOUT_COUNT; layout++) {
        op_setting setting = {.layout = (tdm_layout)layout, .training = true, .seed = 7, .step = 11, .stream = 2};
        for (int64_t rows = most; rows > 0; rows = rows == 1 ? 0 : rows == most ? most - 1 : 1) {
            setting.rows = rows;
            conform_to(kernel, data, &setting, tolerance, count);
        }
        setting.rows = most;
        op_setting variants[] = {setting, setting, setting, setting, setting};
        variants[0].training = false;
        variants[1].relu = true;
        variants[2].in_place = true;
        variants[3].threads = 2;
        variants[4].relu = true, variants[4].training = false;
        for (int i = 0; i < 5; i++) conform_to(kernel, data, &variants[i], tolerance, count);
        setting.without_dx = true;
        if (data->infer.param_count > 0) conform_to(kernel, data, &setting, tolerance, count);
    }
}

op_conform_count op_conform(const tdm_kernel *kernel, double tolerance) {
    op_conform_count count = {0};
    const op_cases *cases = cases_of(kernel->op);
    if (cases == NULL) return count; /* reorder: no layer, tested apart */
    for (int i = 0; i < cases->count; i++) {
        op_data data;
        if (op_data_open(&data, kernel->op, &cases->items[i], 100u + (uint64_t)i))
            conform_on(kernel, &data, tolerance, &count);
        else
            tdm_test_failures++;
        op_data_close(&data);
    }
    return count;
}
