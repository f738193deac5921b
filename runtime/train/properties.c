/* A run's own properties: texts by key that its checkpoints keep for the program. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/train/run.h"

/* Of the property with this key; if there is none, of the first one behind it: they are sorted. */
static int index_of(const tdm_run *run, const char *key) {
    int at = 0;
    while (at < run->property_count && strcmp(run->property[at].key, key) < 0) at++;
    return at;
}

static bool is_at(const tdm_run *run, int at, const char *key) {
    return at < run->property_count && strcmp(run->property[at].key, key) == 0;
}

static size_t bytes_of(const char *key, const char *text) {
    return strlen(key) + strlen(text) + 2;
}

/* Of all properties but number `but`. */
static size_t total_bytes(const tdm_run *run, int but) {
    size_t bytes = 0;
    for (int i = 0; i < run->property_count; i++) {
        if (i != but) bytes += bytes_of(run->property[i].key, run->property[i].text);
    }
    return bytes;
}

static void take_out(tdm_run *run, int at) {
    tdm__delete(run->host, (void *)(uintptr_t)run->property[at].key);
    run->property_count--;
    memmove(&run->property[at], &run->property[at + 1], (size_t)(run->property_count - at) * sizeof(run->property[0]));
}

static tdm_status check(const tdm_run *run, const char *key, const char *text, int at, bool is_new) {
    static const char what[] = "tdm_run_set_property";
    size_t bad, room = TDM_PROPERTY_BYTES - total_bytes(run, is_new ? -1 : at);
    if (!tdm__text_is_utf8(key, strlen(key), &bad) || !tdm__property_is_key(key, strlen(key)))
        TDM_FAIL(
            TDM_E_USAGE,
            "%s: the key '%.64s' cannot be used: a key has 1 to %d bytes of UTF-8, and \"format\" and \"tandem...\" "
            "are tandem's own",
            what, key, TDM_PROPERTY_KEY);
    if (text == NULL) return TDM_OK;
    if (!tdm__text_is_utf8(text, strlen(text), &bad))
        TDM_FAIL(TDM_E_USAGE, "%s: the text of '%s' is not UTF-8 from byte %zu on", what, key, bad);
    if (is_new && run->property_count == TDM_PROPERTIES)
        TDM_FAIL(TDM_E_USAGE, "%s: '%s' would be one more than the %d that a run has; remove one", what, key,
                 TDM_PROPERTIES);
    if (bytes_of(key, text) > room)
        TDM_FAIL(TDM_E_USAGE, "%s: '%s' and its text take %zu bytes, and of %d for all properties %zu are left", what,
                 key, bytes_of(key, text), TDM_PROPERTY_BYTES, room);
    return TDM_OK;
}

tdm_status tdm_run_set_property(tdm_run *run, const char *key, const char *text) {
    char *copy;
    if (run == NULL || key == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_set_property: run or key is NULL");
    const int at = index_of(run, key);
    const bool is_new = !is_at(run, at, key);
    TDM_TRY(check(run, key, text, at, is_new));
    if (text == NULL) {
        if (!is_new) take_out(run, at);
        return TDM_OK;
    }
    const size_t length = strlen(key) + 1;
    TDM_TRY(tdm__new(run->host, &copy, bytes_of(key, text), 1, "a property"));
    memcpy(copy, key, length);
    memcpy(copy + length, text, strlen(text) + 1); /* which may be the one that is replaced */
    if (!is_new) take_out(run, at);
    memmove(&run->property[at + 1], &run->property[at], (size_t)(run->property_count - at) * sizeof(run->property[0]));
    run->property[at] = (tdm_property){copy, copy + length};
    run->property_count++;
    return TDM_OK;
}

const char *tdm_run_property(const tdm_run *run, const char *key) {
    if (run == NULL || key == NULL) return NULL;
    const int at = index_of(run, key);
    return is_at(run, at, key) ? run->property[at].text : NULL;
}

const char *tdm_run_property_key(const tdm_run *run, int index) {
    if (run == NULL || index < 0 || index >= run->property_count) return NULL;
    return run->property[index].key;
}

tdm_status tdm__run_take_properties(tdm_run *run, const tdm_tensor_file *file) {
    int count;
    const tdm_property *property = tdm__tensor_file_properties(file, &count);
    tdm__run_forget_properties(run);
    for (int i = 0; i < count; i++) TDM_TRY(tdm_run_set_property(run, property[i].key, property[i].text));
    return TDM_OK;
}

void tdm__run_forget_properties(tdm_run *run) {
    while (run->property_count > 0) take_out(run, run->property_count - 1);
}
