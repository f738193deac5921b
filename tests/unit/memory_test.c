/* Host memory, checked sizes, arenas and growing arrays, with exhausted memory at every step. */
#include "runtime/base/memory.h"

#include "runtime/base/status.h"
#include "tests/support/tdm_failing_host.h"
#include "tests/support/tdm_test.h"

TEST(sizes) {
    size_t out = 1;
    CHECK(tdm__add_fits(2, 3, &out) && out == 5);
    CHECK(tdm__add_fits(SIZE_MAX - 1, 1, &out) && out == SIZE_MAX);
    CHECK(!tdm__add_fits(SIZE_MAX, 1, &out));
    CHECK(tdm__mul_fits(0, SIZE_MAX, &out) && out == 0);
    CHECK(tdm__mul_fits(SIZE_MAX / 2, 2, &out) && out == SIZE_MAX - 1);
    CHECK(!tdm__mul_fits(SIZE_MAX / 2 + 1, 2, &out));
}

TEST(new_is_zeroed_and_aligned) {
    tdm_failing_host failing;
    tdm_failing_host_init(&failing, 0);
    unsigned char *bytes;
    REQUIRE_OK(tdm__new(&failing.host, &bytes, 100, 3, "numbers"));
    CHECK_INT((uintptr_t)bytes % TDM_ALIGN, 0);
    for (int i = 0; i < 300; i++) CHECK_INT(bytes[i], 0);
    tdm__delete(&failing.host, bytes);
    REQUIRE_OK(tdm__new(&failing.host, &bytes, 0, 3, "nothing"));
    CHECK(bytes != NULL);
    tdm__delete(&failing.host, bytes);
    tdm__delete(&failing.host, NULL);
    CHECK_INT(failing.live, 0);
}

TEST(new_refuses) {
    tdm_failing_host failing;
    tdm_failing_host_init(&failing, 1);
    int here;
    void *bytes = &here;
    CHECK_STATUS(tdm__new(&failing.host, &bytes, SIZE_MAX / 2, 3, "weights"), TDM_E_MEMORY);
    CHECK(bytes == NULL);
    CHECK_HAS(tdm_error_message(), "weights");
    bytes = &here;
    CHECK_STATUS(tdm__new(&failing.host, &bytes, SIZE_MAX - 8, 1, "weights"), TDM_E_MEMORY);
    CHECK(bytes == NULL);
    CHECK_INT(failing.calls, 0);
    CHECK_STATUS(tdm__new(&failing.host, &bytes, 25, 4, "weights"), TDM_E_MEMORY);
    CHECK_TEXT(tdm_error_message(), "weights: out of memory, needed 100 B");
}

TEST(zone) {
    tdm_failing_host failing;
    tdm_failing_host_init(&failing, 0);
    tdm_zone zone;
    tdm__zone_init(&zone, &failing.host);
    unsigned char *piece[200];
    int not_zeroed = 0, overlapping = 0;
    for (size_t i = 0; i < 200; i++) {
        size_t bytes = i * i % 9000;
        REQUIRE_OK(tdm__zone_new(&zone, &piece[i], bytes, 1));
        CHECK_INT((uintptr_t)piece[i] % 16, 0);
        for (size_t k = 0; k < bytes; k++) not_zeroed += piece[i][k] != 0;
        memset(piece[i], (int)i, bytes);
    }
    for (size_t i = 0; i < 200; i++) {
        for (size_t k = 0; k < i * i % 9000; k++) overlapping += piece[i][k] != i;
    }
    CHECK_INT(not_zeroed, 0);
    CHECK_INT(overlapping, 0);
    const char *text = "unset";
    CHECK_OK(tdm__zone_text(&zone, &text, "hello"));
    CHECK_TEXT(text, "hello");
    CHECK_OK(tdm__zone_text(&zone, &text, NULL));
    CHECK(text == NULL);
    CHECK_OK(tdm__zone_printf(&zone, &text, "%s.%d %0500d", "layer", 3, 1));
    CHECK_INT(strlen(text), 508);
    CHECK(strncmp(text, "layer.3 000", 11) == 0);
    void *none = piece;
    CHECK_STATUS(tdm__zone_new(&zone, &none, SIZE_MAX / 4, 8), TDM_E_MEMORY);
    CHECK(none == NULL);
    CHECK_STATUS(tdm__zone_new(&zone, &none, SIZE_MAX - 40, 1), TDM_E_MEMORY);
    CHECK(failing.live < 100); /* small pieces share blocks */
    tdm__zone_deinit(&zone);
    CHECK_INT(failing.live, 0);
    tdm__zone_deinit(&zone);
}

static tdm_status fill_zone(tdm_zone *zone) {
    const char *text;
    void *piece;
    TDM_TRY(tdm__zone_text(zone, &text, "a"));
    TDM_TRY(tdm__zone_new(zone, &piece, 30000, 1));
    TDM_TRY(tdm__zone_new(zone, &piece, 15000, 1));
    TDM_TRY(tdm__zone_printf(zone, &text, "%05000d", 7));
    return TDM_OK;
}

TEST(zone_without_memory) {
    for (long k = 1;; k++) {
        tdm_failing_host failing;
        tdm_failing_host_init(&failing, k);
        tdm_zone zone;
        tdm__zone_init(&zone, &failing.host);
        tdm_status status = fill_zone(&zone);
        tdm__zone_deinit(&zone);
        CHECK_INT(failing.live, 0);
        if (!failing.failed) {
            CHECK_OK(status);
            CHECK(k > 2);
            break;
        }
        CHECK_INT(status, TDM_E_MEMORY);
    }
}

TEST(grow) {
    tdm_failing_host failing;
    tdm_failing_host_init(&failing, 0);
    int *items = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 1000; i++) {
        REQUIRE_OK(tdm__grow(&failing.host, &items, &capacity, i + 1, sizeof(*items), "items"));
        CHECK_INT(items[i], 0);
        items[i] = (int)i;
    }
    for (int i = 0; i < 1000; i++) CHECK_INT(items[i], i);
    CHECK(failing.calls < 10);
    CHECK_INT(failing.live, 1);
    int *before = items;
    failing.fail_at = failing.calls + 1;
    CHECK_STATUS(tdm__grow(&failing.host, &items, &capacity, 5000, sizeof(*items), "items"), TDM_E_MEMORY);
    CHECK(items == before && capacity >= 1000 && items[999] == 999); /* what was there stays */
    CHECK_STATUS(tdm__grow(&failing.host, &items, &capacity, SIZE_MAX / 2, sizeof(*items), "items"), TDM_E_MEMORY);
    tdm__delete(&failing.host, items);
    CHECK_INT(failing.live, 0);
}

TEST_MAIN(RUN(sizes); RUN(new_is_zeroed_and_aligned); RUN(new_refuses); RUN(zone); RUN(zone_without_memory); RUN(grow);)
