/* Threads of a device: each number of a loop is done once, loops over arenas have the same bits in parts, threads begin
 * when they first have work and end with their object, and the child of a fork has threads of its own. */
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/device/device.h"
#include "runtime/device/threads.h"
#include "tests/support/tdm_counting_host.h"
#include "tests/support/tdm_test.h"

enum { COUNT = 100003, SMALL = 1000 };

static atomic_int begun;

static void begin(void) {
    atomic_fetch_add(&begun, 1);
}

static void count_up(void *user, size_t begin, size_t end) {
    unsigned char *times = user;
    CHECK_INT(begin % 16, 0);
    for (size_t i = begin; i < end; i++) times[i]++;
}

static void check_once(tdm_threads *threads, size_t count) {
    static unsigned char times[COUNT];
    size_t once = 0;
    memset(times, 0, sizeof(times));
    CHECK_OK(tdm__threads_loop(threads, count, count_up, times));
    for (size_t i = 0; i < count; i++) once += times[i] == 1;
    CHECK_INT(once, count);
}

TEST(each_number_once) {
    tdm_counting_host host;
    tdm_threads *threads;
    tdm_counting_host_init(&host);
    check_once(NULL, COUNT);
    for (int count = 1; count <= 5; count++) {
        REQUIRE_OK(tdm__threads_open(&threads, &host.host, count, 3, begin));
        CHECK((threads == NULL) == (count == 1));
        check_once(threads, SMALL);
        CHECK_INT(host.started, 0); /* small work is done alone */
        for (int i = 0; i < 50; i++) check_once(threads, COUNT);
        CHECK_INT(host.started, count - 1);
        tdm__threads_close(threads);
        CHECK_INT(host.joined, host.started);
        for (int i = 0; i < count - 1; i++) {
            CHECK_INT(host.thread[i].role, TDM_THREAD_PART);
            CHECK_INT(host.thread[i].index, i);
            CHECK_INT(host.thread[i].device, 3);
        }
        tdm_counting_host_init(&host);
    }
    REQUIRE_OK(tdm__threads_open(&threads, &host.host, 4, 0, NULL));
    CHECK(threads == NULL);
    tdm__threads_close(NULL);
}

TEST(threads_begin_first) {
    tdm_threads *threads;
    REQUIRE_OK(tdm__threads_open(&threads, tdm_host_default(), 3, 0, begin));
    atomic_store(&begun, 0);
    check_once(threads, COUNT);
    tdm__threads_close(threads);
    CHECK_INT(atomic_load(&begun), 2);
}

TEST(a_refused_thread_is_told_and_asked_for_again) {
    static unsigned char times[COUNT];
    tdm_counting_host host;
    tdm_threads *threads;
    tdm_counting_host_init(&host);
    host.most = 2;
    REQUIRE_OK(tdm__threads_open(&threads, &host.host, 4, 0, begin));
    CHECK_STATUS(tdm__threads_loop(threads, COUNT, count_up, times), TDM_E_MEMORY);
    CHECK_HAS(tdm_error_message(), ": 4 threads for one device cannot be started: the "
                                   "program's host refuses it: Resource temporarily unavailable; set it lower");
    CHECK_INT(host.joined, 2);
    host.most = 100;
    check_once(threads, COUNT);
    tdm__threads_close(threads);
    CHECK_INT(host.started, host.joined);
}

typedef struct nested {
    tdm_threads *threads;
    _Atomic int64_t done;
} nested;

static void add_count(void *data, int64_t begin, int64_t end) {
    atomic_fetch_add(&((nested *)data)->done, end - begin);
}

static void share_again(void *data, int64_t begin, int64_t end) {
    nested *n = data;
    for (int64_t i = begin; i < end; i++) CHECK_OK(tdm__threads_share(n->threads, 10, add_count, n));
}

TEST(work_within_work_is_done_alone) {
    nested n = {.done = 0};
    REQUIRE_OK(tdm__threads_open(&n.threads, tdm_host_default(), 3, 0, begin));
    CHECK_OK(tdm__threads_share(n.threads, 100, share_again, &n));
    CHECK_INT(n.done, 1000);
    tdm__threads_close(n.threads);
}

TEST(a_forked_child_has_threads_of_its_own) {
    tdm_threads *threads;
    int end = -1;
    REQUIRE_OK(tdm__threads_open(&threads, tdm_host_default(), 3, 0, begin));
    check_once(threads, COUNT);
    const pid_t child = fork();
    if (child == 0) {
        check_once(threads, COUNT);
        tdm__threads_close(threads);
        _exit(tdm_test_failures != 0);
    }
    CHECK(child > 0 && waitpid(child, &end, 0) == child && WIFEXITED(end) && WEXITSTATUS(end) == 0);
    check_once(threads, COUNT);
    tdm__threads_close(threads);
}

typedef struct {
    float sum[COUNT], clipped[COUNT], clamped[COUNT], average[COUNT], wide[COUNT];
    uint16_t narrow[COUNT];
    double norm;
} results;

static void run_loops(tdm_threads *threads, results *out) {
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
    tdm_threads *threads;
    run_loops(NULL, &alone);
    REQUIRE_OK(tdm__threads_open(&threads, tdm_host_default(), 3, 0, begin));
    run_loops(threads, &shared);
    tdm__threads_close(threads);
    CHECK(memcmp(&alone, &shared, sizeof(alone)) == 0);
}

TEST_MAIN({
    RUN(each_number_once);
    RUN(threads_begin_first);
    RUN(a_refused_thread_is_told_and_asked_for_again);
    RUN(work_within_work_is_done_alone);
    RUN(a_forked_child_has_threads_of_its_own);
    RUN(parts_change_nothing);
})
