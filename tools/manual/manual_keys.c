/* manual_keys.c - the keys of the file, from its schema. */
#include <string.h>

#include "tools/manual/manual.h"

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
