/* Settings that are names with a shape each: {image: [3, 32, 32], facts: 7}. */
#include <string.h>

#include "runtime/base/field/field_range.h"

enum { DIGITS = 24 }; /* more than any integer has */

/* One dimension, up to a comma or a bracket; *at moves behind it. */
static bool read_dim(const tdm_field *row, const char **at, int64_t *out, tdm_text *why) {
    char digits[DIGITS];
    *at += strspn(*at, " ");
    const size_t length = strcspn(*at, ",]");
    size_t used = length;
    while (used > 0 && (*at)[used - 1] == ' ') used--;
    const size_t kept = used < DIGITS ? used : DIGITS - 1;
    memcpy(digits, *at, kept);
    digits[kept] = '\0';
    *at += length;
    if (kept == used && tdm__parse_int(digits, out) && (double)*out >= row->min && (double)*out <= row->max)
        return true;
    tdm__text_printf(why, "must have dimensions from %.0f to %.0f, got '%s'", row->min, row->max, digits);
    return false;
}

/* "[3, 32, 32]", or "7" for one dimension. */
static bool read_shape(const tdm_field *row, const char *text, tdm_named_shape *out, tdm_text *why) {
    const char *at = text + (text[0] == '[');
    while (out->ndim < TDM_SHAPE_DIMS && *at != ']' && *at != '\0') {
        if (!read_dim(row, &at, &out->dim[out->ndim], why)) return false;
        out->ndim++;
        if (*at != ',') break;
        at++;
    }
    if (out->ndim > 0 && (*at == '\0' || (text[0] == '[' && strcmp(at, "]") == 0))) return true;
    tdm__text_printf(why, "must have 1 to %d dimensions, got '%.80s'", TDM_SHAPE_DIMS, text);
    return false;
}

bool tdm__field_read_shapes(const tdm_field *row, tdm_shapes *shapes, const tdm_written *written, tdm_zone *zone,
                            tdm_text *why) {
    const int count = written->count / 2;
    if (count < row->min_items || count > row->max_items) {
        tdm__text_printf(why, "must have %d to %d shapes with their names, got %d", row->min_items, row->max_items,
                         count);
        return false;
    }
    tdm_text clause;
    tdm__text_init(&clause, why->host);
    bool good = true;
    memset(shapes, 0, sizeof(*shapes));
    for (; good && shapes->count < count; shapes->count++) {
        tdm_named_shape *shape = &shapes->item[shapes->count];
        const char *const name = written->item[2 * shapes->count];
        good = tdm__zone_text(zone, &shape->name, name) == TDM_OK;
        if (!good) tdm__text_puts(why, tdm__field_no_memory);
        if (!good) break;
        good = read_shape(row, written->item[2 * shapes->count + 1], shape, &clause);
        if (!good) tdm__text_printf(why, "'%s' %s", name, clause.data == NULL ? "is wrong" : clause.data);
    }
    why->failed = why->failed || clause.failed;
    tdm__text_deinit(&clause);
    return good;
}

void tdm__field_print_shapes(const tdm_shapes *shapes, tdm_text *out) {
    tdm__text_puts(out, "{");
    for (int i = 0; i < shapes->count; i++) {
        const tdm_named_shape *shape = &shapes->item[i];
        if (i > 0) tdm__text_puts(out, ", ");
        tdm__text_json_string(out, shape->name);
        for (int k = 0; k < shape->ndim; k++)
            tdm__text_printf(out, "%s%lld", k > 0 ? ", " : ": [", (long long)shape->dim[k]);
        tdm__text_puts(out, "]");
    }
    tdm__text_puts(out, "}");
}
