/* predict.c - probabilities; outputs that are not finite; see predict.h. */
#include "tools/inference/predict.h"

#include <math.h>
#include <stdlib.h>

#include "tools/terminal/term.h"

void predict_softmax(const float *y, int64_t width, double *out) {
    double most = y[predict_best(y, width)], sum = 0.0;
    for (int64_t i = 0; i < width; i++) sum += out[i] = exp((double)y[i] - most);
    for (int64_t i = 0; i < width; i++) out[i] /= sum;
}

void predict_look(prediction *p, const char *name, const float *y) {
    int64_t i = 0;
    while (i < p->width && isfinite(y[i])) i++;
    if (i == p->width) return;
    if (p->not_finite++ > 0) return;
    p->first = text_printable(name, false);
    p->which = text_format("output %lld is %s", (long long)i, isnan(y[i]) ? "NaN" : "infinite");
}

/* The rows are written anyway, because they are what the model computes. */
void predict_tell_not_finite(prediction *p) {
    if (p->not_finite > 0)
        term_mark(TERM_YELLOW, "", "tandem: warning:",
                  "%lld of the samples have outputs that are NaN or infinite; the first is %s: %s; look at the weights "
                  "with `tandem ckpt verify`, and at the sample with `tandem data check`",
                  (long long)p->not_finite, p->first, p->which);
    free(p->first);
    free(p->which);
}
