/* The files of good/ and bad/.
 *
 * good/X.yaml has no faults; its resolved form is good/X.resolved to the byte, resolves to itself, is valid JSON in the
 * JSON form, and says the same with origins. `files_test update` writes the .resolved files anew.
 *
 * bad/X.yaml has exactly the faults that its comments tell: `#   ^ C007 part of the message or hint` stands below the
 * line that has the fault, its caret in the fault's column; `#< C007 part` is for column 1. */
#include <dirent.h>
#include <jansson.h>

#include "tests/config/config_support.h"

static int compare_names(const void *a, const void *b) {
    return strcmp(a, b);
}

/* Names of `folder` that end with .yaml, sorted. */
static int list_files(const char *folder, char names[64][64]) {
    DIR *dir = opendir(folder);
    int count = 0;
    if (dir == NULL) return 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL && count < 64;) {
        size_t length = strlen(entry->d_name);
        if (length > 5 && length < 64 && strcmp(entry->d_name + length - 5, ".yaml") == 0)
            memcpy(names[count++], entry->d_name, length + 1);
    }
    closedir(dir);
    qsort(names, (size_t)count, sizeof(names[0]), compare_names);
    return count;
}

static bool update;

/* ---- good ---- */

static char *print_of(const tdm_config *config, tdm_config_form form) {
    char *text = NULL;
    CHECK_OK(tdm_config_print(config, form, &text));
    return text;
}

static void check_prints(const char *path, const tdm_config *config) {
    char *resolved = print_of(config, TDM_CONFIG_RESOLVED), *origins = print_of(config, TDM_CONFIG_ORIGINS);
    char *json = print_of(config, TDM_CONFIG_JSON), golden_path[512];
    const char *const again[] = {resolved, origins};
    for (int i = 0; i < 2; i++) {
        tdm_status status;
        tdm_config *second = checked(again[i], &status);
        CHECK_OK(status);
        char *text = status == TDM_OK ? print_of(second, TDM_CONFIG_RESOLVED) : NULL;
        CHECK_TEXT(text, resolved);
        tdm_free(text);
        tdm_config_free(second);
    }
    json_error_t error;
    json_t *tree = json_loads(json, JSON_REJECT_DUPLICATES, &error);
    if (tree == NULL) fprintf(stderr, "%s: %s in\n%s\n", path, error.text, json);
    CHECK(tree != NULL);
    CHECK(json_is_array(json_object_get(json_object_get(tree, "model"), "layers")));
    json_decref(tree);
    CHECK_HAS(origins, "# file.yaml:1");
    CHECK_HAS(origins, "# default");
    snprintf(golden_path, sizeof(golden_path), "%.*s.resolved", (int)strlen(path) - 5, path);
    if (update) {
        FILE *file = fopen(golden_path, "wb");
        if (file != NULL) fputs(resolved, file), fclose(file);
    }
    char *golden = read_text(golden_path);
    CHECK_TEXT(resolved, golden != NULL ? golden : "(no such file)");
    free(golden);
    tdm_free(resolved);
    tdm_free(origins);
    tdm_free(json);
}

TEST(good) {
    char names[64][64], path[512];
    int count = list_files(TDM_TEST_DATA "/good", names);
    CHECK(count >= 6);
    for (int i = 0; i < count; i++) {
        tdm_status status;
        snprintf(path, sizeof(path), "%s/good/%.63s", TDM_TEST_DATA, names[i]);
        char *text = read_text(path);
        REQUIRE(text != NULL);
        tdm_config *config = checked(text, &status);
        if (status == TDM_OK) {
            check_prints(path, config);
        } else {
            char *faults = faults_of(text);
            CHECK_TEXT(faults, names[i]);
            tdm_free(faults);
        }
        tdm_config_free(config);
        free(text);
    }
}

/* ---- bad ---- */

typedef struct expectation {
    int line, column;
    char id[8], part[160];
    bool is_met;
} expectation;

static int read_expectations(const char *text, expectation *list, int room) {
    int count = 0, line = 0, culprit = 1;
    for (const char *at = text; *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n') {
        size_t length = strcspn(at, "\n"), mark = 1 + strspn(at + 1, " ");
        line++;
        bool is_expectation = at[0] == '#' && (at[mark] == '^' || at[1] == '<');
        if (!is_expectation) {
            culprit = line;
            continue;
        }
        if (count == room) return -1;
        expectation *e = &list[count++];
        *e = (expectation){.line = culprit, .column = at[1] == '<' ? 1 : (int)mark + 1};
        if (length <= mark + 7) return -1;
        snprintf(e->id, sizeof(e->id), "%.4s", at + mark + 2);
        snprintf(e->part, sizeof(e->part), "%.*s", (int)(length - mark - 7), at + mark + 7);
    }
    return count;
}

static void check_fault(const char *name, const tdm_fault *fault, expectation *list, int count) {
    for (int i = 0; i < count; i++) {
        expectation *e = &list[i];
        bool is_it = !e->is_met && e->line == fault->line && e->column == fault->column &&
                     strcmp(e->id, fault->id) == 0 &&
                     (strstr(fault->message, e->part) != NULL || strstr(fault->hint, e->part) != NULL);
        if (!is_it) continue;
        e->is_met = true;
        return;
    }
    tdm_test_failures++;
    fprintf(stderr, "%s:%d:%d: %s: %s (hint: %s) was not expected\n", name, fault->line, fault->column, fault->id,
            fault->message, fault->hint);
}

static void check_bad(const char *name, const char *text) {
    expectation list[40];
    tdm_status status;
    int count = read_expectations(text, list, 40);
    tdm_config *config = checked(text, &status);
    CHECK(count > 0);
    CHECK_INT(status, TDM_E_CONFIG);
    CHECK(tdm_config_job(config) == NULL);
    for (int i = 0; i < tdm_config_fault_count(config); i++)
        check_fault(name, tdm_config_fault(config, i), list, count);
    for (int i = 0; i < count; i++) {
        if (list[i].is_met) continue;
        tdm_test_failures++;
        fprintf(stderr, "%s:%d:%d: %s: %s did not come\n", name, list[i].line, list[i].column, list[i].id,
                list[i].part);
    }
    char *json = NULL;
    CHECK_OK(tdm_config_faults(config, 1, &json));
    json_t *tree = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
    CHECK_INT(json_array_size(json_object_get(tree, "faults")), tdm_config_fault_count(config));
    json_decref(tree);
    tdm_free(json);
    tdm_config_free(config);
}

TEST(bad) {
    char names[64][64], path[512];
    int count = list_files(TDM_TEST_DATA "/bad", names);
    CHECK(count >= 10);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/bad/%.63s", TDM_TEST_DATA, names[i]);
        char *text = read_text(path);
        REQUIRE(text != NULL);
        check_bad(names[i], text);
        free(text);
    }
}

TEST_MAIN({
    update = argc > 1 && strcmp(argv[1], "update") == 0;
    if (update) argc = 1;
    RUN(good);
    RUN(bad);
})
