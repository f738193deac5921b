/* What the field_*.c files share. */
#ifndef TDM_BASE_FIELD_RANGE_H
#define TDM_BASE_FIELD_RANGE_H

#include "runtime/base/field/field.h"

typedef struct tdm_range {
    bool has_min, has_max, open_min, open_max;
    double min, max;
} tdm_range;

/* What a kind of field is, by tdm_field_kind. */
typedef struct tdm_field_traits {
    size_t bytes; /* of its member */
    bool is_list, has_range;
    const char *article, *name, *name_zh; /* "an ", "integer"; NULL for enums, whose values are named */
} tdm_field_traits;
extern const tdm_field_traits tdm__field_traits[TDM_FIELD_KIND_COUNT];

tdm_range tdm__field_range(const tdm_field *row);
/* Adds the row's range as in "must be an integer from 1 to 512", or nothing. */
void tdm__field_demand_range(const tdm_field *row, tdm_text *out);
/* Sets the row's member, at `value`, to zero; to null, which for numbers differs from zero. */
void tdm__field_set_zero(const tdm_field *row, void *value);
void tdm__field_set_null(const tdm_field *row, void *value);
int tdm__field_max_items(const tdm_field *row);
bool tdm__field_is_list(const tdm_field *row);
/* field_shapes.c */
bool tdm__field_read_shapes(const tdm_field *row, tdm_shapes *shapes, const tdm_written *written, tdm_zone *zone,
                            tdm_text *why);
void tdm__field_print_shapes(const tdm_shapes *shapes, tdm_text *out);
extern const char tdm__field_no_memory[];          /* the clause for: out of memory */
bool tdm__field_lacks_memory(const tdm_text *why); /* did setting fail because there was no memory? */

/* Durations in whole milliseconds: 500ms, 10m, 1h30m. Units are read from the largest to the smallest, each once. */
bool tdm__parse_duration(const char *text, double *seconds);
void tdm__print_duration(double seconds, tdm_text *out);
/* Whole bytes, from 0: 64KiB, 512 MiB, 2GiB. */
bool tdm__parse_size(const char *text, int64_t *bytes);
void tdm__print_size(int64_t bytes, tdm_text *out); /* with the largest unit of which it is a multiple */

#endif
