/* cross_entropy: definition and the CPU's kernel. torch.nn.CrossEntropyLoss: rows are in float32 with the maximum
 * subtracted, their sum in double. With e the smoothing, C classes and q = (1 - e) * onehot(label) + e / C:
 *      loss = -sum_c q_c log softmax(y)_c        dy = (softmax(y) - q) * seed */
#include <math.h>
#include <string.h>

#include "ops/ops.h"

static tdm_status infer(const tdm_shape *output, const tdm_origin *origin, int64_t *classes) {
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

static float row_loss(const float *y, int64_t width, int64_t label, float max, float log_total, double smoothing) {
    float loss = -((y[label] - max) - log_total);
    if (smoothing == 0.0) return loss;
    double all = 0;
    for (int64_t c = 0; c < width; c++) all -= (double)((y[c] - max) - log_total);
    return (float)((1.0 - smoothing) * (double)loss + smoothing / (double)width * all);
}

/* dy = softmax * seed - q * seed, each product rounded on its own, as in PyTorch's backward of log_softmax */
static void row_gradient(float *dy, const float *y, int64_t width, int64_t label, float max, float log_total,
                         double smoothing, float seed) {
    float spread = (float)(smoothing / (double)width) * seed;
    float on_label = (float)(1.0 - smoothing) * seed;
    for (int64_t c = 0; c < width; c++) dy[c] = expf((y[c] - max) - log_total) * seed - spread;
    dy[label] -= on_label;
}

static tdm_status run(const tdm_loss_args *args) {
    const tdm_loss_section *section = args->section;
    const int64_t *target = args->target;
    double total = 0;
    int64_t correct = 0;
    for (int64_t n = 0; n < args->rows; n++) {
        const float *y = args->y + n * args->width;
        float *dy = args->dy != NULL ? args->dy + n * args->width : NULL;
        int64_t label = target[n];
        if (label == section->ignore_index) {
            if (dy != NULL) memset(dy, 0, (size_t)args->width * sizeof *dy);
            continue;
        }
        if (label < 0 || label >= args->width)
            TDM_FAIL(TDM_E_DATA,
                     "cross_entropy expects labels from 0 to %lld (the model gives %lld classes), got %lld in "
                     "row %lld of the batch",
                     (long long)args->width - 1, (long long)args->width, (long long)label, (long long)n);
        int64_t best = largest(y, args->width);
        float max = y[best], log_total = log_sum(y, max, args->width);
        total += (double)row_loss(y, args->width, label, max, log_total, section->label_smoothing);
        correct += best == label;
        if (dy != NULL)
            row_gradient(dy, y, args->width, label, max, log_total, section->label_smoothing, args->values->loss_seed);
    }
    *args->loss_sum += total;
    *args->correct += correct;
    return TDM_OK;
}

const tdm_loss_def tdm__cross_entropy_loss = {
    .name = "cross_entropy",
    .doc = "softmax and negative log-likelihood of the labels (torch.nn.CrossEntropyLoss)",
    .doc_zh = "softmax 与标签的负对数似然（torch.nn.CrossEntropyLoss）",
    .target = TDM_TARGET_CLASS,
    .keys = {"label_smoothing", "ignore_index"},
    .infer = infer,
    .denominator = denominator,
    .run = run,
};
