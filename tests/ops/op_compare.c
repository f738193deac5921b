/* Results of two runs side by side. See op_driver.h. */
#include <float.h>
#include <math.h>

#include "tests/ops/op_driver.h"
#include "tests/support/tdm_test.h"

/* bf16: got was rounded in the end, want was not. */
static bool near(const char *what, const float *got, const float *want, int64_t count, double tolerance, bool bf16) {
    const double half_a_step = bf16 && tolerance > 0 ? 1.0 / 256 : 0;
    double scale = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(want[i]) && fabs((double)want[i]) > scale) scale = fabs((double)want[i]);
    for (int64_t i = 0; i < count; i++) {
        float wanted = want[i];
        if (bf16 && tolerance == 0) op_round(&wanted, 1);
        bool same = got[i] == wanted || (isnan(got[i]) && isnan(wanted));
        double most = tolerance * scale + half_a_step * fabs((double)wanted);
        if (same || fabs((double)got[i] - (double)wanted) <= most) continue;
        fprintf(stderr, "%s[%lld] is %.9g, wanted %.9g; largest %.9g, tolerance %g of it\n", what, (long long)i,
                (double)got[i], (double)wanted, scale, tolerance);
        tdm_test_failures++;
        return false;
    }
    return true;
}

bool op_near(const char *what, const float *got, const float *want, int64_t count, double tolerance) {
    return near(what, got, want, count, tolerance, false);
}

/* Floats were added in some order: 16 roundings of the largest sum that could have been on the way. */
static bool sums_near(const op_data *data, const op_result *got, const op_result *want) {
    const int64_t channels = got->channels, points = data->x_shape.dim[2] * data->x_shape.dim[3];
    for (int64_t c = 0; c < channels && got->sums != NULL; c++) {
        double sum = 0, most = 0;
        for (int64_t i = c * points; i < want->x_count[0]; i += channels * points) {
            for (int64_t k = 0; k < points; k++) {
                sum += (double)want->dx[0][i + k];
                most += fabs((double)want->dx[0][i + k]);
            }
        }
        if (fabs((double)got->sums[c] - sum) <= 16 * (double)(FLT_EPSILON / 2) * most) continue;
        fprintf(stderr, "sums[%lld] is %.9g, wanted %.9g\n", (long long)c, (double)got->sums[c], sum);
        tdm_test_failures++;
        return false;
    }
    return true;
}

static bool results_near(const op_data *data, const op_result *got, const op_result *want, double tolerance,
                         bool bf16) {
    bool all = near("y", got->y, want->y, want->y_count, tolerance, bf16);
    for (int i = 0; i < TDM_MAX_INPUTS; i++)
        if (got->dx[i] != NULL && want->dx[i] != NULL)
            all = near("dx", got->dx[i], want->dx[i], want->x_count[i], tolerance, bf16) && all;
    all = sums_near(data, got, want) && all;
    for (int i = 0; i < data->infer.param_count; i++)
        if (want->dparam[i] != NULL)
            all = op_near(data->infer.param[i].suffix, got->dparam[i], want->dparam[i], data->param_count[i],
                          tolerance) &&
                  all;
    for (int i = 0; i < data->infer.buffer_count; i++)
        if (want->buffer[i] != NULL)
            all = op_near(data->infer.buffer[i].suffix, got->buffer[i], want->buffer[i], data->buffer_count[i],
                          tolerance) &&
                  all;
    if (got->counter != want->counter) {
        fprintf(stderr, "num_batches_tracked is %lld, wanted %lld\n", (long long)got->counter,
                (long long)want->counter);
        tdm_test_failures++;
        all = false;
    }
    if (!all) fprintf(stderr, "  in %s\n", op_data_name(data));
    return all;
}

bool op_results_near(const op_data *data, const op_result *got, const op_result *want, double tolerance) {
    return results_near(data, got, want, tolerance, false);
}

bool op_results_near_bf16(const op_data *data, const op_result *got, const op_result *want, double tolerance) {
    return results_near(data, got, want, tolerance, true);
}
