/* All memory is the host's: this program's linker gives every call of the C library's allocator from tandem's own code
 * to the functions below, and between the marks there is none. tools/check_memory says the same of the sources, those
 * of modules among them. */
#include <tandem/comm.h>

#include "tests/api/api.h"
#include "tests/support/tdm_counting_host.h"
#include "tests/support/tdm_test.h"

static atomic_long passed_by; /* calls that did not ask the host */
static _Thread_local bool is_host;
static atomic_bool is_watched;

static void note(void) {
    if (atomic_load(&is_watched) && !is_host) atomic_fetch_add(&passed_by, 1);
}

#define WRAP(result, name, parameters, arguments) \
    result __real_##name parameters;              \
    result __wrap_##name parameters;              \
    result __wrap_##name parameters {             \
        note();                                   \
        return __real_##name arguments;           \
    }
WRAP(void *, malloc, (size_t bytes), (bytes))
WRAP(void *, calloc, (size_t count, size_t bytes), (count, bytes))
WRAP(void *, realloc, (void *old, size_t bytes), (old, bytes))
WRAP(void *, aligned_alloc, (size_t align, size_t bytes), (align, bytes))
WRAP(int, posix_memalign, (void **out, size_t align, size_t bytes), (out, align, bytes))
WRAP(char *, strdup, (const char *text), (text))
WRAP(char *, strndup, (const char *text, size_t most), (text, most))

static void *take(void *user, size_t bytes, size_t align) {
    is_host = true;
    void *pointer = tdm_counting_allocate(user, bytes, align);
    is_host = false;
    return pointer;
}

static int start(void *user, const tdm_thread_info *info, void (*run)(void *argument), void *argument, void **handle) {
    is_host = true;
    const int error = tdm_counting_start(user, info, run, argument, handle);
    is_host = false;
    return error;
}

static void host_init(tdm_counting_host *host) {
    tdm_counting_host_init(host);
    host->host.allocate = take;
    host->host.thread_start = start;
}

static void check_all_asked(tdm_counting_host *host, long least) {
    CHECK_INT(passed_by, 0);
    CHECK(host->calls >= least);
    CHECK_INT(host->live, 0);
}

TEST(calls_are_seen) {
    tdm_config *config = NULL;
    atomic_store(&passed_by, 0);
    atomic_store(&is_watched, true);
    CHECK_OK(tdm_config_parse(&config, NULL, "tandem: 1\n", 10, "a", NULL)); /* the default host */
    tdm_config_free(config);
    CHECK(passed_by > 0);
    atomic_store(&is_watched, false);
}

static const char yaml[] =
    "tandem: 1\nname: memory\nseed: 3\nmodel:\n  input: [3, 16, 16]\n  layers:\n    - conv2d: {out: 32, kernel: 3, padding: 1}\n"
    "    - batchnorm2d\n    - relu\n    - maxpool2d: 2\n    - conv2d: {out: 16, kernel: 3}\n    - relu\n    - flatten\n"
    "    - dropout: 0.1\n    - linear: 64\n    - linear: 3\ndata:\n  train: {format: synthetic, samples: 60}\n"
    "  eval: {format: synthetic, samples: 20}\n  workers: 2\nloss: cross_entropy\noptimizer: {type: adam, lr: 1e-3}\n"
    "train: {steps: 6, batch: {per_device: 7}}\neval: {every: 2 steps}\nlog: {tensorboard: true, every: 1 steps}\n"
    "parallel: {mode: dp, device: cpu, device_ids: [0, 1], threads_per_device: 2}\n";

static void train(tdm_counting_host *host, const char *limit, const char *folder, tdm_buffer *buffer) {
    tdm_config *config = NULL;
    tdm_run *run = NULL;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    const tdm_writer writer = {sizeof(writer), tdm_buffer_write, buffer};
    char override[300];
    float x[3 * 16 * 16] = {0}, y[3];
    snprintf(override, sizeof(override), "run.dir=%s/run", folder);
    atomic_store(&is_watched, true);
    REQUIRE_OK(tdm_config_parse(&config, &host->host, yaml, sizeof(yaml) - 1, "memory.yaml", NULL));
    CHECK_OK(tdm_config_override(config, override));
    CHECK_OK(tdm_config_override(config, limit));
    REQUIRE_OK(tdm_config_check(config));
    options.host = &host->host;
    REQUIRE_OK(tdm_run_open(&run, tdm_config_job(config), tdm_config_graph(config), &options));
    CHECK_OK(tdm_run_train(run));
    CHECK_OK(tdm_run_predict(run, x, 1, y));
    CHECK_OK(tdm_run_save(run, folder));
    CHECK_OK(tdm_run_load(run, folder));
    atomic_store(&is_watched, false); /* a buffer is the program's */
    CHECK_OK(tdm_run_export_to(run, &writer, NULL));
    atomic_store(&is_watched, true);
    tdm_run_close(run);
    tdm_config_free(config);
    atomic_store(&is_watched, false);
}

/* Also for what is prepared to be measured, before a run with a limit opens. */
TEST(a_run_asks_the_host_for_everything) {
    static const char *const limits[] = {"host.memory_limit=null", "host.memory_limit=1GiB"};
    for (int i = 0; i < 2; i++) {
        tdm_counting_host host;
        tdm_buffer buffer = TDM_BUFFER_INIT;
        char folder[256];
        test_folder_make(folder);
        host_init(&host);
        atomic_store(&passed_by, 0);
        train(&host, limits[i], folder, &buffer);
        check_all_asked(&host, 500);
        test_folder_remove(folder);
        tdm_buffer_free(&buffer);
    }
}

TEST(a_model_asks_the_host_for_everything) {
    tdm_counting_host host;
    tdm_buffer buffer = TDM_BUFFER_INIT;
    tdm_model *model = NULL;
    tdm_model_options options = TDM_MODEL_OPTIONS_INIT;
    static float x[9 * 3 * 16 * 16], y[9 * 3];
    char folder[256];
    test_folder_make(folder);
    host_init(&host);
    train(&host, "host.memory_limit=null", folder, &buffer);
    host_init(&host);
    options.host = &host.host;
    options.threads = 2;
    atomic_store(&passed_by, 0);
    atomic_store(&is_watched, true);
    REQUIRE_OK(tdm_model_open_memory(&model, buffer.bytes, buffer.count, &options));
    CHECK_OK(tdm_model_predict(model, TDM_INPUT_FLOATS, x, 9, y));
    tdm_model_close(model);
    atomic_store(&is_watched, false);
    check_all_asked(&host, 20);
    test_folder_remove(folder);
    tdm_buffer_free(&buffer);
}

static void *add_up(void *rank) {
    double one = 1;
    CHECK_OK(tdm_comm_all_reduce(rank, (tdm_span){&one, 1, TDM_DTYPE_F64}, TDM_REDUCE_SUM));
    CHECK(one == 2);
    return NULL;
}

TEST(a_communicator_asks_the_host_for_everything) {
    tdm_counting_host host;
    tdm_comm *rank[2];
    pthread_t other;
    host_init(&host);
    atomic_store(&passed_by, 0);
    atomic_store(&is_watched, true);
    REQUIRE_OK(tdm_comm_open_threads(rank, 2, &host.host, 60000));
    REQUIRE(pthread_create(&other, NULL, add_up, rank[1]) == 0);
    (void)add_up(rank[0]);
    pthread_join(other, NULL);
    for (int i = 0; i < 2; i++) tdm_comm_close(rank[i]);
    atomic_store(&is_watched, false);
    check_all_asked(&host, 2);
}

TEST_MAIN({
    RUN(calls_are_seen);
    RUN(a_run_asks_the_host_for_everything);
    RUN(a_model_asks_the_host_for_everything);
    RUN(a_communicator_asks_the_host_for_everything);
})
