/* How many processes of a host share the CPUs of one of them. */
#include "runtime/base/system/cpus.h"
#include "tests/support/tdm_test.h"

static tdm_cpus of(int64_t low, int64_t high) {
    return (tdm_cpus){.word = {[0] = low, [15] = high}};
}

TEST(unbound_processes_share_all) {
    const tdm_cpus cpus[3] = {of(0xff, 0), of(0xff, 0), of(0xff, 0)};
    for (int i = 0; i < 3; i++) CHECK_INT(tdm__cpus_sharers(cpus, 3, i), 3);
}

TEST(bound_processes_share_none) {
    const tdm_cpus cpus[3] = {of(0x0f, 0), of(0xf0, 0), of(0, INT64_MIN)};
    for (int i = 0; i < 3; i++) CHECK_INT(tdm__cpus_sharers(cpus, 3, i), 1);
}

TEST(those_that_overlap_count) {
    const tdm_cpus cpus[4] = {of(0x0f, 0), of(0x18, 0), of(0x30, 1), of(0, 3)};
    const int want[4] = {2, 3, 3, 2};
    for (int i = 0; i < 4; i++) CHECK_INT(tdm__cpus_sharers(cpus, 4, i), want[i]);
}

/* A kernel that does not say shares everything with everybody. */
TEST(own_processors_are_those_that_are_available) {
    tdm_cpus own;
    int count = 0;
    tdm__cpus_read(&own);
    for (int w = 0; w < 16; w++) count += __builtin_popcountll((unsigned long long)own.word[w]);
    CHECK(count >= tdm__cpus_available(tdm_host_default()));
    CHECK_INT(tdm__cpus_sharers(&own, 1, 0), 1);
}

TEST_MAIN({
    RUN(unbound_processes_share_all);
    RUN(bound_processes_share_none);
    RUN(those_that_overlap_count);
    RUN(own_processors_are_those_that_are_available);
})
