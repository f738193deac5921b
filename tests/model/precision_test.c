/* A program says what its model computes in (tdm_model_options.precision), whatever the file says. The reference kernels
 * compute in bf16 on every processor. */
#include <math.h>
#include <stdlib.h>

#include <tandem/model.h>

#include "runtime/base/isa.h"
#include "tests/api/api.h"
#include "tests/support/tdm_test.h"

enum { WIDTH = 16, ROWS = 3, OUTPUTS = 3, COUNT = ROWS * OUTPUTS };

static float x[ROWS * WIDTH];

/* The bytes of the model of a run. */
static tdm_buffer trained(tdm_precision precision, int kernels) {
    tdm_job job;
    tdm_run *run = NULL;
    tdm_buffer out = TDM_BUFFER_INIT;
    tdm_writer to = TDM_WRITER_INIT;
    tdm_graph *graph = api_linear_graph(WIDTH);
    to.write = tdm_buffer_write, to.user = &out;
    api_job(&job);
    job.train.precision = precision;
    job.parallel.kernels = kernels;
    CHECK_OK(tdm_run_open(&run, &job, graph, NULL));
    CHECK_OK(tdm_run_train(run));
    CHECK_OK(tdm_run_export_to(run, &to, NULL));
    tdm_run_close(run);
    tdm_graph_free(graph);
    return out;
}

static tdm_status open_in(tdm_model **out, const tdm_buffer *file, int precision) {
    tdm_model_options options = TDM_MODEL_OPTIONS_INIT;
    options.precision = (tdm_model_precision)precision;
    return tdm_model_open_memory(out, file->bytes, file->count, &options);
}

static void predict(const tdm_buffer *file, int precision, float y[COUNT]) {
    tdm_model *model = NULL;
    REQUIRE_OK(open_in(&model, file, precision));
    CHECK_OK(tdm_model_predict(model, TDM_INPUT_READY, x, ROWS, y));
    tdm_model_close(model);
}

/* bf16 has 8 significant bits, and a sum here 16 products: 2^-4 of the largest output is far beyond its errors, and far
 * below what another network has. */
static void check_near(const float *a, const float *b) {
    float largest = 0;
    for (int i = 0; i < COUNT; i++) largest = fmaxf(largest, fabsf(b[i]));
    for (int i = 0; i < COUNT; i++) CHECK(fabsf(a[i] - b[i]) < largest / 16);
    CHECK(memcmp(a, b, COUNT * sizeof(*a)) != 0);
}

static void check_file(tdm_precision trained_in, int same, int other) {
    float of_file[COUNT], y[COUNT];
    tdm_buffer file = trained(trained_in, TDM_KERNELS_REF);
    predict(&file, TDM_MODEL_OF_FILE, of_file);
    predict(&file, same, y);
    CHECK(memcmp(y, of_file, sizeof(y)) == 0);
    predict(&file, other, y);
    check_near(y, of_file);
    tdm_buffer_free(&file);
}

TEST(the_program_says_the_precision) {
    check_file(TDM_F32, TDM_MODEL_F32, TDM_MODEL_BF16);
    check_file(TDM_BF16, TDM_MODEL_BF16, TDM_MODEL_F32);
}

TEST(what_cannot_be_is_refused) {
    tdm_model *model = NULL;
    tdm_buffer file = trained(TDM_F32, TDM_KERNELS_AUTO);
    CHECK_STATUS(open_in(&model, &file, 3), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "precision");
    CHECK_STATUS(open_in(&model, &file, TDM_MODEL_BF16), tdm__has_fast_bf16() ? TDM_OK : TDM_E_UNSUPPORTED);
    tdm_model_close(model);
    tdm_buffer_free(&file);
}

static void fill(void) {
    for (int i = 0; i < ROWS * WIDTH; i++) x[i] = (float)(i * 7919 % 1009) / 256.0f - 2.0f;
}

TEST_MAIN(fill(); RUN(the_program_says_the_precision); RUN(what_cannot_be_is_refused);)
