/* Statistics of several replicas are joined as the canonical tree, in which a replica without rows is left out. */
#include <math.h>

#include "ops/batchnorm2d/batchnorm2d.h"
#include "tests/support/tdm_test.h"

enum { REPLICAS = 64, CHANNELS = 2, BLOCK = 1 + 2 * CHANNELS };

static double block[REPLICAS][BLOCK];

static void fill(void) {
    for (int r = 0; r < REPLICAS; r++) {
        block[r][0] = 3 + r % 4;
        for (int i = 1; i < BLOCK; i++) block[r][i] = 1.0 / (r + 3 * i) + (r % 7) * 1e3 * i;
    }
}

static tdm_batchnorm2d_blocks blocks_of(int replicas, uint64_t present) {
    return (tdm_batchnorm2d_blocks){block[0], replicas, 0, present, CHANNELS};
}

/* The definition. */
static tdm_batchnorm2d_moments join(uint64_t present, int first, int count, int channel) {
    const double *of = block[first] + 1 + 2 * channel;
    if (count == 1 && (present >> first & 1) == 0) return (tdm_batchnorm2d_moments){0, 0, 0};
    if (count == 1) return (tdm_batchnorm2d_moments){block[first][0], of[0], of[1]};
    int left = 1;
    while (left * 2 < count) left *= 2;
    const tdm_batchnorm2d_moments a = join(present, first, left, channel);
    const tdm_batchnorm2d_moments b = join(present, first + left, count - left, channel);
    if (a.count == 0 || b.count == 0) return a.count == 0 ? b : a;
    const double total = a.count + b.count, apart = b.mean - a.mean;
    return (tdm_batchnorm2d_moments){total, a.mean + apart * (b.count / total),
                                     a.squares + (b.squares + apart * apart * (a.count * b.count / total))};
}

static double add(uint64_t present, int first, int count, int number) {
    if (count == 1) return (present >> first & 1) != 0 ? block[first][number] : 0;
    int left = 1;
    while (left * 2 < count) left *= 2;
    return add(present, first, left, number) + add(present, first + left, count - left, number);
}

static void check(int replicas, uint64_t present) {
    const tdm_batchnorm2d_blocks blocks = blocks_of(replicas, present);
    for (int c = 0; c < CHANNELS; c++) {
        const tdm_batchnorm2d_moments got = tdm__batchnorm2d_join(&blocks, c), want = join(present, 0, replicas, c);
        const tdm_batchnorm2d_sums sums = tdm__batchnorm2d_add(&blocks, c);
        CHECK(got.count == want.count && got.mean == want.mean && got.squares == want.squares);
        CHECK(sums.dy == add(present, 0, replicas, 1 + 2 * c));
        CHECK(sums.product == add(present, 0, replicas, 2 + 2 * c));
    }
}

TEST(replicas_join_as_the_tree) {
    fill();
    for (int n = 2; n <= REPLICAS; n++) check(n, UINT64_MAX);
    for (int n = 2; n <= 9; n++) /* any of them without rows, but not all */
        for (uint64_t present = 1; present < UINT64_C(1) << n; present++) check(n, present);
}

/* At the end they change nothing: no bit of a job depends on replicas that have no rows. */
TEST(replicas_at_the_end_without_rows_change_nothing) {
    fill();
    for (int n = 2; n <= 9; n++) {
        const tdm_batchnorm2d_blocks some = blocks_of(n, UINT64_MAX), more = blocks_of(17, (UINT64_C(1) << n) - 1);
        const tdm_batchnorm2d_moments a = tdm__batchnorm2d_join(&some, 1), b = tdm__batchnorm2d_join(&more, 1);
        CHECK(a.count == b.count && a.mean == b.mean && a.squares == b.squares);
        CHECK(tdm__batchnorm2d_add(&some, 1).dy == tdm__batchnorm2d_add(&more, 1).dy);
    }
}

/* As of one batch: infinite, unless infinities of both signs meet. */
TEST(infinite_means) {
    const tdm_batchnorm2d_moments finite = {3, 2, 5}, up = {4, INFINITY, NAN}, down = {4, -INFINITY, NAN};
    CHECK(tdm__batchnorm2d_join_two(finite, up).mean == INFINITY);
    CHECK(tdm__batchnorm2d_join_two(up, finite).mean == INFINITY);
    CHECK(tdm__batchnorm2d_join_two(up, up).mean == INFINITY);
    CHECK(tdm__batchnorm2d_join_two(down, finite).mean == -INFINITY);
    CHECK(isnan(tdm__batchnorm2d_join_two(up, down).mean) && isnan(tdm__batchnorm2d_join_two(finite, up).squares));
}

TEST_MAIN(RUN(replicas_join_as_the_tree); RUN(replicas_at_the_end_without_rows_change_nothing); RUN(infinite_means);)
