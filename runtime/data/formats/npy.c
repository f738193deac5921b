/* NumPy arrays: x.npy holds the samples, y.npy the labels (integers) or the targets (floats), both [n, ...]. The header
 * of a file:
 *
 *   6 bytes         "\x93NUMPY"
 *   2 bytes         the version
 *   2 or 4 bytes    N, the length of the text, little-endian; 4 bytes from version 2 on
 *   N bytes         a Python dictionary literal with exactly the keys descr, fortran_order and shape
 *
 * NumPy evaluates the text as Python. This parser accepts only such dictionaries. */
#include "runtime/data/formats/npy.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/status.h"

enum { HEADER_MAX = 64 * 1024, PREFIX = 8, WORD_MAX = 16 };
enum { SEEN_DESCR = 1, SEEN_ORDER = 2, SEEN_SHAPE = 4, SEEN_ALL = 7 };

typedef struct cursor {
    const tdm_reader *reader; /* for messages */
    const char *start, *at, *end;
} cursor;

static tdm_status bad(const cursor *c, const char *expected) {
    char found[24] = "the end";
    if (c->at < c->end) {
        unsigned char byte = (unsigned char)*c->at;
        snprintf(found, sizeof(found), byte >= ' ' && byte < 127 ? "'%c'" : "byte 0x%02x", byte);
    }
    TDM_FAIL_READ(c->reader, "npy header, character %zu: expected %s, found %s", (size_t)(c->at - c->start), expected,
                  found);
}

static void skip_space(cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r')) c->at++;
}

/* If the next character is `character`, skips it and returns true. */
static bool skip(cursor *c, char character) {
    skip_space(c);
    if (c->at == c->end || *c->at != character) return false;
    c->at++;
    return true;
}

/* Reads a quoted text without escapes, of less than WORD_MAX characters. */
static tdm_status read_string(cursor *c, const char *expected, char out[WORD_MAX]) {
    skip_space(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) return bad(c, expected);
    char quote = *c->at++;
    size_t length = 0;
    while (c->at < c->end && *c->at != quote) {
        if (length + 1 == WORD_MAX || *c->at == '\\' || *c->at == '\0') return bad(c, expected);
        out[length++] = *c->at++;
    }
    if (c->at == c->end) return bad(c, "a closing quote");
    c->at++;
    out[length] = '\0';
    return TDM_OK;
}

static bool read_word(cursor *c, const char *word) {
    size_t length = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0) return false;
    c->at += length;
    return true;
}

static tdm_status read_size(cursor *c, size_t *out) {
    skip_space(c);
    if (c->at == c->end || *c->at < '0' || *c->at > '9') return bad(c, "a whole number");
    *out = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (!tdm__mul_fits(*out, 10, out) || !tdm__add_fits(*out, (size_t)(*c->at - '0'), out))
            return bad(c, "a dimension below 2^64");
    }
    return TDM_OK;
}

static tdm_status read_descr(cursor *c, tdm_array *header) {
    char text[WORD_MAX];
    size_t bytes = 0;
    TDM_TRY(read_string(c, "a simple type such as '<f4'", text));
    if (strcmp(text, "|O") == 0)
        TDM_FAIL_READ(c->reader,
                      "Python objects instead of numbers, as NumPy saves samples of unequal size; bring all to "
                      "one length, and save numpy.stack(...) of them");
    const char *digit = text + 2;
    bool good = strlen(text) >= 3 && strlen(text) <= 5 && strchr("<>|", text[0]) != NULL;
    for (; good && *digit != '\0'; digit++) {
        good = *digit >= '0' && *digit <= '9';
        bytes = bytes * 10 + (size_t)(*digit - '0');
    }
    if (!good || bytes == 0)
        TDM_FAIL_READ(c->reader, "npy type '%s' is not a plain number such as '<f4', '|u1' or '<i8'", text);
    header->type = (tdm_cell_type){.order = text[0], .kind = text[1], .bytes = bytes};
    return TDM_OK;
}

static tdm_status read_shape(cursor *c, tdm_array *header) {
    bool needs_comma = false;
    if (!skip(c, '(')) return bad(c, "'(' of the shape");
    while (!skip(c, ')')) {
        if (needs_comma) return bad(c, "',' or ')'");
        if (header->ndim == TDM_ARRAY_MAX_DIMS) return bad(c, "at most 8 dimensions");
        TDM_TRY(read_size(c, &header->dim[header->ndim++]));
        needs_comma = !skip(c, ',');
    }
    if (header->ndim == 1 && needs_comma) return bad(c, "',' in a shape of one dimension");
    return TDM_OK;
}

static tdm_status read_entry(cursor *c, tdm_array *header, unsigned *seen) {
    char key[WORD_MAX];
    TDM_TRY(read_string(c, "a key (descr, fortran_order or shape)", key));
    unsigned bit = strcmp(key, "descr") == 0           ? SEEN_DESCR
                   : strcmp(key, "fortran_order") == 0 ? SEEN_ORDER
                   : strcmp(key, "shape") == 0         ? SEEN_SHAPE
                                                       : 0;
    if (bit == 0 || (*seen & bit) != 0)
        TDM_FAIL_READ(c->reader, "npy header: %s key '%s'", bit == 0 ? "unknown" : "duplicate", key);
    *seen |= bit;
    if (!skip(c, ':')) return bad(c, "':'");
    if (bit == SEEN_DESCR) return read_descr(c, header);
    if (bit == SEEN_SHAPE) return read_shape(c, header);
    header->fortran_order = read_word(c, "True");
    if (!header->fortran_order && !read_word(c, "False")) return bad(c, "True or False");
    return TDM_OK;
}

static tdm_status parse(cursor *c, tdm_array *header) {
    unsigned seen = 0;
    bool needs_comma = false;
    if (!skip(c, '{')) return bad(c, "'{'");
    while (!skip(c, '}')) {
        if (needs_comma) return bad(c, "',' or '}'");
        TDM_TRY(read_entry(c, header, &seen));
        needs_comma = !skip(c, ',');
    }
    skip_space(c);
    if (c->at != c->end) return bad(c, "nothing after '}'");
    if (seen != SEEN_ALL)
        TDM_FAIL_READ(c->reader, "npy header: expected the keys descr, fortran_order and shape, but one is missing");
    return TDM_OK;
}

/* Reads the magic, the version and the length of the text. */
static tdm_status read_prefix(tdm_reader *reader, size_t *length) {
    unsigned char prefix[PREFIX], word[4] = {0};
    TDM_TRY(tdm__reader_take(reader, prefix, sizeof(prefix)));
    if (memcmp(prefix, "\x93NUMPY", 6) != 0)
        TDM_FAIL_READ(reader,
                      "not a npy file: expected 93 4e 55 4d 50 59 at its start, found %02x %02x %02x %02x %02x "
                      "%02x",
                      prefix[0], prefix[1], prefix[2], prefix[3], prefix[4], prefix[5]);
    if (prefix[6] < 1 || prefix[6] > 3)
        TDM_FAIL_READ(reader, "expected npy version 1 to 3, found %u.%u", prefix[6], prefix[7]);
    TDM_TRY(tdm__reader_take(reader, word, prefix[6] == 1 ? 2 : 4));
    *length = (size_t)word[0] | (size_t)word[1] << 8 | (size_t)word[2] << 16 | (size_t)word[3] << 24;
    if (*length > HEADER_MAX)
        TDM_FAIL_READ(reader, "npy header of %zu bytes; at most %d are allowed", *length, HEADER_MAX);
    return TDM_OK;
}

static tdm_status read_header(tdm_reader *reader, tdm_array *header) {
    tdm_status status = TDM_OK;
    size_t length = 0;
    char *text = NULL;
    TDM_TRY(read_prefix(reader, &length));
    if (length > reader->file_bytes - reader->offset)
        TDM_FAIL_READ(reader, "expected a npy header of %zu bytes, found %zu", length,
                      reader->file_bytes - reader->offset);
    TDM_TRY(tdm__new(reader->host, &text, length, 1, "npy header"));
    TDM_TRY_DONE(tdm__reader_take(reader, text, length));
    cursor c = {reader, text, text, text + length};
    TDM_TRY_DONE(parse(&c, header));
done:
    tdm__delete(reader->host, text);
    return status;
}

tdm_status tdm__npy_peek(tdm_array *out, const tdm_host *host, const char *name, const char *path) {
    tdm_reader reader;
    *out = (tdm_array){.ndim = 0};
    TDM_TRY(tdm__reader_open(&reader, host, name, path, false));
    const tdm_status status = read_header(&reader, out);
    tdm__reader_close(&reader);
    return status;
}

static tdm_status npy_open(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    static const tdm_array_format format = {.x_name = "x", .y_name = "y", .read_header = read_header};
    return tdm__arrays_open(dataset, &format, spec->x, spec->y, spec, wanted);
}

const tdm_dataset_ops tdm__npy_data = {.name = "npy",
                                       .bytes = sizeof(tdm_table),
                                       .open = npy_open,
                                       .read = tdm__table_read,
                                       .add_content = tdm__table_add_content,
                                       .close = tdm__row_files_close};
