/* mse: definition and the CPU's kernel. torch.nn.MSELoss: loss = (y - t)^2, dy = 2 (y - t) seed, mean over all
 * elements. Rows are summed in double. */
#include "ops/ops.h"

static int64_t denominator(const tdm_loss_section *section, int64_t rows, int64_t width, const void *target) {
    (void)section, (void)target;
    return rows * width;
}

static tdm_status run(const tdm_loss_args *args) {
    const float *target = args->target;
    float twice = 2.0f * args->values->loss_seed;
    double total = 0;
    for (int64_t n = 0; n < args->rows; n++) {
        double row = 0;
        for (int64_t i = n * args->width; i < (n + 1) * args->width; i++) {
            float d = args->y[i] - target[i];
            row += (double)d * (double)d;
            if (args->dy != NULL) args->dy[i] = twice * d;
        }
        total += row;
    }
    *args->loss_sum += total;
    return TDM_OK;
}

const tdm_loss_def tdm__mse_loss = {
    .name = "mse",
    .doc = "mean squared difference (torch.nn.MSELoss)",
    .doc_zh = "均方误差（torch.nn.MSELoss）",
    .target = TDM_TARGET_VALUES,
    .denominator = denominator,
    .run = run,
};
