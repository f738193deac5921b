/* adaptive_maxpool2d: reference kernel, for every layout. As in maxpool2d the first maximum gets the whole gradient, a
 * NaN wins over everything, and of several NaN the last one wins. The winner's index in its plane is saved. */
#include <string.h>

#include "ops/adaptive_maxpool2d/adaptive_maxpool2d.h"
#include "ops/ops.h"
#include "runtime/base/planes.h"

/* The maxima of the window in the plane `from`, of all its channels. */
static void find_largest(const tdm_planes *x, tdm_average_range rows, tdm_average_range columns, const float *from,
                         float *best, int32_t *winner) {
    const int64_t first = rows.begin * x->width + columns.begin;
    for (int64_t j = 0; j < x->inner; j++) {
        best[j] = from[first * x->inner + j];
        if (winner != NULL) winner[j] = (int32_t)first;
    }
    for (int64_t row = rows.begin; row < rows.end; row++) {
        for (int64_t column = columns.begin; column < columns.end; column++) {
            const int64_t point = row * x->width + column;
            const float *v = from + point * x->inner;
            for (int64_t j = 0; j < x->inner; j++) {
                if (!(v[j] > best[j] || v[j] != v[j])) continue;
                best[j] = v[j];
                if (winner != NULL) winner[j] = (int32_t)point;
            }
        }
    }
}

static tdm_status forward(const tdm_kernel_args *args) {
    const tdm_planes x = tdm__planes_of(&args->desc->x[0], args->rows, args->desc->x_layout[0]);
    const tdm_planes y = tdm__planes_of(&args->desc->y, args->rows, args->desc->y_layout);
    int32_t *winner = args->training ? args->saved : NULL;
    const float *from = args->x[0];
    float *to = args->y;
    for (int64_t plane = 0; plane < y.count; plane++, from += x.height * x.width * x.inner) {
        for (int64_t p = 0; p < y.height; p++) {
            for (int64_t q = 0; q < y.width; q++, to += y.inner) {
                find_largest(&x, tdm__adaptive_range(p, x.height, y.height), tdm__adaptive_range(q, x.width, y.width),
                             from, to, winner);
                if (winner != NULL) winner += y.inner;
            }
        }
    }
    return TDM_OK;
}

/* dx[winner] += dy, in the order of the outputs */
static tdm_status backward(const tdm_kernel_args *args) {
    const tdm_planes x = tdm__planes_of(&args->desc->x[0], args->rows, args->desc->x_layout[0]);
    const tdm_planes y = tdm__planes_of(&args->desc->y, args->rows, args->desc->y_layout);
    const int64_t plane_count = x.height * x.width * x.inner;
    const int32_t *winner = args->saved;
    const float *dy = args->dy;
    float *dx = args->dx[0];
    memset(dx, 0, (size_t)(x.count * plane_count) * sizeof *dx);
    for (int64_t plane = 0; plane < y.count; plane++, dx += plane_count) {
        for (int64_t point = 0; point < y.height * y.width; point++, dy += y.inner, winner += y.inner)
            for (int64_t j = 0; j < y.inner; j++) dx[winner[j] * x.inner + j] += dy[j];
    }
    return TDM_OK;
}

TDM_REF_KERNEL(adaptive_maxpool2d, tdm__adaptive_maxpool2d_fits);
