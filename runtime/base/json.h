/* Reading JSON that others wrote, in one pass and bounded memory: values are pulled in the order of the text, from
 * memory or from a file through a small window. Strict: RFC 8259, valid UTF-8 without NUL, a depth limit; the first
 * fault ends it. Every call after a fault returns false, so a caller checks `failed` once per object. */
#ifndef TDM_BASE_JSON_H
#define TDM_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tandem/status.h>

enum { TDM_JSON_DEPTH = 8, TDM_JSON_WINDOW = 64 * 1024 };

typedef struct tdm_json {
    const unsigned char *at, *end; /* of the window: what is read and not consumed */
    const unsigned char *start;
    uint64_t start_offset; /* of `start` in the text */
    int fd;                /* -1: all of the text is in the window */
    uint64_t file_offset;  /* where the text begins in the file */
    uint64_t text_bytes;
    uint64_t string_offset; /* of the quote that began the last text */
    unsigned char *window;
    int depth, max_depth;
    bool first[TDM_JSON_DEPTH + 1]; /* nothing of this object or array has been read yet */
    bool failed;
    int error;     /* errno, if reading the file was the fault */
    char why[256]; /* one clause: "wants ',' or '}', found 'x' (byte 17)" */
} tdm_json;

/* max_depth counts nested objects and arrays, at most TDM_JSON_DEPTH. The bytes stay the caller's. */
void tdm__json_open(tdm_json *json, const void *text, size_t count, int max_depth);
/* `window` holds TDM_JSON_WINDOW bytes. */
void tdm__json_open_file(tdm_json *json, int fd, uint64_t offset, uint64_t count, void *window, int max_depth);

bool tdm__json_object(tdm_json *json); /* enter */
/* The next key, terminated, its length in *length; false at the end of the object, which is left. */
bool tdm__json_key(tdm_json *json, char *out, size_t capacity, size_t *length);
bool tdm__json_array(tdm_json *json); /* enter */
bool tdm__json_item(tdm_json *json);  /* is there another? false at the end of the array, which is left */

/* `capacity` counts the NUL; a longer string is a fault. out NULL: checked and counted only. */
bool tdm__json_string(tdm_json *json, char *out, size_t capacity, size_t *length);
bool tdm__json_natural(tdm_json *json, uint64_t *out); /* digits alone, at most 19 */
bool tdm__json_integer(tdm_json *json, int64_t *out);  /* with an optional minus */
bool tdm__json_number(tdm_json *json, double *out);
bool tdm__json_skip(tdm_json *json); /* any value, checked and passed over */
bool tdm__json_end(tdm_json *json);  /* nothing but white space is left */

/* The caller's own fault in the same manner: marks the reader failed, with a clause and the offset. */
bool tdm__json_fail(tdm_json *json, const char *format, ...) TDM_PRINTF(2, 3);

#endif
