/* Networks by name: names, first weights and logits are those of torch (networks.txt), and what is written wrongly. */
#include <math.h>
#include <zlib.h>

#include "tests/api/api.h"
#include "tests/support/tdm_test.h"

enum { SIDE = 64, CLASSES = 5, SAMPLES = 2 };

static tdm_config *parse(const char *text, tdm_status *status) {
    tdm_config *config = NULL;
    *status = tdm_config_parse(&config, tdm_host_default(), text, strlen(text), "network.yaml", NULL);
    if (*status == TDM_OK) *status = tdm_config_check(config);
    return config;
}

static tdm_config *config_of(const char *name) {
    char text[600];
    tdm_status status;
    snprintf(text, sizeof(text),
             "tandem: 1\nseed: 7\nmodel: {input: [3, %d, %d], builtin: %s, classes: %d}\n"
             "data: {train: {format: synthetic, samples: 2}, eval: {format: synthetic, samples: %d, seed: 3}}\n"
             "train: {steps: 1, batch: {per_device: 2}}\nparallel: {device: cpu}\nrun: {dir: null}\n",
             SIDE, SIDE, name, CLASSES, SAMPLES);
    tdm_config *config = parse(text, &status);
    CHECK_OK(status);
    return config;
}

typedef struct named {
    char name[80];
    int64_t count;
} named;

static int by_name(const void *a, const void *b) {
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

/* CRC-32 of all parameters in the order of their names. */
static unsigned long params_crc(tdm_run *run) {
    static named list[400];
    int count = 0;
    unsigned long crc = 0;
    for (int i = 0; i < tdm_run_tensor_count(run); i++) {
        tdm_tensor_info info = TDM_TENSOR_INFO_INIT;
        CHECK_OK(tdm_run_tensor(run, i, &info));
        if (info.is_buffer || count == 400) continue;
        snprintf(list[count].name, sizeof(list[count].name), "%s", info.name);
        list[count++].count = info.count;
    }
    qsort(list, (size_t)count, sizeof(list[0]), by_name);
    for (int i = 0; i < count; i++) {
        const size_t bytes = (size_t)list[i].count * sizeof(float);
        float *values = malloc(bytes);
        CHECK_OK(tdm_run_read(run, list[i].name, values, bytes));
        crc = crc32(crc, (const unsigned char *)values, (unsigned)bytes);
        free(values);
    }
    return crc;
}

static void check_logits(tdm_run *run, const float *want) {
    float *x = malloc(SAMPLES * 3 * SIDE * SIDE * sizeof(float)), y[SAMPLES * CLASSES], most = 0;
    for (int i = 0; i < SAMPLES; i++) {
        int64_t label;
        CHECK_OK(tdm_run_eval_sample(run, i, x + i * 3 * SIDE * SIDE, &label));
    }
    CHECK_OK(tdm_run_predict(run, x, SAMPLES, y));
    for (int i = 0; i < SAMPLES * CLASSES; i++) most = fmaxf(most, fabsf(want[i]));
    for (int i = 0; i < SAMPLES * CLASSES; i++) CHECK_NEAR(y[i], want[i], 1e-5 * (double)most);
    free(x);
}

static void check_network(const char *name, int tensors, unsigned long crc, const float *logits) {
    tdm_config *config = config_of(name);
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_run *run = NULL;
    CHECK_OK(tdm_run_open(&run, tdm_config_job(config), tdm_config_graph(config), &options));
    if (run != NULL) {
        CHECK_INT(tdm_run_tensor_count(run), tensors);
        CHECK_INT(params_crc(run), crc);
        check_logits(run, logits);
    }
    tdm_run_close(run);
    tdm_config_free(config);
}

TEST(networks_are_torchs) {
    FILE *list = fopen(TDM_TEST_DATA "/networks.txt", "r");
    REQUIRE(list != NULL);
    char name[32];
    int tensors, lines = 0;
    unsigned long crc;
    for (; fscanf(list, "%31s %d %lx", name, &tensors, &crc) == 3; lines++) {
        float logits[SAMPLES * CLASSES];
        for (int i = 0; i < SAMPLES * CLASSES; i++) REQUIRE(fscanf(list, "%f", &logits[i]) == 1);
        check_network(name, tensors, crc, logits);
    }
    fclose(list);
    CHECK_INT(lines, 4);
}

/* What they expand to can be written out, and is the same network. */
TEST(expanded) {
    static const struct {
        const char *name, *more;
        int64_t params;
    } cases[] = {{"lenet5", "", 61706},
                 {"resnet18", ", small_input: true, classes: 10", 11173962},
                 {"resnet18", ", zero_init_residual: true", 11689512},
                 {"vgg11", "", 132863336},
                 {"mobilenet_v2", "", 3504872}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[400], *shown = NULL;
        tdm_status status;
        snprintf(text, sizeof(text),
                 "tandem: 1\nmodel: {input: [%d, %d, %d], builtin: %s%s}\ntrain: {steps: 1, batch: {per_device: 2}}\n",
                 i == 0 ? 1 : 3, i == 0 ? 28 : 64, i == 0 ? 28 : 64, cases[i].name, cases[i].more);
        tdm_config *config = parse(text, &status);
        REQUIRE_OK(status);
        CHECK_INT(tdm_graph_param_count(tdm_config_graph(config)), cases[i].params);
        REQUIRE_OK(tdm_config_print(config, TDM_CONFIG_RESOLVED, &shown));
        tdm_config *again = parse(shown, &status);
        CHECK_OK(status);
        if (status == TDM_OK) CHECK_INT(tdm_graph_param_count(tdm_config_graph(again)), cases[i].params);
        tdm_config_free(again);
        tdm_config_free(config);
        tdm_free(shown);
    }
}

TEST_MAIN(RUN(networks_are_torchs); RUN(expanded);)
