/* Reading and writing one setting by its row.
 *
 * Ranges: a row with min == max == 0 has none; max < min means that there is only the lower bound, and infinities mean
 * that a side is open. TDM_FIELD_OPEN_MIN without a range means above 0. INT64_MIN is no value of an integer: it stands
 * for null. Lists hold max_items at most, TDM_LIST_MAX if that is 0; a single value is a list of one. */
#ifndef TDM_BASE_FIELD_H
#define TDM_BASE_FIELD_H

#include <tandem/sys/field.h>

#include "runtime/base/memory.h"
#include "runtime/base/text.h"

/* A value as the user wrote it: one scalar, or the items of a list. Quoted scalars are never null. */
typedef struct tdm_written {
    bool is_list, is_null;
    int count;
    const char *const *item;
} tdm_written;

const tdm_field *tdm__field_find(const tdm_field *rows, const char *key); /* rows end with a NULL key */
const tdm_field *tdm__field_main(const tdm_field *rows);                  /* the TDM_FIELD_MAIN row or NULL */

/* Set the field in `object` (the struct that row->offset is in). On a wrong type or range returns false and puts one
 * clause into `why`: "wants an integer of at least 1, got 'three'". Texts are copied into the arena. */
bool tdm__field_set(const tdm_field *row, void *object, const tdm_written *value, tdm_arena *arena, tdm_text *why);
/* The same from one text, where a list is written [a, b, c], texts may stand in quotes, and null or ~ or nothing at all
 * is null. */
bool tdm__field_set_text(const tdm_field *row, void *object, const char *text, tdm_arena *arena, tdm_text *why);
/* Every field to its initial value (zero for required ones). Fails only on memory or a bad table. */
tdm_status tdm__field_set_initial(const tdm_field *rows, void *object, tdm_arena *arena);
/* The value as it would be written in YAML flow style: 64, 1.0e-3, [3, 3], text, null, 1 epoch. Texts that
 * YAML would read as something else are quoted. */
void tdm__field_print(const tdm_field *row, const void *object, tdm_text *out);
bool tdm__field_equal(const tdm_field *row, const void *a, const void *b);
/* "integer, 1 to 512", "one of sgd, adam, adamw": for `explain` and for messages. */
void tdm__field_describe(const tdm_field *row, tdm_text *out, bool chinese);

#endif
