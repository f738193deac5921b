/* Losses that compare each output with a float, and take the mean over all elements. loss/<loss>/<loss>.h has the
 * formula as two functions of one element,
 *     double tdm__<loss>(float y, float t, float p)                      the loss
 *     float tdm__<loss>_gradient(float y, float t, float p, float seed)  seed times its slope
 * where p is the setting of the element's column: see tdm_column_settings. The CPU's kernel is the macro below, CUDA's
 * that of value_loss_cuda.h. A row is summed in double. */
#ifndef TDM_OPS_VALUE_LOSS_H
#define TDM_OPS_VALUE_LOSS_H

#include <tandem/sys/op.h>

#include "runtime/base/host_device.h"

/* A setting with a number for every column, where the kernel reads it, or one for all. */
typedef struct tdm_column_settings {
    float all;
    const double *item; /* NULL: `all` */
} tdm_column_settings;

TDM_HOST_DEVICE static inline float tdm__column_setting(const tdm_column_settings *s, int64_t column) {
    return s->item != NULL ? (float)s->item[column] : s->all;
}

static inline tdm_column_settings tdm__one_setting(double value) {
    const tdm_column_settings one = {(float)value, NULL};
    return one;
}

#define TDM_VALUE_LOSS_RUN(loss, settings)                                                                          \
    static double denominator(const tdm_loss_section *section, int64_t rows, int64_t width, const void *target) {   \
        (void)section, (void)target;                                                                                \
        return (double)(rows * width);                                                                              \
    }                                                                                                               \
    static tdm_status run(const tdm_loss_args *args, double *row_loss) {                                            \
        const tdm_column_settings p = (settings);                                                                   \
        const float *target = args->target, seed = args->values->loss_seed;                                         \
        for (int64_t n = 0; n < args->rows; n++) {                                                                  \
            double row = 0;                                                                                         \
            for (int64_t c = 0; c < args->width; c++) {                                                             \
                const int64_t i = n * args->width + c;                                                              \
                const float of_column = tdm__column_setting(&p, c);                                                 \
                row += tdm__##loss(args->y[i], target[i], of_column);                                               \
                if (args->dy != NULL) args->dy[i] = tdm__##loss##_gradient(args->y[i], target[i], of_column, seed); \
            }                                                                                                       \
            row_loss[n] = row;                                                                                      \
        }                                                                                                           \
        return TDM_OK;                                                                                              \
    }

#endif
