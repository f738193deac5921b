/* Loops that threads share: the CPU's loops over arenas give the same bits in parts, and every number is done once. */
#include "runtime/device/device.h"
#include "runtime/device/share.h"
#include "tests/support/tdm_test.h"

enum { COUNT = 100003, SMALL = 1000 };

static int parts_done;

/* A tdm_share that cuts unevenly, one part after the other. */
static tdm_status in_parts(int threads, int64_t count, void (*work)(void *data, int64_t begin, int64_t end),
                           void *data) {
    const int64_t cut = count / 3;
    CHECK_INT(threads, 2);
    work(data, cut, count);
    work(data, 0, cut);
    parts_done += 2;
    return TDM_OK;
}

static void count_up(void *user, size_t begin, size_t end) {
    unsigned char *times = user;
    CHECK_INT(begin % 16, 0);
    for (size_t i = begin; i < end; i++) times[i]++;
}

static void check_once(tdm_device_threads threads, size_t count, int parts) {
    static unsigned char times[COUNT];
    size_t once = 0;
    memset(times, 0, sizeof(times));
    parts_done = 0;
    CHECK_OK(tdm__share_loop(&threads, count, count_up, times));
    for (size_t i = 0; i < count; i++) once += times[i] == 1;
    CHECK_INT(once, count);
    CHECK_INT(parts_done, parts);
}

TEST(each_number_once) {
    check_once((tdm_device_threads){in_parts, 2}, COUNT, 2);
    check_once((tdm_device_threads){in_parts, 2}, SMALL, 0);
    check_once((tdm_device_threads){in_parts, 1}, COUNT, 0);
    check_once((tdm_device_threads){NULL, 2}, COUNT, 0);
}

typedef struct {
    float sum[COUNT], clipped[COUNT], clamped[COUNT], average[COUNT], wide[COUNT];
    uint16_t narrow[COUNT];
    double norm;
} results;

static void run_loops(tdm_device_threads threads, results *out) {
    static float a[COUNT], b[COUNT];
    tdm_device *device = NULL;
    const tdm_device_options options = {.index = 0, .threads = threads};
    REQUIRE_OK(tdm_cpu_device.open(&device, tdm_host_default(), &options));
    const tdm_arena_ops *ops = device->ops->arenas;
    for (int i = 0; i < COUNT; i++) {
        a[i] = (float)(i % 977) * 0.37f - 100.0f;
        b[i] = (float)(i % 461) * -1.1f + 7.0f;
        out->clipped[i] = out->clamped[i] = out->average[i] = a[i] + 1.0f;
    }
    const float *const source[3] = {a, b, a};
    const tdm_flat_range range = {.offset = 0, .count = COUNT};
    const tdm_step_values values = {.clip_norm = 2.0f, .average_weight = 0.3f, .clip_value = 50.0f};
    CHECK_OK(ops->sum(device, out->sum, source, 3, COUNT));
    CHECK_OK(ops->clip(device, &values, out->clipped, COUNT, &range, 1, &out->norm));
    CHECK_OK(ops->clamp(device, &values, out->clamped, COUNT));
    CHECK_OK(ops->average(device, &values, out->average, b, COUNT));
    CHECK_OK(ops->to_bf16(device, out->narrow, a, COUNT));
    CHECK_OK(ops->add_bf16(device, out->narrow, out->narrow, COUNT));
    CHECK_OK(ops->from_bf16(device, out->wide, out->narrow, COUNT));
    CHECK(out->sum[COUNT - 1] == a[COUNT - 1] + b[COUNT - 1] + a[COUNT - 1]);
    device->ops->close(device);
}

TEST(parts_change_nothing) {
    static results alone, shared;
    run_loops((tdm_device_threads){NULL, 1}, &alone);
    parts_done = 0;
    run_loops((tdm_device_threads){in_parts, 2}, &shared);
    CHECK_INT(parts_done, 14);
    CHECK(memcmp(&alone, &shared, sizeof(alone)) == 0);
}

TEST_MAIN(RUN(each_number_once); RUN(parts_change_nothing);)
