/* The sums of convolutions, for the fake cuDNN: in double, over numbers rounded as the multiplier takes them. */
#ifndef CUDA_EMULATED_FAKE_CONVOLUTION_H
#define CUDA_EMULATED_FAKE_CONVOLUTION_H

#include <array>
#include <cstdint>
#include <vector>

#include <cudnn.h>

#include "fake_library.h"

namespace fake {

enum { N, C, H, W, K = 0 };

struct shape4 { /* n c h w of a tensor, k c h w of a filter; strides of the same */
    std::array<int64_t, 4> dim = {0, 0, 0, 0}, stride = {0, 0, 0, 0};
    fake::kind kind = fake::kind::floats;
};

inline int64_t at(const shape4 &s, int64_t n, int64_t c, int64_t h, int64_t w) {
    return n * s.stride[N] + c * s.stride[C] + h * s.stride[H] + w * s.stride[W];
}

struct manner {
    int64_t pad[2], stride[2], dilation[2], groups;
    cudnnConvolutionMode_t mode;
    cudnnMathType_t math;
    bool set;
};

struct convolution {
    shape4 x, w, y;
    manner how;
    bool steady;
    unsigned run;
    void *workspace;
    size_t workspace_bytes;
};

int64_t out_size(const convolution &c, size_t axis);
cudnnStatus_t check(const convolution &c);

/* Packed, in the order n c h w of what they are the sums of. */
std::vector<double> zeros(const shape4 &s);
std::vector<double> forward_sums(const convolution &c, const void *x, const void *w);
std::vector<double> data_sums(const convolution &c, const void *w, const void *dy);
std::vector<double> filter_sums(const convolution &c, const void *x, const void *dy);

} // namespace fake

#endif
