/* The JSON Schema that `tandem schema` prints for editors, against files. A small validator reads it: of draft 7 it
 * knows the words that the schema has, and no others.
 *
 * Samples and good files are valid. A file of bad/ is not if it has a fault of a single key: an unknown key or layer, a
 * value, a missing key, one of another type. What keys say together (C009, C011, C013 to C015) no schema sees, and such
 * a file is valid. */
#include <glob.h>
#include <jansson.h>
#include <math.h>
#include <regex.h>

#include "config/yaml.h"
#include "tests/config/config_support.h"

/* ---- the validator ---- */

static bool is_valid(json_t *schema, json_t *value);

static bool matches(const char *text, const char *pattern) {
    regex_t regex;
    const int refused = regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB);
    CHECK_INT(refused, 0);
    if (refused != 0) return false;
    const bool found = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return found;
}

static bool is_of(json_t *value, const char *type) {
    if (strcmp(type, "null") == 0) return json_is_null(value);
    if (strcmp(type, "boolean") == 0) return json_is_boolean(value);
    if (strcmp(type, "string") == 0) return json_is_string(value);
    if (strcmp(type, "array") == 0) return json_is_array(value);
    if (strcmp(type, "object") == 0) return json_is_object(value);
    if (strcmp(type, "number") == 0) return json_is_number(value);
    CHECK_TEXT(type, "integer");
    return json_is_number(value) && json_number_value(value) == floor(json_number_value(value));
}

static bool has_type(json_t *types, json_t *value) {
    bool found = json_is_string(types) && is_of(value, json_string_value(types));
    for (size_t i = 0; i < json_array_size(types); i++)
        found = found || is_of(value, json_string_value(json_array_get(types, i)));
    return found;
}

static bool is_among(json_t *all, json_t *value) {
    for (size_t i = 0; i < json_array_size(all); i++)
        if (json_equal(json_array_get(all, i), value)) return true;
    return false;
}

static int count_valid(json_t *schemas, json_t *value) {
    int count = 0;
    for (size_t i = 0; i < json_array_size(schemas); i++) count += is_valid(json_array_get(schemas, i), value);
    return count;
}

/* Members by `properties`, `patternProperties` and `additionalProperties`. */
static bool has_valid_members(json_t *schema, json_t *value) {
    json_t *own = json_object_get(schema, "properties"), *others = json_object_get(schema, "additionalProperties");
    json_t *patterns = json_object_get(schema, "patternProperties");
    const char *key, *pattern;
    json_t *member, *of;
    json_object_foreach(value, key, member) {
        bool is_known = json_object_get(own, key) != NULL;
        if (is_known && !is_valid(json_object_get(own, key), member)) return false;
        json_object_foreach(patterns, pattern, of) {
            if (!matches(key, pattern)) continue;
            is_known = true;
            if (!is_valid(of, member)) return false;
        }
        if (!is_known && others != NULL && !is_valid(others, member)) return false;
    }
    return true;
}

static bool has_required(json_t *keys, json_t *value) {
    for (size_t i = 0; json_is_object(value) && i < json_array_size(keys); i++)
        if (json_object_get(value, json_string_value(json_array_get(keys, i))) == NULL) return false;
    return true;
}

static bool has_valid_items(json_t *schema, json_t *value) {
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!is_valid(schema, json_array_get(value, i))) return false;
    return true;
}

static bool keeps_if(json_t *schema, json_t *value) {
    json_t *then = json_object_get(schema, is_valid(json_object_get(schema, "if"), value) ? "then" : "else");
    return then == NULL || is_valid(then, value);
}

static bool keeps(json_t *schema, const char *word, json_t *rule, json_t *value) {
    static const char *const others[] = {"$schema", "title", "description",      "$comment", "additionalProperties",
                                         "then",    "else",  "patternProperties"};
    const double number = json_number_value(value), bound = json_number_value(rule);
    if (strcmp(word, "type") == 0) return has_type(rule, value);
    if (strcmp(word, "enum") == 0) return is_among(rule, value);
    if (strcmp(word, "anyOf") == 0) return count_valid(rule, value) > 0;
    if (strcmp(word, "allOf") == 0) return count_valid(rule, value) == (int)json_array_size(rule);
    if (strcmp(word, "if") == 0) return keeps_if(schema, value);
    if (strcmp(word, "required") == 0) return has_required(rule, value);
    if (strcmp(word, "properties") == 0) return has_valid_members(schema, value);
    if (strcmp(word, "items") == 0) return has_valid_items(rule, value);
    if (strcmp(word, "minimum") == 0) return !json_is_number(value) || number >= bound;
    if (strcmp(word, "maximum") == 0) return !json_is_number(value) || number <= bound;
    if (strcmp(word, "exclusiveMinimum") == 0) return !json_is_number(value) || number > bound;
    if (strcmp(word, "exclusiveMaximum") == 0) return !json_is_number(value) || number < bound;
    if (strcmp(word, "minItems") == 0) return !json_is_array(value) || (double)json_array_size(value) >= bound;
    if (strcmp(word, "maxItems") == 0) return !json_is_array(value) || (double)json_array_size(value) <= bound;
    if (strcmp(word, "maxProperties") == 0) return (double)json_object_size(value) <= bound;
    if (strcmp(word, "minLength") == 0) return !json_is_string(value) || (double)json_string_length(value) >= bound;
    if (strcmp(word, "pattern") == 0)
        return !json_is_string(value) || matches(json_string_value(value), json_string_value(rule));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcmp(word, others[i]) == 0) return true;
    CHECK_TEXT(word, "a word that the validator knows");
    return false;
}

static bool is_valid(json_t *schema, json_t *value) {
    const char *word;
    json_t *rule;
    if (json_is_boolean(schema)) return json_is_true(schema);
    json_object_foreach(schema, word, rule) {
        if (!keeps(schema, word, rule, value)) return false;
    }
    /* without `properties` nobody has looked at them */
    return json_object_get(schema, "properties") != NULL || has_valid_members(schema, value);
}

/* ---- files ---- */

/* As editors read scalars, by YAML's core schema. */
static json_t *json_of(const tdm_yaml_node *node) {
    json_t *out = node->kind == TDM_YAML_MAP ? json_object() : json_array();
    char *end;
    for (const tdm_yaml_node *n = node->first; n != NULL; n = n->next) {
        if (n->is_repeated) continue;
        if (node->kind == TDM_YAML_MAP)
            json_object_set_new(out, n->key, json_of(n));
        else
            json_array_append_new(out, json_of(n));
    }
    if (node->kind != TDM_YAML_SCALAR) return out;
    json_decref(out);
    if (tdm__yaml_is_null(node)) return json_null();
    if (!node->quoted && strcmp(node->text, "true") == 0) return json_true();
    if (!node->quoted && strcmp(node->text, "false") == 0) return json_false();
    const double number = strtod(node->text, &end);
    const bool is_number = matches(node->text, "^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?$");
    return !node->quoted && is_number && *end == '\0' ? json_real(number) : json_string(node->text);
}

static json_t *read_schema(void) {
    char *text = NULL;
    json_error_t error;
    CHECK_OK(tdm_config_schema(TDM_ENGLISH, &text));
    json_t *schema = json_loads(text, 0, &error);
    tdm_free(text);
    return schema;
}

static bool is_valid_text(json_t *schema, const char *bytes) {
    tdm_zone zone;
    tdm_fault_list faults;
    tdm_yaml_node *root = NULL;
    const tdm_yaml_text text = {.name = "f", .bytes = bytes, .count = strlen(bytes)};
    tdm__zone_init(&zone, tdm_host_default());
    tdm__faults_init(&faults, &zone);
    CHECK_OK(tdm__yaml_parse(&root, &text, &zone, &faults));
    json_t *value = root != NULL ? json_of(root) : NULL;
    const bool valid = value != NULL && is_valid(schema, value);
    json_decref(value);
    tdm__zone_deinit(&zone);
    return valid;
}

/* Has the file of bad/ a fault of a single key? A range whose ends are in the wrong order is of two numbers. */
static bool has_single_fault(const char *text) {
    static const char *const single[] = {"C006", "C007", "C008", "C010", "C012"};
    bool found = false;
    for (const char *at = strstr(text, " C0"); at != NULL; at = strstr(at + 1, " C0")) {
        if (strncmp(at + 6, "first below end", 15) == 0) continue;
        for (int i = 0; i < 5; i++) found = found || strncmp(at + 1, single[i], 4) == 0;
    }
    return found;
}

static void check_files(const char *pattern, bool are_bad, int least) {
    json_t *schema = read_schema();
    glob_t files;
    REQUIRE(schema != NULL && glob(pattern, 0, NULL, &files) == 0);
    CHECK((int)files.gl_pathc >= least);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        char *text = read_text(files.gl_pathv[i]);
        REQUIRE(text != NULL);
        const bool valid = is_valid_text(schema, text), wanted = !are_bad || !has_single_fault(text);
        if (valid != wanted) fprintf(stderr, "%s:\n", files.gl_pathv[i]);
        CHECK_INT(valid, wanted);
        free(text);
    }
    globfree(&files);
    json_decref(schema);
}

TEST(samples_and_good_files_are_valid) {
    check_files(TDM_TEST_DATA "/good/*.yaml", false, 6);
    check_files(TDM_TEST_DATA "/../../samples/[!l]*/*.yaml", false, 10); /* launch/ has files of Kubernetes */
}

TEST(faults_of_a_single_key_are_seen) {
    check_files(TDM_TEST_DATA "/bad/*.yaml", true, 40);
}

/* A null that `tandem check` takes, the schema takes, and the other way round. */
TEST(nulls) {
    static const char *const good[] = {
        "model: {input: 4, builtin: null, layers: [{linear: 3}]}\n",
        "model: {input: [3, 32, 32], builtin: resnet18, layers: null, blocks: null, classes: 3}\n",
        "model: {input: 4, blocks: {b: {params: null, layers: [{linear: 3}]}}, layers: [{block: {use: b, name: n, id: null}}]}\n",
        "model: {input: 4, layers: [{linear: {out: 3, name: null, id: ~, input: null, stage: null}}, {relu: null}]}\n",
        SMALL_MODEL "optimizer: null\nschedule: null\nparallel: {dp: null, ddp: {compress: null, heartbeat: null}}\n",
    };
    static const char *const bad[] = {
        "model: {input: 4, layers: [null]}\n",
        "model: {input: 4, blocks: {b: null}, layers: [{linear: 3}]}\n",
        "model: {input: 4, layers: [{linear: {out: null}}]}\n",
        SMALL_MODEL "optimizer: {type: null}\n",
        SMALL_MODEL "checkpoint: {keep_best: null}\n",
        SMALL_MODEL "parallel: {device_ids: [null]}\n",
    };
    json_t *schema = read_schema();
    enum { GOOD = sizeof(good) / sizeof(good[0]), ALL = GOOD + sizeof(bad) / sizeof(bad[0]) };
    for (int i = 0; i < ALL; i++) {
        const bool is_good = i < GOOD;
        const char *part = is_good ? good[i] : bad[i - GOOD];
        char text[512];
        snprintf(text, sizeof(text), "tandem: 1\ntrain: {steps: 2, batch: {per_device: 2}}\n%s", part);
        char *faults = faults_of(text);
        if (is_good) CHECK_TEXT(faults, "");
        CHECK_INT(faults[0] == '\0', is_good);
        if (is_valid_text(schema, text) != is_good) fprintf(stderr, "%s", part);
        CHECK_INT(is_valid_text(schema, text), is_good);
        tdm_free(faults);
    }
    json_decref(schema);
}

TEST_MAIN(RUN(samples_and_good_files_are_valid); RUN(faults_of_a_single_key_are_seen); RUN(nulls);)
