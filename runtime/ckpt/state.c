/* state.json: what a run needs, beside the tensors, to continue. One flat JSON object: "version", then the keys of
 * `fields`, which serves both writing and reading. */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "runtime/base/text/json.h"
#include "runtime/base/status.h"
#include "runtime/ckpt/folder.h"

enum kind { COUNT, INT, ANY_INT, NUMBER, TEXT, FLAG, NOTE }; /* FLAG: 1 or absent; NOTE: a text or absent */
static const int64_t most_of[] = {[COUNT] = INT64_C(1) << 53 /* as in a job */, [INT] = INT32_MAX, [FLAG] = 1};

static const struct {
    const char *key;
    enum kind kind;
    size_t offset, size;
} fields[] = {
#define FIELD(kind, name) \
    { #name, kind, offsetof(tdm_ckpt_state, name), sizeof(((tdm_ckpt_state *)NULL)->name) }
    FIELD(COUNT, step),   FIELD(COUNT, epoch),      FIELD(COUNT, step_in_epoch), FIELD(COUNT, samples),
    FIELD(ANY_INT, seed), FIELD(NUMBER, lr),        FIELD(COUNT, schedule_step), FIELD(TEXT, mode),
    FIELD(INT, replicas), FIELD(COUNT, per_device), FIELD(TEXT, optimizer),      FIELD(TEXT, params_xxh3),
    FIELD(NOTE, data),    FIELD(FLAG, eval_due),
#undef FIELD
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

void tdm__state_print(tdm_json_out *to, const char *key, const tdm_ckpt_state *state) {
    tdm__put(to, "%s:{\n version:%d", key, TDM_CKPT_VERSION);
    for (int i = 0; i < FIELDS; i++) {
        const char *at = (const char *)state + fields[i].offset;
        int64_t whole = 0;
        int small;
        double number;
        if (fields[i].kind == FLAG) {
            memcpy(&whole, at, sizeof(whole));
            if (whole == 0) continue;
        }
        if (fields[i].kind == NOTE && at[0] == '\0') continue;
        tdm__put_key(to, fields[i].key);
        switch (fields[i].kind) {
        case COUNT:
        case FLAG:
        case ANY_INT:
            memcpy(&whole, at, sizeof(whole));
            tdm__text_printf(to->text, "%lld", (long long)whole);
            break;
        case INT:
            memcpy(&small, at, sizeof(small));
            tdm__text_printf(to->text, "%d", small);
            break;
        case NUMBER:
            memcpy(&number, at, sizeof(number));
            tdm__text_json_number(to->text, number);
            break;
        case TEXT:
        case NOTE:
            tdm__text_json_string(to->text, at);
            break;
        }
    }
    tdm__put(to, "}");
}

static bool read_field(tdm_json *json, int i, tdm_ckpt_state *state) {
    char *at = (char *)state + fields[i].offset;
    int64_t whole = 0;
    size_t length;
    double number;
    switch (fields[i].kind) {
    case COUNT:
    case FLAG:
    case INT:
    case ANY_INT:
        if (!tdm__json_integer(json, &whole)) return false;
        if (fields[i].kind != ANY_INT && whole < 0) return tdm__json_fail(json, "'%s' is negative", fields[i].key);
        if (fields[i].kind != ANY_INT && whole > most_of[fields[i].kind])
            return tdm__json_fail(json, "'%s' is too large", fields[i].key);
        if (fields[i].kind == INT) {
            int small = (int)whole;
            memcpy(at, &small, sizeof(small));
        } else {
            memcpy(at, &whole, sizeof(whole));
        }
        return true;
    case NUMBER:
        if (!tdm__json_number(json, &number)) return false;
        memcpy(at, &number, sizeof(number));
        return true;
    case TEXT:
    case NOTE:
        return tdm__json_string(json, at, fields[i].size, &length);
    }
    return false;
}

/* Refuses numbers whose sums and products could overflow later, and numbers that no run can reach: every step has at
 * least one sample, every epoch at least one step. */
static bool check_ranges(tdm_json *json, const tdm_ckpt_state *s) {
    int64_t rows;
    if (__builtin_mul_overflow(s->per_device, s->replicas, &rows) ||
        __builtin_mul_overflow(rows, s->step_in_epoch, &rows) || rows > most_of[COUNT])
        return tdm__json_fail(json, "'step_in_epoch', 'per_device' and 'replicas' together are too large");
    if (s->replicas < 1 || s->per_device < 1)
        return tdm__json_fail(json, "'replicas' %d and 'per_device' %lld must be at least 1", s->replicas,
                              (long long)s->per_device);
    if (!(s->lr >= 0 && s->lr <= (double)FLT_MAX))
        return tdm__json_fail(json, "'lr' must be 0 to %g, found %g", (double)FLT_MAX, s->lr);
    if (s->samples < s->step || s->samples < rows)
        return tdm__json_fail(json, "'samples' is %lld: fewer than its steps have processed", (long long)s->samples);
    if (s->epoch > s->step || s->schedule_step > s->step)
        return tdm__json_fail(json, "'epoch' %lld and 'schedule_step' %lld must be at most 'step', %lld",
                              (long long)s->epoch, (long long)s->schedule_step, (long long)s->step);
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
        if (!seen[i] && fields[i].kind != FLAG && fields[i].kind != NOTE)
            return tdm__json_fail(json, "key '%s' is missing", fields[i].key);
    }
    return check_ranges(json, state) && tdm__json_end(json);
}

tdm_status tdm__state_read(tdm_ckpt_state *state, const char *text, size_t bytes, const char *path) {
    tdm_json json;
    *state = (tdm_ckpt_state){.step = 0};
    tdm__json_open(&json, text, bytes, 1);
    if (!read_state(&json, state)) TDM_FAIL(TDM_E_CHECKPOINT, "%s: %s", path, json.why);
    return TDM_OK;
}
