/* nll: definition and the CPU's kernel. torch.nn.NLLLoss: outputs are log-probabilities, and with w the weights of the
 * classes
 *      loss = -w_label y_label        dy = -w_label seed at the label, else 0 */
#include <string.h>

#include "ops/loss/classes.h"
#include "ops/ops.h"

static tdm_status infer(const tdm_loss_section *section, const tdm_shape *output, const tdm_origin *origin,
                        int64_t *classes) {
    return tdm__classes_infer("nll", section, output, origin, classes);
}

static tdm_status run(const tdm_loss_args *args, double *row_loss) {
    const tdm_class_weights weights = tdm__class_weights(args);
    const int64_t *label = args->target;
    int64_t correct = 0;
    for (int64_t n = 0; n < args->rows; n++) {
        const float *y = args->y + n * args->width;
        float *dy = args->dy != NULL ? args->dy + n * args->width : NULL;
        if (dy != NULL) memset(dy, 0, (size_t)args->width * sizeof *dy);
        row_loss[n] = 0;
        if (label[n] == args->section->ignore_index) continue;
        if (label[n] < 0 || label[n] >= args->width)
            return tdm__classes_wrong_label("nll", args, (tdm_label){label[n], label[n], 0.0}, n);
        const float weight = (float)tdm__class_weight(&weights, label[n]);
        row_loss[n] = -(double)(weight * y[label[n]]);
        (void)tdm__class_lanes()->max_and_hit(y, args->width, label[n], &correct);
        if (dy != NULL) dy[label[n]] = -weight * args->values->loss_seed;
    }
    *args->correct += correct;
    return TDM_OK;
}

const tdm_loss_def tdm__nll_loss = {
    .name = "nll",
    .also_called = "NLLLoss nll_loss",
    .doc = "negative log-likelihood of the labels; the model ends in log_softmax (torch.nn.NLLLoss)",
    .doc_zh = "标签的负对数似然；模型以 log_softmax 层结尾（torch.nn.NLLLoss）",
    .target = TDM_TARGET_CLASS,
    .keys = {"ignore_index", "weight"},
    .infer = infer,
    .denominator = tdm__classes_denominator,
    .run = run,
};
