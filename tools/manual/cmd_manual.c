/* cmd_manual.c - `tandem manual`: generates man pages and shell completion from the table of verbs and the file's
 * schema. The build runs it and installs the result. The list of verbs does not show it. */
#include "tools/manual/manual.h"

#include <stdlib.h>
#include <string.h>

static json_t *read_schema(void) {
    char *text = NULL;
    if (tdm_config_schema(TDM_ENGLISH, &text) != TDM_OK) memory_missing();
    json_t *schema = json_loads(text, 0, NULL);
    tdm_free(text);
    return schema;
}

/* The alternative of `anyOf` that has keys, or the value itself; NULL if there is none. */
static const json_t *section_of(const json_t *value) {
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(value, "anyOf"), i, one) {
        if (json_object_get(one, "properties")) return one;
    }
    return json_object_get(value, "properties") ? value : NULL;
}

static void walk(const json_t *section, const char *path, manual_visit visit, void *user) {
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(section, "properties"), key, value) {
        FREED char *whole = text_format("%s%s%s", path, path[0] ? "." : "", key);
        const json_t *part = section_of(value);
        visit(user, whole, value, part != NULL);
        if (part) walk(part, whole, visit, user);
    }
}

void manual_each_key(const json_t *schema, manual_visit visit, void *user) {
    walk(schema, "", visit, user);
}

const json_t *manual_names(const json_t *key) {
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(key, "anyOf"), i, one) {
        if (json_is_array(json_object_get(one, "enum"))) return json_object_get(one, "enum");
        if (strcmp(manual_text(one, "type"), "boolean") == 0) return one;
    }
    return NULL;
}

const char *manual_text(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int run(tool *t) {
    static const struct {
        const char *name;
        void (*write)(FILE *to, const json_t *schema);
    } pages[] = {{"tandem.1", manual_command}, {"tandem.yaml.5", manual_file}, {"bash", manual_bash}};
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        if (strcmp(t->word[0], pages[i].name) != 0) continue;
        FREED char *text = NULL;
        size_t bytes = 0;
        json_t *schema = read_schema();
        FILE *to = text_open(&text, &bytes);
        pages[i].write(to, schema);
        text_close(to, &text);
        int code = files_deliver(t, text);
        json_decref(schema);
        return code;
    }
    return args_wrong(t, "there is no page `%s`; the pages are tandem.1, tandem.yaml.5 and bash", t->word[0]);
}

const tool_verb verb_manual = {"manual",
                               "tandem.1|tandem.yaml.5|bash",
                               NULL,
                               "tandem.1 and tandem.yaml.5 are man pages; bash is the completion script for bash.\n\n"
                               "examples:\n"
                               "  tandem manual tandem.1 | man -l -\n"
                               "  source <(tandem manual bash)",
                               {{"--out", "FILE", "write to a file (-o)"}},
                               run,
                               {1, 1, false}};
