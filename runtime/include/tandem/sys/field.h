/* tandem/sys/field.h - a setting is one row of a table.
 *
 * The row parses the text, checks the range, prints the value back, explains itself in two languages and becomes part
 * of the editors' JSON Schema. Options structs, layer attributes and the YAML format are all tables of these rows. */
#ifndef TANDEM_SYS_FIELD_H
#define TANDEM_SYS_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tandem/status.h>

TDM_BEGIN_DECLS

typedef enum tdm_field_kind {
    TDM_FIELD_BOOL,     /* bool: true | false */
    TDM_FIELD_INT,      /* int64_t */
    TDM_FIELD_FLOAT,    /* double */
    TDM_FIELD_TEXT,     /* const char * */
    TDM_FIELD_PATH,     /* const char *, resolved against the folder of the file that names it */
    TDM_FIELD_ENUM,     /* an enum or an int, an index into `names` */
    TDM_FIELD_PAIR,     /* int64_t[2]: [3, 5] or 3x5; one number sets both */
    TDM_FIELD_INTS,     /* tdm_ints */
    TDM_FIELD_FLOATS,   /* tdm_floats */
    TDM_FIELD_PATHS,    /* tdm_texts, each a path */
    TDM_FIELD_TEXTS,    /* tdm_texts */
    TDM_FIELD_MAP,      /* tdm_texts: a key, its text, the next key, its text; written as a mapping */
    TDM_FIELD_INTERVAL, /* tdm_interval: 50 steps | 1 epoch | 30m */
    TDM_FIELD_DURATION, /* double, seconds: 500ms | 30s | 10m | 1h30m */
    TDM_FIELD_NUMBERS,  /* tdm_numbers */
    TDM_FIELD_SHAPES,   /* tdm_shapes: {image: [3, 32, 32], facts: 7} */
    TDM_FIELD_SIZE,     /* int64_t, bytes: 64KiB | 512MiB | 2GiB */
    TDM_FIELD_KIND_COUNT
} tdm_field_kind;

enum { TDM_LIST_MAX = 64 };
typedef struct tdm_ints {
    int count;
    int64_t item[TDM_LIST_MAX];
} tdm_ints;
typedef struct tdm_floats {
    int count;
    double item[TDM_LIST_MAX];
} tdm_floats;
/* As many as there are, at most TDM_NUMBERS_MAX. */
enum { TDM_NUMBERS_MAX = 1 << 20 };
typedef struct tdm_numbers {
    int count;
    const double *item; /* borrowed, as texts are */
} tdm_numbers;
typedef struct tdm_texts {
    int count;
    const char *item[TDM_LIST_MAX];
} tdm_texts;

/* Names with a shape each, in the order in which they were written. */
enum { TDM_SHAPES_MAX = 32, TDM_SHAPE_DIMS = 5 };
typedef struct tdm_named_shape {
    const char *name;
    int ndim;
    int64_t dim[TDM_SHAPE_DIMS];
} tdm_named_shape;
typedef struct tdm_shapes {
    int count;
    tdm_named_shape item[TDM_SHAPES_MAX];
} tdm_shapes;

typedef enum tdm_interval_kind {
    TDM_INTERVAL_NEVER,
    TDM_INTERVAL_STEPS,
    TDM_INTERVAL_EPOCHS,
    TDM_INTERVAL_SECONDS
} tdm_interval_kind;
typedef struct tdm_interval {
    tdm_interval_kind kind;
    double amount;
} tdm_interval;

/* The value of a nullable field that is null: integers TDM_INT_NULL, floats and durations NaN, texts NULL, lists count
 * 0, intervals TDM_INTERVAL_NEVER. */
#define TDM_INT_NULL INT64_MIN

enum {
    TDM_FIELD_REQUIRED = 1,   /* the field has no default */
    TDM_FIELD_NULLABLE = 2,   /* `null` is allowed */
    TDM_FIELD_MAIN = 4,       /* the main argument: `linear: 10` sets this field */
    TDM_FIELD_OPEN_MIN = 8,   /* `min` itself is not allowed */
    TDM_FIELD_LOCAL = 16,     /* ranks of one job may differ in it: where files are, what is shown, how long to wait */
    TDM_FIELD_KEPT = 32,      /* a run can be continued only with the same value */
    TDM_FIELD_OF_START = 64,  /* says where and how a run begins; a continued run may have another value */
    TDM_FIELD_OPEN_MAX = 128, /* `max` itself is not allowed */
    TDM_FIELD_NEEDED = 256,   /* the types that have the field require it, though it has a default */
    TDM_FIELD_OF_PATHS = 512  /* the texts of a TDM_FIELD_MAP are paths */
};

typedef struct tdm_field {
    const char *key;
    tdm_field_kind kind;
    size_t offset;
    const char *initial; /* the default as text; NULL with TDM_FIELD_REQUIRED, "null" if nullable */
    double min, max;     /* range of a number, and of each item of a list; for lists of a fixed length see max_items */
    int min_items, max_items;
    /* The values of a TDM_FIELD_ENUM, NULL-terminated; of a TDM_FIELD_INT or TDM_FIELD_PAIR, words that it may be
     * instead: word i sets the number, or both, to -1 - i. */
    const char *const *names;
    unsigned flags;
    unsigned types; /* one bit for each type of the section that has the field; 0: all of them, or there are no types */
    const char *unit;           /* "samples", "MiB", "seconds"; NULL: no unit */
    const char *help, *help_zh; /* one line each, no full stop */
} tdm_field;

/* A duration in whole milliseconds: `null` for NaN, which is null; INT64_MAX if it is longer than that. */
static inline int64_t tdm_duration_ms(double seconds, int64_t null) {
    if (seconds != seconds) return null;
    return seconds < (double)INT64_MAX / 1000 ? (int64_t)(seconds * 1000) : INT64_MAX;
}

TDM_END_DECLS
#endif
