/* linear_row_lanes.h has the bits of oneDNN's sgemm, whose place it takes. */
#include <math.h>
#include <stdlib.h>

#include <oneapi/dnnl/dnnl.h>

#include "ops/linear/linear_row_lanes.h"
#include "tests/support/tdm_test.h"

enum { MOST_IN = 700, MOST_OUT = 40 };

static const tdm_linear_row_lanes *lanes(void) {
    const tdm_linear_row_lanes *found = TDM_LANES(tdm__linear_row_lanes);
    if (found->row == NULL) SKIP_PROGRAM("this processor has no AVX2");
    if (dnnl_version()->major != 2) SKIP_PROGRAM("the sgemm of this oneDNN is not replaced");
    return found;
}

/* Numbers of both signs and many sizes, zeros of both signs among them. */
static float number(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    const uint32_t bits = *state >> 8;
    if (bits % 17 == 0) return bits % 2 == 0 ? 0.0f : -0.0f;
    return ldexpf((float)bits / (float)(1 << 24) - 0.5f, (int)(bits % 23) - 11);
}

/* The bits are equal; false also if either wrote nothing. */
static bool are_equal(const float *x, const float *w, int64_t in, int64_t out, int64_t cut) {
    float y[MOST_OUT], wanted[MOST_OUT];
    for (int64_t o = 0; o < out; o++) y[o] = NAN, wanted[o] = NAN;
    if (dnnl_sgemm('N', 'T', 1, out, in, 1.0f, x, in, w, in, 0.0f, wanted, out) != dnnl_success) return false;
    lanes()->row(y, x, w, in, 0, cut);
    lanes()->row(y, x, w, in, cut, out);
    return memcmp(y, wanted, (size_t)out * sizeof *y) == 0;
}

static void check_size(int64_t in, int64_t out, uint32_t seed) {
    static float x[MOST_IN], w[MOST_IN * MOST_OUT];
    for (int64_t i = 0; i < in; i++) x[i] = number(&seed);
    for (int64_t i = 0; i < in * out; i++) w[i] = number(&seed);
    CHECK(are_equal(x, w, in, out, out / 3));
}

TEST(has_the_bits_of_sgemm) {
    static const int64_t ins[] = {15, 16, 17, 31, 32, 48, 63, 64, 65, 255, 256, 300, 511, MOST_IN};
    for (int64_t in = 1; in <= 14; in++) check_size(in, 9, (uint32_t)in);
    for (size_t i = 0; i < sizeof ins / sizeof ins[0]; i++)
        for (int64_t out = 1; out <= MOST_OUT; out += 1 + out / 4) check_size(ins[i], out, (uint32_t)(ins[i] * out));
}

TEST(lets_nan_and_infinity_through) {
    float x[19], w[2 * 19];
    uint32_t seed = 1;
    for (int i = 0; i < 19; i++) x[i] = number(&seed);
    for (int i = 0; i < 2 * 19; i++) w[i] = 1.0f;
    x[3] = INFINITY;
    w[19 + 18] = NAN;
    float y[2];
    lanes()->row(y, x, w, 19, 0, 2);
    CHECK(isinf(y[0]) && isnan(y[1]));
}

TEST_MAIN(RUN(has_the_bits_of_sgemm); RUN(lets_nan_and_infinity_through);)
