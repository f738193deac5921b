/* The reference kernels and losses against what PyTorch computed (fixtures/, made by make_op_fixtures.py), as near as
 * <op>_cases.h says: an op that sums differs from PyTorch by PyTorch's own float32 sums. */
#include "tests/ops/loss_case.h"
#include "tests/ops/op_cases.h"
#include "tests/ops/op_driver.h"
#include "tests/support/tdm_test.h"

typedef struct {
    op_case test;
    bool training;
    int first, count; /* in the words of the list */
} op_fixture;

enum { MAX_ROWS = 8 };
typedef struct {
    tdm_loss_section section;
    int64_t rows, width, label[MAX_ROWS];
    int first, count;
} loss_fixture;

/* Those of one op or one loss. */
typedef struct {
    const char *name;
    const op_fixture *op; /* NULL: of a loss */
    const loss_fixture *loss;
    int count;
    const uint32_t *words;
} fixture_list;

#include "tests/fixtures.h" /* generated: all files of fixtures/ */

#define TDM_FIXTURES(name) &name##_list,
static const fixture_list *const fixtures[] = {
#include "tests/fixtures.def"
};
#undef TDM_FIXTURES

static const fixture_list *fixtures_of(const char *name) {
    for (size_t i = 0; i < sizeof fixtures / sizeof *fixtures; i++)
        if (strcmp(fixtures[i]->name, name) == 0) return fixtures[i];
    fprintf(stderr,
            "%s has no numbers of PyTorch's: write tests/ops/fixtures/%s.py and run tests/ops/make_op_fixtures.py %s\n",
            name, name, name);
    tdm_test_failures++;
    return NULL;
}

typedef struct {
    const uint32_t *words;
    int at, end;
} reader;

static void read_floats(reader *from, float *to, int64_t count) {
    if (from->at + count > from->end) {
        fprintf(stderr, "a fixture is too short\n");
        abort();
    }
    memcpy(to, from->words + from->at, (size_t)count * sizeof *to);
    from->at += (int)count;
}

static float *read_new(reader *from, int64_t count) {
    float *to = calloc((size_t)count + 1, sizeof *to);
    if (to == NULL) abort();
    read_floats(from, to, count);
    return to;
}

static void read_results(reader *from, op_result *want, const op_data *data) {
    want->y_count = data->y_count;
    for (int i = 0; i < data->infer.input_count; i++) want->x_count[i] = op_data_count(data, i);
    want->y = read_new(from, data->y_count);
}

static void read_gradients(reader *from, op_result *want, const op_data *data) {
    for (int i = 0; i < data->infer.input_count; i++) want->dx[i] = read_new(from, op_data_count(data, i));
    for (int i = 0; i < data->infer.param_count; i++) want->dparam[i] = read_new(from, data->param_count[i]);
    for (int i = 0; i < data->infer.buffer_count; i++)
        if (data->buffer[i] != NULL) want->buffer[i] = read_new(from, data->buffer_count[i]);
}

static void check_op(const fixture_list *list, const op_fixture *fixture) {
    op_data data;
    REQUIRE(op_data_open(&data, list->name, &fixture->test, 1));
    reader from = {list->words, fixture->first, fixture->first + fixture->count};
    for (int i = 0; i < data.infer.input_count; i++) read_floats(&from, data.x[i], op_data_count(&data, i));
    for (int i = 0; i < data.infer.param_count; i++) read_floats(&from, data.param[i], data.param_count[i]);
    for (int i = 0; i < data.infer.buffer_count; i++)
        if (data.buffer[i] != NULL) read_floats(&from, data.buffer[i], data.buffer_count[i]);
    if (fixture->training) read_floats(&from, data.dy, data.y_count);

    op_result got, want = {0};
    read_results(&from, &want, &data);
    if (fixture->training) read_gradients(&from, &want, &data);
    want.counter = data.infer.buffer_count > 0 ? data.counter + fixture->training : 0;
    CHECK_INT(from.at, from.end);
    op_run(&got, op_reference(list->name), &data, &(op_setting){.training = fixture->training});
    CHECK_INT(got.status, TDM_OK);
    CHECK(op_results_near(&data, &got, &want, op_cases_of(list->name)->tolerance->pytorch));
    op_result_close(&got);
    op_result_close(&want);
    op_data_close(&data);
}

TEST(ops_give_pytorchs_numbers) {
    for (int k = 0; tdm_builtin_ops[k] != NULL; k++) {
        const fixture_list *list = fixtures_of(tdm_builtin_ops[k]->name);
        for (int i = 0; list != NULL && i < list->count; i++) check_op(list, &list->op[i]);
    }
}

/* Rows whose label counts and has the largest number, the first of several. */
static int64_t count_correct(const loss_fixture *fixture, const float *y) {
    int64_t correct = 0;
    for (int64_t n = 0; n < fixture->rows; n++, y += fixture->width) {
        const int64_t label = tdm_label_heavier(tdm_label_unpack(fixture->label[n]));
        bool largest = fixture->label[n] != fixture->section.ignore_index;
        for (int64_t c = 0; largest && c < fixture->width; c++)
            largest = c < label ? y[c] < y[label] : y[c] <= y[label];
        correct += largest;
    }
    return correct;
}

static void check_loss(const tdm_loss_def *loss, const fixture_list *list, const loss_fixture *fixture) {
    int64_t count = fixture->rows * fixture->width, correct = 0;
    reader from = {list->words, fixture->first, fixture->first + fixture->count};
    bool values = loss->target == TDM_TARGET_VALUES;
    float *y = read_new(&from, count), *target = values ? read_new(&from, count) : NULL;
    float *mean = read_new(&from, 1), *want = read_new(&from, count), *dy = calloc((size_t)count, sizeof *dy);
    CHECK_INT(from.at, from.end);

    const void *labels = values ? (const void *)target : fixture->label;
    const double denominator = loss->denominator(&fixture->section, fixture->rows, fixture->width, labels);
    const tdm_step_values step = {.loss_seed = (float)(1.0 / denominator)};
    double sum = 0;
    tdm_loss_args args = {.section = &fixture->section,
                          .rows = fixture->rows,
                          .width = fixture->width,
                          .y = y,
                          .target = labels,
                          .values = &step,
                          .dy = dy,
                          .loss_sum = &sum,
                          .correct = &correct};
    CHECK_OK(tdm__loss_of_rows(loss, NULL, &args));
    CHECK_NEAR(sum / denominator, *mean, 1e-6 * fabs((double)*mean));
    CHECK(op_near(list->name, dy, want, count, 1e-6));
    CHECK_INT(correct, values ? 0 : count_correct(fixture, y));
    free(y), free(target), free(mean), free(want), free(dy);
}

TEST(losses_give_pytorchs_numbers) {
    for (int k = 0; tdm_builtin_losses[k] != NULL; k++) {
        const fixture_list *list = fixtures_of(tdm_builtin_losses[k]->name);
        for (int i = 0; list != NULL && i < list->count; i++) check_loss(tdm_builtin_losses[k], list, &list->loss[i]);
    }
}

/* A file of fixtures/ that is left behind by an op or a loss is told, too. */
TEST(fixtures_are_of_ops_and_losses) {
    for (size_t i = 0; i < sizeof fixtures / sizeof *fixtures; i++) {
        bool known = loss_named(fixtures[i]->name) != NULL || op_reference(fixtures[i]->name) != NULL;
        if (!known) fprintf(stderr, "tests/ops/fixtures/%s.h is of no op and no loss\n", fixtures[i]->name);
        CHECK(known);
    }
}

TEST_MAIN(RUN(ops_give_pytorchs_numbers); RUN(losses_give_pytorchs_numbers); RUN(fixtures_are_of_ops_and_losses);)
