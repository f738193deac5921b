/* Values that are normalised in segments, each contiguous in memory: layernorm and groupnorm.
 *
 * y = (x - mean) / sqrt(var + eps) * w[c] + b[c], with the mean and the biased variance of the element's own segment.
 */
#ifndef TDM_OPS_LAYERNORM_SEGMENTS_H
#define TDM_OPS_LAYERNORM_SEGMENTS_H

#include <tandem/sys/op.h>

/* Element i of segment s has the weight and bias number (s % groups) * channels + i / points. */
typedef struct tdm_segments {
    int64_t count;    /* of all rows */
    int64_t groups;   /* neighbouring segments with weights of their own */
    int64_t channels; /* in a segment */
    int64_t points;   /* of a channel in a segment */
} tdm_segments;

static inline int64_t tdm__segment_length(const tdm_segments *of) {
    return of->channels * of->points;
}

/* Mean and 1 / sqrt(var + eps) of each segment are saved as doubles for backward. */
static inline size_t tdm__segments_saved(const tdm_segments *of) {
    return (size_t)of->count * 2 * sizeof(double);
}

/* The reference kernels: each computes in double and rounds once per result. */
bool tdm__segments_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit, const tdm_segments *of);
tdm_status tdm__segments_forward(const tdm_kernel_args *args, const tdm_segments *of, double eps);
tdm_status tdm__segments_backward(const tdm_kernel_args *args, const tdm_segments *of);

/* fits, forward and backward of op `name`, by those of `segments`. tdm__<name>_segments gives its segments. */
#define TDM_SEGMENTS_PASSES(name, segments)                                                         \
    static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {                            \
        const tdm_segments of = tdm__##name##_segments(desc, desc->y.dim[0]);                       \
        return segments##_fits(desc, fit, &of);                                                     \
    }                                                                                               \
    static tdm_status forward(const tdm_kernel_args *args) {                                        \
        const tdm_segments of = tdm__##name##_segments(args->desc, args->rows);                     \
        return segments##_forward(args, &of, ((const tdm_##name##_attrs *)args->desc->attrs)->eps); \
    }                                                                                               \
    static tdm_status backward(const tdm_kernel_args *args) {                                       \
        const tdm_segments of = tdm__##name##_segments(args->desc, args->rows);                     \
        return segments##_backward(args, &of);                                                      \
    }

#endif
