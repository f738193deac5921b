/* What reading and describing a row have in common. */
#ifndef TDM_BASE_FIELD_RANGE_H
#define TDM_BASE_FIELD_RANGE_H

#include "runtime/base/field.h"

typedef struct tdm_range {
    bool has_min, has_max, open_min, open_max;
    double min, max;
} tdm_range;

tdm_range tdm__field_range(const tdm_field *row);
/* A bound as people write it: a number, or a duration for rows of durations. */
void tdm__field_print_bound(const tdm_field *row, double value, tdm_text *out);
/* The row's member, at `value`, becomes 0; or null, which for numbers is another. */
void tdm__field_set_zero(const tdm_field *row, void *value);
void tdm__field_set_null(const tdm_field *row, void *value);
int tdm__field_max_items(const tdm_field *row);
bool tdm__field_is_list(const tdm_field *row);
extern const char tdm__field_no_memory[];          /* the clause that is no fault of the value */
bool tdm__field_lacks_memory(const tdm_text *why); /* was it that, and not the value? */

/* Seconds in whole milliseconds: 500ms, 10m, 1h30m. Reading takes parts in falling order, each unit once. */
bool tdm__parse_duration(const char *text, double *seconds);
void tdm__print_duration(double seconds, tdm_text *out);

#endif
