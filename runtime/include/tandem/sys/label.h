/* The labels that a loss over classes gets. A plain label is a class, or the loss's `ignore_index`. The label of a
 * sample that was mixed from two packs both classes and the weight of the second:
 *
 *      bit  63          0
 *      bit  62          1
 *      bits 42 to 61    the first class
 *      bits 22 to 41    the second class
 *      bits  0 to 21    the weight
 *
 * The weight is a multiple of 2^-22 between 0 and 1, so it and 1 minus it are exact as floats. For the host and for
 * CUDA kernels; pure functions. */
#ifndef TANDEM_SYS_LABEL_H
#define TANDEM_SYS_LABEL_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/status.h>

#ifdef __CUDACC__
#define TDM_LABEL_CALL __host__ __device__ static inline
#else
#define TDM_LABEL_CALL static inline
#endif

TDM_BEGIN_DECLS

#define TDM_LABEL_CLASSES (INT64_C(1) << 20) /* classes of mixed labels are below */
#define TDM_LABEL_PARTS (INT64_C(1) << 22)   /* the weight is counted in parts of 1 */
#define TDM_LABEL_MIXED (INT64_C(1) << 62)   /* all labels from here on are mixed */

typedef struct tdm_label {
    int64_t first, second; /* plain: both are the label */
    double weight;         /* of the second; 0: plain */
} tdm_label;

/* Packs two classes from 0 to TDM_LABEL_CLASSES - 1. `parts`, from 1 to TDM_LABEL_PARTS - 1, is the weight of the
 * second. The label of two equal classes is plain. */
TDM_LABEL_CALL int64_t tdm_label_pack(int64_t first, int64_t second, int64_t parts) {
    return first == second ? first : TDM_LABEL_MIXED | first << 42 | second << 22 | parts;
}

TDM_LABEL_CALL tdm_label tdm_label_unpack(int64_t label) {
    tdm_label plain = {label, label, 0.0};
    tdm_label mixed = {label >> 42 & (TDM_LABEL_CLASSES - 1), label >> 22 & (TDM_LABEL_CLASSES - 1),
                       (double)(label & (TDM_LABEL_PARTS - 1)) / (double)TDM_LABEL_PARTS};
    return label >= TDM_LABEL_MIXED ? mixed : plain;
}

/* Are both classes from 0 to `classes` - 1? */
TDM_LABEL_CALL bool tdm_label_fits(tdm_label label, int64_t classes) {
    return label.first >= 0 && label.first < classes && label.second >= 0 && label.second < classes;
}

/* The class that counts as the right answer; the first if both weigh the same. */
TDM_LABEL_CALL int64_t tdm_label_heavier(tdm_label label) {
    return label.weight > 0.5 ? label.second : label.first;
}

TDM_END_DECLS
#undef TDM_LABEL_CALL
#endif
