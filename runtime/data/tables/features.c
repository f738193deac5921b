/* Features of tables as JSON, see features.h:
 *
 *   {"unknown": 1, "numbers": [{"name": "age", "mean": 41.5, "std": 12.25, "fill": 41.5}],
 *    "categories": [{"name": "city", "values": ["Bern", "Rome"]}], "target": {"name": "price", "mean": 0, "std": 1}} */
#include "runtime/data/tables/features.h"

#include <math.h>

#include "runtime/base/status.h"
#include "runtime/base/text/json.h"
#include "runtime/base/text/json_write.h"
#include "runtime/data/classes.h"

enum { DEPTH = 4 };

static void put_number(tdm_json_out *to, const char *key, double value) {
    tdm__json_put_key(to, key);
    tdm__text_json_number(to->text, value);
}

static void put_feature(tdm_json_out *to, const char *key, const tdm_feature *feature, bool is_number) {
    tdm__json_put(to, "%s:{", key);
    if (feature->name != NULL) tdm__json_put(to, "name:%s", feature->name);
    if (is_number) {
        put_number(to, "mean", feature->mean);
        put_number(to, "std", feature->stdev);
        if (!isnan(feature->fill)) put_number(to, "fill", feature->fill);
    }
    if (!is_number || feature->values.count > 0) {
        tdm__json_put_key(to, "values");
        tdm__classes_print(&feature->values, to->text);
    }
    tdm__json_put(to, "}");
}

static void put_list(tdm_json_out *to, const char *key, const tdm_feature *item, int64_t count, bool are_numbers) {
    tdm__json_put(to, "%s:[", key);
    for (int64_t i = 0; i < count; i++) put_feature(to, NULL, &item[i], are_numbers);
    tdm__json_put(to, "]");
}

void tdm__features_print(const tdm_features *features, tdm_text *out) {
    tdm_json_out to = tdm__json_out(out, "");
    tdm__json_put(&to, "{ unknown:%d", features->has_unknown);
    put_list(&to, "numbers", features->item, features->numbers, true);
    put_list(&to, "categories", features->item + features->numbers, features->categories, false);
    put_feature(&to, "target", &features->target, true);
    tdm__json_put(&to, "}");
}

tdm_target tdm__features_target(const tdm_features *features) {
    tdm_target out = TDM_TARGET_INIT;
    if (features == NULL) return out;
    const tdm_feature *target = &features->target;
    out.name = target->name, out.mean = target->mean, out.stdev = target->stdev;
    for (int i = 0; i < 2 && target->values.count == 2; i++) out.value[i] = target->values.name[i];
    return out;
}

/* ---- reading ---- */

/* Room for everything that a text of this length can hold. */
typedef struct room {
    tdm_json json;
    tdm_feature *item;
    const char **name;
    char *bytes;
    size_t left; /* of `bytes` */
} room;

static bool take_string(room *r, const char **out) {
    size_t length;
    if (!tdm__json_string(&r->json, r->bytes, r->left, &length)) return false;
    *out = r->bytes;
    r->bytes += length + 1;
    r->left -= length + 1;
    return true;
}

static bool take_values(room *r, tdm_classes *out) {
    const char **name = r->name;
    *out = (tdm_classes){.name = name};
    if (!tdm__json_array(&r->json)) return false;
    while (tdm__json_item(&r->json)) {
        if (!take_string(r, &name[out->count])) return false;
        if (out->count > 0 && strcmp(name[out->count - 1], name[out->count]) >= 0) return false;
        out->count++;
    }
    r->name += out->count;
    return !r->json.failed;
}

static bool take_feature(room *r, tdm_feature *out) {
    char key[16];
    size_t length;
    *out = (tdm_feature){.stdev = 1.0, .fill = NAN};
    if (!tdm__json_object(&r->json)) return false;
    while (tdm__json_key(&r->json, key, sizeof(key), &length)) {
        bool good = strcmp(key, "name") == 0     ? take_string(r, &out->name)
                    : strcmp(key, "values") == 0 ? take_values(r, &out->values)
                    : strcmp(key, "mean") == 0   ? tdm__json_number(&r->json, &out->mean)
                    : strcmp(key, "std") == 0    ? tdm__json_number(&r->json, &out->stdev)
                    : strcmp(key, "fill") == 0   ? tdm__json_number(&r->json, &out->fill)
                                                 : false;
        if (!good) return false;
    }
    return !r->json.failed && isfinite(out->mean) && isfinite(out->stdev) && out->stdev > 0.0;
}

static bool take_list(room *r, int64_t *count) {
    *count = 0;
    if (!tdm__json_array(&r->json)) return false;
    while (tdm__json_item(&r->json)) {
        if (!take_feature(r, r->item++)) return false;
        ++*count;
    }
    return !r->json.failed;
}

static bool has_key(room *r, const char *wanted) {
    char key[16];
    size_t length;
    return tdm__json_key(&r->json, key, sizeof(key), &length) && strcmp(key, wanted) == 0;
}

static bool take_all(room *r, tdm_features *out) {
    uint64_t unknown;
    char key[16];
    size_t length;
    out->item = r->item;
    if (!tdm__json_object(&r->json) || !has_key(r, "unknown") || !tdm__json_natural(&r->json, &unknown)) return false;
    if (!has_key(r, "numbers") || !take_list(r, &out->numbers)) return false;
    if (!has_key(r, "categories") || !take_list(r, &out->categories)) return false;
    if (!has_key(r, "target") || !take_feature(r, &out->target)) return false;
    out->has_unknown = unknown != 0;
    return !tdm__json_key(&r->json, key, sizeof(key), &length) && !r->json.failed && tdm__json_end(&r->json);
}

tdm_status tdm__features_parse(tdm_features *out, tdm_zone *zone, const char *text) {
    room r;
    size_t braces = 0, quotes = 0;
    const size_t bytes = strlen(text);
    for (size_t i = 0; i < bytes; i++) {
        braces += text[i] == '{';
        quotes += text[i] == '"';
    }
    *out = (tdm_features){.numbers = 0};
    r.left = bytes + 1;
    TDM_TRY(tdm__zone_new(zone, &r.item, braces + 1, sizeof(*r.item)));
    TDM_TRY(tdm__zone_new(zone, &r.name, quotes + 1, sizeof(*r.name)));
    TDM_TRY(tdm__zone_new(zone, &r.bytes, r.left, 1));
    tdm__json_open(&r.json, text, bytes, DEPTH);
    if (bytes > TDM_FEATURES_BYTES_MAX || !take_all(&r, out))
        TDM_FAIL(TDM_E_CHECKPOINT, "tandem.features in its metadata does not describe the columns of a table");
    return TDM_OK;
}
