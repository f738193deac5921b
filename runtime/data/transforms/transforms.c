/* The table of steps, and a picture's way through a list of them. */
#include "runtime/data/transforms/transforms.h"

#include <string.h>

#include "runtime/base/field/field.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"

#if TDM_WITH_PICTURES
#define TDM_TRANSFORM(key, name) extern const tdm_transform_def tdm__##name##_transform;
#else
#define TDM_TRANSFORM(key, step) static const tdm_transform_def tdm__##step##_transform = {.name = #step};
#endif
#include <tandem/sys/transforms.def>
#undef TDM_TRANSFORM
#define TDM_TRANSFORM(key, name) &tdm__##name##_transform,
const tdm_transform_def *const tdm__transforms[TDM_TRANSFORM_KINDS] = {
#include <tandem/sys/transforms.def>
};
#undef TDM_TRANSFORM

int tdm__transform_find(const char *name) {
    for (int i = 0; i < TDM_TRANSFORM_KINDS; i++) {
        if (strcmp(tdm__transforms[i]->name, name) == 0) return i;
    }
    return -1;
}

tdm_status tdm_transform_init(tdm_transform_step *step, tdm_transform_kind kind) {
    if (step == NULL || kind < 0 || kind >= TDM_TRANSFORM_KINDS)
        TDM_FAIL(TDM_E_USAGE, "tdm_transform_init: step is NULL, or there is no kind %d", kind);
    TDM_EXTRA(PICTURES);
    *step = (tdm_transform_step){.kind = kind};
    tdm_zone none; /* the defaults of numbers need no memory */
    tdm__zone_init(&none, tdm_host_default());
    const tdm_field *rows = tdm__transforms[kind]->rows;
    const tdm_status status = rows != NULL ? tdm__field_set_initial(rows, step, &none) : TDM_OK;
    tdm__zone_deinit(&none);
    return status;
}

int tdm__transform_picture_steps(const tdm_transform_spec *spec) {
    int count = 0;
    for (int i = 0; spec != NULL && i < spec->step_count; i++)
        count += tdm__transforms[spec->step[i].kind]->train != NULL;
    return count;
}

static tdm_status run_step(const tdm_transform_spec *spec, int i, tdm_canvas *canvas, const tdm_picture_key *key) {
    const tdm_transform_step *step = &spec->step[i];
    const tdm_transform_def *def = tdm__transforms[step->kind];
    if (key->training && def->train != NULL) {
        tdm_draws draws = tdm__draws(key->seed, key->epoch, key->sample, i);
        return def->train(step, canvas, &draws);
    }
    return !key->training && def->evaluate != NULL ? def->evaluate(step, canvas) : TDM_OK;
}

/* A step that the framing cannot express, or that fails, comes again when there are pixels. */
void tdm__transform_frame(const tdm_transform_spec *spec, tdm_canvas *canvas, const tdm_picture_key *key) {
    for (int i = 0; i < spec->step_count; i++) {
        const tdm_transform_def *def = tdm__transforms[spec->step[i].kind];
        const tdm_framing before = canvas->framing;
        const int width = canvas->now.width, height = canvas->now.height;
        const bool acts = key->training ? def->train != NULL : def->evaluate != NULL;
        if (acts && (!def->only_frames || run_step(spec, i, canvas, key) != TDM_OK)) {
            canvas->framing = before;
            canvas->now.width = width;
            canvas->now.height = height;
            return;
        }
        canvas->steps_done = i + 1;
    }
}

tdm_status tdm__transform_picture(const tdm_transform_spec *spec, tdm_canvas *canvas, const tdm_picture_key *key) {
    for (int i = canvas->steps_done; i < spec->step_count; i++) TDM_TRY(run_step(spec, i, canvas, key));
    return TDM_OK;
}

tdm_picture_size tdm__transform_size(const tdm_transform_spec *spec, bool training) {
    tdm_picture_size size = {0, 0};
    for (int i = 0; i < spec->step_count; i++) {
        const tdm_transform_def *def = tdm__transforms[spec->step[i].kind];
        if (def->size != NULL) size = def->size(&spec->step[i], size, training);
    }
    return size;
}

/* Without memory, nobody knows: `out` fails. */
static bool has_default(const tdm_field *row, const tdm_transform_step *step, const tdm_transform_step *initial,
                        tdm_text *out) {
    tdm_text a, b;
    tdm__text_init(&a, out->host);
    tdm__text_init(&b, out->host);
    tdm__field_print(row, step, &a);
    tdm__field_print(row, initial, &b);
    if (a.failed || b.failed) out->failed = true;
    const bool same = row->initial != NULL && !out->failed && strcmp(a.data, b.data) == 0;
    tdm__text_deinit(&a);
    tdm__text_deinit(&b);
    return same;
}

void tdm__transform_print(const tdm_transform_step *step, bool json, tdm_text *out) {
    const tdm_transform_def *def = tdm__transforms[step->kind];
    const char *mark = json ? "\"" : "", *comma = "";
    tdm_transform_step initial;
    bool open = false;
    if (tdm_transform_init(&initial, step->kind) != TDM_OK) out->failed = true;
    for (const tdm_field *row = def->rows; row != NULL && row->key != NULL && !out->failed; row++) {
        if (has_default(row, step, &initial, out)) continue;
        if (!open) tdm__text_printf(out, "{%s%s%s: {", mark, def->name, mark);
        tdm__text_printf(out, "%s%s%s%s: ", comma, mark, row->key, mark);
        tdm__field_print(row, step, out);
        comma = ", ";
        open = true;
    }
    if (open)
        tdm__text_puts(out, "}}");
    else
        tdm__text_printf(out, "%s%s%s", mark, def->name, mark);
}
