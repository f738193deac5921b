/* Dropout's mask is a pure function of (seed, stream, step, position, element): nothing of the batch enters. */
#include "ops/dropout/dropout.h"
#include "ops/dropout/dropout_rows.h"
#include "ops/ops.h"
#include "runtime/base/random/philox.h"
#include "runtime/base/random/rng.h"
#include "tests/ops/op_driver.h"
#include "tests/support/tdm_test.h"

enum { COUNT = 4096 };

static const tdm_dropout_draw usual = {.p = 0.5, .seed = 42, .step = 7, .stream = 3, .position = 11};

static int differences(const tdm_dropout_draw *a, const tdm_dropout_draw *b) {
    uint8_t x[COUNT], y[COUNT];
    tdm__dropout_mask(x, COUNT, a);
    tdm__dropout_mask(y, COUNT, b);
    int count = 0;
    for (int i = 0; i < COUNT; i++) count += x[i] != y[i];
    return count;
}

static int kept(double p, int64_t count) {
    uint8_t mask[COUNT];
    tdm_dropout_draw draw = usual;
    draw.p = p;
    tdm__dropout_mask(mask, count, &draw);
    int sum = 0;
    for (int64_t i = 0; i < count; i++) sum += mask[i];
    return sum;
}

/* The formula of dropout.h, written out once more: splitmix64(42) is a published sequence's first number. */
TEST(formula) {
    uint64_t key = 42 + 0x9e3779b97f4a7c15u;
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
    key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
    key ^= key >> 31;
    CHECK(key == 13679457532755275413u);
    uint8_t mask[12];
    tdm__dropout_mask(mask, 10, &usual);
    for (uint32_t e = 0; e < 10; e++) {
        uint32_t word[4];
        tdm__philox_words(word, key, (const uint32_t[]){e / 4, 11, 7, 3});
        CHECK_INT(mask[e], word[e % 4] >= 0x80000000u);
    }
}

TEST(everything_that_may_matters) {
    CHECK_INT(differences(&usual, &usual), 0);
    tdm_dropout_draw other[4] = {usual, usual, usual, usual};
    other[0].seed++;
    other[1].step++;
    other[2].stream++;
    other[3].position++;
    for (int i = 0; i < 4; i++) CHECK_NEAR(differences(&usual, &other[i]), COUNT / 2, 5 * 32); /* 5 sigma */
}

TEST(share_is_p) {
    const double p[4] = {0.1, 0.25, 0.5, 0.9};
    for (int i = 0; i < 4; i++) CHECK_NEAR(kept(p[i], COUNT), (1 - p[i]) * COUNT, 5 * sqrt(COUNT * p[i] * (1 - p[i])));
    CHECK_INT(kept(0, COUNT), COUNT);
    CHECK_INT(kept(1, COUNT), 0);
    CHECK_INT(kept(0.0, 1), 1);
    CHECK_NEAR(tdm__dropout_scale(0.5), 2, 0);
    CHECK_NEAR(tdm__dropout_scale(0.1), 1.0f / (float)0.9, 0);
    CHECK_NEAR(tdm__dropout_scale(0), 1, 0);
}

/* Rows 2 and 3 of a batch of four, alone in a batch of two: the same numbers are dropped. */
TEST(batches_do_not_matter) {
    op_case test = {.rows = 4, .input = {1, {100}}};
    op_data data;
    op_result whole, part;
    REQUIRE(op_data_open(&data, "dropout", &test, 1));
    op_setting setting = {.training = true, .seed = 1, .step = 2, .stream = 3};
    op_run(&whole, op_reference("dropout"), &data, &setting);
    memmove(data.x[0], data.x[0] + 200, 200 * sizeof(float));
    memmove(data.dy, data.dy + 200, 200 * sizeof(float));
    memmove(data.position, data.position + 2, 2 * sizeof *data.position);
    setting.rows = 2;
    op_run(&part, op_reference("dropout"), &data, &setting);
    CHECK(memcmp(whole.y + 200, part.y, 200 * sizeof(float)) == 0);
    CHECK(memcmp(whole.dx[0] + 200, part.dx[0], 200 * sizeof(float)) == 0);
    int dropped = 0;
    for (int i = 0; i < 200; i++) {
        dropped += part.y[i] == 0.0f;
        CHECK((part.y[i] == 0.0f) == (part.dx[0][i] == 0.0f));
        CHECK(part.y[i] == 0.0f || part.y[i] == 2 * data.x[0][i]);
    }
    CHECK_NEAR(dropped, 100, 5 * 7.1);
    op_result_close(&whole);
    op_result_close(&part);
    op_data_close(&data);
}

/* dropout2d: the mask of as many elements as there are channels, each for all points of its channel. */
TEST(channels_are_dropped_whole) {
    enum { CHANNELS = 24, POINTS = 6 };
    op_case test = {.attrs = "p=0.25", .rows = 2, .input = {3, {CHANNELS, 3, 2}}};
    op_data data;
    op_result out;
    REQUIRE(op_data_open(&data, "dropout2d", &test, 1));
    op_run(&out, op_reference("dropout2d"), &data, &(op_setting){.training = true, .seed = 42, .step = 7, .stream = 3});
    for (int n = 0; n < 2; n++) {
        uint8_t keep[CHANNELS];
        tdm__dropout_mask(
            keep, CHANNELS,
            &(tdm_dropout_draw){.p = 0.25, .seed = 42, .step = 7, .stream = 3, .position = data.position[n]});
        for (int i = 0; i < CHANNELS * POINTS; i++) {
            const int at = n * CHANNELS * POINTS + i;
            const float factor = keep[i / POINTS] ? 1.0f / 0.75f : 0.0f;
            CHECK(out.y[at] == data.x[0][at] * factor && out.dx[0][at] == data.dy[at] * factor);
        }
    }
    op_result_close(&out);
    op_data_close(&data);
}

TEST_MAIN(RUN(formula); RUN(everything_that_may_matters); RUN(share_is_p); RUN(batches_do_not_matter);
          RUN(channels_are_dropped_whole);)
