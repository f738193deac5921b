/* See op_conform.h. */
#include "tests/ops/op_conform.h"

#include <tandem/job.h>

#include "ops/ops.h"
#include "tests/ops/op_cases.h"
#include "tests/ops/op_memory.h"
#include "tests/support/tdm_test.h"

static void relu_forward(float *y, int64_t count) {
    for (int64_t i = 0; i < count; i++) y[i] = y[i] < 0.0f ? 0.0f : y[i];
}

/* With a bias in front of the op, where the kernel adds it behind: to the bit for the ops that offer it. */
static op_data biased_data(const op_data *data) {
    const int64_t channels = data->x_shape.dim[1], points = data->x_count / (data->x_shape.dim[0] * channels);
    op_data biased = *data;
    biased.x[0] = calloc((size_t)data->x_count, sizeof *biased.x[0]);
    if (biased.x[0] == NULL) abort();
    for (int64_t i = 0; i < data->x_count; i++)
        biased.x[0][i] = data->x[0][i] + data->param[data->infer.param_count][i / points % channels];
    return biased;
}

/* What the epilogue does to the reference's y; bf16: y is rounded before, as a layer behind would read it. */
static void finish_forward(op_result *out, const op_data *data, const op_setting *setting) {
    if (setting->adds && setting->precision == TDM_BF16) op_round(out->y, out->y_count);
    for (int64_t i = 0; setting->adds && i < out->y_count; i++) out->y[i] += data->x[data->infer.input_count][i];
    if (setting->relu) relu_forward(out->y, out->y_count);
}

/* The reference, unfused: with an epilogue its dy is masked by a first run. */
static void run_reference(op_result *out, const op_data *data, const op_setting *setting) {
    op_setting plain = *setting;
    plain.layout = TDM_LAYOUT_PLAIN;
    plain.relu = plain.sums = plain.adds = plain.over_dy = plain.biased = plain.in_place = plain.odd = plain.graph =
        false;
    plain.device = NULL;
    plain.replicas = 1;
    plain.rounds_y = setting->precision == TDM_BF16 && (data->def->flags & TDM_OP_READS_Y) != 0;
    plain.precision = TDM_F32;
    plain.threads = 1;
    const tdm_kernel *reference = op_reference(data->def->name);
    if (setting->biased) {
        op_data biased = biased_data(data);
        op_run(out, reference, &biased, &plain);
        free(biased.x[0]);
    } else {
        op_run(out, reference, data, &plain);
    }
    if (!(setting->relu || setting->adds) || !out->ran || out->status != TDM_OK) return;
    finish_forward(out, data, setting);
    if (!setting->training) return;

    op_data masked = *data;
    masked.dy = calloc((size_t)data->y_count, sizeof *masked.dy);
    if (masked.dy == NULL) abort();
    for (int64_t i = 0; i < out->y_count; i++) masked.dy[i] = setting->relu && out->y[i] <= 0.0f ? 0.0f : data->dy[i];
    op_result_close(out);
    op_run(out, reference, &masked, &plain);
    finish_forward(out, data, setting);
    if (setting->adds && !setting->without_dx)
        out->dx[data->infer.input_count] = masked.dy;
    else
        free(masked.dy);
}

static bool equal_floats(const float *a, const float *b, int64_t count) {
    return a == NULL || b == NULL || count == 0 || memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

static bool equal_bits(const op_data *data, const op_result *a, const op_result *b) {
    bool equal = equal_floats(a->y, b->y, a->y_count) && equal_floats(a->sums, b->sums, a->channels);
    for (int i = 0; i < TDM_MAX_INPUTS; i++) equal = equal && equal_floats(a->dx[i], b->dx[i], a->x_count[i]);
    for (int i = 0; i < data->infer.param_count; i++)
        equal = equal && equal_floats(a->dparam[i], b->dparam[i], data->param_count[i]);
    for (int i = 0; i < data->infer.buffer_count; i++)
        equal = equal && equal_floats(a->buffer[i], b->buffer[i], data->buffer_count[i]);
    return equal;
}

/* A second run shows whether the bits are the same. Sanitizers find nothing in it; but on a device, the emulation runs
 * blocks and threads in another order then. */
static bool repeats(const op_setting *setting) {
    return setting->device != NULL || TDM_EVERY(2) == 1;
}

static void conform_to(const tdm_kernel *kernel, const op_data *data, const op_setting *setting, double tolerance,
                       op_conform_count *count) {
    op_result got, again = {0}, want;
    op_run(&got, kernel, data, setting);
    if (!got.ran) {
        count->declined++;
        return;
    }
    int failures = tdm_test_failures;
    if (repeats(setting)) op_run(&again, kernel, data, setting);
    run_reference(&want, data, setting);
    CHECK_INT(got.status, want.status);
    if (got.status == TDM_OK && want.status == TDM_OK) {
        (void)(setting->precision == TDM_BF16 ? op_results_near_bf16 : op_results_near)(data, &got, &want, tolerance);
        if (repeats(setting)) CHECK(equal_bits(data, &got, &again));
    }
    if (tdm_test_failures != failures)
        fprintf(stderr, "  by %s/%s, %lld rows, layout %d%s%s%s%s%s%s%s%s%s\n", kernel->op, kernel->variant,
                (long long)setting->rows, (int)setting->layout, setting->precision == TDM_BF16 ? ", bf16" : "",
                setting->training ? ", training" : "", setting->relu ? ", relu" : "", setting->sums ? ", sums" : "",
                setting->adds ? ", adds" : "", setting->biased ? ", biased" : "", setting->in_place ? ", in place" : "",
                setting->without_dx ? ", without dx" : "", setting->fast ? ", fast" : "");
    count->runs++;
    op_result_close(&got);
    op_result_close(&again);
    op_result_close(&want);
}

static op_setting setting_of(tdm_device *device, int precision, int layout, int64_t rows) {
    return (op_setting){.layout = (tdm_layout)layout,
                        .rows = rows,
                        .training = true,
                        .seed = 7,
                        .step = 11,
                        .stream = 2,
                        .device = device,
                        .precision = precision};
}

/* A large case is there for its shape: every layout, and what the kernel does beside the op. */
static void conform_large(tdm_device *device, int precision, const tdm_kernel *kernel, const op_data *data,
                          double tolerance, op_conform_count *count) {
    for (int layout = 0; layout < TDM_LAYOUT_COUNT; layout++) {
        const op_setting setting = setting_of(device, precision, layout, data->test->rows);
        op_setting variants[] = {setting, setting, setting, setting, setting};
        variants[1].training = false;
        variants[2].relu = true;
        variants[3].adds = variants[3].relu = variants[3].over_dy = true;
        variants[4].sums = variants[4].graph = variants[4].odd = true;
        for (int i = 0; i < 5; i++) conform_to(kernel, data, &variants[i], tolerance, count);
    }
}

/* With exchanged statistics, several replicas compute what one does with all rows. What they add up was rounded on
 * each.
 */
static void conform_replicas(const tdm_kernel *kernel, const op_data *data, op_setting setting, double tolerance,
                             op_conform_count *count) {
    if (data->infer.statistics == 0 || setting.rows < 2) return;
    if (tolerance < 1e-6) tolerance = 1e-6;
    for (setting.replicas = 2; setting.replicas <= 3; setting.replicas++) {
        op_setting variants[] = {setting, setting, setting, setting};
        variants[1].relu = true, variants[1].threads = 2;
        variants[2].adds = variants[2].relu = variants[2].over_dy = true;
        variants[3].graph = variants[3].odd = setting.device != NULL;
        for (int i = 0; i < 4; i++) conform_to(kernel, data, &variants[i], tolerance, count);
    }
}

static void conform_in_all(tdm_device *device, int precision, const tdm_kernel *kernel, const op_data *data,
                           double tolerance, op_conform_count *count) {
    const int64_t most = data->test->rows;
    for (int layout = 0; layout < TDM_LAYOUT_COUNT; layout++) {
        op_setting setting = setting_of(device, precision, layout, most);
        for (int64_t rows = most; rows > 0; rows = rows == 1 ? 0 : rows == most ? most - 1 : 1) {
            setting.rows = rows;
            conform_to(kernel, data, &setting, tolerance, count);
        }
        setting.rows = most;
        op_setting variants[] = {setting, setting, setting, setting, setting,
                                 setting, setting, setting, setting, setting};
        variants[0].training = false;
        variants[1].relu = true;
        variants[2].in_place = true;
        variants[3].threads = 2;
        variants[4].relu = true, variants[4].training = false;
        variants[5].fast = true;
        variants[6].adds = true;
        variants[7].adds = variants[7].relu = variants[7].over_dy = true;
        variants[8].adds = variants[8].relu = variants[8].without_dx = true;
        variants[9].biased = variants[9].relu = true, variants[9].training = false;
        for (int i = 0; i < 10; i++) conform_to(kernel, data, &variants[i], tolerance, count);
        for (int i = 0; i < 6 && device != NULL; i++) {
            op_setting there = setting;
            /* What libraries are given always begins at multiples of 16 bytes, and cuDNN asks for it. */
            there.odd = i % 3 != 1 && kernel->algorithms == NULL;
            there.graph = i % 3 != 0;
            there.relu = i % 3 == 2;
            there.sums = i >= 3;
            there.adds = i == 2 || i == 4;
            there.over_dy = i == 2;
            conform_to(kernel, data, &there, tolerance, count);
        }
        conform_replicas(kernel, data, setting, tolerance, count);
        setting.without_dx = true;
        if (data->infer.param_count > 0) conform_to(kernel, data, &setting, tolerance, count);
    }
}

op_conform_count op_conform(const tdm_kernel *kernel, double tolerance) {
    return op_conform_on(NULL, kernel, tolerance);
}

static void conform_case(op_conform_count *count, tdm_device *device, int precision, const tdm_kernel *kernel,
                         const op_case *test, uint64_t seed, double tolerance) {
    op_data data;
    if (op_data_open(&data, kernel->op, test, seed)) {
        if (precision == TDM_BF16) op_data_round(&data);
        (test->large ? conform_large : conform_in_all)(device, precision, kernel, &data, tolerance, count);
    } else {
        tdm_test_failures++;
    }
    op_data_close(&data);
}

static op_conform_count conform(tdm_device *device, int precision, const tdm_kernel *kernel, double tolerance) {
    op_conform_count count = {0};
    const op_cases *cases = op_cases_of(kernel->op);
    CHECK(cases != NULL);
    for (int i = 0; cases != NULL && i < cases->count; i++)
        if (!cases->items[i].large)
            conform_case(&count, device, precision, kernel, &cases->items[i], 100u + (uint64_t)i, tolerance);
    return count;
}

op_conform_count op_conform_on(tdm_device *device, const tdm_kernel *kernel, double tolerance) {
    return conform(device, TDM_F32, kernel, tolerance);
}

op_conform_count op_conform_bf16(tdm_device *device, const tdm_kernel *kernel, double tolerance) {
    return conform(device, TDM_BF16, kernel, tolerance);
}

void op_conform_case_on(op_conform_count *count, tdm_device *device, const tdm_kernel *kernel, const op_case *test,
                        uint64_t seed, double tolerance) {
    conform_case(count, device, TDM_F32, kernel, test, seed, tolerance);
}

void op_conform_case_bf16(op_conform_count *count, tdm_device *device, const tdm_kernel *kernel, const op_case *test,
                          uint64_t seed, double tolerance) {
    conform_case(count, device, TDM_BF16, kernel, test, seed, tolerance);
}

/* ---- reorder ---- */

/* Numbers that count up, in the desc's layouts; in bf16, which has no such numbers, their bits count. */
static void count_up(void *to, const tdm_kernel_desc *desc, int64_t rows, tdm_layout layout) {
    const int64_t count = tdm__shape_count(&desc->y) / desc->y.dim[0] * rows;
    float *plain = calloc((size_t)count * 2, sizeof *plain), *laid_out = plain + count;
    uint16_t *narrow = to;
    if (plain == NULL) abort();
    for (int64_t i = 0; i < count; i++) plain[i] = (float)i;
    op_convert(laid_out, plain, &desc->y, rows, layout, false);
    if (desc->precision != TDM_BF16) memcpy(to, laid_out, (size_t)count * sizeof(float));
    for (int64_t i = 0; i < count && desc->precision == TDM_BF16; i++) narrow[i] = (uint16_t)laid_out[i];
    free(plain);
}

/* There and back. */
static void check_reorder(tdm_device *device, bool odd, const tdm_kernel *kernel, const tdm_kernel_desc *desc,
                          int64_t rows, size_t scratch_bytes) {
    const int64_t count = tdm__shape_count(&desc->y) / desc->y.dim[0] * rows;
    const size_t size = desc->precision == TDM_BF16 ? sizeof(uint16_t) : sizeof(float), bytes = (size_t)count * size;
    op_memory m = {.device = device, .odd = odd};
    void *x = op_memory_numbers(&m, count, size, "x"), *y = op_memory_numbers(&m, count, size, "y");
    void *dy = op_memory_numbers(&m, count, size, "dy"), *dx = op_memory_numbers(&m, count, size, "dx");
    void *scratch = op_memory_new(&m, scratch_bytes, "scratch");
    count_up(x, desc, rows, desc->x_layout[0]);
    count_up(dy, desc, rows, desc->y_layout);
    tdm_kernel_args args = {.desc = desc,
                            .device = device,
                            .rows = rows,
                            .training = true,
                            .x = {op_memory_there(&m, x)},
                            .y = op_memory_there(&m, y),
                            .dx = {op_memory_there(&m, dx)},
                            .dy = op_memory_there(&m, dy),
                            .scratch = op_memory_there(&m, scratch)};
    op_memory_send(&m);
    if (kernel->open != NULL) CHECK_OK(kernel->open(device, desc, rows, true, &args.state));
    CHECK_OK(kernel->forward(&args));
    CHECK_OK(kernel->backward(&args));
    op_memory_fetch(&m);
    if (kernel->close != NULL) kernel->close(args.state);
    CHECK(memcmp(y, dy, bytes) == 0);
    CHECK(memcmp(dx, x, bytes) == 0);
    op_memory_check(&m, "reorder");
    op_memory_free(&m);
}

static op_conform_count conform_reorder(tdm_device *device, int precision, const tdm_kernel *kernel) {
    static const tdm_shape shapes[] = {{4, {3, 16, 5, 7}}, {4, {2, 32, 4, 4}}, {4, {2, 8, 3, 3}}, {4, {4, 5, 3, 2}},
                                       {4, {1, 48, 1, 1}}, {4, {2, 40, 7, 9}}, {4, {2, 3, 6, 6}}, {4, {2, 70, 9, 15}}};
    op_conform_count count = {0};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (int pair = 0; pair < TDM_LAYOUT_COUNT * TDM_LAYOUT_COUNT; pair++) {
            tdm_layout from = (tdm_layout)(pair / TDM_LAYOUT_COUNT), to = (tdm_layout)(pair % TDM_LAYOUT_COUNT);
            if (from == to || !op_layout_applies(from, &shapes[s]) || !op_layout_applies(to, &shapes[s])) continue;
            tdm_kernel_desc desc = {.op = "reorder",
                                    .input_count = 1,
                                    .x = {shapes[s]},
                                    .y = shapes[s],
                                    .x_layout = {from},
                                    .y_layout = to,
                                    .needs_dx = {true},
                                    .threads = 1,
                                    .precision = precision};
            tdm_kernel_fit fit = {0};
            if (kernel->fits != NULL && !kernel->fits(&desc, &fit)) {
                count.declined++;
                continue;
            }
            int failures = tdm_test_failures;
            check_reorder(device, false, kernel, &desc, shapes[s].dim[0], fit.scratch_bytes);
            check_reorder(device, true, kernel, &desc, 1, fit.scratch_bytes);
            if (tdm_test_failures != failures)
                fprintf(stderr, "  by reorder/%s, layout %d to %d, %s\n", kernel->variant, (int)from, (int)to,
                        tdm__shape_text(&shapes[s]).text);
            count.runs += 2;
        }
    }
    return count;
}

op_conform_count op_conform_reorder(const tdm_kernel *kernel) {
    return conform_reorder(NULL, TDM_F32, kernel);
}

op_conform_count op_conform_reorder_on(tdm_device *device, const tdm_kernel *kernel) {
    return conform_reorder(device, TDM_F32, kernel);
}

op_conform_count op_conform_reorder_bf16(tdm_device *device, const tdm_kernel *kernel) {
    return conform_reorder(device, TDM_BF16, kernel);
}
