/* See fake_convolution.h. */
#include "fake_convolution.h"

#include <algorithm>

namespace fake {

int64_t out_size(const convolution &c, size_t axis) {
    const int64_t kernel = c.how.dilation[axis] * (c.w.dim[H + axis] - 1) + 1;
    return (c.x.dim[H + axis] + 2 * c.how.pad[axis] - kernel) / c.how.stride[axis] + 1;
}

/* FLOAT_CONFIG and PSEUDO_BFLOAT16_CONFIG of the tables under cudnnConvolutionForward, cudnnConvolutionBackwardData and
 * cudnnConvolutionBackwardFilter: x, w and y of one type, sums in float. */
cudnnStatus_t check(const convolution &c) {
    if (!c.how.set || c.x.dim[N] == 0 || c.w.dim[K] == 0 || c.y.dim[N] == 0) return CUDNN_STATUS_BAD_PARAM;
    if (c.x.kind != c.w.kind || c.x.kind != c.y.kind) return CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
    if (c.how.mode != CUDNN_CROSS_CORRELATION) return CUDNN_STATUS_NOT_SUPPORTED;
    if (c.x.dim[C] != c.w.dim[C] * c.how.groups || c.w.dim[K] % c.how.groups != 0) {
        return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
    }
    if (c.y.dim != std::array<int64_t, 4>{c.x.dim[N], c.w.dim[K], out_size(c, 0), out_size(c, 1)}) {
        return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
    }
    return CUDNN_STATUS_SUCCESS;
}

/* Packed n c h w, rounded as the multiplier takes it. */
static std::vector<float> packed(const void *from, const shape4 &s, cudnnMathType_t math) {
    const int bits = math == CUDNN_FMA_MATH ? 23 : math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION ? 7 : 10;
    std::vector<float> to;
    to.reserve(static_cast<size_t>(s.dim[N] * s.dim[C] * s.dim[H] * s.dim[W]));
    for (int64_t n = 0; n < s.dim[N]; n++)
        for (int64_t c = 0; c < s.dim[C]; c++)
            for (int64_t h = 0; h < s.dim[H]; h++)
                for (int64_t w = 0; w < s.dim[W]; w++) {
                    to.push_back(fake::rounded(fake::number_at(from, s.kind, at(s, n, c, h, w)), bits));
                }
    return to;
}

/* The outputs along w that tap s of the kernel reads inside of x: from <= q < to, x's column is q * stride + offset. */
struct columns {
    int64_t from, to, offset;
};

static columns columns_of(const convolution &c, int64_t s) {
    const int64_t stride = c.how.stride[1], offset = s * c.how.dilation[1] - c.how.pad[1];
    const int64_t from = offset < 0 ? (-offset + stride - 1) / stride : 0;
    const int64_t room = c.x.dim[W] - offset;
    const int64_t to = room <= 0 ? 0 : std::min(c.y.dim[W], (room + stride - 1) / stride);
    return {from, std::max(from, to), offset};
}

/* Every pair of rows, one of x and one of y, that tap (r, s) of the filter of channels k and c joins:
 * body(first number of x's row, of y's row, the columns). */
template <class Body>
static void rows_of(const convolution &c, int64_t n, int64_t k, int64_t channel, int64_t r, int64_t s, Body body) {
    const columns span = columns_of(c, s);
    const int64_t x_plane = (n * c.x.dim[C] + channel) * c.x.dim[H], y_plane = (n * c.y.dim[C] + k) * c.y.dim[H];
    for (int64_t p = 0; p < c.y.dim[H]; p++) {
        const int64_t h = p * c.how.stride[0] + r * c.how.dilation[0] - c.how.pad[0];
        if (h < 0 || h >= c.x.dim[H]) continue;
        body((x_plane + h) * c.x.dim[W], (y_plane + p) * c.y.dim[W], span);
    }
}

/* Every tap of the filter: body(n-independent: k, channel of x, r, s, index into the packed filter). */
template <class Body> static void taps_of(const convolution &c, Body body) {
    const int64_t each = c.w.dim[K] / c.how.groups;
    int64_t index = 0;
    for (int64_t k = 0; k < c.w.dim[K]; k++)
        for (int64_t own = 0; own < c.w.dim[C]; own++)
            for (int64_t r = 0; r < c.w.dim[H]; r++)
                for (int64_t s = 0; s < c.w.dim[W]; s++) body(k, k / each * c.w.dim[C] + own, r, s, index++);
}

std::vector<double> zeros(const shape4 &s) {
    return std::vector<double>(static_cast<size_t>(s.dim[N] * s.dim[C] * s.dim[H] * s.dim[W]));
}

std::vector<double> forward_sums(const convolution &c, const void *x_at, const void *w_at) {
    const std::vector<float> x = packed(x_at, c.x, c.how.math), w = packed(w_at, c.w, c.how.math);
    std::vector<double> y = zeros(c.y);
    const int64_t stride = c.how.stride[1];
    for (int64_t n = 0; n < c.x.dim[N]; n++) {
        taps_of(c, [&](int64_t k, int64_t channel, int64_t r, int64_t s, int64_t index) {
            const double factor = static_cast<double>(w[static_cast<size_t>(index)]);
            rows_of(c, n, k, channel, r, s, [&](int64_t x_row, int64_t y_row, const columns &span) {
                const float *from = x.data() + x_row + span.offset;
                double *to = y.data() + y_row;
                for (int64_t q = span.from; q < span.to; q++) to[q] += factor * static_cast<double>(from[q * stride]);
            });
        });
    }
    return y;
}

std::vector<double> data_sums(const convolution &c, const void *w_at, const void *dy_at) {
    const std::vector<float> w = packed(w_at, c.w, c.how.math), dy = packed(dy_at, c.y, c.how.math);
    std::vector<double> dx = zeros(c.x);
    const int64_t stride = c.how.stride[1];
    for (int64_t n = 0; n < c.x.dim[N]; n++) {
        taps_of(c, [&](int64_t k, int64_t channel, int64_t r, int64_t s, int64_t index) {
            const double factor = static_cast<double>(w[static_cast<size_t>(index)]);
            rows_of(c, n, k, channel, r, s, [&](int64_t x_row, int64_t y_row, const columns &span) {
                const float *from = dy.data() + y_row;
                double *to = dx.data() + x_row + span.offset;
                for (int64_t q = span.from; q < span.to; q++) to[q * stride] += factor * static_cast<double>(from[q]);
            });
        });
    }
    return dx;
}

std::vector<double> filter_sums(const convolution &c, const void *x_at, const void *dy_at) {
    const std::vector<float> x = packed(x_at, c.x, c.how.math), dy = packed(dy_at, c.y, c.how.math);
    std::vector<double> dw = zeros(c.w);
    const int64_t stride = c.how.stride[1];
    for (int64_t n = 0; n < c.x.dim[N]; n++) {
        taps_of(c, [&](int64_t k, int64_t channel, int64_t r, int64_t s, int64_t index) {
            double sum = 0;
            rows_of(c, n, k, channel, r, s, [&](int64_t x_row, int64_t y_row, const columns &span) {
                const float *left = x.data() + x_row + span.offset, *right = dy.data() + y_row;
                for (int64_t q = span.from; q < span.to; q++) {
                    sum += static_cast<double>(left[q * stride]) * static_cast<double>(right[q]);
                }
            });
            dw[static_cast<size_t>(index)] += sum;
        });
    }
    return dw;
}

} // namespace fake
