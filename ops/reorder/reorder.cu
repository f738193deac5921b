/* reorder on CUDA, between PLAIN and NHWC: each row is the transposition of a matrix [channels, points]. Tiles in
 * shared memory make both reads and writes contiguous. Matrices too narrow for tiles are transposed element by element.
 */
#include "runtime/backends/cuda/kit/kernel.h"

using namespace tdm_cuda;

namespace {

static constexpr int64_t SLIM = 16;

/* `count` matrices from [height, width] to [width, height]. */
template <class Number> struct transposition {
    const Number *from;
    Number *to;
    int64_t count, height, width;
};

/* A tile is SIZE x SIZE elements; its rows have the number of bytes that a warp moves best. A block moves ROWS rows at
 * a time. 4 bytes follow each row, so that the elements of a column are in different banks. */
template <class Number> struct tile {
    static constexpr int SIZE = 128 / (int)sizeof(Number), ROWS = THREADS / SIZE, GAP = 4 / (int)sizeof(Number);
    Number at[SIZE][SIZE + GAP];
};

template <class Number>
__global__ void transpose_tiles(transposition<Number> t, divider across, divider down, int64_t tiles) {
    static constexpr int SIZE = tile<Number>::SIZE, ROWS = tile<Number>::ROWS;
    __shared__ tile<Number> room;
    const int x = (int)threadIdx.x % SIZE, y = (int)threadIdx.x / SIZE;
    for (int64_t i = blockIdx.x; i < tiles; i += gridDim.x) {
        int64_t matrix = i;
        const int64_t left = split(across, &matrix) * SIZE, top = split(down, &matrix) * SIZE;
        const Number *from = t.from + matrix * t.height * t.width;
        Number *to = t.to + matrix * t.height * t.width;
        for (int k = 0; k < SIZE; k += ROWS)
            if (top + k + y < t.height && left + x < t.width)
                room.at[k + y][x] = from[(top + k + y) * t.width + left + x];
        __syncthreads();
        for (int k = 0; k < SIZE; k += ROWS)
            if (left + k + y < t.width && top + x < t.height)
                to[(left + k + y) * t.height + top + x] = room.at[x][k + y];
        __syncthreads();
    }
}

/* Works in the order of the writes. The reads of a warp are then at most SLIM contiguous pieces, or whole matrices. */
template <class Number> __global__ void transpose_slim(transposition<Number> t, divider height, divider width) {
    const int64_t total = t.count * t.height * t.width, matrix = t.height * t.width;
    for (int64_t i = thread_index(); i < total; i += thread_count()) {
        int64_t n = i;
        const int64_t row = split(height, &n), column = split(width, &n); /* in the source */
        t.to[i] = t.from[n * matrix + row * t.width + column];
    }
}

template <class Number> tdm_status transpose(tdm_cuda_device *device, const transposition<Number> &t) {
    static constexpr int SIZE = tile<Number>::SIZE;
    if (t.height < SLIM || t.width < SLIM) {
        const int64_t total = t.count * t.height * t.width;
        TDM_LAUNCH(transpose_slim<Number>, blocks_for(total), THREADS, device->stream, t, divider_of(t.height),
                   divider_of(t.width));
        return TDM_OK;
    }
    const int64_t across = ceil_div(t.width, SIZE), down = ceil_div(t.height, SIZE), tiles = t.count * across * down;
    TDM_LAUNCH(transpose_tiles<Number>, blocks_for(tiles, 1), THREADS, device->stream, t, divider_of(across),
               divider_of(down), tiles);
    return TDM_OK;
}

bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    fit->x_layout[0] = desc->x_layout[0];
    fit->y_layout = desc->y_layout;
    return takes(desc->x_layout[0]) && takes(desc->y_layout);
}

template <class Number>
tdm_status reorder(const tdm_kernel_args *args, float *to, tdm_layout to_layout, const float *from) {
    const int64_t *dim = args->desc->y.dim, channels = dim[1], points = dim[2] * dim[3];
    const bool to_nhwc = to_layout == TDM_LAYOUT_NHWC;
    const transposition<Number> t = {as<Number>(from), as<Number>(to), args->rows, to_nhwc ? channels : points,
                                     to_nhwc ? points : channels};
    return transpose(tdm__cuda_device(args->device), t);
}

template <class Number> tdm_status forward(const tdm_kernel_args *args) {
    return reorder<Number>(args, args->y, args->desc->y_layout, args->x[0]);
}

template <class Number> tdm_status backward(const tdm_kernel_args *args) {
    return reorder<Number>(args, args->dx[0], args->desc->x_layout[0], args->dy);
}

} /* namespace */

TDM_CUDA_KERNEL(reorder, fits);
