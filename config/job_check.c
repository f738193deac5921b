/* Checks a job that a program filled against the table of the file format: prints each value as YAML and reads it back,
 * so that ranges and messages exist only once. Also prints such a job as lines of text. */
#include <math.h>
#include <string.h>

#include "config/checks/job_conflicts.h"
#include "config/fields/fields.h"
#include "config/table.h"
#include "runtime/base/field/field_range.h"
#include "runtime/base/call/sized.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/data/transforms/transforms.h"
#include "runtime/graph/graph.h"

/* Checks what printing relies on. If the value cannot be printed, returns false with the reason in `why`. */
static bool is_printable(const tdm_field *row, const void *object, tdm_text *why) {
    const void *value = (const char *)object + row->offset;
    int count = 0;
    if (row->kind == TDM_FIELD_ENUM) {
        const int index = tdm__field_enum(row, object);
        while (row->names[count] != NULL) count++;
        if (index >= 0 && index < count) return true;
        tdm__text_puts(why, "must be ");
        tdm__field_describe(row, why, false);
        tdm__text_printf(why, ", got number %d", index);
        return false;
    }
    if (row->kind == TDM_FIELD_INTERVAL) {
        const tdm_interval *interval = value;
        bool has_kind = interval->kind >= TDM_INTERVAL_NEVER && interval->kind <= TDM_INTERVAL_SECONDS;
        if (has_kind && (interval->kind == TDM_INTERVAL_NEVER || isfinite(interval->amount))) return true;
        tdm__text_puts(why, has_kind ? "must have a finite amount" : "must be one of the kinds of intervals");
        return false;
    }
    if (row->kind == TDM_FIELD_NUMBERS) {
        const tdm_numbers *numbers = value;
        if (numbers->count == 0 || (numbers->count > 0 && numbers->count <= TDM_NUMBERS_MAX && numbers->item != NULL))
            return true;
        tdm__text_printf(why, "must have a count of 0 to %d, and numbers if it is not 0; got %d", TDM_NUMBERS_MAX,
                         numbers->count);
        return false;
    }
    if (row->kind == TDM_FIELD_MAP) {
        const tdm_texts *texts = value;
        bool good = texts->count >= 0 && texts->count <= TDM_LIST_MAX && texts->count % 2 == 0;
        for (int i = 0; good && i < texts->count; i++) good = texts->item[i] != NULL;
        if (!good)
            tdm__text_printf(why, "must have pairs of texts, at most %d, got %d texts", TDM_LIST_MAX / 2, texts->count);
        return good;
    }
    if (row->kind == TDM_FIELD_INTS) count = ((const tdm_ints *)value)->count;
    if (row->kind == TDM_FIELD_FLOATS) count = ((const tdm_floats *)value)->count;
    if (row->kind == TDM_FIELD_PATHS || row->kind == TDM_FIELD_TEXTS) count = ((const tdm_texts *)value)->count;
    if (count >= 0 && count <= TDM_LIST_MAX) return true;
    tdm__text_printf(why, "must have a count of 0 to %d, got %d", TDM_LIST_MAX, count);
    return false;
}

/* Any text is good here: the file that it names is checked when it is opened. */
static bool is_good(const tdm_field *row, void *object, tdm_text *why) {
    if (!is_printable(row, object, why)) return false;
    if (row->kind == TDM_FIELD_TEXT || row->kind == TDM_FIELD_PATH || row->kind == TDM_FIELD_PATHS) return true;
    tdm_text printed;
    tdm_zone zone;
    tdm__text_init(&printed, why->host);
    tdm__zone_init(&zone, why->host);
    tdm__field_print(row, object, &printed);
    bool good = !printed.failed && tdm__field_set_text(row, object, printed.data, &zone, why);
    if (printed.failed) why->failed = true;
    tdm__zone_deinit(&zone);
    tdm__text_deinit(&printed);
    return good;
}

static tdm_status check_value(const tdm_host *host, const char *path, const tdm_field *row, void *object) {
    tdm_status status = TDM_OK;
    tdm_text why;
    tdm__text_init(&why, host);
    if (!is_good(row, object, &why))
        status = tdm__fail(tdm__field_lacks_memory(&why) ? TDM_E_MEMORY : TDM_E_CONFIG, __FILE__, __LINE__, NULL,
                           "job: %s%s%s %s", path, path[0] != '\0' ? "." : "", row->key,
                           why.failed || why.data == NULL ? "could not be checked: out of memory" : why.data);
    tdm__text_deinit(&why);
    return status;
}

static tdm_status check_row(const tdm_host *host, const tdm_section *section, const tdm_field *row,
                            tdm_settings *settings) {
    return check_value(host, section->path, row, tdm__section_object(section, settings));
}

static tdm_status check_normalizes(const tdm_host *host, const tdm_normalizes *all) {
    tdm_status status = TDM_OK;
    for (int i = 0; i < all->count && status == TDM_OK; i++) {
        tdm_text why;
        tdm__text_init(&why, host);
        if (all->item[i].mean.count == 0)
            status =
                tdm__fail(TDM_E_CONFIG, __FILE__, __LINE__, NULL, "job: data.transform.normalize[%d] has no mean", i);
        else if (tdm__normalize_is_uneven(&all->item[i], &why))
            status = tdm__fail(why.failed ? TDM_E_MEMORY : TDM_E_CONFIG, __FILE__, __LINE__, NULL, "job: %s",
                               why.failed ? "could not be checked: out of memory" : why.data);
        tdm__text_deinit(&why);
    }
    return status;
}

/* Also each step for pictures. */
static tdm_status check_transform(const tdm_host *host, const tdm_section *section, tdm_settings *settings) {
    tdm_transform_spec *spec = &settings->job.data.transform;
    if (strcmp(section->path, "data.transform") != 0) return TDM_OK;
    if (spec->step_count < 0 || spec->step_count > TDM_TRANSFORMS_MAX)
        TDM_FAIL(TDM_E_CONFIG, "job: data.transform must have 0 to %d steps, got %d", TDM_TRANSFORMS_MAX,
                 spec->step_count);
    if (spec->step_count > 0) TDM_EXTRA(PICTURES);
    for (int i = 0; i < spec->step_count; i++) {
        tdm_transform_step *step = &spec->step[i];
        if (step->kind < 0 || step->kind >= TDM_TRANSFORM_KINDS)
            TDM_FAIL(TDM_E_CONFIG, "job: data.transform has no step of kind %d", step->kind);
        const tdm_transform_def *def = tdm__transforms[step->kind];
        for (const tdm_field *row = def->rows; row != NULL && row->key != NULL; row++)
            TDM_TRY(check_value(host, def->name, row, step));
        const char *fault = def->fault != NULL ? def->fault(step) : NULL;
        if (fault != NULL) TDM_FAIL(TDM_E_CONFIG, "job: %s %s", def->name, fault);
    }
    return TDM_OK;
}

static tdm_status check_items(const tdm_host *host, const tdm_section *section, tdm_settings *settings) {
    const tdm_section_list *list = tdm__section_list(section);
    int *count = tdm__list_count(list, settings);
    const int items = *count;
    if (items < 0 || items > list->most)
        TDM_FAIL(TDM_E_CONFIG, "job: %s must have 0 to %d items, got %d", section->path, list->most, items);
    for (*count = 1; *count <= items; ++*count)
        for (const tdm_field *row = section->rows; row->key != NULL; row++)
            TDM_TRY(check_row(host, section, row, settings));
    *count = items;
    return TDM_OK;
}

static tdm_status check_section(const tdm_host *host, const tdm_section *section, tdm_settings *settings) {
    if (tdm__section_list(section) != NULL) {
        TDM_TRY(check_items(host, section, settings));
        return section->rows == tdm__normalize_rows ? check_normalizes(host, &settings->job.data.transform.normalize)
                                                    : TDM_OK;
    }
    if (section->type_key != NULL) TDM_TRY(check_row(host, section, tdm__section_type_row(section), settings));
    for (const tdm_field *row = section->rows; row->key != NULL; row++) {
        if (tdm__section_has(section, row, settings)) TDM_TRY(check_row(host, section, row, settings));
    }
    return check_transform(host, section, settings);
}

static tdm_status check_conflicts(const tdm_host *host, const tdm_job *job) {
    tdm_status status = TDM_OK;
    const tdm_optim_conflict *of_optim = tdm_builtin_optims[job->optimizer.type]->conflict;
    for (int i = 0; of_optim[i].key != NULL; i++)
        if (of_optim[i].is_met(&job->optimizer)) TDM_FAIL(TDM_E_CONFIG, "job: %s", of_optim[i].message);
    tdm_job checked = *job; /* an output device is dp's; in other modes a program need not set it, as a file need not */
    if (job->parallel.mode != TDM_MODE_DP) checked.parallel.dp.output_device = job->parallel.device_ids.item[0];
    for (const tdm_job_conflict *row = tdm__job_conflicts; row->key != NULL && status == TDM_OK; row++) {
        tdm_text sentence;
        tdm__text_init(&sentence, host);
        const bool is_met = row->is_met(&checked, &sentence);
        if (is_met || sentence.failed)
            status = tdm__fail(sentence.failed ? TDM_E_MEMORY : TDM_E_CONFIG, __FILE__, __LINE__, NULL, "job: %s",
                               sentence.failed ? "could not be checked: out of memory" : sentence.data);
        tdm__text_deinit(&sentence);
    }
    return status;
}

tdm_status tdm__job_check(const tdm_host *host, const tdm_job *job) {
    if (job == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_job_check: job is NULL");
    TDM_TRY(tdm__sized_check("job", job, sizeof(*job), sizeof(*job)));
    tdm_settings settings = {.job = *job}; /* a copy: reading back writes */
    for (int i = 0; i < TDM_SECTION_COUNT; i++) {
        if (strcmp(tdm__sections[i].path, "model") == 0) continue; /* the graph is checked while it is built */
        TDM_TRY(check_section(host, &tdm__sections[i], &settings));
    }
    TDM_TRY(check_conflicts(host, job));
    const tdm_train_section *train = &job->train;
    if ((train->epochs == TDM_INT_NULL) == (train->steps == TDM_INT_NULL))
        TDM_FAIL(TDM_E_CONFIG,
                 "job: train needs exactly one of epochs and steps; set one, and the other to TDM_INT_NULL");
    if ((train->per_device == TDM_INT_NULL) == (train->global_batch == TDM_INT_NULL))
        TDM_FAIL(TDM_E_CONFIG,
                 "job: train.batch needs exactly one of per_device and global_batch; set the other to TDM_INT_NULL");
    return TDM_OK;
}

tdm_status tdm_job_check(const tdm_job *job) {
    return tdm__job_check(tdm_host_default(), job);
}

static void print_items(const tdm_section *section, tdm_settings *settings, tdm_text *out) {
    const tdm_section_list *list = tdm__section_list(section);
    int *count = tdm__list_count(list, settings);
    const int items = *count;
    for (*count = 1; *count <= items; ++*count) {
        for (const tdm_field *row = section->rows; row->key != NULL; row++) {
            tdm__text_printf(out, "%s[%d].%s: ", section->path, *count - 1, row->key);
            tdm__field_print(row, tdm__section_object(section, settings), out);
            tdm__text_puts(out, "\n");
        }
    }
    *count = items;
}

static void print_section(const tdm_section *section, tdm_settings *settings, tdm_text *out) {
    if (tdm__section_list(section) != NULL) {
        print_items(section, settings, out);
        return;
    }
    for (const tdm_field *row = section->rows; row->key != NULL; row++) {
        if (!tdm__section_has(section, row, settings)) continue;
        tdm__text_printf(out, "%s%s%s: ", section->path, section->path[0] != '\0' ? "." : "", row->key);
        tdm__field_print(row, tdm__section_object(section, settings), out);
        tdm__text_puts(out, "\n");
    }
    const tdm_transform_spec *spec = &settings->job.data.transform;
    if (strcmp(section->path, "data.transform") != 0 || spec->step_count == 0) return;
    tdm__text_puts(out, "data.transform.steps: [");
    for (int i = 0; i < spec->step_count; i++) {
        if (i > 0) tdm__text_puts(out, ", ");
        tdm__transform_print(&spec->step[i], false, out);
    }
    tdm__text_puts(out, "]\n");
}

tdm_status tdm__job_print(const tdm_job *job, tdm_text *out) {
    TDM_TRY(tdm__job_check(out->host, job));
    tdm_settings settings = {.job = *job};
    for (int i = 0; i < TDM_SECTION_COUNT; i++) {
        if (strcmp(tdm__sections[i].path, "model") != 0) print_section(&tdm__sections[i], &settings, out);
    }
    if (out->failed) TDM_FAIL(TDM_E_MEMORY, "out of memory for the text of a job");
    return TDM_OK;
}

tdm_status tdm_job_print(const tdm_job *job, char **out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_job_print: out is NULL");
    *out = NULL;
    tdm_text text;
    tdm__text_init(&text, tdm_host_default());
    TDM_TRY_ELSE(tdm__job_print(job, &text), tdm__text_deinit(&text));
    return tdm__text_take_public(&text, out);
}
