/* Which categories of a table the data trained on does not have. */
#include "runtime/base/status.h"
#include "runtime/data/tables/build.h"

/* The text of the cell if its category is one of those; else NULL. An empty cell says nothing that could be unknown. */
static const char *unseen_at(const tdm_table_build *b, int64_t index, int64_t which) {
    const int64_t row = tdm__dataset_row(&b->to->table.base, index), width = b->numbers + b->categories;
    const char *text = b->texts.data + b->category_at[row * b->categories + which];
    return text[0] != '\0' && b->x[row * width + b->numbers + which] == 0.0f ? text : NULL;
}

tdm_status tdm__table_find_unseen(tdm_table_build *b) {
    tdm_dataset *base = &b->to->table.base;
    const int64_t cells = b->categories > 0 ? base->count : 0;
    tdm_unseen_cell *cell;
    int64_t count = 0;
    for (int64_t i = 0; i < cells; i++)
        for (int64_t k = 0; k < b->categories; k++) count += unseen_at(b, i, k) != NULL;
    if (count == 0) return TDM_OK;
    TDM_TRY(tdm__zone_new(&b->to->zone, &cell, (size_t)count, sizeof(*cell)));
    base->unseen = cell;
    for (int64_t i = 0; i < cells; i++) {
        for (int64_t k = 0; k < b->categories; k++) {
            const char *text = unseen_at(b, i, k);
            if (text == NULL) continue;
            *cell = (tdm_unseen_cell){.index = i, .item = b->numbers + k};
            TDM_TRY(tdm__zone_text(&b->to->zone, &cell->value, text));
            cell++;
        }
    }
    base->unseen_count = count;
    return TDM_OK;
}
