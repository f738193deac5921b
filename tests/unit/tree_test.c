/* The canonical tree: its sum, and its values formed rank after rank. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/tree.h"
#include "tests/support/tdm_test.h"

enum { RANKS = 256 };

/* The definition. */
static double tree(const double *x, int count) {
    if (count == 1) return x[0];
    int left = 1;
    while (left * 2 < count) left *= 2;
    return tree(x, left) + tree(x + left, count - left);
}

static void fill(double *x) {
    for (int r = 0; r < RANKS; r++) x[r] = 1.0 / (3 + 7 * r % 256) + (r % 5) * 1e6;
}

TEST(the_left_side_is_a_power_of_two) {
    static const int left[] = {0, 0, 1, 2, 2, 4, 4, 4, 4, 8};
    for (int n = 2; n <= 9; n++) CHECK_INT(tdm__tree_left(n), left[n]);
    CHECK_INT(tdm__tree_left(256), 128);
    CHECK_INT(tdm__tree_left(257), 256);
}

TEST(sums_are_the_tree) {
    double x[RANKS], y[RANKS];
    for (int n = 1; n <= RANKS; n++) {
        fill(x);
        memcpy(y, x, sizeof(y));
        CHECK(tdm__tree_sum(y, n) == tree(x, n));
    }
    CHECK(tdm__tree_sum(y, 0) == 0);
    double four[] = {1, 0x1p-53, 0x1p-53, 0x1p-53};
    CHECK(tdm__tree_sum(four, 4) == 1 + 0x1p-52); /* one after another the last three vanish */
}

TEST(ranks_one_after_another_are_the_tree) {
    double x[RANKS], kept[TDM_TREE_ROOM];
    fill(x);
    for (int n = 1; n <= RANKS; n++) {
        int count = 0, most = 0;
        for (int r = 0; r < n; r++) {
            double value = x[r];
            for (int i = tdm__tree_joins(r, n); i > 0; i--) value = kept[--count] + value;
            kept[count++] = value;
            if (r + 1 < n && count > most) most = count;
        }
        CHECK_INT(count, 1);
        CHECK_INT(most, tdm__tree_room(n));
        CHECK(kept[0] == tree(x, n));
    }
    CHECK_INT(tdm__tree_room(RANKS), TDM_TREE_ROOM);
}

TEST_MAIN({
    RUN(the_left_side_is_a_power_of_two);
    RUN(sums_are_the_tree);
    RUN(ranks_one_after_another_are_the_tree);
})
