/* Short words for a table of fields, as `{FIELD(INT, attrs, groups, "1"), RANGE(1, 64), HELP("groups", "分组数")}`.
 * Only for the .c file that holds the table. */
#ifndef TDM_BASE_FIELD_ROWS_H
#define TDM_BASE_FIELD_ROWS_H

#include <tandem/sys/field.h>

#include "extras.h"

#define NAMED(kind_, key_, struct_, member_, initial_) \
    .key = (key_), .kind = TDM_FIELD_##kind_, .offset = offsetof(struct_, member_), .initial = (initial_)
/* A key with the name of its member, and one whose member is in the struct `part` of the struct. */
#define FIELD(kind, struct_, member, initial) NAMED(kind, #member, struct_, member, initial)
#define FIELD_IN(kind, struct_, part, member, initial) NAMED(kind, #member, struct_, part.member, initial)
#define RANGE(min_, max_) .min = (min_), .max = (max_)
#define ITEMS(min_, max_) .min_items = (min_), .max_items = (max_)
#define FLAGS(flags_) .flags = (flags_)
#define HELP(en, zh) .help = (en), .help_zh = TDM_WITH_TEXTS ? (zh) : NULL

enum {
    REQUIRED = TDM_FIELD_REQUIRED,
    NULLABLE = TDM_FIELD_NULLABLE,
    MAIN = TDM_FIELD_MAIN,
    OPEN_MIN = TDM_FIELD_OPEN_MIN,
    OPEN_MAX = TDM_FIELD_OPEN_MAX,
    LOCAL = TDM_FIELD_LOCAL,
    KEPT = TDM_FIELD_KEPT,
    OF_START = TDM_FIELD_OF_START,
    NEEDED = TDM_FIELD_NEEDED,
    OF_PATHS = TDM_FIELD_OF_PATHS
};

#endif
