/* The kernels of the dnnl module against the reference kernels: all cases, layouts, settings.
 *
 * Tolerance: 1e-5 of the largest magnitude of each result. oneDNN sums in float, in an order of its own; the reference
 * in double. One unit in the last place is 6e-8, so this allows some 170 of them, and a wrong index or a missing term
 * is far outside. */
#include <pthread.h>

#include "ops/ops.h"
#include "runtime/module/module.h"
#include "tests/ops/op_conform.h"
#include "tests/ops/op_driver.h"
#include "tests/support/tdm_test.h"

static const double tolerance = 1e-5;

static const tdm_module *module(void) {
    static const tdm_module *found;
    tdm_module_report report;
    if (found != NULL) return found;
    if (tdm__module_find(&found, tdm_host_default(), "dnnl", NULL, &report) != TDM_OK || found == NULL)
        TEST_SKIP(report.text);
    return found;
}

TEST(settings) {
    for (const tdm_kernel *const *kernel = module()->kernels; *kernel != NULL; kernel++) {
        op_conform_count count = op_conform(*kernel, tolerance);
        printf("       %-20s %4d runs, %4d settings declined\n", (*kernel)->op, count.runs, count.declined);
        CHECK(count.runs > 0);
    }
}

/* ---- replicas are threads: the same bits on each, all at once, and states that change threads ---- */

enum { REPLICAS = 3, ROUNDS = 4 };

typedef struct {
    const tdm_kernel *kernel;
    const op_data *data;
    op_result result;
} replica;

static void *run_replica(void *argument) {
    replica *r = argument;
    const bool blocks = op_layout_applies(TDM_LAYOUT_C16, &r->data->x_shape);
    const op_setting setting = {.layout = blocks ? TDM_LAYOUT_C16 : TDM_LAYOUT_PLAIN, .training = true};
    op_run(&r->result, r->kernel, r->data, &setting);
    return NULL;
}

static bool same(const op_data *data, const op_result *a, const op_result *b) {
    const size_t number = sizeof(float);
    bool equal = a->ran && b->ran && memcmp(a->y, b->y, (size_t)a->y_count * number) == 0 &&
                 memcmp(a->dx[0], b->dx[0], (size_t)a->x_count * number) == 0;
    for (int i = 0; i < data->infer.param_count; i++)
        equal = equal && memcmp(a->dparam[i], b->dparam[i], (size_t)data->param_count[i] * number) == 0;
    return equal;
}

static void check_replicas(const char *op, const op_case *test) {
    op_data data;
    REQUIRE(op_data_open(&data, op, test, 5));
    const tdm_kernel *const *kernel = module()->kernels;
    while (*kernel != NULL && strcmp((*kernel)->op, op) != 0) kernel++;
    REQUIRE(*kernel != NULL);
    replica alone = {*kernel, &data, {0}};
    (void)run_replica(&alone);
    if (!alone.result.ran) printf("       %s: %s\n", op, alone.result.why);
    for (int round = 0; round < ROUNDS && alone.result.ran; round++) {
        replica each[REPLICAS];
        pthread_t thread[REPLICAS];
        for (int i = 0; i < REPLICAS; i++) each[i] = (replica){*kernel, &data, {0}};
        for (int i = 0; i < REPLICAS; i++) CHECK(pthread_create(&thread[i], NULL, run_replica, &each[i]) == 0);
        for (int i = 0; i < REPLICAS; i++) pthread_join(thread[i], NULL);
        for (int i = 0; i < REPLICAS; i++) {
            CHECK(same(&data, &each[i].result, &alone.result));
            op_result_close(&each[i].result);
        }
    }
    op_result_close(&alone.result);
    op_data_close(&data);
}

TEST(replicas_at_once_have_equal_bits) {
    check_replicas("conv2d", &(op_case){.attrs = "out=32 kernel=3 padding=1", .rows = 6, .input = {3, {16, 13, 10}}});
    check_replicas("conv2d", &(op_case){.attrs = "out=5 kernel=3 groups=5", .rows = 3, .input = {3, {5, 9, 9}}});
    check_replicas("maxpool2d", &(op_case){.attrs = "kernel=2", .rows = 4, .input = {3, {32, 9, 9}}});
}

/* A NaN that comes in must reach the loss, or a run that has diverged would not be noticed. */
TEST(relu_lets_nan_through) {
    const op_case test = {.attrs = "out=16 kernel=3 padding=1", .rows = 2, .input = {3, {16, 8, 8}}};
    op_data data;
    op_result r;
    REQUIRE(op_data_open(&data, "conv2d", &test, 6));
    data.x[0][9] = NAN;
    op_run(&r, module()->kernels[0], &data, &(op_setting){.layout = TDM_LAYOUT_C16, .training = true, .relu = true});
    int nans = 0;
    for (int64_t i = 0; i < r.y_count && r.ran; i++) nans += isnan(r.y[i]) ? 1 : 0;
    CHECK(!r.ran || nans > 0);
    op_result_close(&r);
    op_data_close(&data);
}

TEST_MAIN(RUN(settings); RUN(replicas_at_once_have_equal_bits); RUN(relu_lets_nan_through);)
