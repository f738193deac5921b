/* The cells of a CSV text, see csv_cells.h. */
#include "runtime/data/read/csv_cells.h"

#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/text/text.h"
#include "runtime/data/formats.h"

static const char BOM[] = "\xef\xbb\xbf";

tdm_status tdm__csv_load(const tdm_host *host, const char *what, const char *path, char **text, size_t *count) {
    tdm_status status = TDM_OK;
    tdm_reader reader;
    size_t capacity = 0;
    *text = NULL;
    *count = 0;
    TDM_TRY(tdm__reader_open(&reader, host, what, path, true));
    for (bool ended = false; !ended;) {
        size_t got, wanted = reader.inflater == NULL ? reader.file_bytes : capacity + capacity / 2 + (1 << 16);
        if (wanted > TDM_DATA_MAX_BYTES)
            TDM_FAIL_DONE(TDM_E_DATA, "%s '%s': more than %zu bytes; split the file", what, path, TDM_DATA_MAX_BYTES);
        TDM_TRY_DONE(tdm__grow(host, text, &capacity, wanted > 0 ? wanted : 1, 1, what));
        TDM_TRY_DONE(tdm__reader_take_some(&reader, *text + *count, capacity - *count, &got));
        *count += got;
        if (reader.inflater != NULL) TDM_TRY_DONE(tdm__reader_expect(&reader, *count, TDM_DATA_MAX_BYTES, "text"));
        ended = reader.inflater == NULL || *count < capacity;
    }
done:
    tdm__reader_close(&reader);
    if (status != TDM_OK) {
        tdm__delete(host, *text);
        *text = NULL;
    }
    return status;
}

/* The most frequent of the three in the first line, outside quotes. */
static char find_separator(const char *at, const char *end) {
    static const char choices[] = {',', ';', '\t'};
    size_t count[sizeof(choices)] = {0}, best = 0;
    bool quoted = false;
    for (; at < end && (quoted || *at != '\n'); at++) {
        if (*at == '"') quoted = !quoted;
        for (size_t i = 0; i < sizeof(choices) && !quoted; i++) count[i] += *at == choices[i];
    }
    for (size_t i = 1; i < sizeof(choices); i++) {
        if (count[i] > count[best]) best = i;
    }
    return choices[best];
}

void tdm__csv_begin(tdm_csv *csv, const char *what, const char *path, const char *text, size_t count) {
    *csv = (tdm_csv){.what = what, .path = path, .begin = text, .at = text, .end = text + count, .line = 1, .row = -1};
    if (count >= 3 && memcmp(text, BOM, 3) == 0) csv->at += 3;
    csv->separator = find_separator(csv->at, csv->end);
    csv->ends_row = true;
}

static void skip_blanks(tdm_csv *csv) {
    while (csv->at < csv->end && (*csv->at == ' ' || (*csv->at == '\t' && csv->separator != '\t'))) csv->at++;
}

/* At the end of a line, or of the text? A CR counts with its LF only. */
static bool at_line_end(const tdm_csv *csv) {
    const char *at = csv->at;
    return at == csv->end || *at == '\n' || (*at == '\r' && (at + 1 == csv->end || at[1] == '\n'));
}

static void skip_line_end(tdm_csv *csv) {
    if (csv->at < csv->end && *csv->at == '\r') csv->at++;
    if (csv->at < csv->end && *csv->at == '\n') csv->at++;
}

/* As spreadsheets save "Unicode text". */
static bool is_utf16(const tdm_csv *csv) {
    return csv->end - csv->begin >= 2 &&
           (memcmp(csv->begin, "\xff\xfe", 2) == 0 || memcmp(csv->begin, "\xfe\xff", 2) == 0);
}

static tdm_status add(tdm_csv *csv, char byte) {
    if (byte == '\0' && is_utf16(csv))
        TDM_FAIL_CELL(csv, "the text is UTF-16; convert the file, as with `iconv -f utf-16 -t utf-8`");
    if (byte == '\0') TDM_FAIL_CELL(csv, "a NUL byte; this is not a text");
    if (byte == BOM[2] && csv->length >= 2 && memcmp(csv->cell + csv->length - 2, BOM, 2) == 0)
        TDM_FAIL_CELL(csv, "a byte order mark inside the text; remove it, as with `sed 's/\\xef\\xbb\\xbf//g'`");
    if (csv->length + 1 == sizeof(csv->cell)) TDM_FAIL_CELL(csv, "more than %zu bytes", sizeof(csv->cell) - 1);
    csv->cell[csv->length++] = byte;
    return TDM_OK;
}

static tdm_status read_quoted(tdm_csv *csv) {
    int64_t lines = 0;
    for (csv->at++; csv->at < csv->end; csv->at++) {
        if (*csv->at == '"' && (csv->at + 1 == csv->end || csv->at[1] != '"')) {
            csv->at++;
            csv->line += lines;
            return TDM_OK;
        }
        if (*csv->at == '"') csv->at++; /* two quotes are one */
        lines += *csv->at == '\n';
        TDM_TRY(add(csv, *csv->at));
    }
    TDM_FAIL_CELL(csv, "the quote that begins here is not closed");
}

static tdm_status read_plain(tdm_csv *csv) {
    for (; !at_line_end(csv) && *csv->at != csv->separator; csv->at++) {
        if (*csv->at == '\r')
            TDM_FAIL_CELL(csv, "the line ends with CR alone; convert the file, as with `tr '\\r' '\\n'`");
        TDM_TRY(add(csv, *csv->at));
    }
    while (csv->length > 0 && (csv->cell[csv->length - 1] == ' ' || csv->cell[csv->length - 1] == '\t')) csv->length--;
    return TDM_OK;
}

/* Moves to the first cell of the next line that has one. */
static void next_row(tdm_csv *csv) {
    skip_blanks(csv);
    while (csv->at < csv->end && at_line_end(csv)) {
        skip_line_end(csv);
        csv->line++;
        skip_blanks(csv);
    }
    csv->row++;
    csv->column = 0;
}

tdm_status tdm__csv_next(tdm_csv *csv, bool *more) {
    if (csv->ends_row) {
        next_row(csv);
    } else {
        csv->column++;
        skip_blanks(csv);
    }
    csv->length = 0;
    *more = !csv->ends_row || csv->at < csv->end;
    if (!*more) return TDM_OK;
    TDM_TRY(csv->at < csv->end && *csv->at == '"' ? read_quoted(csv) : read_plain(csv));
    csv->cell[csv->length] = '\0';
    skip_blanks(csv);
    csv->ends_row = at_line_end(csv);
    if (csv->ends_row) return TDM_OK; /* the line's end is skipped with the next cell, which counts the line */
    if (*csv->at != csv->separator) TDM_FAIL_CELL(csv, "expected '%c' behind the quote", csv->separator);
    csv->at++;
    return TDM_OK;
}

tdm_status tdm__csv_check_utf8(const tdm_csv *csv, const char *of_what) {
    if (tdm__text_is_utf8(csv->cell, csv->length, NULL)) return TDM_OK;
    TDM_FAIL_CELL(csv, "the %s is not UTF-8; convert the file, as with `iconv -f latin1 -t utf-8`", of_what);
}
