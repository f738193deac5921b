/* Top-5 hits: PyTorch's, row by row and together. */
#include "runtime/train/evaluate/scores.h"

#include <math.h>

#include "tests/support/tdm_test.h"
#include "tests/train/scores_golden.h"

TEST(top5_hits_are_torchs) {
    int64_t all = 0;
    for (int n = 0; n < GOLDEN_ROWS; n++) {
        CHECK_INT(tdm__top5_hits(golden_y[n], 1, GOLDEN_WIDTH, &golden_label[n], GOLDEN_IGNORED), golden_hit[n]);
        all += golden_hit[n];
    }
    CHECK_INT(tdm__top5_hits(golden_y[0], GOLDEN_ROWS, GOLDEN_WIDTH, golden_label, GOLDEN_IGNORED), all);
    CHECK(all > 0 && all < GOLDEN_ROWS);
}

TEST(with_five_classes_every_label_is_a_hit) {
    const float y[2][5] = {{1, 2, 3, 4, 5}, {NAN, NAN, NAN, NAN, NAN}};
    const int64_t label[2] = {0, 4};
    CHECK_INT(tdm__top5_hits(y[0], 2, 5, label, -100), 2);
}

TEST_MAIN(RUN(top5_hits_are_torchs); RUN(with_five_classes_every_label_is_a_hit);)
