/* Every row of the format's table, generated from the table itself: its default and a good value are read and printed
 * back, a bad value is refused where it stands, the row is explained in both languages and is in the JSON Schema. */
#include <jansson.h>

#include "config/builtin.h"
#include "config/config_private.h"
#include "runtime/graph/graph.h"
#include "tests/config/config_support.h"

enum { TYPES = 32 }; /* the bits of tdm_field.types */

/* A file in which row `key` of the section, set to type `type`, may be written by an override. */
static void base_text(const tdm_section *section, int type, char *out, size_t bytes) {
    char data[300] = "", more[200] = "";
    static const char *const spec[TYPES] = {
        [TDM_DATA_IDX] = "{format: idx, images: a, labels: b}",
        [TDM_DATA_CIFAR10] = "{format: cifar10, files: [a]}",
        [TDM_DATA_NPY] = "{format: npy, x: a, y: b}",
        [TDM_DATA_SYNTHETIC] = "{format: synthetic}",
        [TDM_DATA_GLYPHS] = "{format: glyphs}",
        [TDM_DATA_IMAGE_FOLDER] = "{format: image_folder, path: a}",
        [TDM_DATA_CSV] = "{format: csv, path: a}",
    };
    bool is_spec = section->type_key != NULL && strcmp(section->type_key, "format") == 0;
    if (is_spec && type != TDM_DATA_NONE) {
        const char *name = section->rows[tdm__section_row(section, "format")].names[type];
        if (spec[type] == NULL) fprintf(stderr, "base_text: add a row to spec[] for the format %s\n", name);
        REQUIRE(spec[type] != NULL);
        snprintf(data, sizeof(data), "data: {%s: %s}\n", strrchr(section->path, '.') + 1, spec[type]);
    } else if (strncmp(section->path, "data.transform", 14) == 0) {
        snprintf(data, sizeof(data), "data: {transform: [to_float, {normalize: {mean: [0.5], std: [0.5]}}]}\n");
    } else if (tdm__section_list(section) != NULL) {
        snprintf(more, sizeof(more), "%s: {groups: [{params: [\"*\"]}]}\n", "optimizer");
    } else if (section->type_key != NULL && !is_spec) {
        const char *name = section->rows[tdm__section_row(section, section->type_key)].names[type];
        const char *needed = strcmp(name, "step") == 0              ? ", step_size: 1"
                             : strcmp(name, "multistep") == 0       ? ", milestones: [1]"
                             : strcmp(name, "cosine_restarts") == 0 ? ", t_0: 3"
                                                                    : "";
        const bool is_inner = strcmp(section->path, "parallel.ddp.compress") == 0;
        snprintf(more, sizeof(more), "%s: {type: %s%s}%s\n", is_inner ? "parallel: {ddp: {compress" : section->path,
                 name, needed, is_inner ? "}}" : "");
    }
    snprintf(out, bytes, "%s%s%srun: {dir: null}\n", SMALL, data, more);
}

/* A type of the section that has the row; -1: none that this build can check. */
static int type_with(const tdm_section *section, const tdm_field *row) {
    if (section->type_key == NULL) return 0;
    const unsigned types = tdm__section_types(section, row);
    bool is_spec = strcmp(section->type_key, "format") == 0;
    for (int type = is_spec ? 1 : 0; type < TYPES; type++) {
        if (types == 0 || (types & (1u << type)) != 0) return type;
    }
    return -1;
}

static void path_of(const tdm_section *section, const tdm_field *row, char *out, size_t bytes) {
    if (strcmp(section->path, "data.transform.normalize") == 0)
        snprintf(out, bytes, "data.transform[1].normalize.%s", row->key);
    else if (tdm__section_list(section) != NULL)
        snprintf(out, bytes, "%s[0].%s", section->path, row->key);
    else
        snprintf(out, bytes, "%s%s%s", section->path, section->path[0] != '\0' ? "." : "", row->key);
}

/* Checks the base with `path=value`; the number of faults, and of those at the value in *there. */
static int faults_with(const char *text, const char *path, const char *value, const char *key, int *there,
                       char **printed) {
    char assignment[300];
    tdm_config *config = NULL;
    if (printed != NULL) *printed = NULL;
    *there = 0;
    if (tdm_config_parse(&config, NULL, text, strlen(text), "file.yaml", "/there") != TDM_OK) return -1;
    snprintf(assignment, sizeof(assignment), "%s=%s", path, value);
    CHECK_OK(tdm_config_override(config, assignment));
    tdm_status status = tdm_config_check(config);
    int count = tdm_config_fault_count(config);
    for (int i = 0; i < count; i++) *there += strcmp(tdm_config_fault(config, i)->key, key) == 0;
    CHECK_INT(status == TDM_OK, count == 0);
    if (status == TDM_OK && printed != NULL) CHECK_OK(tdm_config_get(config, key, printed));
    tdm_config_free(config);
    return count;
}

static void good_value(const tdm_section *section, const tdm_field *row, char *out, size_t bytes) {
    if (strcmp(row->key, "betas") == 0 || strcmp(row->key, "range") == 0)
        snprintf(out, bytes, row->kind == TDM_FIELD_FLOATS ? "[0.5, 0.25]" : "[3, 9]");
    else if (strcmp(row->key, "weight") == 0)
        snprintf(out, bytes, "[0.25, 0, 2]"); /* for the three classes of SMALL */
    else if (strcmp(row->key, "init_method") == 0)
        snprintf(out, bytes, "file:///shared/meet");
    else if (strcmp(row->key, "nesterov") == 0)
        snprintf(out, bytes, "false");
    else if (strcmp(row->key, "stages") == 0 || strcmp(row->key, "accumulate") == 0 || strcmp(row->key, "tandem") == 0)
        snprintf(out, bytes, "1");
    else if (strcmp(row->key, "total") == 0)
        snprintf(out, bytes, "50");
    else if (strcmp(row->key, "output_device") == 0)
        snprintf(out, bytes, "0");
    else if (strcmp(section->path, "model") == 0 && strcmp(row->key, "input") == 0)
        snprintf(out, bytes, "[7]");
    else if (row->kind == TDM_FIELD_ENUM)
        snprintf(out, bytes, "%s",
                 row->names[strcmp(row->key, "precision") == 0       ? 0
                            : strcmp(row->key, "format") == 0        ? 1
                            : strcmp(row->key, "metric") == 0        ? TDM_METRIC_LOSS
                            : strcmp(section->path, "schedule") == 0 ? 0
                                                                     : 1]);
    else if (row->kind == TDM_FIELD_BOOL)
        snprintf(out, bytes, "true");
    else if (row->kind == TDM_FIELD_INT)
        snprintf(out, bytes, "2");
    else if (row->kind == TDM_FIELD_FLOAT)
        snprintf(out, bytes, "0.25");
    else if (row->kind == TDM_FIELD_INTS)
        snprintf(out, bytes, "[2]");
    else if (row->kind == TDM_FIELD_FLOATS || row->kind == TDM_FIELD_NUMBERS)
        snprintf(out, bytes, "[0.25]");
    else if (row->kind == TDM_FIELD_INTERVAL)
        snprintf(out, bytes, "7 steps");
    else if (row->kind == TDM_FIELD_DURATION)
        snprintf(out, bytes, "30s");
    else if (row->kind == TDM_FIELD_SIZE)
        snprintf(out, bytes, "64MiB");
    else if (row->kind == TDM_FIELD_PATHS)
        snprintf(out, bytes, "[/a, /b]");
    else if (row->kind == TDM_FIELD_TEXTS)
        snprintf(out, bytes, "[\"*.weight\"]");
    else if (row->kind == TDM_FIELD_MAP && (row->flags & TDM_FIELD_OF_PATHS) != 0)
        snprintf(out, bytes, "{\"x\": \"/a\"}");
    else if (row->kind == TDM_FIELD_MAP)
        snprintf(out, bytes, "{\"module.\": \"\"}");
    else if (row->kind == TDM_FIELD_SHAPES)
        snprintf(out, bytes, "{\"x\": [4]}");
    else
        snprintf(out, bytes, "/some/text");
}

static const char *bad_value(const tdm_field *row) {
    switch (row->kind) {
    case TDM_FIELD_TEXT:
    case TDM_FIELD_PATH:
        return "[a, b]";
    case TDM_FIELD_PATHS:
    case TDM_FIELD_TEXTS:
        return "{a: b}";
    case TDM_FIELD_MAP:
    case TDM_FIELD_SHAPES:
        return "[a, b]";
    case TDM_FIELD_BOOL:
    case TDM_FIELD_INT:
    case TDM_FIELD_FLOAT:
    case TDM_FIELD_ENUM:
    case TDM_FIELD_PAIR:
    case TDM_FIELD_INTS:
    case TDM_FIELD_FLOATS:
    case TDM_FIELD_NUMBERS:
    case TDM_FIELD_INTERVAL:
    case TDM_FIELD_DURATION:
    case TDM_FIELD_SIZE:
    case TDM_FIELD_KIND_COUNT:
        break;
    }
    return "purple";
}

static bool is_skipped(const tdm_section *section, const tdm_field *row) {
    /* Those of data name inputs of the model, and its input has no name: tests/config/bad/inputs.yaml. */
    if (strcmp(row->key, "inputs") == 0 && strcmp(section->path, "model") != 0) return true;
    /* to_float is an item, not a key; builtin has no good value in this build; path becomes files. */
    static const char *const become_layers[] = {"classes", "small_input", "zero_init_residual"};
    for (size_t i = 0; i < sizeof become_layers / sizeof *become_layers; i++)
        if (strcmp(section->path, "model") == 0 && strcmp(row->key, become_layers[i]) == 0) return true;
    return (strcmp(section->path, "data.transform") == 0 && strcmp(row->key, "to_float") == 0) ||
           strcmp(row->key, "builtin") == 0 || strcmp(row->key, "path") == 0 ||
           (strcmp(section->path, "") == 0 && strcmp(row->key, "name") == 0);
}

TEST(every_row_good_and_bad) {
    int tried = 0;
    for (int s = 0; s < TDM_SECTION_COUNT; s++) {
        const tdm_section *section = &tdm__sections[s];
        for (const tdm_field *row = section->rows; row->key != NULL; row++) {
            char text[900], path[200], key[200], value[64], *printed;
            int there, type = type_with(section, row);
            if (is_skipped(section, row) || type < 0) continue;
            base_text(section, type, text, sizeof(text));
            path_of(section, row, path, sizeof(path));
            snprintf(key, sizeof(key), "%s%s%s", section->path, section->path[0] != '\0' ? "." : "", row->key);
            good_value(section, row, value, sizeof(value));
            int count = faults_with(text, path, value, key, &there, &printed);
            if (count != 0) fprintf(stderr, "%s=%s has %d faults\n", path, value, count);
            CHECK_INT(count, 0);
            CHECK_TEXT(printed, value);
            tdm_free(printed);
            count = faults_with(text, path, bad_value(row), key, &there, NULL);
            if (count != 1 || there != 1)
                fprintf(stderr, "%s=%s has %d faults, %d there\n", path, bad_value(row), count, there);
            CHECK(count == 1 && there == 1);
            tried++;
        }
    }
    CHECK(tried > 70);
}

/* Keys of the table are spelt once, typed rows exist, and a section's struct holds what its rows say. */
TEST(table_is_complete) {
    for (int s = 0; s < TDM_SECTION_COUNT; s++) {
        const tdm_section *section = &tdm__sections[s];
        int count = 0;
        CHECK(section->help != NULL && section->help_zh != NULL);
        for (const tdm_field *row = section->rows; row->key != NULL; row++, count++) {
            CHECK(row->help != NULL && row->help_zh != NULL && strcmp(row->help, row->help_zh) != 0);
            CHECK(row->initial != NULL || (row->flags & TDM_FIELD_REQUIRED) != 0);
            for (const tdm_field *other = section->rows; other != row; other++)
                CHECK(strcmp(other->key, row->key) != 0);
        }
        CHECK(count <= TDM_ROWS_MAX);
        if (section->type_key != NULL) CHECK(tdm__section_row(section, section->type_key) >= 0);
        unsigned typed = 0;
        for (const tdm_field *row = section->rows; row->key != NULL; row++) {
            const unsigned types = section->type_key != NULL ? tdm__section_types(section, row) : row->types;
            CHECK(types != 0 || (row->flags & TDM_FIELD_NEEDED) == 0);
            typed |= types;
        }
        CHECK((section->type_key == NULL) == (typed == 0));
    }
}

/* Index for index the same losses and optimizers as the ops room has. */
TEST(names_are_those_of_the_ops) {
    const char *const *losses = tdm__sections[tdm__section_find("loss")].rows[0].names;
    const char *const *optimizers = tdm__sections[tdm__section_find("optimizer")].rows[0].names;
    int i = 0;
    for (; losses[i] != NULL && tdm_builtin_losses[i] != NULL; i++) CHECK_TEXT(losses[i], tdm_builtin_losses[i]->name);
    CHECK(losses[i] == NULL && tdm_builtin_losses[i] == NULL);
    for (i = 0; optimizers[i] != NULL && tdm_builtin_optims[i] != NULL; i++)
        CHECK_TEXT(optimizers[i], tdm_builtin_optims[i]->name);
    CHECK(optimizers[i] == NULL && tdm_builtin_optims[i] == NULL);
}

/* The keys that an optimizer or loss calls its own are rows of the table. */
TEST(keys_of_the_ops_are_rows) {
    const tdm_section *optimizer = &tdm__sections[tdm__section_find("optimizer")];
    const tdm_section *loss = &tdm__sections[tdm__section_find("loss")];
    for (int i = 0; tdm_builtin_optims[i] != NULL; i++) {
        for (const char *const *key = tdm_builtin_optims[i]->keys; *key != NULL; key++)
            CHECK(tdm__section_row(optimizer, *key) >= 0);
        for (const tdm_optim_conflict *row = tdm_builtin_optims[i]->conflict; row->key != NULL; row++) {
            int section, at;
            CHECK(tdm__table_find(row->key, strlen(row->key), &section, &at));
            CHECK(tdm__table_find(row->other, strlen(row->other), &section, &at));
        }
        bool depends = false;
        for (int k = 0; k < TDM_MAX_STATES; k++) depends = depends || tdm_builtin_optims[i]->without[k] != NULL;
        CHECK(depends == (tdm_builtin_optims[i]->states != NULL));
    }
    for (int i = 0; tdm_builtin_losses[i] != NULL; i++)
        for (const char *const *key = tdm_builtin_losses[i]->keys; *key != NULL; key++)
            CHECK(tdm__section_row(loss, *key) >= 0);
}

TEST(job_defaults) {
    tdm_job job;
    REQUIRE_OK(tdm_job_init(&job));
    CHECK_INT(job.size, sizeof(job));
    CHECK_INT(job.version, 1);
    CHECK_TEXT(job.name, "job");
    CHECK_TEXT(job.checkpoint.resume, "auto");
    CHECK_TEXT(job.parallel.ddp.init_method, "env");
    CHECK(job.run.dir == NULL && job.weights == NULL && job.data.train.images == NULL);
    CHECK_INT(job.train.epochs, TDM_INT_NULL);
    CHECK_INT(job.train.steps, TDM_INT_NULL);
    CHECK(job.optimizer.lr == 1e-3 && isnan(job.optimizer.weight_decay) && isnan(job.train.clip_grad_norm));
    CHECK(job.schedule.warmup_factor == 1.0 / 3.0 && job.schedule.start_factor == 1.0 / 3.0);
    CHECK_INT(job.parallel.device_ids.count, 1);
    CHECK(job.parallel.ddp.timeout == 600.0);
    CHECK_INT(job.eval.every.kind, TDM_INTERVAL_EPOCHS);
}

TEST(explain_all) {
    char *text;
    for (int s = 0; s < TDM_SECTION_COUNT; s++) {
        for (const tdm_field *row = tdm__sections[s].rows; row->key != NULL; row++) {
            char key[200];
            snprintf(key, sizeof(key), "%s%s%s", tdm__sections[s].path, s > 0 ? "." : "", row->key);
            REQUIRE_OK(tdm_config_explain(key, TDM_ENGLISH, &text));
            CHECK_HAS(text, row->help);
            CHECK_HAS(text, "default   ");
            tdm_free(text);
            REQUIRE_OK(tdm_config_explain(key, TDM_CHINESE, &text));
            CHECK_HAS(text, row->help_zh);
            CHECK_HAS(text, "默认值");
            tdm_free(text);
        }
        REQUIRE_OK(tdm_config_explain(tdm__sections[s].path, TDM_CHINESE, &text));
        CHECK_HAS(text, tdm__sections[s].help_zh);
        tdm_free(text);
    }
    for (int i = 0; tdm_builtin_ops[i] != NULL; i++) {
        REQUIRE_OK(tdm_config_explain(tdm_builtin_ops[i]->name, TDM_ENGLISH, &text));
        CHECK_HAS(text, tdm_builtin_ops[i]->doc);
        tdm_free(text);
    }
    for (int i = 0; i < TDM_FAULT_COUNT; i++) {
        REQUIRE_OK(tdm_config_explain(tdm__fault_number((tdm_fault_id)i), TDM_ENGLISH, &text));
        CHECK_HAS(text, tdm__fault_meaning((tdm_fault_id)i));
        tdm_free(text);
    }
}

TEST(faults_are_documented) {
    char *page = read_text(TDM_TEST_DATA "/../../config/README.md");
    REQUIRE(page != NULL);
    for (int i = 0; i < TDM_FAULT_COUNT; i++) {
        char line[300];
        snprintf(line, sizeof(line), "| %s | %s |", tdm__fault_number((tdm_fault_id)i),
                 tdm__fault_meaning((tdm_fault_id)i));
        CHECK_HAS(page, line);
    }
    free(page);
}

TEST(explain_finds_what_is_meant) {
    char *text;
    REQUIRE_OK(tdm_config_explain("lr", TDM_ENGLISH, &text));
    CHECK_HAS(text, "optimizer.lr\n");
    tdm_free(text);
    REQUIRE_OK(tdm_config_explain("every", TDM_ENGLISH, &text));
    CHECK_HAS(text, "eval.every");
    CHECK_HAS(text, "checkpoint.every");
    tdm_free(text);
    REQUIRE_OK(tdm_config_explain("momentum", TDM_ENGLISH, &text));
    CHECK_HAS(text, "only for  sgd, rmsprop"); /* and what has been added since */
    tdm_free(text);
    REQUIRE_OK(tdm_config_explain("layers", TDM_CHINESE, &text));
    CHECK_HAS(text, "卷积");
    tdm_free(text);
    REQUIRE_OK(tdm_config_explain("conv2d.stride", TDM_ENGLISH, &text));
    CHECK_HAS(text, "conv2d.stride\n");
    tdm_free(text);
    REQUIRE_OK(tdm_config_explain(NULL, TDM_ENGLISH, &text));
    CHECK_HAS(text, "parallel");
    tdm_free(text);
    CHECK_STATUS(tdm_config_explain("optimizer.learningrat", TDM_ENGLISH, &text), TDM_E_USAGE);
    CHECK_STATUS(tdm_config_explain("momentm", TDM_ENGLISH, &text), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "did you mean 'momentum'?");
    CHECK(text == NULL);
}

TEST(words_find_their_keys) {
    static const char *const pairs[][2] = {{"lr", "optimizer.lr"},
                                           {"learning-rate", "optimizer.lr"},
                                           {"seed", "seed"},
                                           {"epochs", "train.epochs"},
                                           {"batch_size", "train.batch.per_device"},
                                           {"batch-size", "train.batch.per_device"},
                                           {"batch", "train.batch.per_device"},
                                           {"workers", "data.workers"},
                                           {"num-workers", "data.workers"},
                                           {"device", "parallel.device"},
                                           {"gpus", "parallel.device_ids"},
                                           {"optimizer.lr", "optimizer.lr"},
                                           {"loss", "loss"},
                                           {"momentum", "optimizer.momentum"},
                                           {"weight-decay", "optimizer.weight_decay"},
                                           {"samples", "data.train.samples"},
                                           {"type", NULL},
                                           {"every", NULL},
                                           {"no such word", NULL},
                                           {"", NULL},
                                           {"optimizer.", NULL}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        char *key = NULL;
        CHECK_OK(tdm_config_find_key(pairs[i][0], &key));
        CHECK_TEXT(key != NULL ? key : "(none)", pairs[i][1] != NULL ? pairs[i][1] : "(none)");
        tdm_free(key);
    }
    for (int s = 0; s < TDM_SECTION_COUNT; s++) { /* a whole path is that key */
        for (const tdm_field *row = tdm__sections[s].rows; row->key != NULL && s > 0; row++) {
            char path[128], *key = NULL;
            snprintf(path, sizeof(path), "%s.%s", tdm__sections[s].path, row->key);
            CHECK_OK(tdm_config_find_key(path, &key));
            CHECK_TEXT(key, path);
            tdm_free(key);
        }
    }
}

/* ---- JSON Schema ---- */

static json_t *part_of(json_t *schema, const char *key) {
    json_t *part = json_object_get(json_object_get(schema, "properties"), key);
    json_t *any = json_object_get(part, "anyOf");
    if (json_object_get(part, "items") != NULL) return json_object_get(part, "items");
    for (size_t i = 0; i < json_array_size(any); i++) {
        json_t *one = json_array_get(any, i);
        if (json_object_get(one, "properties") != NULL) return one;
    }
    return part;
}

TEST(schema_has_every_key) {
    for (int language = TDM_ENGLISH; language <= TDM_CHINESE; language++) {
        char *text;
        json_error_t error;
        REQUIRE_OK(tdm_config_schema((tdm_language)language, &text));
        json_t *schema = json_loads(text, JSON_REJECT_DUPLICATES, &error);
        if (schema == NULL) fprintf(stderr, "line %d: %s\n", error.line, error.text);
        REQUIRE(schema != NULL);
        CHECK_TEXT(json_string_value(json_object_get(schema, "$schema")), "http://json-schema.org/draft-07/schema#");
        for (int s = 0; s < TDM_SECTION_COUNT; s++) {
            if (strncmp(tdm__sections[s].path, "data.transform", 14) == 0) continue;
            char path[100], *rest = path, *word;
            json_t *part = schema;
            snprintf(path, sizeof(path), "%s", tdm__sections[s].path);
            while (path[0] != '\0' && (word = strsep(&rest, ".")) != NULL) part = part_of(part, word);
            CHECK(json_is_false(json_object_get(part, "additionalProperties")));
            for (const tdm_field *row = tdm__sections[s].rows; row->key != NULL; row++) {
                json_t *property = json_object_get(json_object_get(part, "properties"), row->key);
                const char *about = json_string_value(json_object_get(property, "description"));
                const char *help = language == TDM_CHINESE ? row->help_zh : row->help;
                REQUIRE(about != NULL);
                CHECK(strncmp(about, help, strlen(help)) == 0);
                CHECK((about[strlen(help)] == '\0') == !tdm__lacks(row));
            }
        }
        json_t *layers = json_object_get(json_object_get(part_of(schema, "model"), "properties"), "layers");
        json_t *kinds = json_object_get(json_object_get(layers, "items"), "anyOf");
        size_t ops = 0;
        while (tdm_builtin_ops[ops] != NULL) ops++;
        CHECK_INT(json_array_size(kinds), ops + 3); /* the bare names, `block` and `custom` */
        json_decref(schema);
        tdm_free(text);
    }
}

TEST_MAIN(RUN(every_row_good_and_bad); RUN(table_is_complete); RUN(names_are_those_of_the_ops);
          RUN(keys_of_the_ops_are_rows); RUN(job_defaults); RUN(explain_all); RUN(faults_are_documented);
          RUN(explain_finds_what_is_meant); RUN(words_find_their_keys); RUN(schema_has_every_key);)
