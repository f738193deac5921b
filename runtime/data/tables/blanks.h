/* Blanks around texts of a table. */
#ifndef TDM_DATA_TABLES_BLANKS_H
#define TDM_DATA_TABLES_BLANKS_H

#include <stdbool.h>
#include <stddef.h>

/* Moves to the first byte that is no blank, and returns how many there are up to the last. */
size_t tdm__blanks_trim(const char **text);
static inline bool tdm__is_blank(const char *text) {
    return tdm__blanks_trim(&text) == 0;
}
/* Orders texts, blanks around them apart. */
int tdm__blanks_compare(const char *a, const char *b);

#endif
