/* What losses over classes share: weights of the classes, softmax, and the largest output. log_softmax is of it. */
#ifndef TDM_OPS_LOSS_CLASSES_H
#define TDM_OPS_LOSS_CLASSES_H

#include <math.h>

#include <tandem/sys/label.h>
#include <tandem/sys/op.h>

#include "runtime/base/host_device.h"

/* loss.weight, where the kernel reads it; count 0: all are 1. */
typedef struct tdm_class_weights {
    int count;
    const double *item;
} tdm_class_weights;

/* Narrowed, as PyTorch's tensor of floats has it. */
TDM_HOST_DEVICE static inline double tdm__class_weight(const tdm_class_weights *weights, int64_t c) {
    return weights->count > 0 ? (double)(float)weights->item[c] : 1.0;
}

static inline tdm_class_weights tdm__class_weights(const tdm_loss_args *args) {
    const tdm_class_weights weights = {args->section->weight.count,
                                       args->weight != NULL ? args->weight : args->section->weight.item};
    return weights;
}

/* Of all of them together, in the host's memory. */
static inline double tdm__class_weights_total(const tdm_loss_section *section, int64_t width) {
    const tdm_numbers *weight = &section->weight;
    double total = weight->count > 0 ? 0.0 : (double)width;
    for (int i = 0; i < weight->count; i++) total += (double)(float)weight->item[i];
    return total;
}

#ifndef __cplusplus
/* The checks of an output that has a number for each class. */
tdm_status tdm__classes_infer(const char *loss, const tdm_loss_section *section, const tdm_shape *output,
                              const tdm_origin *origin, int64_t *classes);
/* The weights of the labels that count; without weights, how many count. A label out of range counts 0: `run` refuses
 * it. */
double tdm__classes_denominator(const tdm_loss_section *section, int64_t rows, int64_t width, const void *target);
/* row: of these args. */
tdm_status tdm__classes_wrong_label(const char *loss, const tdm_loss_args *args, tdm_label label, int64_t row);

/* The values of a row that all of its classes share. */
typedef struct tdm_softmax_row {
    const float *y;
    int64_t width;
    float max, log_total; /* log_total: log(sum exp(y - max)) */
} tdm_softmax_row;

/* Targets that are not one class: q = (kept t + spread) weight, for each class. t NULL: spread weight. */
typedef struct tdm_class_targets {
    const float *t;
    double kept, spread;
    tdm_class_weights weights;
} tdm_class_targets;

/* Loops over a row, for several instruction sets (classes_lanes.c). What is written may lie on what is read. */
typedef struct tdm_class_lanes {
    float (*max)(const float *y, int64_t width); /* NaN if there is one */
    /* Also adds 1 to *hits if tdm__largest is `c`. */
    float (*max_and_hit)(const float *y, int64_t width, int64_t c, int64_t *hits);
    double (*exp_sum)(const float *y, int64_t width, float max);
    void (*log_softmax)(float *out, const tdm_softmax_row *row);
    void (*softmax)(float *out, const tdm_softmax_row *row, float factor);
    /* Sums of q times a class's loss, and of q */
    void (*expected)(const tdm_softmax_row *row, const tdm_class_targets *of, double *loss, double *share);
    void (*take_targets)(float *dy, int64_t width, const tdm_class_targets *of, float seed); /* dy -= q seed */
    /* dx = dy - softmax sum dy, where y is log softmax */
    void (*log_softmax_gradient)(float *dx, const float *y, const float *dy, int64_t width);
} tdm_class_lanes;
extern const tdm_class_lanes tdm__class_lanes_ref, tdm__class_lanes_avx2, tdm__class_lanes_avx512;

const tdm_class_lanes *tdm__class_lanes(void); /* for this processor */

static inline tdm_softmax_row tdm__softmax_row(const tdm_class_lanes *lanes, const float *y, int64_t width, float max) {
    return (tdm_softmax_row){y, width, max, (float)log(lanes->exp_sum(y, width, max))};
}

/* -log softmax(y)_c */
static inline float tdm__softmax_loss(const tdm_softmax_row *row, int64_t c) {
    return -((row->y[c] - row->max) - row->log_total);
}
#endif

#endif
