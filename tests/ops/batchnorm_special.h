/* Batch norm of channels that hold infinities and NaN: against the reference, and beside channels that must not notice.
 */
#ifndef TDM_TESTS_BATCHNORM_SPECIAL_H
#define TDM_TESTS_BATCHNORM_SPECIAL_H

#include "tests/ops/op_driver.h"
#include "tests/support/tdm_test.h"

enum { SPECIAL_VALUES = 4, SPECIAL_KINDS = 6 };
static const float special_values[SPECIAL_KINDS][SPECIAL_VALUES] = {
    {INFINITY, 1, 2, 3},         {1, 2, -INFINITY, 3},  {-INFINITY, 1, 2, -INFINITY},
    {INFINITY, -INFINITY, 1, 2}, {1, INFINITY, NAN, 2}, {NAN, 1, 2, 3},
};

#define SPECIAL_STEP 0x1p-133 /* the smallest number of bf16 */

/* A channel of all rows. */
typedef struct special_channel {
    int64_t rows, channels, points, channel;
} special_channel;

static int64_t special_at(const special_channel *s, int64_t i) {
    return (i / s->points * s->channels + s->channel) * s->points + i % s->points;
}

/* Every second channel begins with one of the rows above. */
static void special_put(float *x, special_channel s) {
    for (s.channel = 0; s.channel < s.channels; s.channel += 2)
        for (int i = 0; i < SPECIAL_VALUES; i++)
            x[special_at(&s, i)] = special_values[s.channel / 2 % SPECIAL_KINDS][i];
}

/* Infinite with the same sign, NaN, or near. */
static bool special_alike(const float *got, const float *want, const special_channel *s, double tolerance) {
    double most = 0, off = 0;
    for (int64_t i = 0; i < s->rows * s->points; i++) {
        const float a = got[special_at(s, i)], b = want[special_at(s, i)];
        if ((isfinite(a) || isfinite(b)) && !(isfinite(a) && isfinite(b))) return false;
        if (!isfinite(b) && !(isnan(a) && isnan(b)) && a != b) return false;
        if (!isfinite(b)) continue;
        most = fmax(most, fabs((double)b));
        off = fmax(off, fabs((double)a - (double)b));
    }
    return off <= tolerance * most + SPECIAL_STEP;
}

static bool special_equal(const float *a, const float *b, const special_channel *s) {
    for (int64_t i = 0; i < s->rows * s->points; i++)
        if (memcmp(a + special_at(s, i), b + special_at(s, i), sizeof *a) != 0) return false;
    return true;
}

/* usual: the kernel's results of data without special values */
static void special_compare(const op_data *data, const op_result *got, const op_result *want, const op_result *usual,
                            special_channel s, double tolerance) {
    const special_channel of = {1, s.channels, 1, s.channel};
    bool all = special_alike(got->y, want->y, &s, tolerance) && special_alike(got->dx[0], want->dx[0], &s, tolerance);
    for (int i = 0; i < data->infer.param_count; i++)
        all = all && special_alike(got->dparam[i], want->dparam[i], &of, tolerance);
    for (int i = 0; i < 2; i++) all = all && special_alike(got->buffer[i], want->buffer[i], &of, tolerance);
    if (s.channel % 2 == 1)
        all = all && special_equal(got->y, usual->y, &s) && special_equal(got->dx[0], usual->dx[0], &s);
    if (!all) fprintf(stderr, "  channel %lld of %s\n", (long long)s.channel, op_data_name(data));
    CHECK(all);
}

/* Returns whether the kernel ran. */
static bool special_check(const tdm_kernel *kernel, const op_case *test, const op_setting *setting) {
    op_data data;
    op_result got, want, usual;
    if (!op_data_open(&data, kernel->op, test, 11)) return false;
    const int64_t rows = data.x_shape.dim[0], channels = data.x_shape.dim[1];
    special_channel s = {rows, channels, data.x_count / rows / channels, 0};
    if (setting->precision == TDM_BF16) op_data_round(&data);
    op_run(&usual, kernel, &data, setting);
    special_put(data.x[0], s);
    if (setting->precision == TDM_BF16) op_data_round(&data);
    op_run(&got, kernel, &data, setting);
    op_run(&want, op_reference(kernel->op), &data, &(op_setting){.training = true, .replicas = setting->replicas});
    const bool ran = got.ran;
    for (; ran && s.channel < channels; s.channel++)
        special_compare(&data, &got, &want, &usual, s, setting->precision == TDM_BF16 ? 1.0 / 128 : 1e-5);
    op_result_close(&usual);
    op_result_close(&got);
    op_result_close(&want);
    op_data_close(&data);
    return ran;
}

#endif
