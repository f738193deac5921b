/* XXH3 against published values, and streaming against the whole. */
#include "runtime/base/hash.h"

#include "tests/support/tdm_failing_host.h"
#include "tests/support/tdm_test.h"

TEST(known_values) {
    char text[TDM_HASH_TEXT];
    tdm__hash_print(text, tdm__hash("", 0));
    CHECK_TEXT(text, "99aa06d3014798d86001c324468d497f"); /* XXH3_128bits of nothing, seed 0 */
    tdm__hash_print(text, tdm__hash(NULL, 0));
    CHECK_TEXT(text, "99aa06d3014798d86001c324468d497f");
    CHECK(tdm__hash64("", 0, 0) == UINT64_C(0x2d06800538d394c2));
    CHECK(tdm__hash64("a", 1, 0) != tdm__hash64("a", 1, 1));
    tdm__hash_print(text, (tdm_hash128){.low = 1, .high = 2});
    CHECK_TEXT(text, "00000000000000020000000000000001");
}

TEST(streaming) {
    unsigned char bytes[5000];
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (unsigned char)(i * 31 + i / 256);
    tdm_hash128 whole = tdm__hash(bytes, sizeof(bytes));
    for (size_t step = 1; step < 2000; step = step * 3 + 1) {
        tdm_hasher *hasher;
        REQUIRE_OK(tdm__hash_open(&hasher, tdm_host_default()));
        for (size_t at = 0; at < sizeof(bytes); at += step)
            tdm__hash_add(hasher, bytes + at, sizeof(bytes) - at < step ? sizeof(bytes) - at : step);
        tdm__hash_add(hasher, NULL, 0);
        tdm_hash128 hash = tdm__hash_value(hasher);
        CHECK(hash.low == whole.low && hash.high == whole.high);
        tdm__hash_close(hasher);
    }
    bytes[4321] ^= 1;
    tdm_hash128 changed = tdm__hash(bytes, sizeof(bytes));
    CHECK(changed.low != whole.low && changed.high != whole.high);
}

TEST(no_memory) {
    tdm_failing_host failing;
    tdm_hasher *hasher;
    tdm_failing_host_init(&failing, 1);
    CHECK_STATUS(tdm__hash_open(&hasher, &failing.host), TDM_E_MEMORY);
    CHECK(hasher == NULL);
    tdm__hash_close(NULL);
}

TEST_MAIN(RUN(known_values); RUN(streaming); RUN(no_memory);)
