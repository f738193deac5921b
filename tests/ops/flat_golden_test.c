/* The optimizers against PyTorch, to the bit, for every instruction set that this processor runs; and the variants of
 * the flat loops against each other. */
#include <stdbool.h>
#include <stdint.h>

#include "ops/flat/flat.h"
#include "runtime/base/bf16.h"
#include "runtime/base/f16.h"
#include "tests/ops/flat_case.h"
#include "tests/ops/flat_golden.h"
#include "runtime/base/isa.h"

static int variants(const tdm_flat_kernels *out[3]) {
    int count = 0;
    out[count++] = tdm_builtin_flat_ref();
#if defined(__x86_64__)
    if (tdm__isa() >= TDM_ISA_AVX2) out[count++] = &tdm__flat_avx2;
    if (tdm__isa() == TDM_ISA_AVX512) out[count++] = &tdm__flat_avx512;
#endif
    return count;
}

static void check_bits(const char *variant, const char *name, int step, const float *got, const uint32_t *want) {
    for (int i = 0; i < COUNT; i++) {
        uint32_t bits;
        memcpy(&bits, &got[i], sizeof bits);
        if (bits == want[i]) continue;
        tdm_test_failures++;
        fprintf(stderr, "%s, %s, step %d: parameter %d is 0x%08x, PyTorch has 0x%08x\n", variant, name, step, i, bits,
                want[i]);
        return;
    }
}

TEST(optimizers_equal_pytorch) {
    static const char *const names[] = {"ref", "avx2", "avx512"};
    for (tdm_isa isa = TDM_ISA_REF; isa <= tdm__isa(); isa++) {
        for (size_t i = 0; i < sizeof golden_cases / sizeof golden_cases[0]; i++) {
            const flat_case *c = &golden_cases[i];
            float p[COUNT], g[COUNT], state[3][COUNT] = {{0}};
            flat_run run = {&c->section, 0, p, g, {state[0], state[1], state[2]}, COUNT};
            optim_numbers(1, p, COUNT, 1.0f);
            for (int step = 1; step <= STEPS; step++) {
                optim_numbers(1000 + (uint32_t)step, g, COUNT, ldexpf(1.0f, step % 5 - 3));
                optimize(isa, &run);
                if (step == 1) check_bits(names[isa], c->name, 1, p, c->first);
            }
            check_bits(names[isa], c->name, STEPS, p, c->last);
        }
    }
}

/* ---- the other passes ---- */

enum { MANY = 5003 }; /* no multiple of any block */

static float tree(const float *const *source, int sources, int i) {
    if (sources == 1) return source[0][i];
    int left = 1;
    while (left * 2 < sources) left *= 2;
    return tree(source, left, i) + tree(source + left, sources - left, i);
}

TEST(sum_is_the_tree_and_in_place) {
    enum { SOURCES = 13 };
    static float source[SOURCES][MANY], out[MANY], want[MANY];
    const tdm_flat_kernels *flat[3];
    const int variant_count = variants(flat);
    const float *pointer[SOURCES];
    for (int s = 0; s < SOURCES; s++) pointer[s] = source[s];
    for (int k = 0; k < variant_count; k++) {
        for (int sources = 1; sources <= SOURCES; sources++) {
            for (int s = 0; s < SOURCES; s++) optim_numbers((uint32_t)(s + 7), source[s], MANY, s == 2 ? 1e6f : 1.0f);
            for (int i = 0; i < MANY; i++) want[i] = tree(pointer, sources, i);
            flat[k]->sum(out, pointer, sources, MANY);
            CHECK(memcmp(out, want, sizeof want) == 0);
            flat[k]->sum(source[sources - 1], pointer, sources, MANY);
            CHECK(memcmp(source[sources - 1], want, sizeof want) == 0);
        }
    }
}

TEST(clamp_keeps_what_is_not_a_number) {
    static float x[3][MANY];
    const tdm_flat_kernels *flat[3];
    const int variant_count = variants(flat);
    for (int k = 0; k < variant_count; k++) {
        optim_numbers(3, x[k], MANY, 1.7f);
        x[k][1] = INFINITY, x[k][2] = -INFINITY, x[k][3] = NAN;
        flat[k]->clamp(x[k], 0.75f, MANY);
        CHECK(x[k][1] == 0.75f && x[k][2] == -0.75f && isnan(x[k][3]));
        for (int i = 4; i < MANY; i++) CHECK(x[k][i] <= 0.75f && x[k][i] >= -0.75f);
        CHECK(memcmp(x[k], x[0], sizeof x[k]) == 0);
    }
}

TEST(scale_and_sum_squares_are_the_same_in_all_variants) {
    static float x[MANY], scaled[3][MANY];
    const tdm_flat_kernels *flat[3];
    const int variant_count = variants(flat);
    optim_numbers(3, x, MANY, 1.7f);
    for (size_t count = 0; count <= MANY; count = count < 70 ? count + 1 : count * 3 + 1) {
        const double want = flat[0]->sum_squares(x, count);
        double plain = 0;
        for (size_t i = 0; i < count; i++) plain += (double)x[i] * x[i];
        CHECK_NEAR(want, plain, 1e-12 * plain);
        for (int k = 0; k < variant_count; k++) CHECK(flat[k]->sum_squares(x, count) == want);
    }
    for (int k = 0; k < variant_count; k++) {
        memcpy(scaled[k], x, sizeof x);
        flat[k]->scale(scaled[k], 0.3f, MANY);
        CHECK(scaled[k][MANY - 1] == x[MANY - 1] * 0.3f);
        CHECK(memcmp(scaled[k], scaled[0], sizeof x) == 0);
    }
}

/* Rounding to the nearest, ties to even: these are c10::BFloat16's answers. */
static const struct {
    uint32_t bits;
    uint16_t rounded;
} roundings[] = {
    {0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82},
    {0x3f808001, 0x3f81}, {0x3f817fff, 0x3f81}, {0x7f7fffff, 0x7f80}, {0xff7fffff, 0xff80}, {0x7f800000, 0x7f80},
    {0xff800000, 0xff80}, {0x7f800001, 0x7fc0}, {0xffffffff, 0x7fc0}, {0x00000001, 0x0000}, {0x00018000, 0x0002},
};
enum { ROUNDINGS = sizeof roundings / sizeof roundings[0], NARROW = 1000 };

static void check_bf16(const tdm_flat_kernels *flat) {
    float x[NARROW], wide[NARROW], other[NARROW];
    uint16_t narrow[NARROW], sum[NARROW];
    optim_numbers(3, x, NARROW, 1.0f);
    optim_numbers(4, other, NARROW, 100.0f);
    for (int i = 0; i < ROUNDINGS; i++) memcpy(&x[i * 7], &roundings[i].bits, sizeof x[0]);
    flat->to_bf16(narrow, x, NARROW);
    flat->from_bf16(wide, narrow, NARROW);
    flat->to_bf16(sum, other, NARROW);
    for (int i = 0; i < ROUNDINGS; i++) CHECK_INT(narrow[i * 7], roundings[i].rounded);
    for (int i = 0; i < NARROW; i++) {
        CHECK_INT(narrow[i], tdm__bf16_of(x[i]));
        const float back = tdm__bf16_float(narrow[i]);
        CHECK(memcmp(&wide[i], &back, sizeof back) == 0);
        other[i] = tdm__bf16_float(sum[i]) + back;
    }
    flat->add_bf16(sum, narrow, NARROW);
    for (int i = 0; i < NARROW; i++) CHECK_INT(sum[i], tdm__bf16_of(other[i]));
}

/* Halves: the words of torch.tensor(x).half(). */
static void check_f16(const tdm_flat_kernels *flat) {
    static const struct {
        float x;
        uint16_t half;
    } known[] = {{1.0f, 0x3c00},       {-2.5f, 0xc100},      {65504.0f, 0x7bff}, {65519.9f, 0x7bff},
                 {65520.0f, 0x7c00},   {1e-7f, 0x0002},      {2.9e-8f, 0x0000},  {2.99e-8f, 0x0001},
                 {6.1035e-5f, 0x0400}, {6.0976e-5f, 0x03ff}, {0.1f, 0x2e66},     {-0.0f, 0x8000}};
    float x[NARROW], wide[NARROW];
    uint16_t half[NARROW];
    optim_numbers(5, x, NARROW, 1.0f);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) x[i] = known[i].x;
    flat->to_f16(half, x, NARROW);
    flat->from_f16(wide, half, NARROW);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) CHECK_INT(half[i], known[i].half);
    for (int i = 0; i < NARROW; i++) {
        CHECK_INT(half[i], tdm__f16_of(x[i]));
        const float back = tdm__f16_float(half[i]);
        CHECK(memcmp(&wide[i], &back, sizeof back) == 0);
    }
}

TEST(bf16) {
    const tdm_flat_kernels *flat[3];
    const int count = variants(flat);
    for (int i = 0; i < count; i++) check_bf16(flat[i]);
    for (int i = 0; i < count; i++) check_f16(flat[i]);
}

TEST_MAIN(RUN(bf16); RUN(optimizers_equal_pytorch); RUN(sum_is_the_tree_and_in_place);
          RUN(clamp_keeps_what_is_not_a_number); RUN(scale_and_sum_squares_are_the_same_in_all_variants);)
