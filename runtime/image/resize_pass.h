/* The two passes of a resize, for resize.c. */
#ifndef TDM_IMAGE_RESIZE_PASS_H
#define TDM_IMAGE_RESIZE_PASS_H

#include <tandem/sys/image.h>

/* Weights are fixed-point numbers of so many bits; a byte times a weight, and the sum of all, fit in an int. */
enum { TDM_AXIS_BITS = 32 - 8 - 2 };

/* Weights for kernels that multiply four bytes at once. `digits` holds, for four outputs and four inputs, the weights'
 * lowest digits (input by input of the first output, then of the next), then the middle ones, then the highest: a
 * weight is d0 + 256 d1 + 65536 d2, each from -128 to 127. Such blocks follow each other by inputs, then by outputs.
 * All outputs have 4 * `blocks` inputs from from[i] on; those beyond count[i] weigh 0. */
typedef struct tdm_fours {
    const signed char *digits;
    const int *from;
    int blocks; /* 0: there are none */
    int reach;  /* from[i + 3] - from[i] is at most this, i a multiple of 4 */
} tdm_fours;
enum {
    TDM_FOUR = 4,
    TDM_DIGITS = 3,
    TDM_FOURS_BLOCK = TDM_FOUR * TDM_FOUR * TDM_DIGITS,
    TDM_FOURS_REACH = 64 / 3 - TDM_FOUR /* pixels of four outputs lie within 64 bytes */
};

/* The weights of one axis: output i takes `count[i]` inputs from first[i] on, with `weight + i * most`. */
typedef struct tdm_axis {
    const int *first, *count, *weight;
    int size, most;
    tdm_fours fours;
} tdm_axis;

/* Row y of the output is made of row first_row + y of the input. */
void tdm__resize_across(const tdm_pixels *in, const tdm_pixels *out, const tdm_axis *axis, int first_row);
/* The input begins with row first_row of those that the axis counts. */
void tdm__resize_down(const tdm_pixels *in, const tdm_pixels *out, const tdm_axis *axis, int first_row);

/* The same passes with AVX512-VNNI, for axes with fours; `across` is for three channels and reaches to TDM_FOURS_REACH;
 * it reads up to 64 bytes beyond a pixel. NULL: this processor has none. */
typedef struct tdm_resize_passes {
    void (*across)(const tdm_pixels *in, const tdm_pixels *out, const tdm_axis *axis, int first_row);
    void (*down)(const tdm_pixels *in, const tdm_pixels *out, const tdm_axis *axis, int first_row);
} tdm_resize_passes;
const tdm_resize_passes *tdm__resize_vnni(void);

#endif
