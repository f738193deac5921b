/* Layers that the program has itself, by the public interface: their numbers in all modes, and what is refused. */
#include <math.h>

#include <tandem/sys/module.h>

#include "tests/api/api.h"
#include "tests/api/misuse.h"
#include "tests/support/tdm_test.h"

enum { WIDTH = 4 };

/* ---- two ops: relu again, and a factor for each feature ---- */

static int64_t numbers(const tdm_kernel_args *args) {
    return args->rows * args->desc->y.dim[1];
}

static tdm_status same_shape(tdm_infer *infer) {
    infer->output = infer->input[0];
    return TDM_OK;
}

static tdm_status relu_forward(const tdm_kernel_args *args) {
    for (int64_t i = 0; i < numbers(args); i++) args->y[i] = args->x[0][i] > 0 ? args->x[0][i] : 0;
    return TDM_OK;
}

static tdm_status relu_backward(const tdm_kernel_args *args) {
    for (int64_t i = 0; i < numbers(args); i++) args->dx[0][i] = args->x[0][i] > 0 ? args->dy[i] : 0;
    return TDM_OK;
}

static tdm_status factor_infer(tdm_infer *infer) {
    infer->output = infer->input[0];
    infer->param_count = 1;
    infer->param[0] = (tdm_param_def){.suffix = "weight", .shape = infer->input[0], .init = TDM_INIT_ONES};
    return TDM_OK;
}

static tdm_status factor_forward(const tdm_kernel_args *args) {
    const int64_t width = args->desc->y.dim[1];
    for (int64_t i = 0; i < numbers(args); i++) args->y[i] = args->x[0][i] * args->param[0][i % width];
    return TDM_OK;
}

static tdm_status factor_backward(const tdm_kernel_args *args) {
    const int64_t width = args->desc->y.dim[1];
    for (int64_t c = 0; args->dparam[0] != NULL && c < width; c++) {
        float sum = 0;
        for (int64_t n = 0; n < args->rows; n++) sum += args->dy[n * width + c] * args->x[0][n * width + c];
        args->dparam[0][c] = sum;
    }
    for (int64_t i = 0; args->dx[0] != NULL && i < numbers(args); i++)
        args->dx[0][i] = args->dy[i] * args->param[0][i % width];
    return TDM_OK;
}

static const tdm_op_def relu = {.name = "own_relu",
                                .doc = "y = max(0, x)",
                                .doc_zh = "y = max(0, x)",
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .flags = TDM_OP_READS_X,
                                .infer = same_shape};
static const tdm_op_def factor = {.name = "own_factor",
                                  .doc = "y = x w",
                                  .doc_zh = "y = x w",
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .flags = TDM_OP_READS_X,
                                  .infer = factor_infer};
static const tdm_kernel relu_ref = {
    .op = "own_relu", .variant = "ref", .forward = relu_forward, .backward = relu_backward};
static const tdm_kernel factor_ref = {
    .op = "own_factor", .variant = "ref", .forward = factor_forward, .backward = factor_backward};
static const tdm_op_def *const ops[] = {&relu, &factor, NULL};
static const tdm_kernel *const kernels[] = {&relu_ref, &factor_ref, NULL};
static const tdm_module module = {.abi = TDM_MODULE_ABI, .name = "own", .kernels = kernels, .ops = ops};

static void make_graph(tdm_graph **out, const char *middle) {
    tdm_graph *g = NULL;
    tdm_value x;
    REQUIRE_OK(tdm_graph_new(&g, NULL));
    REQUIRE_OK(tdm_graph_use(g, &module));
    REQUIRE_OK(tdm_graph_use(g, &module)); /* twice is once */
    REQUIRE_OK(tdm_graph_input(g, 1, (const int64_t[]){WIDTH}, &x));
    REQUIRE_OK(tdm_graph_add(g, "linear", "fc1", &x, 1, (tdm_attr[]){{"out", "8", {0}}}, 1, &x));
    REQUIRE_OK(tdm_graph_add(g, middle, "middle", &x, 1, NULL, 0, &x));
    REQUIRE_OK(tdm_graph_add(g, "linear", "fc", &x, 1, (tdm_attr[]){{"out", "3", {0}}}, 1, &x));
    REQUIRE_OK(tdm_graph_finish(g, x));
    *out = g;
}

static void set_mode(tdm_job *job, int mode, int devices) {
    api_job(job);
    job->parallel.mode = mode;
    job->parallel.dp.scatter = TDM_SCATTER_STRIDED;
    job->parallel.device_ids.count = devices;
    for (int i = 0; i < devices; i++) job->parallel.device_ids.item[i] = i;
}

TEST(an_op_of_the_program_is_like_tandems_own) {
    char wanted[40], got[40];
    tdm_job job;
    tdm_graph *own = NULL, *builtin = NULL;
    make_graph(&own, "own_relu");
    make_graph(&builtin, "relu");
    for (int way = 0; way < 3; way++) {
        set_mode(&job, way == 1 ? TDM_MODE_DP : TDM_MODE_SINGLE, 2);
        if (way == 2) job.parallel.stages = 2, job.train.accumulate = 2;
        api_train(&job, builtin, wanted);
        api_train(&job, own, got);
        CHECK_TEXT(got, wanted);
    }
    tdm_graph_free(own);
    tdm_graph_free(builtin);
}

/* The parameter's gradient is the slope of the loss. */
TEST(its_parameters_are_trained) {
    float weight[8], gradient[8], changed[8];
    tdm_pass pass[3] = {TDM_PASS_INIT, TDM_PASS_INIT, TDM_PASS_INIT};
    tdm_job job;
    char *text = NULL;
    tdm_graph *graph = NULL;
    make_graph(&graph, "own_factor");
    set_mode(&job, TDM_MODE_SINGLE, 1);
    job.data.train.samples = job.train.per_device = 8; /* every step has the same samples */
    tdm_run *run = NULL;
    REQUIRE_OK(tdm_run_open(&run, &job, graph, NULL));
    CHECK_OK(tdm_run_read(run, "middle.weight", weight, sizeof(weight)));
    for (int i = 0; i < 3; i++) {
        memcpy(changed, weight, sizeof(changed));
        changed[5] += i == 0 ? 0 : i == 1 ? 0.01f : -0.01f;
        CHECK_OK(tdm_run_write(run, "middle.weight", changed, sizeof(changed)));
        CHECK_OK(tdm_run_backward(run, &pass[i]));
        if (i == 0) CHECK_OK(tdm_run_read_gradient(run, "middle.weight", gradient, sizeof(gradient)));
        CHECK_OK(tdm_run_skip_update(run));
    }
    CHECK(weight[0] == 1 && gradient[5] != 0);
    CHECK(fabs((pass[1].loss - pass[2].loss) / 0.02 - (double)gradient[5]) < 1e-3 * fabs((double)gradient[5]) + 1e-5);
    CHECK_OK(tdm_run_print(run, "plan", &text));
    CHECK_HAS(text, "own_factor");
    tdm_free(text);
    tdm_run_close(run);
    tdm_graph_free(graph);
}

/* ---- what is refused ---- */

static void check_module(const tdm_module *bad, tdm_status status, const char *wanted) {
    tdm_graph *g = NULL;
    REQUIRE_OK(tdm_graph_new(&g, NULL));
    CHECK_STATUS(tdm_graph_use(g, bad), status);
    CHECK_HAS(tdm_error_message(), wanted);
    tdm_graph_free(g);
}

static void check_op(tdm_op_def op, const char *wanted) {
    const tdm_op_def *const list[] = {&op, NULL};
    tdm_module bad = module;
    bad.ops = list;
    check_module(&bad, TDM_E_USAGE, wanted);
}

static int does_not_work(char *text, size_t bytes) {
    snprintf(text, bytes, "no abacus here");
    return 0;
}

TEST(modules_that_are_none_are_refused) {
    static const tdm_field name_key[] = {{.key = "name", .initial = "1"}, {.key = NULL}};
    tdm_module bad = module;
    tdm_op_def op = relu;
    bad.abi = 1;
    check_module(&bad, TDM_E_UNSUPPORTED, "has module interface 1");
    bad = module, bad.ops = NULL;
    check_module(&bad, TDM_E_UNSUPPORTED, "has no ops");
    bad = module, bad.name = NULL;
    check_module(&bad, TDM_E_UNSUPPORTED, "has no name");
    bad = module, bad.probe = does_not_work;
    check_module(&bad, TDM_E_UNSUPPORTED, "no abacus here");
    bad = module, bad.kernels = NULL;
    check_module(&bad, TDM_E_USAGE, "op 'own_relu' has no kernel");
    op.name = "Relu";
    check_op(op, "the name of an op is to be");
    op.name = "relu";
    check_op(op, "there is a layer kind 'relu' already");
    op.name = "custom";
    check_op(op, "there is a layer kind 'custom' already");
    op = relu, op.infer = NULL;
    check_op(op, "op 'own_relu' lacks `infer`");
    op = relu, op.attrs = name_key;
    check_op(op, "cannot have an attribute 'name'");
}

TEST(libraries_that_are_none_are_refused) {
    tdm_graph *g = NULL;
    tdm_value x;
    REQUIRE_OK(tdm_graph_new(&g, NULL));
    MISUSE(tdm_graph_use(NULL, &module));
    MISUSE(tdm_graph_use(g, NULL));
    MISUSE(tdm_graph_use_file(NULL, "libmine.so"));
    MISUSE(tdm_graph_use_file(g, NULL));
    CHECK_STATUS(tdm_graph_use_file(g, "/no/such/libmine.so"), TDM_E_UNSUPPORTED);
    CHECK_HAS(tdm_error_message(), "/no/such/libmine.so cannot be loaded");
    CHECK_STATUS(tdm_graph_use_file(g, "libmine.so"), TDM_E_CONFIG); /* without a folder: TANDEM_OP_PATH has none */
    CHECK_HAS(tdm_error_message(), "TANDEM_OP_PATH");
    REQUIRE_OK(tdm_graph_input(g, 1, (const int64_t[]){WIDTH}, &x));
    CHECK_STATUS(tdm_graph_add(g, "own_relu", NULL, &x, 1, NULL, 0, &x), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "unknown layer kind 'own_relu'");
    tdm_graph_free(g);
}

TEST_MAIN(RUN(an_op_of_the_program_is_like_tandems_own); RUN(its_parameters_are_trained);
          RUN(modules_that_are_none_are_refused); RUN(libraries_that_are_none_are_refused);)
