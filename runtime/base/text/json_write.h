/* Writes JSON into a text from templates. The writer adds commas, quotes, escapes and line breaks. After a failed
 * allocation the text is marked as failed, as after any addition to it. */
#ifndef TDM_BASE_JSON_WRITE_H
#define TDM_BASE_JSON_WRITE_H

#include "runtime/base/text/text.h"

enum { TDM_JSON_LEVELS = 32 };

typedef struct tdm_json_out {
    tdm_text *text;
    const char *space; /* after each ',' and ':' */
    int depth, lines;  /* open objects and arrays; those of them that have lines */
    struct {
        bool has_lines, has_entry; /* each entry is on a line of its own; an entry has been written */
    } level[TDM_JSON_LEVELS + 1];
} tdm_json_out;

/* `space`: "" or " ". */
tdm_json_out tdm__json_out(tdm_text *text, const char *space);

/* Writes JSON without its commas and quotes, in words separated by single spaces: "{ step:%lld mode:%s", "loss:%.9g }".
 * An object or array may begin in one call and end in a later one.
 *
 *   key:     the key of the value behind it; "%s:" takes it from the arguments, where NULL means no key
 *   { } [ ]  brackets; closing ones may follow another, as in "]}"
 *   {\n [\n  puts each entry on a line of its own, indented
 *   \n       directly behind a bracket: ends the text with a line break
 *   %s       a string; null for NULL
 *   %d %lld %zu %llu, %.9g and %.3f with any precision: a number; null if JSON cannot hold it
 *   word     true, false and null stand for themselves, any other word is a string */
void tdm__json_put(tdm_json_out *to, const char *words, ...) TDM_PRINTF(2, 3);
void tdm__json_put_bool(tdm_json_out *to, const char *key, bool value);
void tdm__json_put_integers(tdm_json_out *to, const char *key, const int64_t *values, int count);
/* Begins an entry, with a key unless that is NULL. The caller appends the value to the text. */
void tdm__json_put_key(tdm_json_out *to, const char *key);

#endif
