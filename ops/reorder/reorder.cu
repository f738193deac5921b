/* reorder on CUDA: between PLAIN and NHWC, row by row the transposition of a matrix [channels, points]. Through tiles
 * in shared memory, so that reads and writes are both of neighbours; matrices too slim for tiles number by number. */
#include "ops/cuda_module/kernel.h"

using namespace tdm_cuda;

namespace {

static constexpr int TILE = 32, TILE_ROWS = 8; /* a block has TILE x TILE_ROWS threads */
static constexpr int64_t SLIM = 16;

/* `count` matrices from [height, width] to [width, height]. */
struct transposition {
    const float *from;
    float *to;
    int64_t count, height, width;
};

__global__ void transpose_tiles(transposition t, divider across, divider down, int64_t tiles) {
    __shared__ float tile[TILE][TILE + 1]; /* + 1: columns lie in different banks */
    const int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
    for (int64_t i = blockIdx.x; i < tiles; i += gridDim.x) {
        int64_t matrix = i;
        const int64_t left = split(across, &matrix) * TILE, top = split(down, &matrix) * TILE;
        const float *from = t.from + matrix * t.height * t.width;
        float *to = t.to + matrix * t.height * t.width;
        for (int k = y; k < TILE; k += TILE_ROWS)
            if (top + k < t.height && left + x < t.width) tile[k][x] = from[(top + k) * t.width + left + x];
        __syncthreads();
        for (int k = y; k < TILE; k += TILE_ROWS)
            if (left + k < t.width && top + x < t.height) to[(left + k) * t.height + top + x] = tile[x][k];
        __syncthreads();
    }
}

/* In the order of the writes; the reads of a warp are then of at most SLIM stretches, or of whole matrices. */
__global__ void transpose_slim(transposition t, divider height, divider width) {
    const int64_t total = t.count * t.height * t.width, matrix = t.height * t.width;
    for (int64_t i = thread_index(); i < total; i += thread_count()) {
        int64_t n = i;
        const int64_t row = split(height, &n), column = split(width, &n); /* of the source */
        t.to[i] = t.from[n * matrix + row * t.width + column];
    }
}

tdm_status transpose(tdm_cuda_device *device, const transposition &t) {
    if (t.height < SLIM || t.width < SLIM) {
        const int64_t total = t.count * t.height * t.width;
        TDM_LAUNCH(transpose_slim, blocks_for(total), THREADS, device->stream, t, divider_of(t.height),
                   divider_of(t.width));
        return TDM_OK;
    }
    const int64_t across = ceil_div(t.width, TILE), down = ceil_div(t.height, TILE), tiles = t.count * across * down;
    TDM_LAUNCH(transpose_tiles, blocks_for(tiles, 1), TILE * TILE_ROWS, device->stream, t, divider_of(across),
               divider_of(down), tiles);
    return TDM_OK;
}

bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    fit->x_layout[0] = desc->x_layout[0];
    fit->y_layout = desc->y_layout;
    return takes(desc->x_layout[0]) && takes(desc->y_layout);
}

tdm_status reorder(const tdm_kernel_args *args, float *to, tdm_layout to_layout, const float *from) {
    const int64_t *dim = args->desc->y.dim, channels = dim[1], points = dim[2] * dim[3];
    const bool to_nhwc = to_layout == TDM_LAYOUT_NHWC;
    const transposition t = {from, to, args->rows, to_nhwc ? channels : points, to_nhwc ? points : channels};
    return transpose(tdm__cuda_device(args->device), t);
}

tdm_status forward(const tdm_kernel_args *args) {
    return reorder(args, args->y, args->desc->y_layout, args->x[0]);
}

tdm_status backward(const tdm_kernel_args *args) {
    return reorder(args, args->dx[0], args->desc->x_layout[0], args->dy);
}

} /* namespace */

const tdm_kernel tdm__reorder_cuda = {
    .op = "reorder",
    .variant = "cuda",
    .fits = fits,
    .open = NULL,
    .close = NULL,
    .forward = forward,
    .backward = backward,
};
