/* The defaults of settings. */
#include <string.h>

#include "runtime/base/field/field_range.h"
#include "runtime/base/status.h"

/* Every check of a file sets every row, so nulls and plain scalars take a short path without the parser. */
static bool set_initial(const tdm_field *row, void *object, tdm_zone *zone, tdm_text *why) {
    void *value = (char *)object + row->offset;
    bool is_null = row->initial == NULL || strcmp(row->initial, "null") == 0;
    if (is_null && (row->flags & TDM_FIELD_NULLABLE) != 0) {
        tdm__field_set_null(row, value);
        return true;
    }
    if (row->initial == NULL) {
        tdm__field_set_zero(row, value);
        return true;
    }
    if (row->kind == TDM_FIELD_TEXT || row->kind == TDM_FIELD_PATH) {
        *(const char **)value = row->initial; /* a constant */
        return true;
    }
    char first = row->initial[0];
    bool is_plain = !is_null && ((first >= '0' && first <= '9') || (first >= 'a' && first <= 'z'));
    if (!is_plain) return tdm__field_set_text(row, object, row->initial, zone, why);
    return tdm__field_set(row, object, &(tdm_written){.count = 1, .item = &row->initial}, zone, why);
}

tdm_status tdm__field_set_initial(const tdm_field *rows, void *object, tdm_zone *zone) {
    tdm_text why;
    tdm_status status = TDM_OK;
    tdm__text_init(&why, zone->host);
    for (const tdm_field *row = rows; row->key != NULL && status == TDM_OK; row++) {
        if (!set_initial(row, object, zone, &why)) {
            const char *clause = why.data == NULL ? tdm__field_no_memory : why.data;
            status = tdm__fail(tdm__field_lacks_memory(&why) ? TDM_E_MEMORY : TDM_E_INTERNAL, __FILE__, __LINE__, NULL,
                               "default of %s %s", row->key, clause);
        }
    }
    tdm__text_deinit(&why);
    return status;
}
