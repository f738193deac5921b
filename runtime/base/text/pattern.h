/* Patterns of names, as in file names: `*` stands for any characters, none and dots included, `?` for one byte, any
 * other byte for itself. A pattern covers the whole name. */
#ifndef TDM_BASE_PATTERN_H
#define TDM_BASE_PATTERN_H

#include <stdbool.h>

#include <tandem/sys/field.h>

bool tdm__pattern_matches(const char *pattern, const char *name);
/* The first of the patterns that matches; -1: none. */
int tdm__patterns_find(const tdm_texts *patterns, const char *name);

#endif
