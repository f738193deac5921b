/* A look at series in two .npy files: what a configuration for them depends on. */
#ifndef TDM_DATA_SERIES_LOOK_H
#define TDM_DATA_SERIES_LOOK_H

#include <tandem/host.h>
#include <tandem/sys/field.h>

typedef struct tdm_series_seen {
    int64_t samples, dim[2]; /* of a sample; a file of [n, points] has samples of one channel */
    int64_t classes;         /* labels are 0 to classes - 1; 0: targets are numbers */
    int64_t width;           /* numbers of a target */
    int count;               /* of the first dimension where there is room for so many; else 1: all numbers together */
    double mean[TDM_LIST_MAX], stdev[TDM_LIST_MAX];
} tdm_series_seen;

/* Reads all samples. Integers in `y` are labels, floats are targets. TDM_E_DATA if there is nothing to learn from, or a
 * number is not finite. */
tdm_status tdm__series_look(const tdm_host *host, const char *x, const char *y, tdm_series_seen *out);

#endif
