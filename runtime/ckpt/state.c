/* state.json: what a run needs, beside the tensors, to continue. One flat JSON object: "version", then the keys of
 * `fields`, which serves both writing and reading. */
#include <float.h>
#include <stddef.h>
#include <string.h>

#include "runtime/base/text/json.h"
#include "runtime/base/status.h"
#include "runtime/ckpt/folder.h"

enum kind { WHOLE, NUMBER, TEXT };
#define MOST_COUNTED (INT64_C(1) << 53) /* as in a job */

static const struct {
    const char *key;
    enum kind kind;
    bool optional; /* left out if it is 0 or "" */
    size_t offset, size;
    int64_t least, most;
} fields[] = {
#define FIELD(kind, name, optional, ...) \
    { #name, kind, optional, offsetof(tdm_ckpt_state, name), sizeof(((tdm_ckpt_state *)NULL)->name), __VA_ARGS__ }
#define COUNT(name) FIELD(WHOLE, name, false, 0, MOST_COUNTED)
    COUNT(step),
    COUNT(epoch),
    COUNT(step_in_epoch),
    COUNT(samples),
    FIELD(WHOLE, seed, false, INT64_MIN, INT64_MAX),
    FIELD(NUMBER, lr, false, 0, 0),
    COUNT(schedule_step),
    FIELD(TEXT, mode, false, 0, 0),
    FIELD(WHOLE, replicas, false, 0, INT32_MAX),
    COUNT(per_device),
    FIELD(TEXT, optimizer, false, 0, 0),
    FIELD(TEXT, params_xxh3, false, 0, 0),
    FIELD(TEXT, data, true, 0, 0),
    FIELD(TEXT, identity, true, 0, 0),
    FIELD(WHOLE, eval_due, true, 0, 1),
    FIELD(WHOLE, skipped, true, 0, MOST_COUNTED),
    FIELD(TEXT, best_metric, true, 0, 0),
    FIELD(WHOLE, best_step, true, 0, MOST_COUNTED),
    FIELD(NUMBER, best_score, true, 0, 0),
    FIELD(TEXT, stop_metric, true, 0, 0),
    FIELD(WHOLE, stop_step, true, 0, MOST_COUNTED),
    FIELD(NUMBER, stop_score, true, 0, 0),
    FIELD(WHOLE, stop_waited, true, 0, MOST_COUNTED),
    FIELD(TEXT, plateau_metric, true, 0, 0),
    FIELD(NUMBER, plateau_best, true, 0, 0),
    FIELD(WHOLE, plateau_bad, true, 0, MOST_COUNTED),
    FIELD(WHOLE, plateau_cooldown, true, 0, MOST_COUNTED),
    FIELD(WHOLE, plateau_reductions, true, 0, MOST_COUNTED),
#undef COUNT
#undef FIELD
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

void tdm__state_print(tdm_json_out *to, const char *key, const tdm_ckpt_state *state) {
    tdm__json_put(to, "%s:{\n version:%d", key, TDM_CKPT_VERSION);
    for (int i = 0; i < FIELDS; i++) {
        const char *at = (const char *)state + fields[i].offset;
        int64_t whole = 0;
        double number = 0;
        if (fields[i].kind == WHOLE) memcpy(&whole, at, sizeof(whole));
        if (fields[i].kind == NUMBER) memcpy(&number, at, sizeof(number));
        bool is_empty = fields[i].kind == TEXT ? at[0] == '\0' : fields[i].kind == NUMBER ? number == 0 : whole == 0;
        if (fields[i].optional && is_empty) continue;
        tdm__json_put_key(to, fields[i].key);
        if (fields[i].kind == TEXT)
            tdm__text_json_string(to->text, at);
        else if (fields[i].kind == NUMBER)
            tdm__text_json_number(to->text, number);
        else
            tdm__text_printf(to->text, "%lld", (long long)whole);
    }
    tdm__json_put(to, "}");
}

static bool read_field(tdm_json *json, int i, tdm_ckpt_state *state) {
    char *at = (char *)state + fields[i].offset;
    int64_t whole = 0;
    double number = 0;
    size_t length;
    if (fields[i].kind == TEXT) return tdm__json_string(json, at, fields[i].size, &length);
    if (fields[i].kind == NUMBER) {
        if (!tdm__json_number(json, &number)) return false;
        memcpy(at, &number, sizeof(number));
        return true;
    }
    if (!tdm__json_integer(json, &whole)) return false;
    if (whole < fields[i].least) return tdm__json_fail(json, "'%s' is negative", fields[i].key);
    if (whole > fields[i].most) return tdm__json_fail(json, "'%s' is too large", fields[i].key);
    memcpy(at, &whole, sizeof(whole));
    return true;
}

/* Refuses numbers whose sums and products could overflow later, and numbers that no run can reach: every step has at
 * least one sample, every epoch at least one step. */
static bool check_ranges(tdm_json *json, const tdm_ckpt_state *s) {
    int64_t rows;
    if (__builtin_mul_overflow(s->per_device, s->replicas, &rows) ||
        __builtin_mul_overflow(rows, s->step_in_epoch, &rows) || rows > MOST_COUNTED)
        return tdm__json_fail(json, "'step_in_epoch', 'per_device' and 'replicas' together are too large");
    if (s->replicas < 1 || s->per_device < 1)
        return tdm__json_fail(json, "'replicas' %lld and 'per_device' %lld must be at least 1", (long long)s->replicas,
                              (long long)s->per_device);
    if (!(s->lr >= 0 && s->lr <= (double)FLT_MAX))
        return tdm__json_fail(json, "'lr' must be 0 to %g, found %g", (double)FLT_MAX, s->lr);
    if (s->samples < s->step || s->samples < rows)
        return tdm__json_fail(json, "'samples' is %lld: fewer than its steps have processed", (long long)s->samples);
    if (s->best_step > s->step || s->stop_step > s->step || s->stop_waited > s->step)
        return tdm__json_fail(json, "'best_step' %lld, 'stop_step' %lld and 'stop_waited' %lld must be at most 'step'",
                              (long long)s->best_step, (long long)s->stop_step, (long long)s->stop_waited);
    if (s->plateau_bad > s->step || s->plateau_reductions > s->step)
        return tdm__json_fail(json, "'plateau_bad' %lld and 'plateau_reductions' %lld must be at most 'step', %lld",
                              (long long)s->plateau_bad, (long long)s->plateau_reductions, (long long)s->step);
    if (s->epoch > s->step || s->schedule_step > s->step || s->skipped > s->step)
        return tdm__json_fail(
            json, "'epoch' %lld, 'schedule_step' %lld and 'skipped' %lld must be at most 'step', %lld",
            (long long)s->epoch, (long long)s->schedule_step, (long long)s->skipped, (long long)s->step);
    return true;
}

static bool read_version(tdm_json *json) {
    uint64_t version;
    if (!tdm__json_natural(json, &version)) return false;
    return version == TDM_CKPT_VERSION ||
           tdm__json_fail(json, "expected version %d, found %llu: written by a newer tandem?", TDM_CKPT_VERSION,
                          (unsigned long long)version);
}

static bool read_state(tdm_json *json, tdm_ckpt_state *state) {
    char key[32];
    size_t length;
    bool version = false, seen[FIELDS] = {false};
    if (!tdm__json_object(json)) return false;
    while (tdm__json_key(json, key, sizeof(key), &length)) {
        int i = 0;
        while (i < FIELDS && strcmp(fields[i].key, key) != 0) i++;
        bool known = i < FIELDS, is_version = strcmp(key, "version") == 0;
        if (!known && !is_version) return tdm__json_fail(json, "unknown key '%s'", key);
        if (known ? seen[i] : version) return tdm__json_fail(json, "key '%s' appears twice", key);
        if (!(known ? read_field(json, i, state) : read_version(json))) return false;
        if (known)
            seen[i] = true;
        else
            version = true;
    }
    if (json->failed) return false;
    if (!version) return tdm__json_fail(json, "key 'version' is missing");
    for (int i = 0; i < FIELDS; i++) {
        if (!seen[i] && !fields[i].optional) return tdm__json_fail(json, "key '%s' is missing", fields[i].key);
    }
    return check_ranges(json, state) && tdm__json_end(json);
}

tdm_status tdm__state_read(tdm_ckpt_state *state, const char *text, size_t bytes, const char *folder) {
    tdm_json json;
    *state = (tdm_ckpt_state){.step = 0};
    tdm__json_open(&json, text, bytes, 1);
    if (!read_state(&json, state))
        TDM_FAIL(TDM_E_CHECKPOINT, "%s/%s: %s", folder, tdm__ckpt_file_names[TDM_CKPT_STATE], json.why);
    return TDM_OK;
}
