/* A copy of a job for whoever needs it longer than its caller keeps it. The tables of the format know most texts. */
#include "runtime/base/status.h"
#include "runtime/graph/graph.h"

#include <string.h>

#include "config/table.h"

static tdm_status copy_texts(tdm_zone *zone, tdm_texts *texts) {
    for (int i = 0; i < texts->count; i++) TDM_TRY(tdm__zone_text(zone, &texts->item[i], texts->item[i]));
    return TDM_OK;
}

static tdm_status copy_numbers(tdm_zone *zone, tdm_numbers *numbers) {
    double *item = NULL;
    if (numbers->count == 0) return TDM_OK;
    TDM_TRY(tdm__zone_new(zone, &item, (size_t)numbers->count, sizeof(*item)));
    memcpy(item, numbers->item, (size_t)numbers->count * sizeof(*item));
    numbers->item = item;
    return TDM_OK;
}

static tdm_status copy_row(tdm_zone *zone, const tdm_field *row, void *object) {
    void *at = (char *)object + row->offset;
    switch (row->kind) {
    case TDM_FIELD_TEXT:
    case TDM_FIELD_PATH:
        return tdm__zone_text(zone, at, *(const char **)at);
    case TDM_FIELD_PATHS:
    case TDM_FIELD_TEXTS:
    case TDM_FIELD_MAP:
        return copy_texts(zone, at);
    case TDM_FIELD_NUMBERS:
        return copy_numbers(zone, at);
    default:
        return TDM_OK;
    }
}

static tdm_status copy_section(tdm_zone *zone, const tdm_section *section, tdm_settings *settings) {
    const tdm_section_list *list = tdm__section_list(section);
    int one = 1, *count = list != NULL ? tdm__list_count(list, settings) : &one;
    const int items = *count;
    tdm_status status = TDM_OK;
    for (*count = 1; *count <= items && status == TDM_OK; ++*count) { /* the object of a list is its last item */
        for (const tdm_field *row = section->rows; row->key != NULL && status == TDM_OK; row++)
            status = copy_row(zone, row, tdm__section_object(section, settings));
    }
    *count = items;
    return status;
}

/* What no row of the job's own has: positions in the file, and the keys of `model` that are the job's. */
static tdm_status copy_others(tdm_zone *zone, tdm_job *job) {
    tdm_origin *const origins[] = {&job->data.train.origin,
                                   &job->data.train.inputs_at,
                                   &job->data.train.targets_at,
                                   &job->data.eval.origin,
                                   &job->data.eval.inputs_at,
                                   &job->data.eval.targets_at,
                                   &job->weights_at,
                                   &job->freeze_at,
                                   &job->checkpoint.resume_at,
                                   &job->host.memory_limit_at};
    const char **const texts[] = {&job->weights, &job->data.train.path, &job->data.eval.path};
    tdm_texts *const lists[] = {&job->match.skip, &job->match.rename, &job->freeze};
    for (size_t i = 0; i < sizeof(origins) / sizeof(*origins); i++)
        TDM_TRY(tdm__zone_text(zone, &origins[i]->file, origins[i]->file));
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) TDM_TRY(tdm__zone_text(zone, texts[i], *texts[i]));
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) TDM_TRY(copy_texts(zone, lists[i]));
    return TDM_OK;
}

tdm_status tdm__job_copy(tdm_zone *zone, const tdm_job **out, const tdm_job *job) {
    tdm_settings *settings = NULL;
    TDM_TRY(tdm__zone_new(zone, &settings, 1, sizeof(*settings)));
    settings->job = *job;
    for (int i = 0; i < TDM_SECTION_COUNT; i++) TDM_TRY(copy_section(zone, &tdm__sections[i], settings));
    TDM_TRY(copy_others(zone, &settings->job));
    *out = &settings->job;
    return TDM_OK;
}
