/* The reduction loops against one element at a time, for every type, operator and number of sources. */
#include <math.h>

#include "runtime/base/bf16.h"
#include "runtime/base/f16.h"
#include "runtime/comm/reduce.h"
#include "tests/support/tdm_test.h"

enum { COUNT = 133, SOURCES = 9 };

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

/* *out = the reduction of element i, in floats, rounded once. */
static void reduce_narrow(void *out, const void *const *list, int sources, size_t i, tdm_dtype dtype,
                          tdm_reduce_op op) {
    float all = widened((const uint16_t *)list[0] + i, dtype);
    for (int s = 1; s < sources; s++) {
        const float next = widened((const uint16_t *)list[s] + i, dtype);
        step(&all, &next, TDM_DTYPE_F32, op);
    }
    if (op == TDM_REDUCE_AVG) all /= (float)sources;
    const uint16_t bits = dtype == TDM_DTYPE_BF16 ? tdm__bf16_of(all) : tdm__f16_of(all);
    memcpy(out, &bits, sizeof(bits));
}

/* An average ends with one division. */
static void divide(void *x, int sources, tdm_dtype dtype) {
    float f;
    double d;
    if (dtype == TDM_DTYPE_F32) memcpy(&f, x, sizeof(f)), f /= (float)sources, memcpy(x, &f, sizeof(f));
    if (dtype == TDM_DTYPE_F64) memcpy(&d, x, sizeof(d)), d /= (double)sources, memcpy(x, &d, sizeof(d));
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

TEST(every_loop_in_source_order) {
    uint64_t state = 20261;
    static _Alignas(64) unsigned char source[SOURCES][(COUNT + 1) * 8], got[(COUNT + 1) * 8], want[8];
    for (int dtype = 0; dtype < TDM_DTYPE_COUNT; dtype++) {
        size_t width = tdm_dtype_bytes((tdm_dtype)dtype);
        for (int op = TDM_REDUCE_SUM; op < TDM_REDUCE_OPS; op++) {
            if (is_integer((tdm_dtype)dtype) ? op == TDM_REDUCE_AVG : op >= TDM_REDUCE_BAND) continue;
            for (int sources = 1; sources <= SOURCES; sources++) {
                const void *list[SOURCES];
                for (int s = 0; s < sources; s++) {
                    fill(source[s], COUNT, (tdm_dtype)dtype, &state);
                    list[s] = source[s];
                }
                size_t count = sources % 2 == 0 ? COUNT : 16, wrong = 0;
                memset(got, 0x77, sizeof(got));
                tdm__reduce_sources(got, list, sources, count, (tdm_dtype)dtype, (tdm_reduce_op)op);
                for (size_t i = 0; i < count; i++) {
                    memcpy(want, source[0] + i * width, width);
                    if (is_narrow((tdm_dtype)dtype))
                        reduce_narrow(want, list, sources, i, (tdm_dtype)dtype, (tdm_reduce_op)op);
                    for (int s = 1; s < sources && !is_narrow((tdm_dtype)dtype); s++)
                        step(want, source[s] + i * width, (tdm_dtype)dtype, (tdm_reduce_op)op);
                    if (op == TDM_REDUCE_AVG) divide(want, sources, (tdm_dtype)dtype);
                    bool both_nan = is_nan(want, (tdm_dtype)dtype) && is_nan(got + i * width, (tdm_dtype)dtype);
                    wrong += !both_nan && memcmp(want, got + i * width, width) != 0;
                }
                CHECK_INT(wrong, 0);
                CHECK(got[count * width] == 0x77);
            }
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
    const void *list[2] = {&x, &x};
    tdm__reduce_sources(&to, list, 2, 0, TDM_DTYPE_F32, TDM_REDUCE_SUM);
    CHECK(to == 5);
}

TEST_MAIN({
    RUN(every_loop_in_source_order);
    RUN(halves_round_to_the_nearest);
    RUN(nothing_to_reduce);
})
