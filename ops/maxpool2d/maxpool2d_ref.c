/* maxpool2d: reference kernel, for every layout.
 *
 * PyTorch's rule: the window is scanned in row-major order and a strictly larger value wins, so the first maximum gets
 * the whole gradient. A NaN wins over everything; of several NaN the last one wins. The winner's index within its
 * window is saved in one byte if the window has at most 255 points, else in an int32_t. */
#include <string.h>

#include "ops/maxpool2d/maxpool2d.h"
#include "ops/ops.h"

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const int64_t *y = desc->y.dim;
    fit->x_layout[0] = fit->y_layout = desc->x_layout[0];
    fit->saved_bytes =
        (size_t)(y[0] * y[1] * y[2] * y[3]) * (tdm__maxpool2d_fits_byte(desc->attrs) ? 1 : sizeof(int32_t));
    return true;
}

typedef struct {
    tdm_planes x, y;
    tdm_window window;
    bool small;
} pool;

static pool pool_of(const tdm_kernel_args *args) {
    const tdm_kernel_desc *desc = args->desc;
    const tdm_maxpool2d_attrs *attrs = desc->attrs;
    return (pool){.x = tdm__planes_of(&desc->x[0], args->rows, desc->x_layout[0]),
                  .y = tdm__planes_of(&desc->y, args->rows, desc->y_layout),
                  .window = tdm__pool_window(&attrs->pool),
                  .small = tdm__maxpool2d_fits_byte(attrs)};
}

/* The window of output (p,q). */
typedef struct {
    tdm_window_part rows, columns;
} clip;

static clip clip_of(const pool *g, int64_t p, int64_t q) {
    return (clip){tdm__window_part(&g->window, 0, p, g->x.height), tdm__window_part(&g->window, 1, q, g->x.width)};
}

static int64_t offset_of(const pool *g, const clip *c, int64_t row, int64_t column) {
    return (row - c->rows.corner) / g->window.dilation[0] * g->window.kernel[1] +
           (column - c->columns.corner) / g->window.dilation[1];
}

/* The maxima of `count` channels in the window, and where they are; `x` is the window's plane, from the first of these
 * channels on. */
static inline __attribute__((always_inline)) void find_largest(const pool *g, const clip *c, const float *x,
                                                               int64_t count, float *best, int32_t *winner) {
    const float *first = x + (c->rows.begin * g->x.width + c->columns.begin) * g->x.inner;
    memcpy(best, first, (size_t)count * sizeof *best);
    for (int64_t j = 0; j < count; j++) winner[j] = (int32_t)offset_of(g, c, c->rows.begin, c->columns.begin);
    const int64_t down = g->window.dilation[0], across = g->window.dilation[1];
    for (int64_t row = c->rows.begin; row < c->rows.end; row += down) {
        int32_t offset = (int32_t)offset_of(g, c, row, c->columns.begin);
        for (int64_t column = c->columns.begin; column < c->columns.end; column += across, offset++) {
            const float *v = x + (row * g->x.width + column) * g->x.inner;
            for (int64_t j = 0; j < count; j++) {
                const bool wins = (v[j] > best[j]) | (v[j] != v[j]);
                best[j] = wins ? v[j] : best[j];
                winner[j] = wins ? offset : winner[j];
            }
        }
    }
}

enum { TOGETHER = 16 }; /* channels: their winners stay in registers */

/* All channels of the output point whose first is element `at`. `saved` is NULL in evaluation. A constant `inner` lets
 * the compiler drop the loops over channels. */
static inline __attribute__((always_inline)) void forward_point(const pool *g, const clip *c, const float *x, float *y,
                                                                void *saved, int64_t at, const int64_t inner) {
    for (int64_t j = 0; j < inner; j += TOGETHER) {
        const int64_t count = inner - j < TOGETHER ? inner - j : TOGETHER;
        int32_t winner[TOGETHER];
        find_largest(g, c, x + j, count, y + at + j, winner);
        for (int64_t k = 0; saved != NULL && k < count; k++) {
            if (g->small)
                ((uint8_t *)saved)[at + j + k] = (uint8_t)winner[k];
            else
                ((int32_t *)saved)[at + j + k] = winner[k];
        }
    }
}

static tdm_status forward(const tdm_kernel_args *args) {
    pool g = pool_of(args);
    int64_t x_plane = g.x.height * g.x.width * g.x.inner, at = 0;
    void *saved = args->training ? args->saved : NULL;
    for (int64_t plane = 0; plane < g.y.count; plane++) {
        for (int64_t p = 0; p < g.y.height; p++) {
            for (int64_t q = 0; q < g.y.width; q++, at += g.y.inner) {
                clip c = clip_of(&g, p, q);
                if (g.y.inner == 1)
                    forward_point(&g, &c, args->x[0] + plane * x_plane, args->y, saved, at, 1);
                else
                    forward_point(&g, &c, args->x[0] + plane * x_plane, args->y, saved, at, g.y.inner);
            }
        }
    }
    return TDM_OK;
}

/* dx[winner] += dy, in the order of the outputs */
static tdm_status backward(const tdm_kernel_args *args) {
    pool g = pool_of(args);
    int64_t inner = g.x.inner, x_plane = g.x.height * g.x.width * inner, at = 0;
    memset(args->dx[0], 0, (size_t)(g.x.count * x_plane) * sizeof(float));
    for (int64_t plane = 0; plane < g.y.count; plane++) {
        float *dx = args->dx[0] + plane * x_plane;
        for (int64_t p = 0; p < g.y.height; p++) {
            for (int64_t q = 0; q < g.y.width; q++, at += inner) {
                clip c = clip_of(&g, p, q);
                for (int64_t j = 0; j < inner; j++) {
                    int64_t offset =
                        g.small ? ((const uint8_t *)args->saved)[at + j] : ((const int32_t *)args->saved)[at + j];
                    int64_t row = c.rows.corner + offset / g.window.kernel[1] * g.window.dilation[0];
                    int64_t column = c.columns.corner + offset % g.window.kernel[1] * g.window.dilation[1];
                    dx[(row * g.x.width + column) * inner + j] += args->dy[at + j];
                }
            }
        }
    }
    return TDM_OK;
}

TDM_REF_KERNEL(maxpool2d, fits);
