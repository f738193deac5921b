/* The device of the CUDA module on emulated CUDA: memory, copies, queues, events, captures, messages, and what happens
 * when any call of CUDA fails. */
#include <math.h>
#include <pthread.h>

#include <tandem/job.h>

#include "runtime/base/system/clock.h"
#include "runtime/base/status.h"
#include "runtime/device/device.h"
#include "tests/cuda/emulated.h"
#include "tests/support/tdm_failing_host.h"
#include "tests/support/device_fill.h"

static const tdm_device_options options = {.index = 0, .precision = TDM_F32, .deterministic = true};

/* ---- probe ---- */

static void refused(const emulated *e, const char *sentence) {
    char text[512] = "";
    CHECK_INT(e->module->probe(text, sizeof text), 0);
    CHECK_HAS(text, sentence);
}

/* Runs first: libraries that were found once stay. */
TEST(probe_names_missing_libraries) {
    const emulated *e = emulated_open();
    void *library = dlopen("libcublasLt.so.13", RTLD_LAZY | RTLD_LOCAL);
    if (library != NULL) {
        dlclose(library);
        return;
    }
    setenv("TANDEM_CUDA_LIBRARIES", "/no/such/folder", 1);
    refused(e, "cublasLt 13 was not found: /no/such/folder/libcublasLt.so.13: ");
    unsetenv("TANDEM_CUDA_LIBRARIES");
    refused(e, "cublasLt 13 was not found: libcublasLt.so.13: ");
    tdm_device *device = NULL;
    CHECK_STATUS(e->ops->open(&device, tdm_host_default(), &options), TDM_E_DEVICE);
    CHECK_HAS(tdm_error_message(), "cuda:0: cublasLt 13 was not found");
    CHECK(device == NULL);
    CHECK_INT(e->live(), 0);
}

TEST(probe_says_what_is_there) {
    const emulated *e = emulated_open();
    char text[512] = "";
    CHECK_INT(e->module->probe(text, sizeof text), 1);
    CHECK_HAS(text, " and 1 more, CUDA 13.0, cublasLt 13.");
    CHECK_HAS(text, ", cuDNN 9.");
    CHECK_TEXT(e->module->name, "cuda");
    CHECK_INT(e->module->abi, TDM_MODULE_ABI);
}

TEST(probe_says_what_is_missing) {
    const emulated *e = emulated_open();
    e->set_driver(0);
    refused(e, "there is no NVIDIA driver on this machine");
    e->set_driver(12040);
    refused(e, "the NVIDIA driver is too old: CUDA 13 is needed, it has CUDA 12.4");
    e->set_driver(13000);
    e->set_devices(0);
    refused(e, "the NVIDIA driver shows no GPU to this process");
}

/* ---- opening ---- */

static tdm_device *open_device(const emulated *e, int index) {
    tdm_device *device = NULL;
    tdm_device_options wanted = options;
    wanted.index = index;
    CHECK_OK(e->ops->open(&device, tdm_host_default(), &wanted));
    if (device == NULL) exit(1);
    return device;
}

TEST(devices_have_names) {
    const emulated *e = emulated_open();
    tdm_device_info info;
    int count = 0;
    CHECK_OK(e->ops->count(&count));
    CHECK_INT(count, 2);
    CHECK_OK(e->ops->info(1, &info));
    CHECK(info.name[0] != '\0');
    CHECK_TEXT(info.capability, "9.0");
    CHECK(info.memory_bytes > 0 && info.memory_free > 0 && info.memory_free <= info.memory_bytes);
    tdm_device_info other;
    CHECK_OK(e->ops->info(0, &other));
    CHECK(info.identity[0] != 0 && memcmp(info.identity, other.identity, sizeof(info.identity)) != 0);
    CHECK_STATUS(e->ops->info(2, &info), TDM_E_DEVICE);
    CHECK_HAS(tdm_error_message(), "cuda:2 is asked for, but CUDA shows 2 devices");
    tdm_device *device = open_device(e, 1);
    CHECK_TEXT(device->name, "cuda:1");
    CHECK_INT(device->index, 1);
    CHECK(device->ops == e->ops);
    CHECK(!tdm__device_on_host(e->ops));
    CHECK_TEXT(e->ops->name, "cuda");
    e->ops->close(device);
    e->ops->close(NULL);
    CHECK_INT(e->live(), 0);
    e->set_devices(0);
    CHECK_OK(e->ops->count(&count));
    CHECK_INT(count, 0);
    CHECK_STATUS(e->ops->info(0, &info), TDM_E_DEVICE);
    CHECK_HAS(tdm_error_message(), "CUDA_VISIBLE_DEVICES");
}

static void not_opened(const emulated *e, tdm_device_options wanted, tdm_status status, const char *sentence) {
    tdm_device *device = NULL;
    CHECK_STATUS(e->ops->open(&device, tdm_host_default(), &wanted), status);
    CHECK_HAS(tdm_error_message(), sentence);
    CHECK(device == NULL);
    CHECK_INT(e->live(), 0);
}

TEST(devices_that_cannot_do_it_say_so) {
    const emulated *e = emulated_open();
    not_opened(e, (tdm_device_options){.index = -1}, TDM_E_DEVICE, "cuda:-1 is asked for");
    e->set_capability(75);
    not_opened(e, (tdm_device_options){.precision = TDM_BF16}, TDM_E_UNSUPPORTED,
               "train.precision bf16 needs compute capability 8.0 or newer, it has 7.5; use f32");
    not_opened(e, (tdm_device_options){.precision = TDM_TF32}, TDM_E_UNSUPPORTED,
               "train.precision tf32 needs compute capability 8.0 or newer, it has 7.5; use f32");
    tdm_device *device = open_device(e, 0);
    e->ops->close(device);
    e->set_capability(70);
    not_opened(e, options, TDM_E_DEVICE, "compute capability 7.5 or newer is needed, it has 7.0");
}

/* ---- memory ---- */

TEST(memory_is_zeroed_and_counted) {
    const emulated *e = emulated_open();
    tdm_device *device = open_device(e, 0);
    const size_t before = device->bytes_now;
    unsigned char *memory = NULL, host[300];
    void *nothing = NULL;
    memset(host, 1, sizeof host);
    REQUIRE_OK(e->ops->allocate(device, (void **)&memory, sizeof host, "a test"));
    CHECK((uintptr_t)memory % 64 == 0);
    CHECK_INT(device->bytes_now - before, sizeof host);
    CHECK_OK(e->ops->queues->copy(device, NULL, host, memory, sizeof host));
    CHECK_OK(e->ops->queues->finish(device, NULL));
    for (size_t i = 0; i < sizeof host; i++) CHECK(host[i] == 0);
    CHECK_OK(e->ops->allocate(device, &nothing, 0, "nothing"));
    CHECK(nothing != NULL);
    e->ops->release(device, nothing);
    e->ops->release(device, memory);
    e->ops->release(device, NULL);
    CHECK_INT(device->bytes_now, before);
    CHECK(device->bytes_peak >= before + sizeof host);
    e->ops->close(device);
    CHECK_INT(e->live(), 0);
}

TEST(many_allocations_are_told_apart) {
    const emulated *e = emulated_open();
    tdm_device *device = open_device(e, 0);
    const size_t before = device->bytes_now;
    enum { MANY = 50 };
    void *memory[MANY];
    for (size_t i = 0; i < MANY; i++) CHECK_OK(e->ops->allocate(device, &memory[i], i + 1, "one of many"));
    CHECK_INT(device->bytes_now - before, MANY * (MANY + 1) / 2);
    for (size_t i = 0; i < MANY; i += 2) e->ops->release(device, memory[i]);
    CHECK_INT(device->bytes_now - before, MANY / 2 * (MANY / 2 + 1));
    for (size_t i = 1; i < MANY; i += 2) e->ops->release(device, memory[i]);
    CHECK_INT(device->bytes_now, before);
    e->ops->close(device);
    CHECK_INT(e->live(), 0);
}

TEST(copies_know_where_pointers_are) {
    const emulated *e = emulated_open();
    tdm_device *first = open_device(e, 0), *second = open_device(e, 1);
    enum { COUNT = 1000 };
    unsigned char *pinned = NULL, *a = NULL, *b = NULL, plain[COUNT] = {0};
    REQUIRE_OK(e->ops->allocate_host(first, (void **)&pinned, COUNT, "a batch"));
    REQUIRE_OK(e->ops->allocate(first, (void **)&a, COUNT, "a batch"));
    REQUIRE_OK(e->ops->allocate(second, (void **)&b, COUNT, "a batch"));
    for (int i = 0; i < COUNT; i++) pinned[i] = (unsigned char)(i * 7);
    CHECK_OK(e->ops->queues->copy(first, NULL, a, pinned, COUNT));
    CHECK_OK(tdm_test_fill(first, a + 500, 9, 10));
    CHECK_OK(e->ops->queues->finish(first, NULL));
    CHECK_OK(e->ops->queues->copy(second, NULL, b, a, COUNT));
    CHECK_OK(e->ops->queues->copy(second, NULL, plain, b, COUNT));
    CHECK_OK(e->ops->queues->copy(second, NULL, plain, b, 0));
    CHECK_OK(e->ops->queues->finish(second, NULL));
    for (int i = 0; i < COUNT; i++) CHECK(plain[i] == (i >= 500 && i < 510 ? 9 : (unsigned char)(i * 7)));
    e->ops->release_host(first, pinned);
    e->ops->release_host(first, NULL);
    e->ops->release(first, a);
    e->ops->release(second, b);
    e->ops->close(second);
    e->ops->close(first);
    CHECK_INT(e->live(), 0);
}

TEST(exhausted_memory_says_what_to_change) {
    const emulated *e = emulated_open();
    e->set_memory((size_t)64 << 20);
    tdm_device *device = open_device(e, 0);
    const size_t before = device->bytes_now;
    void *memory = device;
    CHECK_STATUS(e->ops->allocate(device, &memory, (size_t)3 << 30, "the activations"), TDM_E_MEMORY);
    CHECK(memory == NULL);
    CHECK_HAS(tdm_error_message(), "cuda:0, ");
    CHECK_HAS(tdm_error_message(), ": the activations: out of memory, needed 3.000 GiB beside the ");
    CHECK_HAS(tdm_error_message(), " of 0.062 GiB are free");
    CHECK_HAS(tdm_error_message(),
              "make train.batch.per_device smaller, or train.accumulate larger, or the model smaller");
    CHECK_INT(device->bytes_now, before);
    CHECK_OK(e->ops->allocate(device, &memory, 1 << 20, "less"));
    e->ops->release(device, memory);
    e->ops->close(device);
    CHECK_INT(e->live(), 0);
}

/* ---- queues, events, captures ---- */

enum { COUNT = 70 };

typedef struct {
    tdm_device *device;
    float *a, *b, *sum, host[COUNT];
} sums;

static void sums_open(const emulated *e, sums *s) {
    s->device = open_device(e, 0);
    CHECK_OK(e->ops->allocate(s->device, (void **)&s->a, sizeof s->host, "a"));
    CHECK_OK(e->ops->allocate(s->device, (void **)&s->b, sizeof s->host, "b"));
    CHECK_OK(e->ops->allocate(s->device, (void **)&s->sum, sizeof s->host, "sum"));
    if (s->sum == NULL) exit(1);
}

static void sums_set(const emulated *e, sums *s, float *to, float value) {
    for (int i = 0; i < COUNT; i++) s->host[i] = value + (float)i;
    CHECK_OK(e->ops->queues->copy(s->device, NULL, to, s->host, sizeof s->host));
    CHECK_OK(e->ops->queues->finish(s->device, NULL));
}

static float sums_get(const emulated *e, sums *s, int i) {
    CHECK_OK(e->ops->queues->copy(s->device, NULL, s->host, s->sum, sizeof s->host));
    CHECK_OK(e->ops->queues->finish(s->device, NULL));
    return s->host[i];
}

static tdm_status sums_add(const emulated *e, const sums *s) {
    const float *source[] = {s->a, s->b};
    return e->ops->arenas->sum(s->device, s->sum, source, 2, COUNT);
}

static void sums_close(const emulated *e, sums *s) {
    e->ops->release(s->device, s->a);
    e->ops->release(s->device, s->b);
    e->ops->release(s->device, s->sum);
    e->ops->close(s->device);
    CHECK_INT(e->live(), 0);
}

TEST(queues_wait_for_events) {
    const emulated *e = emulated_open();
    sums s;
    tdm_queue *queue = NULL;
    tdm_device_event *before = NULL, *after = NULL;
    bool done = true;
    double ms = -1;
    float got[COUNT];
    sums_open(e, &s);
    REQUIRE_OK(e->ops->queues->open(s.device, TDM_COPIES, &queue));
    REQUIRE_OK(e->ops->events->open(s.device, TDM_STAMPS, &before));
    REQUIRE_OK(e->ops->events->open(s.device, TDM_STAMPS, &after));
    CHECK(e->ops->queues->handle(s.device, queue) != e->ops->queues->handle(s.device, NULL));
    sums_set(e, &s, s.a, 1);
    sums_set(e, &s, s.b, 10);
    const int64_t start_ns = tdm__now_ns();
    CHECK_OK(e->ops->events->record(s.device, before, NULL));
    CHECK_OK(sums_add(e, &s));
    CHECK_OK(e->ops->events->record(s.device, after, NULL));
    CHECK_OK(e->ops->events->done(s.device, after, &done));
    CHECK(!done); /* the emulator works when something waits */
    CHECK_OK(e->ops->events->wait(s.device, after, queue));
    CHECK_OK(e->ops->queues->copy(s.device, queue, got, s.sum, sizeof got));
    CHECK_OK(e->ops->queues->finish(s.device, queue));
    for (int i = 0; i < COUNT; i++) CHECK(got[i] == 11.0f + 2.0f * (float)i);
    CHECK_OK(e->ops->events->done(s.device, after, &done));
    CHECK(done);
    CHECK_OK(e->ops->events->ms(s.device, before, after, &ms));
    CHECK(ms > 0 && ms <= tdm__ms_since(start_ns));
    e->ops->events->close(s.device, before);
    e->ops->events->close(s.device, after);
    e->ops->events->close(s.device, NULL);
    e->ops->queues->close(s.device, queue);
    e->ops->queues->close(s.device, NULL);
    sums_close(e, &s);
}

/* Gradients on their way hold up more than the work beside them: its blocks go first where both wait. */
TEST(collectives_go_first) {
    const emulated *e = emulated_open();
    sums s;
    tdm_queue *queue[2] = {NULL, NULL};
    int own = -1, priority[2] = {-1, -1};
    sums_open(e, &s);
    REQUIRE_OK(e->ops->queues->open(s.device, TDM_COPIES, &queue[0]));
    REQUIRE_OK(e->ops->queues->open(s.device, TDM_COLLECTIVES, &queue[1]));
    CHECK_INT(e->stream_priority(e->ops->queues->handle(s.device, NULL), &own), 0);
    for (int i = 0; i < 2; i++)
        CHECK_INT(e->stream_priority(e->ops->queues->handle(s.device, queue[i]), &priority[i]), 0);
    CHECK_INT(priority[0], own);
    CHECK(priority[1] < own); /* CUDA's numbers: the lower, the sooner */
    for (int i = 0; i < 2; i++) e->ops->queues->close(s.device, queue[i]);
    sums_close(e, &s);
}

TEST(captured_work_is_run_again) {
    const emulated *e = emulated_open();
    sums s;
    tdm_capture *capture = NULL;
    tdm_queue *queue = NULL;
    tdm_device_event *fork = NULL, *join = NULL;
    sums_open(e, &s);
    REQUIRE_OK(e->ops->queues->open(s.device, TDM_COPIES, &queue));
    REQUIRE_OK(e->ops->events->open(s.device, TDM_STAMPS, &fork));
    REQUIRE_OK(e->ops->events->open(s.device, TDM_STAMPS, &join));
    sums_set(e, &s, s.a, 1);
    sums_set(e, &s, s.b, 10);
    const long work = e->work_done();
    REQUIRE_OK(e->ops->captures->begin(s.device));
    CHECK_OK(sums_add(e, &s));
    CHECK_OK(e->ops->events->record(s.device, fork, NULL));
    CHECK_OK(e->ops->events->wait(s.device, fork, queue));
    CHECK_OK(e->ops->queues->copy(s.device, queue, s.b, s.sum, sizeof s.host)); /* a branch on another queue */
    CHECK_OK(e->ops->events->record(s.device, join, queue));
    CHECK_OK(e->ops->events->wait(s.device, join, NULL));
    REQUIRE_OK(e->ops->captures->end(s.device, &capture));
    REQUIRE(capture != NULL);
    CHECK_INT(e->work_done(), work);
    CHECK(sums_get(e, &s, 0) == 0.0f);
    for (int run = 1; run <= 3; run++) {
        CHECK_OK(e->ops->captures->run(s.device, capture));
        CHECK(sums_get(e, &s, 5) == 15.0f + 6.0f * (float)run);
    }
    e->ops->captures->free(s.device, capture);
    e->ops->captures->free(s.device, NULL);
    e->ops->events->close(s.device, fork);
    e->ops->events->close(s.device, join);
    e->ops->queues->close(s.device, queue);
    sums_close(e, &s);
}

TEST(failed_captures_leave_the_device_usable) {
    const emulated *e = emulated_open();
    sums s;
    tdm_capture *capture = NULL;
    void *memory = NULL;
    sums_open(e, &s);
    sums_set(e, &s, s.a, 1);
    REQUIRE_OK(e->ops->captures->begin(s.device));
    CHECK_STATUS(e->ops->queues->finish(s.device, NULL),
                 TDM_E_DEVICE); /* waiting cannot be captured, and spoils the capture */
    CHECK_STATUS(e->ops->captures->end(s.device, &capture), TDM_E_DEVICE);
    CHECK(capture == NULL);
    CHECK_HAS(tdm_error_message(), "cuda:0: cudaStreamEndCapture failed: cudaErrorStreamCapture");
    CHECK_OK(e->ops->queues->finish(s.device, NULL));
    CHECK_OK(sums_add(e, &s));
    CHECK(sums_get(e, &s, 2) == 3.0f);
    CHECK_STATUS(e->ops->captures->end(s.device, &capture), TDM_E_DEVICE);
    CHECK_OK(e->ops->allocate(s.device, &memory, 64, "after it"));
    e->ops->release(s.device, memory);
    sums_close(e, &s);
}

/* ---- failures ---- */

TEST(a_lost_device_is_named) {
    const emulated *e = emulated_open();
    sums s;
    sums_open(e, &s);
    e->fail_work_at(1);
    (void)sums_add(e, &s);
    CHECK_STATUS(e->ops->queues->finish(s.device, NULL), TDM_E_DEVICE);
    CHECK_HAS(tdm_error_message(), "cuda:0: cuda");
    CHECK_HAS(tdm_error_message(), "failed: cudaErrorIllegalAddress, ");
    CHECK_HAS(tdm_error_message(), "the device is lost to this process: end it");
    sums_close(e, &s);
}

/* A launch is checked by asking for the last error: that of an earlier call must be gone by then. */
TEST(a_failure_is_told_once) {
    const emulated *e = emulated_open();
    sums s;
    tdm_device_event *never = NULL;
    double ms = 0;
    sums_open(e, &s);
    REQUIRE_OK(e->ops->events->open(s.device, TDM_STAMPS, &never));
    CHECK_STATUS(e->ops->events->ms(s.device, never, never, &ms), TDM_E_DEVICE);
    CHECK_HAS(tdm_error_message(), "cuda:0: cudaEventElapsedTime failed: cudaError");
    CHECK_OK(sums_add(e, &s));
    CHECK_OK(e->ops->queues->finish(s.device, NULL));
    e->ops->events->close(s.device, never);
    sums_close(e, &s);
}

/* Everything a device does, once. */
static tdm_status exercise(const emulated *e, tdm_device *device, void **held) {
    float host[COUNT] = {0};
    bool done = false;
    double ms = 0;
    tdm_device_info info;
    TDM_TRY(e->ops->info(0, &info));
    TDM_TRY(e->ops->allocate(device, &held[0], sizeof host, "a"));
    TDM_TRY(e->ops->allocate_host(device, &held[1], sizeof host, "a"));
    TDM_TRY(e->ops->queues->open(device, TDM_COLLECTIVES, (tdm_queue **)&held[2]));
    TDM_TRY(e->ops->events->open(device, TDM_STAMPS, (tdm_device_event **)&held[3]));
    TDM_TRY(e->ops->events->open(device, TDM_STAMPS, (tdm_device_event **)&held[4]));
    TDM_TRY(e->ops->queues->copy(device, NULL, held[0], held[1], sizeof host));
    TDM_TRY(tdm_test_fill(device, held[0], 0, sizeof host));
    TDM_TRY(e->ops->events->record(device, held[3], NULL));
    TDM_TRY(e->ops->events->wait(device, held[3], held[2]));
    TDM_TRY(e->ops->events->record(device, held[4], held[2]));
    TDM_TRY(e->ops->queues->finish(device, held[2]));
    TDM_TRY(e->ops->events->done(device, held[4], &done));
    TDM_TRY(e->ops->events->ms(device, held[3], held[4], &ms));
    TDM_TRY(e->ops->captures->begin(device));
    const float *source[] = {held[0]};
    const tdm_status status = e->ops->arenas->sum(device, held[0], source, 1, COUNT);
    TDM_TRY(e->ops->captures->end(device, (tdm_capture **)&held[5]));
    TDM_TRY(status);
    TDM_TRY(e->ops->captures->run(device, held[5]));
    return e->ops->queues->finish(device, NULL);
}

static tdm_status open_and_exercise(const emulated *e, const tdm_host *host) {
    void *held[6] = {NULL};
    tdm_device *device = NULL;
    int count = 0;
    TDM_TRY(e->ops->count(&count));
    TDM_TRY(e->ops->open(&device, host, &options));
    const tdm_status status = exercise(e, device, held);
    e->ops->captures->free(device, held[5]);
    e->ops->events->close(device, held[4]);
    e->ops->events->close(device, held[3]);
    e->ops->queues->close(device, held[2]);
    e->ops->release_host(device, held[1]);
    e->ops->release(device, held[0]);
    e->ops->close(device);
    return status;
}

TEST(any_call_may_fail) {
    const emulated *e = emulated_open();
    int failures = 0;
    for (long k = 1; k < 1000; k++) {
        tdm_failing_host host;
        tdm_failing_host_init(&host, 0);
        emulated_open();
        const long before = e->calls();
        e->fail_at(k);
        const tdm_status status = open_and_exercise(e, &host.host);
        const long calls = e->calls() - before;
        e->fail_at(0);
        if (e->live() != 0) fprintf(stderr, "call %ld: %s\n", k, tdm_error_message());
        CHECK_INT(e->live(), 0);
        CHECK_INT(host.live, 0);
        if (calls < k) {
            CHECK_OK(status);
            break;
        }
        if (status != TDM_OK) {
            CHECK(status == TDM_E_DEVICE || status == TDM_E_MEMORY);
            failures++;
        }
    }
    /* Those that are not told: of closing, of peers, and of asking for free memory. */
    CHECK(failures > 30);
}

/* ---- threads ---- */

enum { ROUNDS = 10 };

static void *use_device(void *argument) {
    const emulated *e = argument;
    for (int round = 0; round < ROUNDS; round++) CHECK_OK(open_and_exercise(e, tdm_host_default()));
    return NULL;
}

static void *use_other_device(void *argument) {
    const emulated *e = argument;
    for (int round = 0; round < ROUNDS; round++) {
        tdm_device *device = open_device(e, 1);
        void *memory = NULL;
        CHECK_OK(e->ops->allocate(device, &memory, 1000, "a test"));
        CHECK_OK(tdm_test_fill(device, memory, 1, 1000));
        CHECK_OK(e->ops->queues->finish(device, NULL));
        e->ops->release(device, memory);
        e->ops->close(device);
    }
    return NULL;
}

TEST(threads_have_devices_of_their_own) {
    const emulated *e = emulated_open();
    void *(*const work[])(void *) = {use_device, use_other_device, use_device};
    enum { THREADS = sizeof work / sizeof work[0] };
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) REQUIRE(pthread_create(&thread[i], NULL, work[i], (void *)(uintptr_t)e) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    CHECK_INT(e->live(), 0);
}

TEST(any_allocation_of_the_host_may_fail) {
    const emulated *e = emulated_open();
    for (long k = 1;; k++) {
        tdm_failing_host host;
        tdm_failing_host_init(&host, k);
        const tdm_status status = open_and_exercise(e, &host.host);
        CHECK_INT(e->live(), 0);
        CHECK_INT(host.live, 0);
        if (!host.failed) {
            CHECK_OK(status);
            break;
        }
        CHECK_INT(status, TDM_E_MEMORY);
    }
}

TEST_MAIN(RUN(probe_names_missing_libraries); RUN(probe_says_what_is_there); RUN(probe_says_what_is_missing);
          RUN(devices_have_names); RUN(devices_that_cannot_do_it_say_so); RUN(memory_is_zeroed_and_counted);
          RUN(many_allocations_are_told_apart); RUN(copies_know_where_pointers_are);
          RUN(exhausted_memory_says_what_to_change); RUN(queues_wait_for_events); RUN(collectives_go_first);
          RUN(captured_work_is_run_again); RUN(failed_captures_leave_the_device_usable); RUN(a_lost_device_is_named);
          RUN(a_failure_is_told_once); RUN(any_call_may_fail); RUN(threads_have_devices_of_their_own);
          RUN(any_allocation_of_the_host_may_fail);)
