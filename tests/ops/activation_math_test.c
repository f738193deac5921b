/* exp, tanh and the normal distribution of ops/activation_math.h against the C library's in double, over floats of
 * every size; and the loops of activations for each instruction set, which give the bits of the formula. */
#include "ops/activation_lanes.h"
#include "ops/activations.h" /* generated from ops.def */
#include "tests/support/tdm_test.h"

/* In units of the last place of the true value, rounded to float. */
static double error_of(float got, double want) {
    int exponent;
    if (isinf((float)want) || isinf(got)) return (float)want == got ? 0.0 : INFINITY;
    (void)frexp(want, &exponent);
    return fabs((double)got - want) / ldexp(1.0, exponent - 24 < -149 ? -149 : exponent - 24);
}

static double worst(float (*function)(float), double (*want)(double)) {
    double most = 0.0;
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += 4099) {
        const float x = tdm__float_of_bits((uint32_t)bits);
        const double error = isnan(x) ? 0.0 : error_of(function(x), want((double)x));
        if (!(error <= most)) most = error;
    }
    return most;
}

/* In units of 2^-24, the last place of the numbers below 1. */
static double worst_distance(float (*function)(float), double (*want)(double)) {
    double most = 0.0;
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += 4099) {
        const float x = tdm__float_of_bits((uint32_t)bits);
        const double error = isnan(x) ? 0.0 : fabs((double)function(x) - want((double)x)) * 16777216.0;
        if (!(error <= most)) most = error;
    }
    return most;
}

static double normal(double x) {
    return 0.5 * erfc(-x / sqrt(2.0));
}

static double normal_density(double x) {
    return exp(-0.5 * x * x) / sqrt(2.0 * acos(-1.0));
}

TEST(errors) {
    const double of_exp = worst(tdm__expf, exp), of_tanh = worst(tdm__tanhf, tanh);
    const double of_normal = worst_distance(tdm__normalf, normal);
    const double of_density = worst_distance(tdm__normal_densityf, normal_density);
    printf("       exp %.3f, tanh %.3f units in the last place; normal %.3f, density %.3f * 2^-24\n", of_exp, of_tanh,
           of_normal, of_density);
    CHECK(of_exp <= 1.1 && of_tanh <= 1.4 && of_normal <= 1.4 && of_density <= 1.0);
}

TEST(limits) {
    CHECK(isnan(tdm__expf(NAN)) && isnan(tdm__tanhf(NAN)) && isnan(tdm__normalf(NAN)));
    CHECK(isnan(tdm__normal_densityf(NAN)));
    CHECK(tdm__expf(INFINITY) == INFINITY && tdm__expf(-INFINITY) == 0.0f && tdm__expf(0.0f) == 1.0f);
    CHECK(tdm__tanhf(INFINITY) == 1.0f && tdm__tanhf(-INFINITY) == -1.0f);
    CHECK(tdm__bits_of_float(tdm__tanhf(-0.0f)) == 0x80000000u);
    CHECK(tdm__normalf(INFINITY) == 1.0f && tdm__normalf(-INFINITY) == 0.0f && tdm__normalf(0.0f) == 0.5f);
    CHECK(tdm__normalf(6.0f) == 1.0f && tdm__normalf(-10.0f) == 0.0f && tdm__normal_densityf(-INFINITY) == 0.0f);
}

/* ---- instruction sets ---- */

enum { COUNT = 5003 };

typedef struct formula {
    const char *name;
    float (*value)(float x, float p);
    float (*gradient)(float v, float dy, float p);
    const tdm_activation_lanes *lanes[3]; /* by tdm_isa_level */
} formula;

#if defined(__x86_64__)
#define LANES_OF(op) \
    { &tdm__##op##_lanes_ref, &tdm__##op##_lanes_avx2, &tdm__##op##_lanes_avx512 }
#else
#define LANES_OF(op) \
    { &tdm__##op##_lanes_ref }
#endif
#define LANES(op) TDM_LANES_TABLES(tdm_activation_lanes, tdm__##op##_lanes);
#define FORMULA(op) {#op, tdm__##op, tdm__##op##_gradient, LANES_OF(op)},
TDM_ACTIVATIONS(LANES)
static const formula formulas[] = {TDM_ACTIVATIONS(FORMULA)};

static void check_lanes(const formula *f, float p, const tdm_activation_lanes *lanes, const float *x, const float *dy) {
    static float y[COUNT], dx[COUNT];
    lanes->forward(x, p, y, COUNT);
    lanes->backward(x, dy, p, dx, COUNT);
    for (int i = 0; i < COUNT; i++) {
        const float want = f->value(x[i], p), slope = f->gradient(x[i], dy[i], p);
        if (memcmp(&want, &y[i], sizeof want) == 0 && memcmp(&slope, &dx[i], sizeof slope) == 0) continue;
        fprintf(stderr, "%s (%g) of %.9g: %.9g, wanted %.9g; dx %.9g, wanted %.9g\n", f->name, (double)p, (double)x[i],
                (double)y[i], (double)want, (double)dx[i], (double)slope);
        tdm_test_failures++;
        return;
    }
}

/* p is the attribute of those that have one: a number, or which of two formulas. */
TEST(equal_bits_on_every_instruction_set) {
    static const float p[] = {0.0f, 0.3f, 1.0f};
    static float x[COUNT], dy[COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)(i - COUNT / 2) * (i % 3 == 0 ? 0.037f : 0.0021f);
        dy[i] = (float)(i * 7919 % 1009 - 500) / 300.0f;
    }
    x[7] = INFINITY, x[8] = -INFINITY, x[9] = -0.0f, x[10] = 1e-42f, x[11] = 3e38f, x[12] = -3e38f;
    for (const formula *f = formulas; f < formulas + sizeof formulas / sizeof *formulas; f++)
        for (int isa = 0; isa <= (int)tdm__isa() && isa < 3 && f->lanes[isa] != NULL; isa++)
            for (int k = 0; k < 3; k++) check_lanes(f, p[k], f->lanes[isa], x, dy);
}

TEST_MAIN(RUN(errors); RUN(limits); RUN(equal_bits_on_every_instruction_set);)
