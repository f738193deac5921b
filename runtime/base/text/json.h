/* A strict JSON reader for untrusted input: one pass, bounded memory. The caller pulls values in the order of the text,
 * from memory or from a file through a small window. The text must follow RFC 8259 and be valid UTF-8 without NUL;
 * nesting is limited. The first fault ends the reading: every later call returns false, so a caller checks `failed`
 * once per object. */
#ifndef TDM_BASE_JSON_H
#define TDM_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tandem/status.h>

enum { TDM_JSON_DEPTH = 8, TDM_JSON_WINDOW = 64 * 1024 };

typedef struct tdm_json {
    const unsigned char *at, *end; /* bytes in the window that are not consumed yet */
    const unsigned char *start;
    uint64_t start_offset; /* offset of `start` in the text */
    int fd;                /* -1: the whole text is in the window */
    uint64_t file_offset;  /* where the text begins in the file */
    uint64_t text_bytes;
    uint64_t string_offset; /* offset of the opening quote of the last string */
    unsigned char *window;
    int depth, max_depth;
    bool first[TDM_JSON_DEPTH + 1]; /* nothing of this object or array has been read yet */
    bool failed;
    int error;     /* errno, if reading the file failed */
    char why[256]; /* one clause: "expected ',' or '}', found 'x' (byte 17)" */
} tdm_json;

/* max_depth is the limit of nested objects and arrays, at most TDM_JSON_DEPTH. The text is borrowed. */
void tdm__json_open(tdm_json *json, const void *text, size_t count, int max_depth);
/* `window` holds TDM_JSON_WINDOW bytes. */
void tdm__json_open_file(tdm_json *json, int fd, uint64_t offset, uint64_t count, void *window, int max_depth);

bool tdm__json_object(tdm_json *json); /* enters an object */
/* Reads the next key, with a NUL, and its length. False at the end of the object; the reader is then after it. */
bool tdm__json_key(tdm_json *json, char *out, size_t capacity, size_t *length);
bool tdm__json_array(tdm_json *json); /* enters an array */
bool tdm__json_item(tdm_json *json);  /* is there another item? False at the end; the reader is then after the array */

/* `capacity` includes the NUL; a longer string is a fault. If `out` is NULL the string is only checked and counted. */
bool tdm__json_string(tdm_json *json, char *out, size_t capacity, size_t *length);
bool tdm__json_natural(tdm_json *json, uint64_t *out); /* only digits, at most 19 */
bool tdm__json_integer(tdm_json *json, int64_t *out);  /* digits after an optional minus */
bool tdm__json_number(tdm_json *json, double *out);
bool tdm__json_skip(tdm_json *json); /* checks and skips any value */
bool tdm__json_end(tdm_json *json);  /* is nothing left but white space? */

/* For faults that the caller finds: marks the reader as failed, with a clause and the offset. Returns false. */
bool tdm__json_fail(tdm_json *json, const char *format, ...) TDM_PRINTF(2, 3);

#endif
