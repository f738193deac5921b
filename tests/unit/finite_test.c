/* Infinities and NaN, found in every form and at every place. */
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/finite.h"
#include "tests/support/tdm_test.h"

enum { MANY = 3000 };

/* Positive numbers by their bits: the largest that is finite, infinity, and two NaN. */
static const struct {
    tdm_float_form form;
    uint64_t largest, bad[3];
} forms[] = {
    {TDM_F16_BITS, 0x7bff, {0x7c00, 0x7c01, 0x7e00}},
    {TDM_BF16_BITS, 0x7f7f, {0x7f80, 0x7f81, 0x7fc0}},
    {TDM_F32_BITS, 0x7f7fffff, {0x7f800000, 0x7f800001, 0x7fc00000}},
    {TDM_F64_BITS, 0x7fefffffffffffff, {0x7ff0000000000000, 0x7ff0000000000001, 0x7ff8000000000000}},
};

static void put(void *numbers, size_t bytes, size_t at, uint64_t bits, bool negative) {
    bits |= (uint64_t)negative << (8 * bytes - 1);
    memcpy((char *)numbers + bytes * at, &bits, bytes); /* little-endian */
}

TEST(every_form_and_place) {
    static uint64_t numbers[MANY];
    static const size_t places[] = {0, 1, 1023, 1024, 1025, 2047, 2048, MANY - 1};
    for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
        tdm_float_form form = forms[f].form;
        size_t bytes = tdm__float_bytes(form);
        for (size_t i = 0; i < MANY; i++) put(numbers, bytes, i, i % 3 == 0 ? 0 : forms[f].largest, i % 2 == 0);
        CHECK_INT(tdm__first_not_finite(form, numbers, MANY), MANY);
        for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++) {
            for (int b = 0; b < 6; b++) {
                put(numbers, bytes, places[p], forms[f].bad[b / 2], b % 2 == 0);
                CHECK_INT(tdm__first_not_finite(form, numbers, MANY), places[p]);
                CHECK_INT(tdm__first_not_finite(form, numbers, places[p]), places[p]);
            }
            put(numbers, bytes, MANY - 1, forms[f].bad[0], false);
            CHECK_INT(tdm__first_not_finite(form, numbers, MANY), places[p]); /* the first */
            put(numbers, bytes, places[p], forms[f].largest, false);
            put(numbers, bytes, MANY - 1, 0, false);
        }
        CHECK_INT(tdm__first_not_finite(form, numbers, 0), 0);
    }
}

TEST(what_is_no_float_is_finite) {
    static const uint32_t ones[2] = {~0u, ~0u};
    CHECK_INT(tdm__float_bytes(TDM_NOT_FLOAT), 0);
    CHECK_INT(tdm__first_not_finite(TDM_NOT_FLOAT, ones, 2), 2);
}

TEST_MAIN(RUN(every_form_and_place); RUN(what_is_no_float_is_finite);)
