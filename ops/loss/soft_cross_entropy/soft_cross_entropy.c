/* soft_cross_entropy: definition and the CPU's kernel. torch.nn.CrossEntropyLoss with targets t that are probabilities:
 * with e the smoothing, C classes, w their weights and q = (1 - e) * t + e / C
 *      loss = -sum_c w_c q_c log softmax(y)_c        dy = (softmax(y) * sum_c w_c q_c - w q) * seed
 * The mean is over the rows, whatever the weights. A row's sums are in double. */
#include "ops/loss/classes.h"
#include "ops/ops.h"
#include "runtime/base/largest.h"

static tdm_status infer(const tdm_loss_section *section, const tdm_shape *output, const tdm_origin *origin,
                        int64_t *classes) {
    return tdm__classes_infer("soft_cross_entropy", section, output, origin, classes);
}

static double denominator(const tdm_loss_section *section, int64_t rows, int64_t width, const void *target) {
    (void)section, (void)width, (void)target;
    return (double)rows;
}

static tdm_status run(const tdm_loss_args *args) {
    const tdm_class_weights weights = tdm__class_weights(args);
    const double kept = 1.0 - args->section->label_smoothing;
    const double spread = args->section->label_smoothing / (double)args->width;
    const float seed = args->values->loss_seed;
    double total = 0;
    for (int64_t n = 0; n < args->rows; n++) {
        const float *y = args->y + n * args->width, *t = (const float *)args->target + n * args->width;
        float *dy = args->dy != NULL ? args->dy + n * args->width : NULL;
        const tdm_softmax_row row = tdm__softmax_row(y, args->width, tdm__largest(y, args->width));
        double loss = 0, share = 0;
        for (int64_t c = 0; c < args->width; c++) {
            const double q = (kept * (double)t[c] + spread) * tdm__class_weight(&weights, c);
            loss += q * (double)tdm__softmax_loss(&row, c);
            share += q;
        }
        total += (double)(float)loss;
        for (int64_t c = 0; dy != NULL && c < args->width; c++) {
            const double q = (kept * (double)t[c] + spread) * tdm__class_weight(&weights, c);
            dy[c] = tdm__softmax_of(&row, c) * ((float)share * seed) - (float)q * seed;
        }
    }
    *args->loss_sum += total;
    return TDM_OK;
}

const tdm_loss_def tdm__soft_cross_entropy_loss = {
    .name = "soft_cross_entropy",
    .also_called = "SoftTargetCrossEntropy soft_target_cross_entropy",
    .doc = "cross_entropy whose targets are the probabilities of the classes (torch.nn.CrossEntropyLoss)",
    .doc_zh = "目标为各类别概率的 cross_entropy（torch.nn.CrossEntropyLoss）",
    .target = TDM_TARGET_VALUES,
    .keys = {"label_smoothing", "weight"},
    .infer = infer,
    .denominator = denominator,
    .run = run,
};
