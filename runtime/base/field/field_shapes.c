/* Settings that are names with a shape each: {image: [3, 32, 32], facts: 7}. */
#include <string.h>

#include "runtime/base/field/field_range.h"

/* One shape, as the rows of lists of integers read it. */
static bool read_shape(const tdm_field *row, const char *text, tdm_named_shape *out, tdm_zone *zone, tdm_text *why) {
    const tdm_field ints = {.key = row->key,
                            .kind = TDM_FIELD_INTS,
                            .min = row->min,
                            .max = row->max,
                            .min_items = 1,
                            .max_items = TDM_SHAPE_DIMS};
    tdm_ints dims;
    if (!tdm__field_set_text(&ints, &dims, text, zone, why)) return false;
    out->ndim = dims.count;
    memcpy(out->dim, dims.item, (size_t)dims.count * sizeof(*out->dim));
    return true;
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
        good = read_shape(row, written->item[2 * shapes->count + 1], shape, zone, &clause);
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
