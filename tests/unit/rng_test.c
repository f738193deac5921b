/* Random numbers against PyTorch's, word for word, and where the stream stands afterwards. */
#include "runtime/base/random/philox.h"
#include "runtime/base/random/rng.h"

#include "tests/support/tdm_test.h"
#include "tests/unit/rng_golden.h"

enum { DRAW_MAX = 30011 };
static float floats[DRAW_MAX];
static int64_t ints[DRAW_MAX];

#define FNV_START UINT64_C(0xCBF29CE484222325)
static uint64_t fnv(uint64_t hash, uint64_t number) {
    return (hash ^ number) * UINT64_C(0x100000001B3);
}

static uint32_t word_of(float value) {
    uint32_t word;
    memcpy(&word, &value, sizeof(word));
    return word;
}

static uint64_t fnv_floats(const float *values, size_t count) {
    uint64_t hash = FNV_START;
    for (size_t i = 0; i < count; i++) hash = fnv(hash, word_of(values[i]));
    return hash;
}

typedef void (*sampler)(tdm_rng *rng, size_t count);

static void check_after(tdm_rng *rng, const golden_row *row, const char *name) {
    float after;
    tdm__rng_rand(rng, &after, 1);
    if (word_of(after) != row->after) fprintf(stderr, "%s, seed %llu: ", name, (unsigned long long)row->seed);
    CHECK_INT(word_of(after), row->after);
}

static void check_floats(const char *name, const golden_row *rows, size_t count, tdm_rng_profile profile,
                         sampler draw) {
    for (size_t r = 0; r < count; r++) {
        tdm_rng rng;
        tdm__rng_seed(&rng, rows[r].seed, profile);
        draw(&rng, rows[r].count);
        const uint32_t *want = rows[r].numbers;
        for (size_t i = 0; want != NULL && i < rows[r].count; i++) {
            if (word_of(floats[i]) == want[i]) continue;
            fprintf(stderr, "%s, seed %llu, number %zu: ", name, (unsigned long long)rows[r].seed, i);
            CHECK_INT(word_of(floats[i]), want[i]);
        }
        if (fnv_floats(floats, rows[r].count) != rows[r].check)
            fprintf(stderr, "%s, seed %llu: ", name, (unsigned long long)rows[r].seed);
        CHECK(fnv_floats(floats, rows[r].count) == rows[r].check);
        check_after(&rng, &rows[r], name);
    }
}

static void check_ints(const char *name, const golden_row *rows, size_t count, sampler draw) {
    for (size_t r = 0; r < count; r++) {
        tdm_rng rng;
        tdm__rng_seed(&rng, rows[r].seed, TDM_RNG_TORCH_AVX2);
        draw(&rng, rows[r].count);
        uint64_t hash = FNV_START;
        const int64_t *want = rows[r].numbers;
        for (size_t i = 0; i < rows[r].count; i++) {
            hash = fnv(hash, (uint64_t)ints[i]);
            if (want != NULL) CHECK_INT(ints[i], want[i]);
        }
        if (hash != rows[r].check) fprintf(stderr, "%s, seed %llu: ", name, (unsigned long long)rows[r].seed);
        CHECK(hash == rows[r].check);
        check_after(&rng, &rows[r], name);
    }
}

static void draw_rand(tdm_rng *rng, size_t count) {
    tdm__rng_rand(rng, floats, count);
}
static void draw_uniform(tdm_rng *rng, size_t count) {
    tdm__rng_uniform(rng, floats, count, -0.5, 0.25);
}
static void draw_uniform_700(tdm_rng *rng, size_t count) {
    tdm__rng_uniform(rng, floats, count, -0.0361, 0.0361);
}
static void draw_randn(tdm_rng *rng, size_t count) {
    tdm__rng_normal(rng, floats, count, 0, 1);
}
static void draw_normal(tdm_rng *rng, size_t count) {
    tdm__rng_normal(rng, floats, count, 0.3, 0.02);
}
static void draw_randn_3_20_2(tdm_rng *rng, size_t count) {
    (void)count;
    tdm__rng_normal(rng, floats, 3, 0, 1);
    tdm__rng_normal(rng, floats + 3, 20, 0, 1);
    tdm__rng_normal(rng, floats + 23, 2, 0, 1);
}
static void draw_randperm(tdm_rng *rng, size_t count) {
    tdm__rng_randperm(rng, ints, count);
}
static void draw_randint_100(tdm_rng *rng, size_t count) {
    tdm__rng_randint(rng, ints, count, 0, 100);
}
static void draw_randint_below(tdm_rng *rng, size_t count) {
    tdm__rng_randint(rng, ints, count, -5, (1 << 28) - 6);
}
static void draw_randint_wide(tdm_rng *rng, size_t count) {
    tdm__rng_randint(rng, ints, count, 0, 1 << 28);
}
static void draw_randint_40(tdm_rng *rng, size_t count) {
    tdm__rng_randint(rng, ints, count, -(INT64_C(1) << 40), INT64_C(1) << 40);
}

#define ROWS(table) #table, table, sizeof(table) / sizeof(table[0])
#define CHECK_FLOATS(name, draw)                                         \
    do {                                                                 \
        check_floats(ROWS(name##_avx2), TDM_RNG_TORCH_AVX2, draw);       \
        check_floats(ROWS(name##_generic), TDM_RNG_TORCH_GENERIC, draw); \
    } while (0)
/* Integers do not know about profiles: both tables must be met. */
#define CHECK_INTS(name, draw)                  \
    do {                                        \
        check_ints(ROWS(name##_avx2), draw);    \
        check_ints(ROWS(name##_generic), draw); \
    } while (0)

TEST(uniform) {
    CHECK_FLOATS(rand, draw_rand);
    CHECK_FLOATS(rand_1300, draw_rand);
    CHECK_FLOATS(uniform, draw_uniform);
    CHECK_FLOATS(uniform_700, draw_uniform_700);
}

TEST(normal) {
    CHECK_FLOATS(randn_3, draw_randn);
    CHECK_FLOATS(randn_15, draw_randn);
    CHECK_FLOATS(randn_16, draw_randn);
    CHECK_FLOATS(randn_20, draw_randn);
    CHECK_FLOATS(randn_100, draw_randn);
    CHECK_FLOATS(randn_30011, draw_randn);
    CHECK_FLOATS(normal_7, draw_normal);
    CHECK_FLOATS(normal_20, draw_normal);
    CHECK_FLOATS(randn_3_20_2, draw_randn_3_20_2);
}

TEST(integers) {
    CHECK_INTS(randperm_1, draw_randperm);
    CHECK_INTS(randperm_10, draw_randperm);
    CHECK_INTS(randperm_100, draw_randperm);
    CHECK_INTS(randint_100, draw_randint_100);
    CHECK_INTS(randint_below, draw_randint_below);
    CHECK_INTS(randint_wide, draw_randint_wide);
    CHECK_INTS(randint_40, draw_randint_40);
}

/* std::mt19937's 10000th word from its default seed is part of the C++ standard. */
TEST(raw_stream) {
    tdm_rng rng;
    uint32_t word = 0;
    tdm__rng_seed(&rng, 5489, TDM_RNG_TORCH_AVX2);
    for (int i = 0; i < 10000; i++) word = tdm__rng_u32(&rng);
    CHECK_INT(word, 4123659995u);
    tdm__rng_seed(&rng, 42, TDM_RNG_TORCH_AVX2);
    CHECK_INT(tdm__rng_u32(&rng), 1608637542u);
    CHECK(tdm__rng_u64(&rng) == (UINT64_C(3421126067) << 32 | 4083286876u));
    tdm_rng high;
    tdm__rng_seed(&high, UINT64_C(0x1234567800000000) + 42, TDM_RNG_TORCH_AVX2);
    CHECK_INT(tdm__rng_u32(&high), 1608637542u);
}

/* However a stretch of the stream is cut into calls, it is the same stretch. */
TEST(cutting) {
    tdm_rng whole, parts;
    static float cut[DRAW_MAX];
    tdm__rng_seed(&whole, 3, TDM_RNG_TORCH_AVX2);
    tdm__rng_seed(&parts, 3, TDM_RNG_TORCH_AVX2);
    tdm__rng_uniform(&whole, floats, 9000, -2, 3);
    for (size_t at = 0, step = 1; at < 9000; at += step, step = step * 5 % 701 + 1) {
        if (step > 9000 - at) step = 9000 - at;
        tdm__rng_uniform(&parts, cut + at, step, -2, 3);
    }
    CHECK(memcmp(floats, cut, 9000 * sizeof(float)) == 0);
    tdm__rng_rand(&parts, cut, 0);
    tdm__rng_normal(&parts, cut, 0, 0, 1);
    tdm__rng_randperm(&parts, ints, 0);
    CHECK_INT(tdm__rng_u32(&parts), tdm__rng_u32(&whole));
}

/* Linear and Conv2d start from kaiming_uniform_(a=sqrt(5)), biases from U(-1/sqrt(fan_in), 1/sqrt(fan_in)). */
static void draw_layer(tdm_rng *rng, size_t weights, size_t biases, double fan_in) {
    double gain = sqrt(2.0 / (1.0 + sqrt(5.0) * sqrt(5.0)));
    double bound = sqrt(3.0) * (gain / sqrt(fan_in));
    tdm__rng_uniform(rng, floats, weights, -bound, bound);
    tdm__rng_uniform(rng, floats + weights, biases, -1.0 / sqrt(fan_in), 1.0 / sqrt(fan_in));
}

TEST(initial_weights) {
    tdm_rng rng;
    tdm__rng_seed(&rng, 42, TDM_RNG_TORCH_AVX2);
    draw_layer(&rng, 100, 10, 10);
    CHECK(fnv_floats(floats, 100) == init_linear_weight);
    CHECK(fnv_floats(floats + 100, 10) == init_linear_bias);
    tdm__rng_seed(&rng, 42, TDM_RNG_TORCH_AVX2);
    draw_layer(&rng, 64 * 27, 64, 27);
    CHECK(fnv_floats(floats, 64 * 27) == init_conv_weight);
    CHECK(fnv_floats(floats + 64 * 27, 64) == init_conv_bias);
    tdm__rng_seed(&rng, 42, TDM_RNG_TORCH_AVX2);
    draw_layer(&rng, 18, 2, 9);
    CHECK(fnv_floats(floats, 18) == init_net_0_weight);
    CHECK(fnv_floats(floats + 18, 2) == init_net_0_bias);
    draw_layer(&rng, 24, 3, 8);
    CHECK(fnv_floats(floats, 24) == init_net_4_weight);
    CHECK(fnv_floats(floats + 24, 3) == init_net_4_bias);
}

/* Known answers of the authors' Random123 distribution. */
TEST(philox) {
    static const struct {
        uint64_t key;
        uint32_t counter[4], want[4];
    } cases[] = {
        {0, {0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, {~0u, ~0u, ~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {UINT64_C(0x299f31d0a4093822),
         {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < 3; i++) {
        uint32_t out[4];
        tdm__philox_words(out, cases[i].key, cases[i].counter);
        for (int k = 0; k < 4; k++) CHECK_INT(out[k], cases[i].want[k]);
    }
    uint32_t inout[4] = {0, 0, 0, 0};
    tdm__philox_words(inout, 0, inout);
    CHECK_INT(inout[3], 0x9b00dbd8u);
}

TEST_MAIN(RUN(uniform); RUN(normal); RUN(integers); RUN(raw_stream); RUN(cutting); RUN(initial_weights); RUN(philox);)
