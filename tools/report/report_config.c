/* report_config.c - reads config.resolved.yaml as a list of keys and values, so that runs can be compared key by key.
 * Needs no YAML parser because tandem wrote the file: two spaces per level, `key: value`, `key:` above a section, `-
 * item` in lists. */
#include "tools/report/report.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 8 };

/* The position of a line: the keys above it, and the number of list items seen on each level. */
typedef struct walk {
    char *key[DEPTH_MAX]; /* the whole path, for each level */
    int items[DEPTH_MAX];
} walk;

static void add_setting(report_run *run, char *key, char *value) {
    run->setting = memory_grow(run->setting, &run->setting_room, run->setting_count + 1, sizeof *run->setting);
    run->setting[run->setting_count++] = (report_setting){key, value};
}

static char *path_below(const walk *w, int depth, const char *key, int length) {
    if (depth == 0) return text_format("%.*s", length, key);
    return text_format("%s.%.*s", w->key[depth - 1], length, key);
}

static void read_line(report_run *run, walk *w, const char *line, size_t length) {
    size_t indent = strspn(line, " ");
    int depth = (int)indent / 2;
    if (indent >= length || depth >= DEPTH_MAX || (depth > 0 && !w->key[depth - 1])) return;
    const char *text = line + indent, *end = line + length;
    if (end - text > 2 && strncmp(text, "- ", 2) == 0 && depth > 0) {
        add_setting(run, text_format("%s[%d]", w->key[depth - 1], w->items[depth]++),
                    text_format("%.*s", (int)(end - text - 2), text + 2));
        return;
    }
    const char *colon = memchr(text, ':', (size_t)(end - text));
    if (!colon) return;
    char *key = path_below(w, depth, text, (int)(colon - text));
    if (end - colon > 2) {
        add_setting(run, key, text_format("%.*s", (int)(end - colon - 2), colon + 2));
        return;
    }
    free(w->key[depth]);
    w->key[depth] = key;
    if (depth + 1 < DEPTH_MAX) w->items[depth + 1] = 0;
}

void report_read_settings(report_run *run) {
    walk w = {{NULL}, {0}};
    for (const char *line = run->config; *line;) {
        size_t length = strcspn(line, "\n");
        read_line(run, &w, line, length);
        line += length + (line[length] == '\n');
    }
    for (int i = 0; i < DEPTH_MAX; i++) free(w.key[i]);
}

void report_free_settings(report_run *run) {
    for (size_t i = 0; i < run->setting_count; i++) {
        free(run->setting[i].key);
        free(run->setting[i].value);
    }
    free(run->setting);
}

const char *report_setting_of(const report_run *run, const char *key) {
    for (size_t i = 0; i < run->setting_count; i++) {
        if (strcmp(run->setting[i].key, key) == 0) return run->setting[i].value;
    }
    return NULL;
}
