/* unseen.c - categories of a table that the data trained on does not have; see inference.h. */
#include <stdlib.h>

#include "tools/inference/inference.h"
#include "tools/terminal/term.h"

int inference_tell_unseen(const tdm_run *run) {
    const int64_t count = tdm_run_unseen_count(run), inputs = tdm_run_input_width(run);
    FREED int64_t *rows = memory_new((size_t)inputs, sizeof *rows);
    FREED tdm_unseen_category *first = memory_new((size_t)inputs, sizeof *first);
    for (int64_t i = 0; i < count; i++) {
        tdm_unseen_category category = TDM_UNSEEN_CATEGORY_INIT;
        const tdm_status status = tdm_run_unseen(run, i, &category);
        if (status != TDM_OK) return tell_error(status);
        if (rows[category.input]++ == 0) first[category.input] = category;
    }
    for (int64_t i = 0; i < inputs; i++) {
        if (rows[i] == 0) continue;
        FREED char *column =
            first[i].column ? text_format("column '%.64s'", first[i].column) : text_format("input %lld", (long long)i);
        term_mark(
            TERM_YELLOW, "", "tandem: warning:",
            "%s has categories that the data trained on does not have, in %lld row%s; the first is '%.64s', index %lld; "
            "they count as unknown: correct their spelling, or train with such rows",
            column, (long long)rows[i], rows[i] == 1 ? "" : "s", first[i].value, (long long)first[i].sample);
    }
    return TDM_OK;
}
