/* Blanks around texts, as quotes keep them: texts that differ in nothing else are one that was written in two ways. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/data/tables/blanks.h"
#include "runtime/data/tables/build.h"

/* How many bytes of a blank there are at `text`. */
static size_t blank_at(const char *text) {
    if (*text != '\0' && strchr(" \t\r\n\v\f", *text) != NULL) return 1;
    return strncmp(text, "\xc2\xa0", 2) == 0 ? 2 : 0; /* a no-break space, as pages of the web have */
}

size_t tdm__blanks_trim(const char **text) {
    size_t length = 0;
    while (blank_at(*text) > 0) *text += blank_at(*text);
    for (size_t at = 0; (*text)[at] != '\0';) {
        const size_t blank = blank_at(*text + at);
        at += blank > 0 ? blank : 1;
        if (blank == 0) length = at;
    }
    return length;
}

int tdm__blanks_compare(const char *a, const char *b) {
    const size_t n = tdm__blanks_trim(&a), m = tdm__blanks_trim(&b);
    const int by_text = memcmp(a, b, n < m ? n : m);
    return by_text != 0 ? by_text : (n > m) - (n < m);
}

static int order(const void *a, const void *b) {
    return tdm__blanks_compare(*(const char *const *)a, *(const char *const *)b);
}

static long long line_of(const tdm_table_build *b, const size_t *at, int64_t stride, const char *text) {
    int64_t row = 0;
    while (strcmp(b->texts.data + at[row * stride], text) != 0) row++;
    return (long long)b->line[row];
}

static tdm_status fail(const tdm_table_build *b, int64_t column, const size_t *at, int64_t stride,
                       const char *const pair[2]) {
    const long long line[2] = {line_of(b, at, stride, pair[0]), line_of(b, at, stride, pair[1])};
    const int later = line[1] > line[0];
    TDM_FAIL_TABLE(b, "line %lld, column %lld: '%.64s' is '%.64s' of line %lld, but for blanks; write them in one way",
                   line[later], (long long)column + 1, pair[later], pair[!later], line[!later]);
}

tdm_status tdm__table_check_blanks(tdm_table_build *b, int64_t column, const tdm_classes *values, const size_t *at,
                                   int64_t stride) {
    const char **sorted;
    TDM_TRY(tdm__zone_new(&b->zone, &sorted, (size_t)values->count, sizeof(*sorted)));
    for (int64_t i = 0; i < values->count; i++) sorted[i] = values->name[i];
    qsort(sorted, (size_t)values->count, sizeof(*sorted), order);
    for (int64_t i = 1; i < values->count; i++)
        if (order(&sorted[i - 1], &sorted[i]) == 0) return fail(b, column, at, stride, &sorted[i - 1]);
    return TDM_OK;
}
