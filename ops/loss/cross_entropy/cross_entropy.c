/* cross_entropy: definition and the CPU's kernel. torch.nn.CrossEntropyLoss: rows are in float32 with the maximum
 * subtracted, their sum in double. With e the smoothing, C classes and q = (1 - e) * p + e / C:
 *      loss = -sum_c q_c log softmax(y)_c        dy = (softmax(y) - q) * seed
 * p is onehot(label). For a mixed label (tandem/sys/label.h) it is (1 - w) * onehot(first) + w * onehot(second), as
 * CrossEntropyLoss takes it from targets that are probabilities. The heavier class is the right answer. */
#include <math.h>
#include <string.h>

#include <tandem/sys/label.h>

#include "ops/ops.h"

static tdm_status infer(const tdm_loss_section *section, const tdm_shape *output, const tdm_origin *origin,
                        int64_t *classes) {
    (void)section;
    if (output->ndim != 1 || output->dim[0] < 2)
        TDM_FAIL_AT(origin, TDM_E_CONFIG,
                    "cross_entropy needs one output for each of at least 2 classes, but the model gives %s; end it "
                    "with `flatten` and `linear: <classes>`",
                    tdm__shape_text(output).text);
    *classes = output->dim[0];
    return TDM_OK;
}

static int64_t denominator(const tdm_loss_section *section, int64_t rows, int64_t width, const void *target) {
    (void)width;
    const int64_t *label = target;
    int64_t counted = 0;
    for (int64_t n = 0; n < rows; n++) counted += label[n] != section->ignore_index;
    return counted;
}

/* Returns the index of the largest element, as torch.argmax does: the first of equal ones, and a NaN before everything.
 */
static int64_t largest(const float *y, int64_t width) {
    int64_t best = 0;
    for (int64_t c = 1; c < width; c++)
        if (y[c] > y[best] || (isnan(y[c]) && !isnan(y[best]))) best = c;
    return best;
}

/* log(sum exp(y - max)) */
static float log_sum(const float *y, float max, int64_t width) {
    float sum = 0;
    for (int64_t c = 0; c < width; c++) sum += expf(y[c] - max);
    return logf(sum);
}

/* The values of a row that all of its classes share. */
typedef struct row_values {
    const float *y;
    int64_t width;
    float max, log_total;
} row_values;

static float class_loss(const row_values *row, int64_t c) {
    return -((row->y[c] - row->max) - row->log_total);
}

static float row_loss(const row_values *row, tdm_label label, double smoothing) {
    double loss = (double)class_loss(row, label.first), all = 0;
    if (label.weight != 0.0) loss = (1.0 - label.weight) * loss + label.weight * (double)class_loss(row, label.second);
    if (smoothing == 0.0) return (float)loss;
    for (int64_t c = 0; c < row->width; c++) all += (double)class_loss(row, c);
    return (float)((1.0 - smoothing) * loss + smoothing / (double)row->width * all);
}

/* dy = softmax * seed - q * seed, each product rounded on its own, as in PyTorch's backward of log_softmax */
static void row_gradient(float *dy, const row_values *row, tdm_label label, double smoothing, float seed) {
    float spread = (float)(smoothing / (double)row->width) * seed;
    double kept = 1.0 - smoothing;
    for (int64_t c = 0; c < row->width; c++) dy[c] = expf((row->y[c] - row->max) - row->log_total) * seed - spread;
    dy[label.first] -= (float)(kept * (1.0 - label.weight)) * seed;
    if (label.weight != 0.0) dy[label.second] -= (float)(kept * label.weight) * seed;
}

static tdm_status wrong_label(const tdm_loss_args *args, tdm_label label, int64_t n) {
    bool is_second = label.first >= 0 && label.first < args->width;
    TDM_FAIL(TDM_E_DATA,
             "cross_entropy expects labels from 0 to %lld (the model gives %lld classes), got %lld in row %lld of the "
             "batch",
             (long long)args->width - 1, (long long)args->width, (long long)(is_second ? label.second : label.first),
             (long long)n);
}

static tdm_status run(const tdm_loss_args *args) {
    const tdm_loss_section *section = args->section;
    const int64_t *target = args->target;
    double total = 0;
    int64_t correct = 0;
    for (int64_t n = 0; n < args->rows; n++) {
        const float *y = args->y + n * args->width;
        float *dy = args->dy != NULL ? args->dy + n * args->width : NULL;
        const tdm_label label = tdm_label_unpack(target[n]);
        if (target[n] == section->ignore_index) {
            if (dy != NULL) memset(dy, 0, (size_t)args->width * sizeof *dy);
            continue;
        }
        if (!tdm_label_fits(label, args->width)) return wrong_label(args, label, n);
        int64_t best = largest(y, args->width);
        const row_values row = {y, args->width, y[best], log_sum(y, y[best], args->width)};
        total += (double)row_loss(&row, label, section->label_smoothing);
        correct += best == tdm_label_heavier(label);
        if (dy != NULL) row_gradient(dy, &row, label, section->label_smoothing, args->values->loss_seed);
    }
    *args->loss_sum += total;
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
    .keys = {"label_smoothing", "ignore_index"},
    .infer = infer,
    .denominator = denominator,
    .run = run,
};
