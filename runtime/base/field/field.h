/* Reading and printing one setting, described by its row in a table.
 *
 * Ranges: min == max == 0 means no range. max < min means only a lower bound. An infinite bound means none on that
 * side. TDM_FIELD_OPEN_MIN without a range means above 0. An integer cannot be INT64_MIN, which stands for null. A list
 * holds at most max_items values (if that is 0, TDM_LIST_MAX, of numbers TDM_NUMBERS_MAX); a single value is a list of
 * one. */
#ifndef TDM_BASE_FIELD_H
#define TDM_BASE_FIELD_H

#include <string.h>

#include <tandem/sys/field.h>

#include "runtime/base/memory.h"
#include "runtime/base/text/text.h"

/* A value as the user wrote it: one scalar, the items of a list, or the keys and values of a mapping in turn. A quoted
 * scalar is never null. */
typedef struct tdm_written {
    bool is_list, is_null, is_map;
    int count;
    const char *const *item;
} tdm_written;

/* The row of a key, and the TDM_FIELD_MAIN row; NULL if there is none. Rows end with a NULL key; NULL: there are none.
 */
const tdm_field *tdm__field_find(const tdm_field *rows, const char *key);
const tdm_field *tdm__field_main(const tdm_field *rows);

/* A TDM_FIELD_ENUM in `object`. The compiler chooses whether an enum is an int or an unsigned, so the bytes are copied. */
static inline int tdm__field_enum(const tdm_field *row, const void *object) {
    int value;
    memcpy(&value, (const char *)object + row->offset, sizeof(value));
    return value;
}

/* Is the setting written as a mapping? */
static inline bool tdm__field_is_map(const tdm_field *row) {
    return row->kind == TDM_FIELD_MAP || row->kind == TDM_FIELD_SHAPES;
}
/* Sets the field in `object` (the struct that row->offset refers to). If the type or range is wrong, returns false and
 * appends one clause to `why`: "must be an integer of at least 1, got 'three'". Texts and numbers are copied into the
 * zone. */
bool tdm__field_set(const tdm_field *row, void *object, const tdm_written *value, tdm_zone *zone, tdm_text *why);
/* The same from one text: a list is written [a, b, c], texts may be quoted; null, ~ and the empty text mean null. */
bool tdm__field_set_text(const tdm_field *row, void *object, const char *text, tdm_zone *zone, tdm_text *why);
/* Sets every field to its default (required fields to zero). Texts are the table's own. Fails only without memory or
 * the table is wrong. */
tdm_status tdm__field_set_initial(const tdm_field *rows, void *object, tdm_zone *zone);
/* Prints the value in YAML flow style: 64, 1.0e-3, [3, 3], text, null, 1 epoch. Quotes texts that YAML would read as
 * something else. */
void tdm__field_print(const tdm_field *row, const void *object, tdm_text *out);
/* Adds " key=value" for each row; rows may be NULL. */
void tdm__fields_print(const tdm_field *rows, const void *object, tdm_text *out);
/* Prints what the field accepts: "integer, 1 to 512", "one of sgd, adam, adamw". For `explain` and for messages. */
void tdm__field_describe(const tdm_field *row, tdm_text *out, bool chinese);

#endif
