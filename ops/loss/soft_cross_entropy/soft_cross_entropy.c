/* soft_cross_entropy: definition and the CPU's kernel. torch.nn.CrossEntropyLoss with targets t that are probabilities:
 * with e the smoothing, C classes, w their weights and q = (1 - e) * t + e / C
 *      loss = -sum_c w_c q_c log softmax(y)_c        dy = (softmax(y) * sum_c w_c q_c - w q) * seed
 * The mean is over the rows, whatever the weights. A row's sums are in double. */
#include "ops/loss/classes.h"
#include "ops/ops.h"

static tdm_status infer(const tdm_loss_section *section, const tdm_shape *output, const tdm_origin *origin,
                        int64_t *classes) {
    return tdm__classes_infer("soft_cross_entropy", section, output, origin, classes);
}

static double denominator(const tdm_loss_section *section, int64_t rows, int64_t width, const void *target) {
    (void)section, (void)width, (void)target;
    return (double)rows;
}

static tdm_status run(const tdm_loss_args *args, double *row_loss) {
    const tdm_class_lanes *lanes = tdm__class_lanes();
    const double smoothing = args->section->label_smoothing;
    tdm_class_targets of = {
        .kept = 1.0 - smoothing, .spread = smoothing / (double)args->width, .weights = tdm__class_weights(args)};
    const float seed = args->values->loss_seed;
    for (int64_t n = 0; n < args->rows; n++) {
        const float *y = args->y + n * args->width;
        float *dy = args->dy != NULL ? args->dy + n * args->width : NULL;
        const tdm_softmax_row row = tdm__softmax_row(lanes, y, args->width, lanes->max(y, args->width));
        double loss, share;
        of.t = (const float *)args->target + n * args->width;
        lanes->expected(&row, &of, &loss, &share);
        row_loss[n] = (double)(float)loss;
        if (dy == NULL) continue;
        lanes->softmax(dy, &row, (float)share * seed);
        lanes->take_targets(dy, args->width, &of, seed);
    }
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
