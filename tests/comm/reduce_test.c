/* The reduction loops against one element at a time, for every type, operator and number of sources. */
#include <math.h>

#include "runtime/base/bf16.h"
#include "runtime/base/f16.h"
#include "runtime/base/tree.h"
#include "runtime/comm/reduce.h"
#include "tests/support/tdm_test.h"

enum { COUNT = 1061, FEW = 3, SOURCES = 17, LINE = (COUNT + 1) * 8 };

static uint64_t random_bits(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = *state ^ *state >> 33;
    return x * 0xff51afd7ed558ccdu;
}

/* Any bits for integers; floats of many sizes, zeros of both signs, infinities and NaN. */
static void fill(void *data, size_t count, tdm_dtype dtype, uint64_t *state) {
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = random_bits(state);
        double value = ldexp((double)(bits >> 40) - 8e6, (int)(bits % 40) - 30);
        if (bits % 97 == 0) value = bits & 512 ? -0.0 : 0.0;
        if (bits % 101 == 0) value = bits & 512 ? (double)INFINITY : (double)NAN;
        switch (dtype) {
        case TDM_DTYPE_F32:
            ((float *)data)[i] = (float)value;
            break;
        case TDM_DTYPE_F64:
            ((double *)data)[i] = value;
            break;
        case TDM_DTYPE_I32:
            ((int32_t *)data)[i] = (int32_t)bits;
            break;
        case TDM_DTYPE_I64:
            ((int64_t *)data)[i] = (int64_t)bits;
            break;
        case TDM_DTYPE_BF16:
            ((uint16_t *)data)[i] = tdm__bf16_of((float)value);
            break;
        case TDM_DTYPE_F16:
            ((uint16_t *)data)[i] = tdm__f16_of((float)(value * 1e-6));
            break;
        default:
            ((uint8_t *)data)[i] = (uint8_t)bits;
        }
    }
}

#define STEP_FLOAT(type)                                  \
    do {                                                  \
        type x, y, z;                                     \
        memcpy(&x, a, sizeof(x));                         \
        memcpy(&y, b, sizeof(y));                         \
        if (op == TDM_REDUCE_SUM || op == TDM_REDUCE_AVG) \
            z = x + y;                                    \
        else if (op == TDM_REDUCE_PRODUCT)                \
            z = x * y;                                    \
        else if (isnan(x) || isnan(y))                    \
            z = isnan(y) ? y : x;                         \
        else if (op == TDM_REDUCE_MIN)                    \
            z = y < x ? y : x;                            \
        else                                              \
            z = y > x ? y : x;                            \
        memcpy(a, &z, sizeof(z));                         \
    } while (0)
#define STEP_INT(type, wide)               \
    do {                                   \
        type x, y, z;                      \
        memcpy(&x, a, sizeof(x));          \
        memcpy(&y, b, sizeof(y));          \
        if (op == TDM_REDUCE_SUM)          \
            z = (type)((wide)x + (wide)y); \
        else if (op == TDM_REDUCE_PRODUCT) \
            z = (type)((wide)x * (wide)y); \
        else if (op == TDM_REDUCE_BAND)    \
            z = (type)(x & y);             \
        else if (op == TDM_REDUCE_BOR)     \
            z = (type)(x | y);             \
        else if (op == TDM_REDUCE_BXOR)    \
            z = (type)(x ^ y);             \
        else if (op == TDM_REDUCE_MIN)     \
            z = x < y ? x : y;             \
        else                               \
            z = x > y ? x : y;             \
        memcpy(a, &z, sizeof(z));          \
    } while (0)

/* *a = *a op *b */
static void step(void *a, const void *b, tdm_dtype dtype, tdm_reduce_op op) {
    switch (dtype) {
    case TDM_DTYPE_F32:
        STEP_FLOAT(float);
        break;
    case TDM_DTYPE_F64:
        STEP_FLOAT(double);
        break;
    case TDM_DTYPE_I32:
        STEP_INT(int32_t, uint64_t);
        break;
    case TDM_DTYPE_I64:
        STEP_INT(int64_t, unsigned __int128);
        break;
    default:
        STEP_INT(uint8_t, uint64_t);
    }
}

static bool is_narrow(tdm_dtype dtype) {
    return dtype == TDM_DTYPE_BF16 || dtype == TDM_DTYPE_F16;
}

static float widened(const void *x, tdm_dtype dtype) {
    uint16_t bits;
    memcpy(&bits, x, sizeof(bits));
    return dtype == TDM_DTYPE_BF16 ? tdm__bf16_float(bits) : tdm__f16_float(bits);
}

/* *out = the tree over element i, not divided; of floats of 16 bits as a float. */
static void tree(void *out, const void *const *list, int sources, size_t i, tdm_dtype dtype, tdm_reduce_op op) {
    if (sources == 1) {
        const size_t width = tdm_dtype_bytes(dtype);
        const unsigned char *from = (const unsigned char *)list[0] + i * width;
        const float wide = is_narrow(dtype) ? widened(from, dtype) : 0;
        memcpy(out, is_narrow(dtype) ? (const void *)&wide : from, is_narrow(dtype) ? sizeof(wide) : width);
        return;
    }
    int left = 1;
    double right;
    while (left * 2 < sources) left *= 2;
    tree(out, list, left, i, dtype, op);
    tree(&right, list + left, sources - left, i, dtype, op);
    step(out, &right, is_narrow(dtype) ? TDM_DTYPE_F32 : dtype, op);
}

/* An average ends with one division, floats of 16 bits with one rounding. */
static void expected(void *out, const void *const *list, int sources, size_t i, tdm_dtype dtype, tdm_reduce_op op) {
    float f;
    double d;
    tree(out, list, sources, i, dtype, op);
    memcpy(&f, out, sizeof(f)), memcpy(&d, out, sizeof(d));
    if (op == TDM_REDUCE_AVG) f /= (float)sources, d /= (double)sources;
    const uint16_t bits = dtype == TDM_DTYPE_BF16 ? tdm__bf16_of(f) : tdm__f16_of(f);
    if (dtype == TDM_DTYPE_F32) memcpy(out, &f, sizeof(f));
    if (dtype == TDM_DTYPE_F64) memcpy(out, &d, sizeof(d));
    if (is_narrow(dtype)) memcpy(out, &bits, sizeof(bits));
}

static bool is_integer(tdm_dtype dtype) {
    return dtype == TDM_DTYPE_I32 || dtype == TDM_DTYPE_I64 || dtype == TDM_DTYPE_U8;
}

static bool is_nan(const void *x, tdm_dtype dtype) {
    float f;
    double d;
    if (is_narrow(dtype)) return isnan(widened(x, dtype));
    if (dtype == TDM_DTYPE_F32) return memcpy(&f, x, sizeof(f)), isnan(f);
    if (dtype == TDM_DTYPE_F64) return memcpy(&d, x, sizeof(d)), isnan(d);
    return false;
}

static bool is_reduction(int dtype, int op) {
    return is_integer((tdm_dtype)dtype) ? op != TDM_REDUCE_AVG : op < TDM_REDUCE_BAND;
}

/* NaN has many bits. */
static bool are_same(const void *a, const void *b, size_t count, tdm_dtype dtype) {
    const size_t width = tdm_dtype_bytes(dtype);
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        const unsigned char *x = (const unsigned char *)a + i * width, *y = (const unsigned char *)b + i * width;
        wrong += memcmp(x, y, width) != 0 && !(is_nan(x, dtype) && is_nan(y, dtype));
    }
    return wrong == 0;
}

static _Alignas(64) unsigned char source[SOURCES][LINE], got[LINE], want[LINE];
static const void *list[SOURCES];

static void fill_sources(int sources, size_t count, tdm_dtype dtype, uint64_t *state) {
    for (int s = 0; s < sources; s++) {
        fill(source[s], count, dtype, state);
        list[s] = source[s];
    }
}

TEST(every_loop_is_the_tree) {
    uint64_t state = 20261;
    for (int dtype = 0; dtype < TDM_DTYPE_COUNT; dtype++) {
        const size_t width = tdm_dtype_bytes((tdm_dtype)dtype);
        for (int op = TDM_REDUCE_SUM; op < TDM_REDUCE_OPS; op++) {
            for (int sources = 1; sources <= SOURCES && is_reduction(dtype, op); sources++) {
                const size_t count = sources % 3 == 0 ? COUNT : 16 + (size_t)sources;
                fill_sources(sources, count, (tdm_dtype)dtype, &state);
                memset(got, 0x77, sizeof(got));
                tdm__reduce_sources(got, list, sources, count, (tdm_dtype)dtype, (tdm_reduce_op)op);
                for (size_t i = 0; i < count; i++) {
                    double one; /* room for any */
                    expected(&one, list, sources, i, (tdm_dtype)dtype, (tdm_reduce_op)op);
                    memcpy(want + i * width, &one, width);
                }
                CHECK(are_same(got, want, count, (tdm_dtype)dtype));
                CHECK(got[count * width] == 0x77);
            }
        }
    }
}

/* The result may take the place of any source. */
TEST(a_result_in_place_of_a_source_is_the_same) {
    uint64_t state = 77;
    for (int dtype = 0; dtype < TDM_DTYPE_COUNT; dtype++) {
        for (int op = TDM_REDUCE_SUM; op < TDM_REDUCE_OPS; op++) {
            for (int sources = 1; sources <= 9 && is_reduction(dtype, op); sources++) {
                fill_sources(sources, COUNT, (tdm_dtype)dtype, &state);
                tdm__reduce_sources(want, list, sources, COUNT, (tdm_dtype)dtype, (tdm_reduce_op)op);
                for (int s = 0; s < sources; s++) {
                    memcpy(got, source[s], sizeof(got));
                    list[s] = got;
                    tdm__reduce_sources(got, list, sources, COUNT, (tdm_dtype)dtype, (tdm_reduce_op)op);
                    list[s] = source[s];
                    CHECK(are_same(got, want, COUNT, (tdm_dtype)dtype));
                }
            }
        }
    }
}

TEST(four_are_two_pairs) {
    const float x[5] = {1, 0x1p-24f, 0x1p-24f, 0x1p-24f, 0x1p-24f};
    const void *const one[5] = {x, x + 1, x + 2, x + 3, x + 4};
    float sum;
    tdm__reduce_sources(&sum, one, 3, 1, TDM_DTYPE_F32, TDM_REDUCE_SUM);
    CHECK(sum == 1);
    tdm__reduce_sources(&sum, one, 4, 1, TDM_DTYPE_F32, TDM_REDUCE_SUM);
    CHECK(sum == 1 + 0x1p-23f); /* the second pair; one after another they vanish */
    tdm__reduce_sources(&sum, one + 1, 4, 1, TDM_DTYPE_F32, TDM_REDUCE_SUM);
    CHECK(sum == 0x1p-22f);
}

/* Zeros of ranks without rows; -0, because -0 + 0 is 0. */
TEST(ranks_at_the_end_without_rows_change_nothing) {
    uint64_t state = 5;
    static float zero[FEW] = {-0.0f, -0.0f, -0.0f};
    for (int with = 1; with <= 9; with++) {
        fill_sources(SOURCES, FEW, TDM_DTYPE_F32, &state);
        tdm__reduce_sources(want, list, with, FEW, TDM_DTYPE_F32, TDM_REDUCE_SUM);
        for (int s = with; s < SOURCES; s++) list[s] = zero;
        for (int all = with; all <= SOURCES; all++) {
            tdm__reduce_sources(got, list, all, FEW, TDM_DTYPE_F32, TDM_REDUCE_SUM);
            CHECK(are_same(got, want, FEW, TDM_DTYPE_F32));
        }
    }
}

/* Every half is its own rounding; between two of them the nearer one is taken, and the even one in the middle. */
TEST(halves_round_to_the_nearest) {
    int wrong = 0;
    for (uint32_t bits = 0; bits < 0x7c00; bits++) {
        const float low = tdm__f16_float((uint16_t)bits),
                    high = bits + 1 < 0x7c00 ? tdm__f16_float((uint16_t)(bits + 1)) : 65536.0f;
        const float middle = low + (high - low) / 2; /* exact */
        const uint16_t even = (uint16_t)(bits % 2 == 0 ? bits : bits + 1);
        wrong += tdm__f16_of(low) != bits || tdm__f16_of(-low) != (bits | 0x8000u);
        wrong += tdm__f16_of(middle) != even || tdm__f16_of(nextafterf(middle, 0)) != bits;
        wrong += tdm__f16_of(nextafterf(middle, high)) != bits + 1;
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(tdm__f16_of(INFINITY), 0x7c00);
    CHECK_INT(tdm__f16_of(-1e30f), 0xfc00);
    CHECK(isnan(tdm__f16_float(tdm__f16_of(NAN))));
}

TEST(nothing_to_reduce) {
    float x = 3, to = 5;
    const void *const both[2] = {&x, &x};
    tdm__reduce_sources(&to, both, 2, 0, TDM_DTYPE_F32, TDM_REDUCE_SUM);
    CHECK(to == 5);
}

/* The first host has `odd` ranks, each of the others `locals`, the last one perhaps fewer. Each brings the values of
 * its largest subtrees. Returns how many there are. */
static int bring_subtrees(const void *const *values, int ranks, int odd, int locals, int *first, void **sum) {
    int count = 0;
    for (int begin = 0, size = odd; begin < ranks; begin += size, size = locals) {
        const int end = begin + size < ranks ? begin + size : ranks;
        for (int r = begin; r < end; r = tdm__tree_block_end(r, end, ranks)) {
            const int n = tdm__tree_block_end(r, end, ranks) - r;
            CHECK(n >= 1 && r + n <= end);
            tdm__reduce_sources(sum[count], values + r, n, COUNT, TDM_DTYPE_F32, TDM_REDUCE_SUM);
            first[count++] = r;
        }
    }
    return count;
}

TEST(subtrees_of_any_hosts_make_the_tree) {
    static float data[SOURCES][COUNT], sums[SOURCES][COUNT];
    const void *values[SOURCES], *brought[SOURCES];
    void *sum[SOURCES];
    float all[COUNT], made[COUNT];
    int first[SOURCES];
    uint64_t state = 5;
    for (int r = 0; r < SOURCES; r++) {
        for (int i = 0; i < COUNT; i++)
            data[r][i] = (float)ldexp((double)(random_bits(&state) >> 40) - 8e6, (int)(state >> 60));
        values[r] = data[r];
        brought[r] = sum[r] = sums[r];
    }
    for (int ranks = 2; ranks <= SOURCES; ranks++) {
        for (int odd = 1; odd <= 7; odd++) {
            for (int locals = 1; locals <= 9; locals++) {
                const int count = bring_subtrees(values, ranks, odd, locals, first, sum);
                const tdm_reduce_op op = locals % 2 == 0 ? TDM_REDUCE_SUM : TDM_REDUCE_AVG;
                tdm__reduce_sources(all, values, ranks, COUNT, TDM_DTYPE_F32, op);
                tdm__reduce_subtrees(made, brought, first, count, ranks, COUNT, TDM_DTYPE_F32, op);
                CHECK_INT(memcmp(made, all, sizeof(all)), 0);
                /* In place of a source. */
                tdm__reduce_subtrees(sum[count - 1], brought, first, count, ranks, COUNT, TDM_DTYPE_F32, op);
                CHECK_INT(memcmp(sum[count - 1], all, sizeof(all)), 0);
            }
        }
    }
    /* Hosts of equal powers of two bring one each; of three ranks two. */
    CHECK_INT(bring_subtrees(values, 16, 4, 4, first, sum), 4);
    CHECK_INT(bring_subtrees(values, 12, 3, 3, first, sum), 8);
    CHECK_INT(bring_subtrees(values, 12, 6, 6, first, sum), 4);
}

TEST_MAIN({
    RUN(every_loop_is_the_tree);
    RUN(a_result_in_place_of_a_source_is_the_same);
    RUN(four_are_two_pairs);
    RUN(ranks_at_the_end_without_rows_change_nothing);
    RUN(halves_round_to_the_nearest);
    RUN(nothing_to_reduce);
    RUN(subtrees_of_any_hosts_make_the_tree);
})
