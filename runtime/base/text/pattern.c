/* Matching in time proportional to pattern times name: only the last `*` is tried again. */
#include "runtime/base/text/pattern.h"

#include <stddef.h>

bool tdm__pattern_matches(const char *pattern, const char *name) {
    const char *star = NULL, *retry = NULL;
    while (*name != '\0') {
        if (*pattern == '*') {
            star = ++pattern;
            retry = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++, name++;
        } else if (star != NULL) {
            pattern = star;
            name = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return *pattern == '\0';
}

int tdm__patterns_find(const tdm_texts *patterns, const char *name) {
    for (int i = 0; i < patterns->count; i++)
        if (tdm__pattern_matches(patterns->item[i], name)) return i;
    return -1;
}
