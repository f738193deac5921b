#include "runtime/base/text/json_write.h"

#include <math.h>
#include <stdlib.h>

tdm_json_out tdm__json_out(tdm_text *text, const char *space) {
    return (tdm_json_out){.text = text, .space = space};
}

static void break_line(tdm_json_out *to) {
    tdm__text_printf(to->text, "\n%*s", 2 * to->lines, "");
}

void tdm__json_put_key(tdm_json_out *to, const char *key) {
    const bool is_first = !to->level[to->depth].has_entry;
    if (!is_first) tdm__text_puts(to->text, ",");
    if (to->level[to->depth].has_lines)
        break_line(to);
    else if (!is_first)
        tdm__text_puts(to->text, to->space);
    to->level[to->depth].has_entry = true;
    if (key == NULL) return;
    tdm__text_json_string(to->text, key);
    tdm__text_printf(to->text, ":%s", to->space);
}

void tdm__json_put_bool(tdm_json_out *to, const char *key, bool value) {
    tdm__json_put_key(to, key);
    tdm__text_puts(to->text, value ? "true" : "false");
}

void tdm__json_put_integers(tdm_json_out *to, const char *key, const int64_t *values, int count) {
    tdm__json_put(to, "%s:[", key);
    for (int i = 0; i < count; i++) tdm__json_put(to, "%lld", (long long)values[i]);
    tdm__json_put(to, "]");
}

/* Opens an object or array. `bracket`: the template from there on. Returns what follows in it. */
static const char *open_level(tdm_json_out *to, const char *bracket) {
    const bool has_lines = bracket[1] == '\n';
    tdm__text_add(to->text, bracket, 1);
    to->depth++;
    to->level[to->depth].has_entry = false;
    to->level[to->depth].has_lines = has_lines;
    to->lines += has_lines;
    return bracket + 1 + has_lines;
}

/* Closes a level for each closing bracket. Returns the next word. */
static const char *close_levels(tdm_json_out *to, const char *words) {
    for (; *words == ' ' || *words == '}' || *words == ']' || *words == '\n'; words++) {
        if (*words == ' ') continue;
        if (*words != '\n') {
            const bool has_lines = to->level[to->depth].has_lines;
            to->lines -= has_lines;
            if (has_lines && to->level[to->depth].has_entry) break_line(to);
            to->depth--;
        }
        tdm__text_add(to->text, words, 1);
    }
    return words;
}

static void add_string(tdm_text *text, const char *value) {
    if (value != NULL)
        tdm__text_json_string(text, value);
    else
        tdm__text_puts(text, "null");
}

/* `precision`: "9g" */
static void add_number(tdm_text *text, const char *precision, double value) {
    char *form;
    const int digits = (int)strtol(precision, &form, 10);
    if (!isfinite(value))
        tdm__text_puts(text, "null");
    else if (*form == 'f')
        tdm__text_printf(text, "%.*f", digits, value);
    else
        tdm__text_printf(text, "%.*g", digits, value);
}

static void add_word(tdm_text *text, const char *word, size_t length) {
    static const char *const literals[] = {"true", "false", "null"};
    const char *quote = "\"";
    for (int i = 0; i < 3; i++) {
        if (strlen(literals[i]) == length && memcmp(literals[i], word, length) == 0) quote = "";
    }
    tdm__text_printf(text, "%s%.*s%s", quote, (int)length, word, quote);
}

/* Adds the value of a conversion such as "%zu". */
static void add_value(tdm_text *text, const char *conversion, va_list *arguments) {
    if (conversion[1] == 's')
        add_string(text, va_arg(*arguments, const char *));
    else if (conversion[1] == '.')
        add_number(text, conversion + 2, va_arg(*arguments, double));
    else if (conversion[1] == 'd')
        tdm__text_printf(text, "%d", va_arg(*arguments, int));
    else if (conversion[1] == 'z')
        tdm__text_printf(text, "%zu", va_arg(*arguments, size_t));
    else if (conversion[3] == 'u')
        tdm__text_printf(text, "%llu", va_arg(*arguments, unsigned long long));
    else
        tdm__text_printf(text, "%lld", va_arg(*arguments, long long));
}

void tdm__json_put(tdm_json_out *to, const char *words, ...) {
    va_list arguments;
    va_start(arguments, words);
    for (const char *at = close_levels(to, words); *at != '\0'; at = close_levels(to, at)) {
        const size_t key = strcspn(at, ": ");
        tdm__json_put_key(to, at[key] == ':' && at[0] == '%' ? va_arg(arguments, const char *) : NULL);
        if (at[key] == ':' && at[0] != '%') tdm__text_printf(to->text, "\"%.*s\":%s", (int)key, at, to->space);
        if (at[key] == ':') at += key + 1;
        const size_t length = strcspn(at, " }]");
        if (*at == '{' || *at == '[') {
            at = open_level(to, at);
            continue;
        }
        if (*at == '%')
            add_value(to->text, at, &arguments);
        else
            add_word(to->text, at, length);
        at += length;
    }
    va_end(arguments);
}
