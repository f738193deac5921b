/* linear_row_lanes.h has the bits of oneDNN's sgemm, whose place it takes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* All but every `kept`-th step of x are zeros, of both signs; 0: all are. */
static void check_steps(int64_t in, int64_t out, int64_t kept) {
    static float x[MOST_IN], w[MOST_IN * MOST_OUT];
    int32_t at[MOST_IN / 16 + 1];
    float y[MOST_OUT], wanted[MOST_OUT];
    uint32_t seed = (uint32_t)(in * out + kept);
    int64_t steps = 0;
    for (int64_t i = 0; i < in; i++) {
        x[i] = number(&seed);
        if (kept == 0 || i / 16 % kept != 0) x[i] = i % 3 == 0 ? -0.0f : 0.0f;
    }
    for (int64_t i = 0; i < in * out; i++) w[i] = number(&seed);
    w[0] = 1e-30f, x[0] = kept == 0 ? 0.0f : -1e-30f; /* a product that is rounded to -0 */
    for (int64_t i = 0; i < in / 16; i++) steps += kept > 0 && i % kept == 0;
    const tdm_linear_steps list = {at, lanes()->list_steps(at, x, in)};
    CHECK_INT(list.count, steps);
    for (int64_t o = 0; o < out; o++) y[o] = NAN, wanted[o] = NAN;
    lanes()->row(wanted, x, w, in, 0, out);
    lanes()->row_of_steps(y, x, w, in, 0, out / 3, &list);
    lanes()->row_of_steps(y, x, w, in, out / 3, out, &list);
    CHECK(memcmp(y, wanted, (size_t)out * sizeof *y) == 0);
}

TEST(steps_of_zeros_change_no_bit) {
    static const int64_t ins[] = {5, 16, 31, 48, 255, 256, 511, MOST_IN};
    for (size_t i = 0; i < sizeof ins / sizeof ins[0]; i++)
        for (int64_t out = 1; out <= MOST_OUT; out += 1 + out / 4)
            for (int64_t kept = 0; kept < 5; kept++) check_steps(ins[i], out, kept);
}

TEST(weights_that_are_not_finite_are_seen) {
    float w[70];
    for (int i = 0; i < 70; i++) w[i] = i % 2 == 0 ? 3e38f : -3e38f;
    CHECK(lanes()->are_finite(w, 70));
    for (int i = 0; i < 70; i++) {
        const float kept = w[i];
        w[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
        CHECK(!lanes()->are_finite(w, 70));
        w[i] = kept;
    }
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

TEST_MAIN(RUN(has_the_bits_of_sgemm); RUN(steps_of_zeros_change_no_bit); RUN(weights_that_are_not_finite_are_seen);
          RUN(lets_nan_and_infinity_through);)
