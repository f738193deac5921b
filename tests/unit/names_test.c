/* Names and their numbers: many, alike, and none. */
#include <stdio.h>

#include "runtime/base/text/names.h"
#include "tests/support/tdm_test.h"

enum { MANY = 5000 };

TEST(many_names) {
    static char text[MANY][24];
    tdm_zone zone;
    tdm_names names = {0};
    tdm__zone_init(&zone, tdm_host_default());
    CHECK_INT(tdm__names_find(&names, ""), -1);
    for (int i = 0; i < MANY; i++) {
        snprintf(text[i], sizeof(text[i]), "layer.%d", i);
        REQUIRE_OK(tdm__names_add(&names, &zone, text[i], i));
    }
    for (int i = 0; i < MANY; i++) {
        char same[24], other[24];
        snprintf(same, sizeof(same), "layer.%d", i);
        snprintf(other, sizeof(other), "layer.%d.", i);
        CHECK_INT(tdm__names_find(&names, same), i);
        CHECK_INT(tdm__names_find(&names, other), -1);
    }
    REQUIRE_OK(tdm__names_add(&names, &zone, "", 7));
    CHECK_INT(tdm__names_find(&names, ""), 7);
    CHECK(names.entries < 4 * (MANY + 1));
    tdm__zone_deinit(&zone);
}

TEST_MAIN(RUN(many_names);)
