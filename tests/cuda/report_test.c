/* What is told of GPUs for a report: with NVML, without, with one that lacks a function or has bad news; and the
 * section of tdm_environment. */
#include <jansson.h>

#include <tandem/doctor.h>

#include "tests/cuda/emulated.h"

/* "key: value\n" for each line. */
typedef struct {
    char text[16384];
    int lines;
} told;

static void keep(void *user, const char *key, const char *value) {
    told *t = user;
    const size_t used = strlen(t->text);
    snprintf(t->text + used, sizeof t->text - used, "%s: %s\n", key, value);
    t->lines++;
}

static const char *report(const emulated *e) {
    static told t;
    memset(&t, 0, sizeof t);
    CHECK_OK(e->ops->report(keep, &t));
    CHECK_INT(e->live(), 0);
    return t.text;
}

/* The default of every knob of the fake NVML. */
static const emulated *fresh(void) {
    static const char *const knobs[] = {"ECC", "ECC_ERRORS", "THROTTLING", "LINKS", "SUPPORTED", "INIT"};
    for (size_t i = 0; i < sizeof knobs / sizeof knobs[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "NVML_EMULATED_%s", knobs[i]);
        unsetenv(name);
    }
    return emulated_open();
}

static void set(const char *knob, const char *value) {
    char name[64];
    snprintf(name, sizeof name, "NVML_EMULATED_%s", knob);
    setenv(name, value, 1);
}

TEST(everything_is_told) {
    const emulated *e = fresh();
    const char *text = report(e);
    CHECK_HAS(text, "driver: 580.82.07, for CUDA 13.0\nCUDA runtime: 13.0\ncublasLt: 13.");
    CHECK_HAS(text, ", " FAKE_LIBRARIES "/libcublasLt.so.13\ncuDNN: 9.");
    CHECK_HAS(text, "NVML: " FAKE_LIBRARIES "/libnvidia-ml.so.1\n");
    CHECK_HAS(text, "cuda:0: Emulated GPU, compute capability 9.0, 4 multiprocessors, PCI 0000:01:00.0\n"
                    "cuda:0 memory: 1.0 GiB, 1.0 GiB free\n"
                    "cuda:0 ECC: on, no uncorrected errors since the driver was loaded\n"
                    "cuda:0 clocks: SM 345 of 1980 MHz, memory 2619 of 3201 MHz\n"
                    "cuda:0 power: 77 of 700 W, 31 C\n"
                    "cuda:0 throttling: none\n"
                    "cuda:1: Emulated GPU");
    CHECK_HAS(text, "cuda:0 peers: -    NV4\ncuda:1 peers: NV4  -\n");
    CHECK(strstr(text, "WARNING") == NULL);
}

TEST(free_memory_is_that_of_others_too) {
    const emulated *e = fresh();
    const tdm_device_options options = {.index = 1};
    tdm_device *device = NULL;
    void *memory = NULL;
    told t = {.text = ""};
    REQUIRE_OK(e->ops->open(&device, tdm_host_default(), &options));
    CHECK_OK(e->ops->allocate(device, &memory, (size_t)512 << 20, "half of it"));
    CHECK_OK(e->ops->report(keep, &t));
    CHECK_HAS(t.text, "cuda:1 memory: 1.0 GiB, 0.5 GiB free\n");
    e->ops->release(device, memory);
    e->ops->close(device);
}

TEST(errors_of_memory_warn) {
    const emulated *e = fresh();
    set("ECC_ERRORS", "3");
    CHECK_HAS(report(e), "cuda:0 ECC: WARNING: on, 3 uncorrected errors since the driver was loaded (5 in the GPU's "
                         "life); reset the GPU");
    CHECK_HAS(report(e), "cuda:1 ECC: on, no uncorrected errors");
    set("ECC_ERRORS", "1");
    CHECK_HAS(report(e), "WARNING: on, 1 uncorrected error since");
    set("ECC", "0");
    CHECK_HAS(report(e), "cuda:0 ECC: off\n");
    set("ECC", "2");
    CHECK_HAS(report(e), "cuda:0 ECC: off, on after a reset\n");
}

TEST(slow_clocks_warn) {
    const emulated *e = fresh();
    set("THROTTLING", "0x4c");
    CHECK_HAS(report(e), "cuda:0 throttling: WARNING: its clocks are limited by temperature (hardware), the power "
                         "limit\ncuda:1");
    set("THROTTLING", "0x8");
    CHECK_HAS(report(e), "limited by the hardware\n");
    set("THROTTLING", "0x1ff");
    CHECK_HAS(report(e), "temperature (driver), the power supply's brake, the power limit, a slower GPU");
    set("THROTTLING", "3");
    CHECK_HAS(report(e), "cuda:0 throttling: none; its clocks were set by hand\n");
}

TEST(what_a_gpu_lacks_is_left_out) {
    const emulated *e = fresh();
    set("SUPPORTED", "0");
    const char *text = report(e);
    CHECK_HAS(text, "cuda:0 memory: 1.0 GiB, 1.0 GiB free\ncuda:1: ");
    CHECK_HAS(text, "cuda:0 peers: -    yes\n");
    e->set_capability(61);
    CHECK_HAS(report(e), "cuda:0: WARNING: Emulated GPU, compute capability 6.1 (7.5 or newer is needed), ");
}

TEST(peers_are_a_matrix) {
    const emulated *e = fresh();
    e->set_devices(4);
    CHECK_HAS(report(e), "cuda:0 peers: -    NV4  yes  yes\n"
                         "cuda:1 peers: NV4  -    yes  yes\n"
                         "cuda:2 peers: yes  yes  -    NV4\n"
                         "cuda:3 peers: yes  yes  NV4  -\n");
    set("LINKS", "-1");
    CHECK_HAS(report(e), "cuda:1 peers: NV18  -     NV18  NV18\n");
    set("LINKS", "0");
    CHECK_HAS(report(e), "cuda:3 peers: yes  yes  yes  -\n");
    e->set_peers(false);
    CHECK_HAS(report(e), "cuda:3 peers: no  no  no  -\n");
    set("LINKS", "2");
    CHECK_HAS(report(e), "cuda:2 peers: no      no      -       no/NV2\n");
    e->set_devices(1);
    CHECK(strstr(report(e), "peers") == NULL);
    e->set_devices(16);
    CHECK_HAS(report(e), "cuda:15 peers: no      no      ");
}

/* ---- NVML that is not there, or does not serve ---- */

static bool installed(void) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library != NULL) dlclose(library);
    return library != NULL;
}

static void nothing_of_health(const char *text) {
    CHECK_HAS(text, "driver: for CUDA 13.0\n");
    CHECK_HAS(text, "cuda:0 memory: 1.0 GiB\ncuda:1: ");
    CHECK_HAS(text, "cuda:0 peers: -    yes\n");
    CHECK(strstr(text, "ECC:") == NULL && strstr(text, "NV4  ") == NULL);
}

TEST(absent_nvml_is_told) {
    const emulated *e = fresh();
    if (installed()) return;
    CHECK_INT(e->module->probe((char[512]){0}, 512), 1); /* the other libraries stay where they were found */
    setenv("TANDEM_CUDA_LIBRARIES", "/no/such/folder", 1);
    const char *text = report(e);
    CHECK_HAS(text, "NVML: absent, so free memory, ECC, clocks, power and NVLinks are unknown: "
                    "/no/such/folder/libnvidia-ml.so.1: ");
    nothing_of_health(text);
}

TEST(an_incomplete_nvml_is_passed_over) {
    const emulated *e = fresh();
    setenv("TANDEM_CUDA_LIBRARIES", INCOMPLETE_NVML ":" FAKE_LIBRARIES, 1);
    CHECK_HAS(report(e), "NVML: " FAKE_LIBRARIES "/libnvidia-ml.so.1\n");
    if (installed()) return;
    setenv("TANDEM_CUDA_LIBRARIES", INCOMPLETE_NVML, 1);
    CHECK_HAS(report(e), INCOMPLETE_NVML "/libnvidia-ml.so.1 has no nvmlDeviceGetPowerUsage; libnvidia-ml.so.1: ");
    nothing_of_health(report(e));
}

TEST(an_nvml_that_does_not_start_warns) {
    const emulated *e = fresh();
    set("INIT", "18");
    const char *text = report(e);
    CHECK_HAS(text, "NVML: WARNING: it does not start: Driver/library version mismatch (" FAKE_LIBRARIES);
    nothing_of_health(text);
}

/* Whatever fails, the rest is told, and nothing is left for the next launch to find. */
TEST(any_call_may_fail) {
    const emulated *e = fresh();
    const int lines = 6 + 2 * 6 + 3;
    int failures = 0;
    for (long k = 1; k < 1000; k++) {
        told t = {.text = ""};
        const long before = e->calls();
        e->fail_at(k);
        const tdm_status status = e->ops->report(keep, &t);
        const long calls = e->calls() - before;
        e->fail_at(0);
        int left = -1;
        tdm_device *device = NULL;
        CHECK_OK(e->ops->count(&left));
        CHECK_INT(left, 2);
        if (calls < k) {
            CHECK_OK(status);
            CHECK_INT(t.lines, lines - 1); /* no complaint */
            break;
        }
        failures++;
        if (status != TDM_OK) {
            CHECK_INT(status, TDM_E_DEVICE);
            CHECK_INT(t.lines, 0);
        } else {
            CHECK(t.lines >= 10);
        }
        REQUIRE_OK(e->ops->open(&device, tdm_host_default(), &(tdm_device_options){.index = 0}));
        float *zero = NULL;
        const float *source[1];
        CHECK_OK(e->ops->allocate(device, (void **)&zero, 64, "a test"));
        source[0] = zero;
        CHECK_OK(e->ops->arenas->sum(device, zero, source, 1, 16));
        e->ops->release(device, zero);
        e->ops->close(device);
    }
    CHECK(failures > 40);
}

/* ---- tdm_environment ---- */

static void use_emulated_module(void) {
    setenv("TANDEM_MODULE_PATH", EMULATED_MODULES, 1);
}

TEST(the_environment_has_a_section) {
    const emulated *e = fresh();
    char *text = NULL;
    use_emulated_module();
    CHECK_OK(tdm_environment(NULL, 0, &text));
    CHECK_HAS(text, "\ndevices\n  parallel.device    auto uses cuda; device_ids: 0 and 1\n"
                    "  driver             580.82.07, for CUDA 13.0\n");
    CHECK_HAS(text, "\n  cuda:1 power       77 of 700 W, 31 C\n");
    tdm_free(text);
    e->set_devices(5);
    CHECK_OK(tdm_environment(NULL, 0, &text));
    CHECK_HAS(text, "auto uses cuda; device_ids: 0 to 4\n");
    tdm_free(text);
    e->set_devices(0);
    CHECK_OK(tdm_environment(NULL, 0, &text));
    CHECK(strstr(text, "\ndevices\n") == NULL);
    tdm_free(text);
}

TEST(the_environment_is_json) {
    fresh();
    char *text = NULL;
    use_emulated_module();
    set("ECC_ERRORS", "7");
    CHECK_OK(tdm_environment(NULL, 1, &text));
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    tdm_free(text);
    REQUIRE(root != NULL);
    const json_t *devices = json_object_get(root, "devices");
    CHECK_TEXT(json_string_value(json_object_get(devices, "parallel.device")), "auto uses cuda; device_ids: 0 and 1");
    CHECK_TEXT(json_string_value(json_object_get(devices, "cuda:0 throttling")), "none");
    CHECK_HAS(json_string_value(json_object_get(devices, "cuda:0 ECC")), "WARNING: on, 7 uncorrected errors");
    CHECK_INT(json_object_size(devices), 6 + 2 * 6 + 3);
    json_decref(root);
}

/* A report is made even so, and its status says that runs would fail, too. */
TEST(gpus_that_cannot_be_counted_are_a_fault) {
    const emulated *e = fresh();
    char *text = NULL;
    bool seen = false;
    use_emulated_module();
    for (long k = 1; k < 20 && !seen; k++) {
        e->fail_at(k);
        const tdm_status status = tdm_environment(NULL, 0, &text);
        e->fail_at(0);
        REQUIRE(text != NULL);
        seen = strstr(text, "\ndevices\n  cuda               FAULT: ") != NULL;
        CHECK_INT(status, seen ? TDM_E_CHECK : TDM_OK);
        tdm_free(text);
    }
    CHECK(seen);
}

TEST_MAIN(RUN(everything_is_told); RUN(free_memory_is_that_of_others_too); RUN(errors_of_memory_warn);
          RUN(slow_clocks_warn); RUN(what_a_gpu_lacks_is_left_out); RUN(peers_are_a_matrix); RUN(absent_nvml_is_told);
          RUN(an_incomplete_nvml_is_passed_over); RUN(an_nvml_that_does_not_start_warns); RUN(any_call_may_fail);
          RUN(the_environment_has_a_section); RUN(the_environment_is_json);
          RUN(gpus_that_cannot_be_counted_are_a_fault);)
