/* The passes over flat arenas on CUDA against the CPU's, to the bit; norms, whose sums have another order, to rounding;
 * numbers of 16 bits against the rounding of the floats. */
#include <tandem/sys/field.h>

#include "runtime/base/bf16.h"
#include "runtime/base/f16.h"
#include "runtime/device/device.h"
#include "runtime/graph/graph.h"
#include "tests/ops/cuda_device.h"
#include "tests/ops/op_memory.h"

static tdm_device *device;
static tdm_device *cpu;

static void numbers(uint32_t seed, float *out, size_t count, float factor) {
    uint32_t x = seed;
    for (size_t i = 0; i < count; i++) {
        x = x * 1664525u + 1013904223u;
        out[i] = (float)((int32_t)(x >> 15) - 65536) / 65536.0f * factor;
    }
}

/* NaN is NaN, whatever its bits: a GPU's instruction makes others. */
static bool are_rounded(const uint16_t *narrow, const float *floats, size_t count) {
    size_t same = 0;
    for (size_t i = 0; i < count; i++)
        same += narrow[i] == tdm__bf16_of(floats[i]) || (isnan(floats[i]) && isnan(tdm__bf16_float(narrow[i])));
    return same == count;
}

static bool equal(const float *a, const float *b, size_t count) {
    return memcmp(a, b, count * sizeof *a) == 0;
}

/* ---- numbers of 16 bits ---- */

/* Ties, what rounds up to infinity, the smallest numbers, and the rest. */
static void special_numbers(float *out, size_t count) {
    static const uint32_t bits[] = {0x3f808000, 0x3f818000, 0x3f808001, 0x3f807fff, 0x7f7f8000, 0x7f7f7fff, 0x80000000,
                                    0x00000001, 0x80008000, 0x00018000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001};
    const size_t known = sizeof bits / sizeof *bits;
    numbers(3, out, count, 100);
    for (size_t i = 0; i < count && i < known; i++) memcpy(&out[i], &bits[i], sizeof *out);
}

static void check_narrow(size_t count, bool odd) {
    op_memory m = {.device = device, .odd = odd};
    float *p = op_memory_floats(&m, (int64_t)count, "p");
    uint16_t *narrow = op_memory_numbers(&m, (int64_t)count, sizeof *narrow, "p in bf16");
    special_numbers(p, count);
    op_memory_send(&m);
    CHECK_OK(device->ops->arenas->to_bf16(device, op_memory_there(&m, narrow), op_memory_there(&m, p), count));
    op_memory_fetch(&m);
    op_memory_check(&m, "narrow");
    CHECK(are_rounded(narrow, p, count));
    op_memory_free(&m);
}

static void check_add_bf16(size_t count, bool odd) {
    op_memory m = {.device = device, .odd = odd};
    uint16_t *out = op_memory_numbers(&m, (int64_t)count, sizeof *out, "the sum");
    uint16_t *what = op_memory_numbers(&m, (int64_t)count, sizeof *what, "what is added");
    float *want = calloc(count + 1, sizeof *want), *added = calloc(count + 1, sizeof *added);
    special_numbers(want, count);
    numbers(9, added, count, 1);
    for (size_t i = 0; i < count; i++) {
        out[i] = tdm__bf16_of(want[i]);
        what[i] = tdm__bf16_of(added[i]);
        want[i] = tdm__bf16_float(out[i]) + tdm__bf16_float(what[i]);
    }
    op_memory_send(&m);
    CHECK_OK(device->ops->arenas->add_bf16(device, op_memory_there(&m, out), op_memory_there(&m, what), count));
    op_memory_fetch(&m);
    op_memory_check(&m, "add_bf16");
    CHECK(are_rounded(out, want, count));
    op_memory_free(&m);
    free(want);
    free(added);
}

static uint16_t bits_of(tdm_dtype type, float x) {
    return type == TDM_DTYPE_BF16 ? tdm__bf16_of(x) : tdm__f16_of(x);
}

static float float_of(tdm_dtype type, uint16_t bits) {
    return type == TDM_DTYPE_BF16 ? tdm__bf16_float(bits) : tdm__f16_float(bits);
}

/* Gradients on their way: the host's bits, NaN included, there and back and both at once. */
static void check_gradients(tdm_dtype type, size_t count, bool odd) {
    const tdm_arena_ops *arenas = device->ops->arenas;
    op_memory m = {.device = device, .odd = odd};
    float *x = op_memory_floats(&m, (int64_t)count, "x"), *back = op_memory_floats(&m, (int64_t)count, "back");
    uint16_t *narrow = op_memory_numbers(&m, (int64_t)count, sizeof *narrow, "narrow");
    float *want = calloc(count + 1, sizeof *want);
    size_t wrong = 0;
    special_numbers(x, count);
    for (size_t i = 0; i < count; i++) want[i] = float_of(type, bits_of(type, x[i]));
    op_memory_send(&m);
    CHECK_OK(arenas->narrow(device, type, op_memory_there(&m, narrow), op_memory_there(&m, x), count));
    CHECK_OK(arenas->widen(device, type, op_memory_there(&m, back), op_memory_there(&m, narrow), count));
    op_memory_fetch(&m);
    for (size_t i = 0; i < count; i++) wrong += narrow[i] != bits_of(type, x[i]);
    CHECK_INT(wrong, 0);
    CHECK(equal(back, want, count));
    CHECK_OK(arenas->round(device, type, op_memory_there(&m, x), count));
    op_memory_fetch(&m);
    op_memory_check(&m, "gradients");
    CHECK(equal(x, want, count));
    op_memory_free(&m);
    free(want);
}

TEST(numbers_of_16_bits) {
    for (size_t count = 0; count < 1500; count = count < 20 ? count + 1 : count * 3) {
        for (int odd = 0; odd < 2; odd++) {
            check_narrow(count, odd != 0);
            check_add_bf16(count, odd != 0);
            check_gradients(TDM_DTYPE_BF16, count, odd != 0);
            check_gradients(TDM_DTYPE_F16, count, odd != 0);
        }
    }
}

/* ---- average ---- */

static void check_average(size_t count, bool odd, float weight) {
    op_memory m = {.device = device, .odd = odd};
    float *average = op_memory_floats(&m, (int64_t)count, "the average");
    float *p = op_memory_floats(&m, (int64_t)count, "p");
    tdm_step_values *values = op_memory_new(&m, sizeof *values, "the values");
    float *want = calloc(count + 1, sizeof *want);
    numbers(5, average, count, 3);
    numbers(6, p, count, 3);
    values->average_weight = weight;
    memcpy(want, average, count * sizeof *want);
    op_memory_send(&m);
    CHECK_OK(device->ops->arenas->average(device, op_memory_there(&m, values), op_memory_there(&m, average),
                                          op_memory_there(&m, p), count));
    op_memory_fetch(&m);
    op_memory_check(&m, "average");
    CHECK_OK(cpu->ops->arenas->average(cpu, values, want, p, count));
    CHECK(equal(average, want, count));
    op_memory_free(&m);
    free(want);
}

TEST(averages_are_the_cpus) {
    static const float weights[] = {0, 0.001f, 0.25f, 0.5f, 0.9f, 1};
    for (size_t count = 0; count < 1500; count = count < 20 ? count + 1 : count * 3) {
        for (size_t k = 0; k < sizeof weights / sizeof *weights; k++) check_average(count, k % 2 != 0, weights[k]);
    }
}

/* ---- sum ---- */

static void check_sum(int sources, size_t count, bool odd, int into) {
    op_memory m = {.device = device, .odd = odd};
    float *out = op_memory_floats(&m, (int64_t)count, "the sum"), *want = calloc(count + 1, sizeof *want);
    float *source[OP_MAX_BLOCKS];
    const float *here[OP_MAX_BLOCKS], *twin[OP_MAX_BLOCKS];
    for (int s = 0; s < sources; s++) {
        /* There are fewer arrays than sources: some come again. */
        source[s] = s < 20 ? op_memory_floats(&m, (int64_t)count, "a source") : source[s % 20];
        if (s < 20) numbers((uint32_t)s + 7, source[s], count, s == 2 ? 1e6f : 1);
        here[s] = source[s];
        twin[s] = op_memory_there(&m, source[s]);
    }
    tdm_builtin_flat()->sum(want, here, sources, count);
    float *to = into < 0 ? out : source[into];
    op_memory_send(&m);
    CHECK_OK(device->ops->arenas->sum(device, op_memory_there(&m, to), twin, sources, count));
    op_memory_fetch(&m);
    op_memory_check(&m, "sum");
    CHECK(equal(to, want, count));
    op_memory_free(&m);
    free(want);
}

TEST(sum_is_the_tree_and_in_place) {
    static const int sources[] = {1, 2, 3, 4, 5, 7, 8, 20, 63, 64};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        for (size_t count = 1; count < 1500; count = count * 5 + 3) {
            check_sum(sources[i], count, false, -1);
            check_sum(sources[i], count, true, sources[i] <= 20 ? sources[i] - 1 : -1);
        }
    }
    check_sum(2, 0, false, -1);
}

/* ---- clip ---- */

typedef struct {
    float factor;    /* of the numbers */
    float clip_norm; /* the largest norm */
    size_t bad;      /* the place of a NaN; SIZE_MAX: none */
} clip_case;

static void check_clip(const tdm_flat_range *range, int ranges, size_t count, const clip_case *test, bool odd) {
    op_memory m = {.device = device, .odd = odd};
    tdm_step_values *values = op_memory_new(&m, sizeof *values, "the values");
    tdm_flat_range *table = op_memory_new(&m, (size_t)ranges * sizeof *table, "the ranges");
    double *norm = op_memory_new(&m, sizeof *norm, "the norm"), want_norm = 0, first_norm = 0;
    float *g = op_memory_floats(&m, (int64_t)count, "the gradients"), *want = calloc(count + 1, sizeof *want);
    numbers(5, want, count, test->factor);
    if (test->bad < count) want[test->bad] = NAN;
    memcpy(g, want, count * sizeof *g);
    if (ranges > 0) memcpy(table, range, (size_t)ranges * sizeof *table);
    *values = (tdm_step_values){.clip_norm = test->clip_norm};
    float *kept = calloc(count + 1, sizeof *kept);
    memcpy(kept, g, count * sizeof *g);
    for (int run = 0; run < 2; run++) {
        memcpy(g, kept, count * sizeof *g);
        op_memory_send(&m);
        CHECK_OK(device->ops->arenas->clip(device, op_memory_there(&m, values), op_memory_there(&m, g), count,
                                           op_memory_there(&m, table), ranges, op_memory_there(&m, norm)));
        op_memory_fetch(&m);
        op_memory_check(&m, "clip");
        if (run == 0) first_norm = *norm;
    }
    CHECK(memcmp(&first_norm, norm, sizeof *norm) == 0);
    CHECK_OK(cpu->ops->arenas->clip(cpu, values, want, count, range, ranges, &want_norm));
    if (isnan(want_norm))
        CHECK(isnan(*norm));
    else
        CHECK_NEAR(*norm, want_norm, 2e-7 * want_norm);
    CHECK(*norm == (double)(float)*norm || isnan(*norm)); /* a float, as PyTorch's */
    const float factor = test->clip_norm / ((float)*norm + 1e-6f);
    for (size_t i = 0; i < count; i++) want[i] = kept[i] * (factor < 1.0f ? factor : 1.0f);
    int differences = 0;
    for (size_t i = 0; i < count; i++) differences += g[i] != want[i] && !(isnan(g[i]) && isnan(want[i]));
    CHECK_INT(differences, 0);
    op_memory_free(&m);
    free(want);
    free(kept);
}

static void check_clips(const tdm_flat_range *range, int ranges, size_t count) {
    static const clip_case tests[] = {
        {1, 0.5f, SIZE_MAX}, {1e-8f, 0.5f, SIZE_MAX}, {1, NAN, SIZE_MAX}, {1, 0.5f, 3}, {0, 1, SIZE_MAX}};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i += TDM_EVERY(2))
        check_clip(range, ranges, count, &tests[i], i % 2 != 0);
}

TEST(clip) {
    /* Not in the arena's order, with an empty one, and longer and shorter than a unit of the sum. */
    static const tdm_flat_range few[] = {{40000, 10}, {0, 30001}, {30001, 0}, {30001, 9999}, {40010, 1}};
    enum { MANY = 600 };
    static tdm_flat_range many[MANY];
    size_t at = 0;
    for (int i = 0; i < MANY; i++) {
        many[i] = (tdm_flat_range){at, (size_t)i * 7 % 13};
        at += many[i].count;
    }
    check_clips(few, 5, 40011);
    check_clips(many, MANY, at);
    check_clips(many, 1, 8);
    check_clips(NULL, 0, 0);
}

static void check_clamp(size_t count, bool odd) {
    op_memory m = {.device = device, .odd = odd};
    tdm_step_values *values = op_memory_new(&m, sizeof *values, "the values");
    float *g = op_memory_floats(&m, (int64_t)count, "the gradients"), *want = calloc(count + 1, sizeof *want);
    numbers(5, g, count, 1);
    if (count > 3) g[2] = NAN, g[3] = -INFINITY;
    memcpy(want, g, count * sizeof *g);
    *values = (tdm_step_values){.clip_value = 0.5f};
    CHECK_OK(cpu->ops->arenas->clamp(cpu, values, want, count));
    op_memory_send(&m);
    CHECK_OK(device->ops->arenas->clamp(device, op_memory_there(&m, values), op_memory_there(&m, g), count));
    op_memory_fetch(&m);
    op_memory_check(&m, "clamp");
    CHECK(memcmp(g, want, count * sizeof *g) == 0);
    op_memory_free(&m);
    free(want);
}

TEST(clamp) {
    for (size_t count = 1; count < 1500; count = count * 5 + 3) {
        check_clamp(count, false);
        check_clamp(count, true);
    }
}

TEST_MAIN({
    device = cuda_open();
    CHECK_OK(tdm_cpu_device.open(&cpu, tdm_host_default(), &(tdm_device_options){.index = 0}));
    RUN(numbers_of_16_bits);
    RUN(averages_are_the_cpus);
    RUN(sum_is_the_tree_and_in_place);
    RUN(clip);
    RUN(clamp);
    cpu->ops->close(cpu);
    device->ops->close(device);
})
