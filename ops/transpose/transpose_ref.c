/* transpose: reference kernel, also the one that runs on the CPU. */
#include "ops/ops.h"

enum { TILE = 16 }; /* floats of a line of the cache */

static inline void swap_tile(float *to, const float *from, int64_t rows, int64_t columns, int64_t height,
                             int64_t width) {
    for (int64_t column = 0; column < width; column++)
        for (int64_t row = 0; row < height; row++) to[column * rows + row] = from[row * columns + column];
}

/* to[n,column,row] = from[n,row,column], tile by tile, so that each line is read and written while it is in the
 * cache. */
static void swap(float *to, const float *from, int64_t count, int64_t rows, int64_t columns) {
    for (int64_t n = 0; n < count; n++, to += rows * columns, from += rows * columns) {
        for (int64_t row = 0; row < rows; row += TILE) {
            const int64_t height = rows - row < TILE ? rows - row : TILE;
            for (int64_t column = 0; column < columns; column += TILE)
                swap_tile(to + column * rows + row, from + row * columns + column, rows, columns, height,
                          columns - column < TILE ? columns - column : TILE);
        }
    }
}

static tdm_status forward(const tdm_kernel_args *args) {
    const int64_t *x = args->desc->x[0].dim;
    swap(args->y, args->x[0], args->rows, x[1], x[2]);
    return TDM_OK;
}

static tdm_status backward(const tdm_kernel_args *args) {
    const int64_t *y = args->desc->y.dim;
    swap(args->dx[0], args->dy, args->rows, y[1], y[2]);
    return TDM_OK;
}

TDM_REF_KERNEL(transpose, NULL);
