/* What a program keeps in its checkpoints, and checkpoints and models that never are files. */
#include <tandem/model.h>

#include "tests/api/api.h"
#include "tests/api/misuse.h"

static tdm_graph *graph;
static tdm_job job;

/* A run after `steps` steps. Ends the program on failure. */
static tdm_run *open_run(int64_t steps) {
    tdm_run *run = NULL;
    if (tdm_run_open(&run, &job, graph, NULL) != TDM_OK || tdm_run_step(run, steps) != TDM_OK) {
        printf("%s\n", tdm_error_message());
        exit(1);
    }
    return run;
}

/* ---- properties ---- */

static const char awkward[] = "two lines\nof \"text\", and \xC3\xBC";

TEST(properties_are_set_and_removed) {
    tdm_run *run = open_run(0);
    CHECK(tdm_run_property_key(run, 0) == NULL && tdm_run_property(run, "site") == NULL);
    CHECK_OK(tdm_run_set_property(run, "site", "Ulm"));
    CHECK_OK(tdm_run_set_property(run, "device", "12"));
    CHECK_OK(tdm_run_set_property(run, "site", awkward));
    CHECK_TEXT(tdm_run_property(run, "site"), awkward);
    CHECK_OK(tdm_run_set_property(run, "site", tdm_run_property(run, "site"))); /* its own text */
    CHECK_TEXT(tdm_run_property(run, "site"), awkward);
    CHECK_TEXT(tdm_run_property_key(run, 0), "device");
    CHECK_TEXT(tdm_run_property_key(run, 1), "site");
    CHECK(tdm_run_property_key(run, 2) == NULL && tdm_run_property_key(run, -1) == NULL);
    CHECK_OK(tdm_run_set_property(run, "device", NULL));
    CHECK_OK(tdm_run_set_property(run, "device", NULL)); /* it has none: fine */
    CHECK(tdm_run_property(run, "device") == NULL);
    CHECK_TEXT(tdm_run_property_key(run, 0), "site");
    tdm_run_close(run);
}

TEST(properties_beyond_the_limits_are_refused) {
    static char key[TDM_PROPERTY_KEY + 2], text[TDM_PROPERTY_BYTES];
    tdm_run *run = open_run(0);
    MISUSE(tdm_run_set_property(NULL, "site", "Ulm"));
    MISUSE(tdm_run_set_property(run, NULL, "Ulm"));
    CHECK(tdm_run_property(NULL, "x") == NULL && tdm_run_property_key(NULL, 0) == NULL);
    MISUSE(tdm_run_set_property(run, "", "Ulm"));
    MISUSE(tdm_run_set_property(run, "format", "x"));
    MISUSE(tdm_run_set_property(run, "tandem.model", "x"));
    MISUSE(tdm_run_set_property(run, "\xFF", "x"));
    MISUSE(tdm_run_set_property(run, "site", "\xC3"));
    memset(key, 'k', TDM_PROPERTY_KEY + 1);
    MISUSE(tdm_run_set_property(run, key, "x"));
    CHECK_HAS(tdm_error_message(), "1 to 64 bytes");
    memset(text, 't', sizeof(text) - 1);
    MISUSE(tdm_run_set_property(run, "k", text));
    CHECK_HAS(tdm_error_message(), "65536");
    text[TDM_PROPERTY_BYTES - 3] = '\0';
    CHECK_OK(tdm_run_set_property(run, "k", text)); /* all of them */
    MISUSE(tdm_run_set_property(run, "l", ""));
    CHECK_OK(tdm_run_set_property(run, "k", "short"));
    for (int i = 0; i < TDM_PROPERTIES - 1; i++) {
        snprintf(key, sizeof(key), "key%d", i);
        CHECK_OK(tdm_run_set_property(run, key, ""));
    }
    MISUSE(tdm_run_set_property(run, "one more", ""));
    CHECK_HAS(tdm_error_message(), "64");
    CHECK_OK(tdm_run_set_property(run, "k", "another"));
    tdm_run_close(run);
}

static void check_properties_of(const char *path) {
    tdm_model *model = NULL;
    REQUIRE_OK(tdm_model_open(&model, path, NULL));
    CHECK_TEXT(tdm_model_property(model, "site"), awkward);
    CHECK_TEXT(tdm_model_property_key(model, 0), "device");
    CHECK(tdm_model_property(model, "tandem.model") == NULL && tdm_model_property(model, NULL) == NULL);
    CHECK(tdm_model_property_key(model, 2) == NULL && tdm_model_property_key(model, -1) == NULL);
    tdm_model_close(model);
}

TEST(checkpoints_and_models_keep_properties) {
    char folder[256], path[300], file[400], *text = NULL;
    test_folder_make(folder);
    tdm_run *run = open_run(2);
    CHECK_OK(tdm_run_set_property(run, "site", awkward));
    CHECK_OK(tdm_run_set_property(run, "device", "12"));
    CHECK_OK(tdm_run_save(run, folder));
    snprintf(path, sizeof(path), "%s/step-00000002", folder);
    CHECK_OK(tdm_checkpoint_verify(NULL, path, NULL));
    CHECK_OK(tdm_checkpoint_show(NULL, path, 0, &text));
    CHECK_HAS(text, "  device: 12\n");
    CHECK_HAS(text, "  site: two lines");
    tdm_free(text);
    CHECK_OK(tdm_checkpoint_show(NULL, path, 1, &text));
    CHECK_HAS(text, "\"site\": \"two lines\\nof \\\"text\\\"");
    tdm_free(text);
    CHECK_OK(tdm_run_set_property(run, "later", "gone after the load"));
    CHECK_OK(tdm_run_set_property(run, "site", NULL));
    CHECK_OK(tdm_run_load(run, path));
    CHECK_TEXT(tdm_run_property(run, "site"), awkward);
    CHECK(tdm_run_property(run, "later") == NULL);
    tdm_run_close(run);
    snprintf(file, sizeof(file), "%s/model.safetensors", path);
    check_properties_of(file);
    snprintf(file, sizeof(file), "%s/model.tandem", folder);
    CHECK_OK(tdm_model_export(NULL, path, file, NULL));
    check_properties_of(file);
    test_folder_remove(folder);
}

static int occurrences(const char *text, const char *of) {
    int count = 0;
    while ((text = strstr(text, of)) != NULL) text += strlen(of), count++;
    return count;
}

/* Files from elsewhere: what no run could have set is passed over. */
TEST(properties_beyond_the_limits_are_not_read) {
    static char header[200000], name[300];
    char folder[256], path[300], *text = NULL;
    size_t at = (size_t)sprintf(header, "{\"__metadata__\":{\"format\":\"pt\",\"tandem.own\":\"1\",\"\":\"2\"");
    memset(name, 'n', TDM_PROPERTY_KEY + 1);
    at += (size_t)sprintf(header + at, ",\"%s\":\"3\",\"large\":\"%0*d\"", name, TDM_PROPERTY_BYTES, 4);
    for (int i = 0; i < TDM_PROPERTIES + 6; i++) at += (size_t)sprintf(header + at, ",\"key%d\":\"good\"", i);
    at += (size_t)sprintf(header + at, "}}");
    test_folder_make(folder);
    snprintf(path, sizeof(path), "%s/other.safetensors", folder);
    FILE *file = fopen(path, "wb");
    REQUIRE(file != NULL);
    for (int i = 0; i < 8; i++) fputc((int)(at >> (8 * i) & 255), file);
    CHECK(fwrite(header, 1, at, file) == at && fclose(file) == 0);
    CHECK_OK(tdm_checkpoint_show(NULL, path, 1, &text));
    CHECK_INT(occurrences(text, "\"good\""), TDM_PROPERTIES);
    CHECK(strstr(text, "tandem.own") == NULL && strstr(text, "large") == NULL && strstr(text, "nnnn") == NULL);
    tdm_free(text);
    test_folder_remove(folder);
}

TEST_MAIN(graph = api_graph(NULL); api_job(&job); RUN(properties_are_set_and_removed);
          RUN(properties_beyond_the_limits_are_refused); RUN(checkpoints_and_models_keep_properties);
          RUN(properties_beyond_the_limits_are_not_read); tdm_graph_free(graph);)
