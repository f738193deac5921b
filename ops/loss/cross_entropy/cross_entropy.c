/* cross_entropy: definition and the CPU's kernel. torch.nn.CrossEntropyLoss: rows are in float32 with the maximum
 * subtracted, their sum in double. With e the smoothing, C classes, w their weights and q = (1 - e) * p + e / C:
 *      loss = -sum_c w_c q_c log softmax(y)_c        dy = (softmax(y) * sum_c w_c q_c - w q) * seed
 * p is onehot(label). For a mixed label (tandem/sys/label.h) it is (1 - l) * onehot(first) + l * onehot(second), as
 * CrossEntropyLoss takes it from targets that are probabilities. The heavier class is the right answer. Without weights
 * the sum of w q is 1. */
#include <string.h>

#include "ops/loss/classes.h"
#include "ops/ops.h"

static tdm_status infer(const tdm_loss_section *section, const tdm_shape *output, const tdm_origin *origin,
                        int64_t *classes) {
    return tdm__classes_infer("cross_entropy", section, output, origin, classes);
}

/* What all rows share. */
typedef struct entropy {
    tdm_class_weights weights;
    double smoothing, kept, spread; /* kept: 1 - smoothing; spread: each class's share of it */
    double weights_total;
    float seed;
} entropy;

static entropy entropy_of(const tdm_loss_args *args) {
    const double smoothing = args->section->label_smoothing;
    entropy e = {.weights = tdm__class_weights(args),
                 .smoothing = smoothing,
                 .kept = 1.0 - smoothing,
                 .spread = smoothing / (double)args->width,
                 .seed = args->values->loss_seed};
    e.weights_total = tdm__class_weights_total(args->section, args->width);
    return e;
}

/* Each class's share of the smoothing. */
static tdm_class_targets every_class(const entropy *e) {
    return (tdm_class_targets){.spread = e->spread, .weights = e->weights};
}

static float loss_of(const entropy *e, const tdm_softmax_row *row, tdm_label label) {
    const tdm_class_weights *w = &e->weights;
    double loss = tdm__class_weight(w, label.first) * (double)tdm__softmax_loss(row, label.first), all, share;
    if (label.weight != 0.0)
        loss = (1.0 - label.weight) * loss +
               label.weight * (tdm__class_weight(w, label.second) * (double)tdm__softmax_loss(row, label.second));
    if (e->smoothing == 0.0) return (float)loss;
    const tdm_class_targets every = every_class(e);
    tdm__class_lanes()->expected(row, &every, &all, &share);
    return (float)(e->kept * loss + all);
}

/* dy = softmax * total - w q * seed, each product rounded on its own, as in PyTorch's backward of log_softmax */
static void gradient_of(float *dy, const entropy *e, const tdm_softmax_row *row, tdm_label label) {
    const tdm_class_weights *w = &e->weights;
    const double first = e->kept * (1.0 - label.weight) * tdm__class_weight(w, label.first);
    const double second = e->kept * label.weight * tdm__class_weight(w, label.second);
    const float seed = e->seed;
    const float total = w->count == 0 ? seed : (float)(first + second + e->spread * e->weights_total) * seed;
    const tdm_class_targets every = every_class(e);
    tdm__class_lanes()->softmax(dy, row, total);
    if (e->smoothing != 0.0) tdm__class_lanes()->take_targets(dy, row->width, &every, seed);
    dy[label.first] -= (float)first * seed;
    if (label.weight != 0.0) dy[label.second] -= (float)second * seed;
}

static tdm_status run(const tdm_loss_args *args, double *row_loss) {
    const tdm_class_lanes *lanes = tdm__class_lanes();
    const entropy e = entropy_of(args);
    const int64_t *target = args->target, ignored = args->section->ignore_index;
    int64_t correct = 0;
    for (int64_t n = 0; n < args->rows; n++) {
        const float *y = args->y + n * args->width;
        float *dy = args->dy != NULL ? args->dy + n * args->width : NULL;
        const tdm_label label = tdm_label_unpack(target[n]);
        row_loss[n] = 0;
        if (target[n] == ignored) {
            if (dy != NULL) memset(dy, 0, (size_t)args->width * sizeof *dy);
            continue;
        }
        if (!tdm_label_fits(label, args->width)) return tdm__classes_wrong_label("cross_entropy", args, label, n);
        const float most = lanes->max_and_hit(y, args->width, tdm_label_heavier(label), &correct);
        const tdm_softmax_row row = tdm__softmax_row(lanes, y, args->width, most);
        row_loss[n] = (double)loss_of(&e, &row, label);
        if (dy != NULL) gradient_of(dy, &e, &row, label);
    }
    *args->correct += correct;
    return TDM_OK;
}

const tdm_loss_def tdm__cross_entropy_loss = {
    .name = "cross_entropy",
    .also_called = "ce CrossEntropyLoss",
    .doc = "softmax and negative log-likelihood of the labels (torch.nn.CrossEntropyLoss)",
    .doc_zh = "softmax 与标签的负对数似然（torch.nn.CrossEntropyLoss）",
    .target = TDM_TARGET_CLASS,
    .takes_mixed = true,
    .keys = {"label_smoothing", "ignore_index", "weight"},
    .infer = infer,
    .denominator = tdm__classes_denominator,
    .run = run,
};
