/* Names of the file against names of the model: prefixes renamed, patterns left out, shapes compared. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/base/text/json_write.h"
#include "runtime/base/text/pattern.h"
#include "runtime/train/weights/weights.h"

/* ---- names ---- */

static tdm_status renamed(tdm_run *run, const tdm_texts *rename, const char *name, const char **out) {
    *out = name;
    for (int i = 0; i + 1 < rename->count; i += 2) {
        const size_t prefix = strlen(rename->item[i]);
        if (strncmp(name, rename->item[i], prefix) != 0) continue;
        return tdm__zone_printf(&run->zone, out, "%s%s", rename->item[i + 1], name + prefix);
    }
    return TDM_OK;
}

/* One tensor of the file. */
static tdm_status add(tdm_run *run, const tdm_names *ours, const tdm_tensor *tensor, tdm_weights_match *out) {
    const char *name;
    TDM_TRY(renamed(run, &out->how->rename, tensor->name, &name));
    const int index = tdm__names_find(ours, name);
    if (tdm__patterns_find(&out->how->skip, name) >= 0) return TDM_OK;
    if (index < 0) {
        out->unexpected[out->unexpected_count++] = tensor->name;
        return TDM_OK;
    }
    if (out->of[index] != NULL)
        TDM_FAIL(TDM_E_CHECKPOINT, "model.rename: '%s' and '%s' of the file both become '%s'", out->of[index]->name,
                 tensor->name, name);
    out->of[index] = tensor;
    return TDM_OK;
}

static tdm_weights_outcome outcome_of(const tdm_texts *skip, const tdm_named *named, const tdm_tensor *tensor) {
    if (tdm__patterns_find(skip, named->name) >= 0) return TDM_WEIGHTS_SKIPPED;
    if (tensor == NULL) return TDM_WEIGHTS_MISSING;
    return tdm__tensor_has_shape(tensor, named->shape) ? TDM_WEIGHTS_LOADED : TDM_WEIGHTS_OTHER_SHAPE;
}

tdm_status tdm__weights_match(tdm_run *run, const tdm_tensor_file *file, const tdm_weights_section *how,
                              tdm_weights_match *out) {
    const size_t count = (size_t)run->model_tensors, in_file = (size_t)tdm__tensor_file_count(file);
    tdm_names ours = {.entry = NULL};
    *out = (tdm_weights_match){.how = how, .count = run->model_tensors};
    TDM_TRY(tdm__zone_new(&run->zone, &out->of, count, sizeof(*out->of)));
    TDM_TRY(tdm__zone_new(&run->zone, &out->outcome, count, sizeof(*out->outcome)));
    TDM_TRY(tdm__zone_new(&run->zone, &out->unexpected, in_file, sizeof(*out->unexpected)));
    for (int i = 0; i < out->count; i++) TDM_TRY(tdm__names_add(&ours, &run->zone, run->tensors[i].name, i));
    for (size_t i = 0; i < in_file; i++) TDM_TRY(add(run, &ours, tdm__tensor_file_get(file, (int)i), out));
    for (int i = 0; i < out->count; i++) {
        out->outcome[i] = outcome_of(&how->skip, &run->tensors[i], out->of[i]);
        out->total[out->outcome[i]]++;
    }
    return TDM_OK;
}

/* ---- what the job takes ---- */

static tdm_shape_text shape_of(const tdm_tensor *tensor) {
    tdm_shape shape = {.ndim = tensor->ndim < TDM_MAX_DIMS ? tensor->ndim : TDM_MAX_DIMS};
    for (int d = 0; d < shape.ndim; d++) shape.dim[d] = tensor->dim[d];
    tdm_shape_text text = tdm__shape_text(&shape);
    if (text.text[0] == '\0') strcpy(text.text, "scalar");
    return text;
}

static tdm_shape_text shape_of_ours(const tdm_named *named) {
    tdm_shape_text text = tdm__shape_text(named->shape);
    if (text.text[0] == '\0') strcpy(text.text, "scalar");
    return text;
}

static int first_of(const tdm_weights_match *match, tdm_weights_outcome outcome) {
    int i = 0;
    while (i < match->count && match->outcome[i] != outcome) i++;
    return i;
}

static tdm_status refuse(const tdm_run *run, const tdm_weights_match *match) {
    const int shapes = match->total[TDM_WEIGHTS_OTHER_SHAPE], missing = match->total[TDM_WEIGHTS_MISSING];
    const int all = shapes + missing + match->unexpected_count;
    char rest[48] = "";
    if (all > 1) snprintf(rest, sizeof(rest), " (and %d more tensor%s)", all - 1, all == 2 ? "" : "s");
    if (shapes > 0) {
        const int i = first_of(match, TDM_WEIGHTS_OTHER_SHAPE);
        TDM_FAIL(TDM_E_CHECKPOINT, "tensor '%s' has shape %s, in the file %s%s", run->tensors[i].name,
                 shape_of_ours(&run->tensors[i]).text, shape_of(match->of[i]).text, rest);
    }
    if (match->unexpected_count > 0)
        TDM_FAIL(TDM_E_CHECKPOINT, "this model has no tensor '%s', which the file has%s", match->unexpected[0], rest);
    TDM_FAIL(TDM_E_CHECKPOINT, "the file lacks this model's tensor '%s'%s",
             run->tensors[first_of(match, TDM_WEIGHTS_MISSING)].name, rest);
}

/* Does a pattern name a tensor of the model, or one of the file under its new name? */
static tdm_status check_skip(const tdm_run *run, const tdm_weights_match *match) {
    const tdm_texts *skip = &match->how->skip;
    for (int p = 0; p < skip->count; p++) {
        int i = 0;
        while (i < match->count && !tdm__pattern_matches(skip->item[p], run->tensors[i].name)) i++;
        if (i == match->count)
            TDM_FAIL(TDM_E_CHECKPOINT, "model.skip: no tensor of this model matches '%s'", skip->item[p]);
    }
    return TDM_OK;
}

tdm_status tdm__weights_check(const tdm_run *run, const tdm_weights_match *match) {
    TDM_TRY(check_skip(run, match));
    const int wrong =
        match->total[TDM_WEIGHTS_OTHER_SHAPE] + match->total[TDM_WEIGHTS_MISSING] + match->unexpected_count;
    if (match->how->strict && wrong > 0) return refuse(run, match);
    if (match->total[TDM_WEIGHTS_LOADED] == 0 && match->total[TDM_WEIGHTS_SKIPPED] < match->count)
        TDM_FAIL(TDM_E_CHECKPOINT, "0 of %d tensors match by name and shape; the file has '%s', the model '%s'",
                 match->count, match->unexpected_count > 0 ? match->unexpected[0] : "no other names",
                 run->tensors[0].name);
    return TDM_OK;
}

/* ---- reports ---- */

static const char *const outcomes[TDM_WEIGHTS_OUTCOMES] = {"loaded", "skipped", "missing", "another_shape"};

void tdm__weights_print(const tdm_weights_match *match, tdm_text *out) {
    tdm__text_printf(out, "%d of %d tensors loaded", match->total[TDM_WEIGHTS_LOADED], match->count);
    if (match->total[TDM_WEIGHTS_SKIPPED] > 0) tdm__text_printf(out, ", %d skipped", match->total[TDM_WEIGHTS_SKIPPED]);
    if (match->total[TDM_WEIGHTS_MISSING] > 0)
        tdm__text_printf(out, ", %d missing in the file", match->total[TDM_WEIGHTS_MISSING]);
    if (match->total[TDM_WEIGHTS_OTHER_SHAPE] > 0)
        tdm__text_printf(out, ", %d of another shape", match->total[TDM_WEIGHTS_OTHER_SHAPE]);
    if (match->unexpected_count > 0)
        tdm__text_printf(out, "; %d of the file %s not used", match->unexpected_count,
                         match->unexpected_count == 1 ? "is" : "are");
}

void tdm__weights_print_json(const tdm_run *run, const tdm_weights_match *match, tdm_text *out) {
    tdm_json_out to = tdm__json_out(out, " ");
    tdm__json_put(&to, "{\n file:%s", run->job->weights);
    for (int outcome = 0; outcome < TDM_WEIGHTS_OUTCOMES; outcome++) {
        tdm__json_put(&to, "%s:[\n", outcomes[outcome]);
        for (int i = 0; i < match->count; i++) {
            if ((int)match->outcome[i] != outcome) continue;
            if (outcome != TDM_WEIGHTS_OTHER_SHAPE) {
                tdm__json_put(&to, "%s", run->tensors[i].name);
                continue;
            }
            tdm__json_put(&to, "{ name:%s model:%s file:%s }", run->tensors[i].name,
                          shape_of_ours(&run->tensors[i]).text, shape_of(match->of[i]).text);
        }
        tdm__json_put(&to, "]");
    }
    tdm__json_put(&to, "unexpected:[\n");
    for (int i = 0; i < match->unexpected_count; i++) tdm__json_put(&to, "%s", match->unexpected[i]);
    tdm__json_put(&to, "]}\n");
}
