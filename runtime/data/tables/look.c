/* A look at a table, see look.h. */
#include "runtime/data/tables/look.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "runtime/base/hash.h"
#include "runtime/base/status.h"
#include "runtime/data/tables/blanks.h"
#include "runtime/data/tables/build.h"

enum { COLUMNS_MOST = 1000, SLOTS = 4096 }; /* SLOTS: of a set of hashes, a power of 2 above TDM_SEEN_MOST */

typedef struct looking {
    tdm_table_build build;
    tdm_table_seen *seen;
    uint64_t *hashes, *trimmed; /* [columns][SLOTS]; 0: free */
} looking;

/* Is the text new in the set of the current column? */
static bool add_text(const looking *l, uint64_t *sets, const char *text, size_t length) {
    uint64_t *slots = sets + l->build.csv.column * SLOTS, hash = tdm__hash64(text, length, 1);
    if (hash == 0) hash = 1;
    size_t at = hash % SLOTS;
    while (slots[at] != 0 && slots[at] != hash) at = (at + 1) % SLOTS;
    if (slots[at] == hash) return false;
    slots[at] = hash;
    return true;
}

static void count_text(looking *l, int64_t *different) {
    const tdm_csv *csv = &l->build.csv;
    tdm_column_seen *column = &l->seen->column[csv->column];
    const char *text = csv->cell;
    if (*different > TDM_SEEN_MOST || !add_text(l, l->hashes, text, csv->length)) return;
    *different += 1;
    const size_t length = tdm__blanks_trim(&text);
    if (add_text(l, l->trimmed, text, length) || column->blanks_line > 0) return;
    column->blanks_line = csv->line;
    snprintf(column->blanks_cell, sizeof(column->blanks_cell), "%.63s", csv->cell);
}

static void look_at_number(tdm_column_seen *column, double number, bool is_first) {
    column->is_whole = column->is_whole && number == nearbyint(number);
    column->rises = column->rises && (is_first || number == column->last + 1.0);
    if (is_first || number < column->least) column->least = number;
    if (is_first || number > column->most) column->most = number;
    column->last = number;
}

/* "inf", "-Infinity", ".nan": how programs write what is not finite. Cells of "nan" do not come here: they are gaps. */
static bool is_infinite(const char *cell) {
    static const char *const words[] = {"inf", "infinity", "nan", ".inf", ".nan"};
    if (*cell == '+' || *cell == '-') cell++;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcasecmp(cell, words[i]) == 0) return true;
    return false;
}

/* "3,5", "-1.234,5": digits, and one comma with digits behind it. */
static bool has_decimal_comma(const char *cell) {
    if (*cell == '+' || *cell == '-') cell++;
    const char *comma = strchr(cell, ',');
    if (comma == NULL || comma == cell) return false;
    const size_t before = strspn(cell, "0123456789."), behind = strspn(comma + 1, "0123456789");
    return cell + before == comma && cell[0] != '.' && behind > 0 && comma[1 + behind] == '\0';
}

static void look_at_word(tdm_column_seen *column, const tdm_csv *csv) {
    if (column->words++ == 0) column->word_line = csv->line;
    column->is_number = false;
    if (is_infinite(csv->cell) && column->infinite++ == 0) {
        column->infinite_line = csv->line;
        snprintf(column->infinite_cell, sizeof(column->infinite_cell), "%.15s", csv->cell);
    }
    if (has_decimal_comma(csv->cell) && column->commas++ == 0) {
        column->comma_line = csv->line;
        snprintf(column->comma_cell, sizeof(column->comma_cell), "%.31s", csv->cell);
    }
    if (column->broken_line == 0 && !tdm__text_is_utf8(csv->cell, csv->length, NULL)) column->broken_line = csv->line;
}

static tdm_status look_at_cell(looking *l) {
    tdm_column_seen *column = &l->seen->column[l->build.csv.column];
    float number;
    if (tdm__cell_is_gap(l->build.csv.cell, l->build.csv.length)) {
        column->gaps++;
        column->rises = false;
        if (l->build.csv.length > 0) count_text(l, &column->gap_words);
        return TDM_OK;
    }
    TDM_TRY(tdm__table_check_size(&l->build));
    const bool is_first = column->different == 0;
    count_text(l, &column->different);
    if (tdm__cell_number(l->build.csv.cell, &number)) {
        look_at_number(column, (double)number, is_first);
        return TDM_OK;
    }
    look_at_word(column, &l->build.csv);
    return TDM_OK;
}

static tdm_status look_at_rows(looking *l) {
    tdm_table_build *b = &l->build;
    bool more;
    tdm__csv_begin(&b->csv, "csv", b->spec->path, b->text, b->bytes);
    for (;;) {
        TDM_TRY(tdm__table_next(b, &more));
        if (!more) break;
        if (b->csv.row >= b->has_names) TDM_TRY(look_at_cell(l));
    }
    l->seen->rows = b->csv.row - b->has_names;
    return TDM_OK;
}

/* A configuration names its columns. */
static tdm_status check_names(const tdm_table_build *b) {
    for (int64_t i = 1; i < b->columns && b->has_names; i++) {
        const char *name = b->column[i].name;
        for (int64_t k = 0; k < i; k++) {
            if (tdm__blanks_compare(b->column[k].name, name) != 0) continue;
            if (tdm__is_blank(name))
                TDM_FAIL_TABLE(b,
                               "columns %lld and %lld, counted from 0, have no name; write one for each in line %lld",
                               (long long)k, (long long)i, (long long)b->first_line);
            TDM_FAIL_TABLE(b, "columns %lld and %lld, counted from 0, are both named '%.64s'; rename one in line %lld",
                           (long long)k, (long long)i, name, (long long)b->first_line);
        }
    }
    return TDM_OK;
}

static tdm_status look_at(looking *l, tdm_table_seen *out) {
    tdm_table_build *b = &l->build;
    TDM_TRY(tdm__csv_load(out->zone.host, "csv", b->spec->path, &b->text, &b->bytes));
    TDM_TRY(tdm__table_read_head(b));
    if (b->columns > COLUMNS_MOST)
        TDM_FAIL_TABLE(b, "%lld columns; init writes a file for at most %d", (long long)b->columns, COLUMNS_MOST);
    out->columns = b->columns;
    TDM_TRY(tdm__zone_new(&out->zone, &out->column, (size_t)b->columns, sizeof(*out->column)));
    TDM_TRY(tdm__zone_new(&b->zone, &l->hashes, (size_t)b->columns * SLOTS, sizeof(*l->hashes)));
    TDM_TRY(tdm__zone_new(&b->zone, &l->trimmed, (size_t)b->columns * SLOTS, sizeof(*l->trimmed)));
    for (int64_t i = 0; i < b->columns; i++) {
        out->column[i] = (tdm_column_seen){.is_number = true, .is_whole = true, .rises = true};
        TDM_TRY(tdm__zone_text(&out->zone, &out->column[i].name, b->column[i].name));
    }
    TDM_TRY(check_names(b));
    TDM_TRY(tdm__table_find_target(b));
    out->target = b->target;
    TDM_TRY(look_at_rows(l));
    if (out->rows < TDM_LOOK_LEAST)
        TDM_FAIL_TABLE(b, "%lld row%s; to train and to test there must be at least %d", (long long)out->rows,
                       out->rows == 1 ? "" : "s", TDM_LOOK_LEAST);
    return TDM_OK;
}

tdm_status tdm__table_look(const tdm_host *host, const char *path, const char *target, tdm_table_seen *out) {
    const tdm_data_spec spec = {.format = TDM_DATA_CSV, .path = path, .label = target};
    looking l = {.build = {.spec = &spec, .target = -1}, .seen = out};
    *out = (tdm_table_seen){.rows = 0};
    tdm__zone_init(&out->zone, host);
    tdm__zone_init(&l.build.zone, host);
    const tdm_status status = look_at(&l, out);
    tdm__delete(host, l.build.text);
    tdm__zone_deinit(&l.build.zone);
    return status;
}

void tdm__table_seen_close(tdm_table_seen *seen) {
    tdm__zone_deinit(&seen->zone);
}
