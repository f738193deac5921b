/* A model of a table makes of a row the sample that training made of it, to the bit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tandem/tandem.h>

#include "tests/support/tdm_test.h"
#include "tests/support/test_folder.h"

enum { ROWS = 6, WIDTH = 4 };

/* rooms, size, city, kind: as columns of a sample; the table has them in another order. */
static const char *const cells[ROWS][WIDTH] = {{"3", "100.5", "Bern", "flat"}, {"", "50", "Oslo", "house"},
                                               {"1", "75", "Rome", "flat"},    {"2", "1e2", "Bern", "house"},
                                               {"NA", "20", "", "flat"},       {"5", "60", "Oslo", "flat"}};
static tdm_buffer file = TDM_BUFFER_INIT;

static char folder[256];

static void write_table(const char *path) {
    FILE *out = chdir(folder) == 0 ? fopen(path, "w") : NULL;
    REQUIRE(out != NULL);
    fputs("city,rooms,kind,price,size\n", out);
    for (int i = 0; i < ROWS; i++)
        fprintf(out, "%s,%s,%s,%d,%s\n", cells[i][2], cells[i][0], cells[i][3], 100 * i, cells[i][1]);
    REQUIRE(fclose(out) == 0);
}

static void open_run(tdm_run **run, tdm_config **config) {
    static const char text[] =
        "tandem: 1\nmodel: {input: 4, layers: [{linear: 3}, relu, {linear: 1}]}\ndata:\n"
        "  train: {format: csv, path: table.csv, label: price, categories: [city, kind], missing: mean, unseen: unknown,\n"
        "    standardize: true, standardize_target: true}\n  eval: {format: csv, path: table.csv}\n  workers: 0\n"
        "loss: mse\ntrain: {steps: 2, batch: {per_device: 2}}\nrun: {dir: null}\nparallel: {device: cpu}\n";
    REQUIRE_OK(tdm_config_parse(config, NULL, text, strlen(text), "job", NULL));
    REQUIRE_OK(tdm_config_check(*config));
    REQUIRE_OK(tdm_run_open(run, tdm_config_job(*config), tdm_config_graph(*config), NULL));
}

static void model_of(tdm_run *run, tdm_model **model) {
    const tdm_writer writer = {sizeof(writer), tdm_buffer_write, &file};
    tdm_buffer_free(&file);
    REQUIRE_OK(tdm_run_export_to(run, &writer, NULL));
    REQUIRE_OK(tdm_model_open_memory(model, file.bytes, file.count, NULL));
}

TEST(a_row_is_the_sample_trained_on) {
    tdm_config *config = NULL;
    tdm_run *run = NULL;
    tdm_model *model = NULL;
    write_table("table.csv");
    open_run(&run, &config);
    REQUIRE(run != NULL);
    REQUIRE_OK(tdm_run_train(run));
    model_of(run, &model);
    REQUIRE(model != NULL);
    tdm_target of_run = TDM_TARGET_INIT, of_model = TDM_TARGET_INIT;
    CHECK_TEXT(tdm_model_column(model, 0), "rooms");
    CHECK_TEXT(tdm_model_column(model, 1), "size");
    CHECK_TEXT(tdm_model_column(model, 2), "city");
    CHECK_TEXT(tdm_model_column(model, 3), "kind");
    CHECK(tdm_model_column(model, 4) == NULL && tdm_model_column(model, -1) == NULL);
    for (int i = 0; i < ROWS; i++) {
        float wanted[WIDTH], got[WIDTH], y, y_of_run;
        int64_t label;
        REQUIRE_OK(tdm_run_eval_sample(run, i, wanted, &label));
        REQUIRE_OK(tdm_model_read_row(model, cells[i], got));
        CHECK(memcmp(wanted, got, sizeof(got)) == 0);
        CHECK_OK(tdm_model_predict(model, TDM_INPUT_FLOATS, got, 1, &y));
        CHECK_OK(tdm_run_predict(run, got, 1, &y_of_run));
        CHECK(memcmp(&y, &y_of_run, sizeof(y)) == 0);
    }
    CHECK_OK(tdm_run_target(run, &of_run));
    CHECK_OK(tdm_model_target(model, &of_model));
    CHECK_TEXT(of_model.name, "price");
    CHECK(of_model.mean == 250 && of_model.mean == of_run.mean && of_model.stdev == of_run.stdev);
    tdm_run_close(run);
    tdm_config_free(config);
    tdm_model_close(model);
}

TEST(cells_that_are_refused) {
    tdm_config *config = NULL;
    tdm_run *run = NULL;
    tdm_model *model = NULL;
    write_table("table.csv");
    open_run(&run, &config);
    float x[WIDTH];
    model_of(run, &model);
    REQUIRE(model != NULL);
    CHECK_OK(tdm_model_read_row(model, (const char *const[]){NULL, "1", "Atlantis", NULL}, x));
    CHECK(x[0] == 0 && x[2] == 0 && x[3] == 0); /* the mean, and unknown categories */
    CHECK_STATUS(tdm_model_read_row(model, (const char *const[]){"3", "big", "Bern", "flat"}, x), TDM_E_DATA);
    CHECK_TEXT(tdm_error_message(), "column 'size': expected a number, found 'big'");
    CHECK_STATUS(tdm_model_read_row(model, (const char *const[]){"3", "1e99", "Bern", "flat"}, x), TDM_E_DATA);
    tdm_run_close(run);
    tdm_config_free(config);
    tdm_model_close(model);
}

/* The file is damaged so that its table lacks a column. */
TEST(columns_that_do_not_fit) {
    static const char column[] = ",{\\\"name\\\":\\\"size";
    tdm_config *config = NULL;
    tdm_run *run = NULL;
    tdm_model *model = NULL, *damaged = NULL;
    write_table("table.csv");
    open_run(&run, &config);
    model_of(run, &model);
    tdm_model_close(model);
    char *at = memmem(file.bytes, file.count, column, sizeof(column) - 1);
    REQUIRE(at != NULL);
    memset(at, ' ', strcspn(at, "}") + 1);
    CHECK_STATUS(tdm_model_open_memory(&damaged, file.bytes, file.count, NULL), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "tandem.features in its metadata has 3 columns, and a sample 4 numbers");
    tdm_run_close(run);
    tdm_config_free(config);
}

/* Each city is known, and no gap may be. */
TEST(a_table_without_gaps) {
    tdm_config *config = NULL;
    static const char text[] = "tandem: 1\nmodel: {input: 2, layers: [{linear: 2}]}\n"
                               "data: {train: {format: csv, path: plain.csv, categories: [a], header: no, label: 2}}\n"
                               "train: {steps: 1, batch: {per_device: 2}}\nrun: {dir: null}\n";
    FILE *out = chdir(folder) == 0 ? fopen("plain.csv", "w") : NULL;
    tdm_run *run = NULL;
    tdm_model *model = NULL;
    tdm_target target = TDM_TARGET_INIT;
    float x[2];
    REQUIRE(out != NULL && fputs("x,1,yes\ny,2,no\n", out) >= 0 && fclose(out) == 0);
    REQUIRE_OK(tdm_config_parse(&config, NULL, text, strlen(text), "job", NULL));
    REQUIRE_OK(tdm_config_override(config, "data.train.categories=[0]"));
    REQUIRE_OK(tdm_config_check(config));
    REQUIRE_OK(tdm_run_open(&run, tdm_config_job(config), tdm_config_graph(config), NULL));
    model_of(run, &model);
    REQUIRE(model != NULL);
    CHECK(tdm_model_column(model, 0) == NULL);
    CHECK_OK(tdm_model_read_row(model, (const char *const[]){"2.5", "y"}, x));
    CHECK(x[0] == 2.5f && x[1] == 1.0f);
    CHECK_STATUS(tdm_model_read_row(model, (const char *const[]){"NA", "y"}, x), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "column 0: the number is missing");
    CHECK_STATUS(tdm_model_read_row(model, (const char *const[]){"1", "z"}, x), TDM_E_DATA);
    CHECK_TEXT(tdm_error_message(), "column 1: the category 'z' is not in the data trained on");
    CHECK_OK(tdm_model_target(model, &target));
    CHECK(target.name == NULL && target.mean == 0 && target.stdev == 1);
    tdm_run_close(run);
    tdm_config_free(config);
    tdm_model_close(model);
}

TEST_MAIN(test_folder_make(folder); RUN(a_row_is_the_sample_trained_on); RUN(cells_that_are_refused);
          RUN(columns_that_do_not_fit); RUN(a_table_without_gaps); tdm_buffer_free(&file); test_folder_remove(folder);)
