/* Names of classes, see classes.h. */
#include "runtime/data/classes.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/base/text/json.h"

int64_t tdm__classes_find(const tdm_classes *classes, const char *name) {
    int64_t low = 0, high = classes->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int order = strcmp(classes->name[middle], name);
        if (order == 0) return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

void tdm__classes_print(const tdm_classes *classes, tdm_text *out) {
    tdm__text_puts(out, "[");
    for (int64_t i = 0; i < classes->count; i++) {
        if (i > 0) tdm__text_puts(out, ",");
        tdm__text_json_string(out, classes->name[i]);
    }
    tdm__text_puts(out, "]");
}

/* One pass: counts the names and their bytes, or, if `name` is not NULL, stores them. */
static bool read_names(const char *text, int64_t *count, size_t *bytes, const char **name, char *to) {
    tdm_json json;
    size_t length;
    *count = 0;
    *bytes = 0;
    tdm__json_open(&json, text, strlen(text), 1);
    if (!tdm__json_array(&json)) return false;
    while (tdm__json_item(&json)) {
        if (!tdm__json_string(&json, name == NULL ? NULL : to + *bytes, TDM_CLASSES_BYTES_MAX, &length)) return false;
        if (name != NULL) name[*count] = to + *bytes;
        if (name != NULL && *count > 0 && strcmp(name[*count - 1], name[*count]) >= 0) return false;
        *bytes += length + 1;
        ++*count;
    }
    return !json.failed && tdm__json_end(&json) && *bytes <= TDM_CLASSES_BYTES_MAX;
}

tdm_status tdm__classes_parse(tdm_classes *out, tdm_zone *zone, const char *text) {
    int64_t count;
    size_t bytes;
    const char **name;
    char *texts;
    bool good = read_names(text, &count, &bytes, NULL, NULL);
    if (good) {
        TDM_TRY(tdm__zone_new(zone, &name, (size_t)count, sizeof(*name)));
        TDM_TRY(tdm__zone_new(zone, &texts, bytes + TDM_CLASSES_BYTES_MAX, 1));
        good = read_names(text, &count, &bytes, name, texts);
    }
    if (!good) TDM_FAIL(TDM_E_CHECKPOINT, "tandem.classes in its metadata is not a sorted list of names");
    *out = (tdm_classes){.count = count, .name = name};
    return TDM_OK;
}

tdm_status tdm__classes_take(tdm_dataset *dataset, const char *source, const char *const *name, int64_t count) {
    size_t bytes = 0;
    const char **list;
    char *texts;
    for (int64_t i = 0; i < count; i++) bytes += strlen(name[i]) + 1;
    if (bytes > TDM_CLASSES_BYTES_MAX)
        TDM_FAIL(TDM_E_DATA, "%s: the names of %lld classes take %zu bytes; at most %d are allowed", source,
                 (long long)count, bytes, TDM_CLASSES_BYTES_MAX);
    TDM_TRY(tdm__dataset_take(dataset, &list, (size_t)count, sizeof(*list), "names of classes"));
    TDM_TRY(tdm__dataset_take(dataset, &texts, bytes, 1, "names of classes"));
    for (int64_t i = 0; i < count; i++) {
        const size_t length = strlen(name[i]) + 1;
        memcpy(texts, name[i], length);
        list[i] = texts;
        texts += length;
    }
    dataset->class_names = (tdm_classes){.count = count, .name = list};
    return TDM_OK;
}

/* The different ones of `count` texts, sorted. */
static tdm_status take_different(tdm_dataset *dataset, const char *source, const char **name, int64_t count) {
    int64_t different = 0;
    qsort(name, (size_t)count, sizeof(*name), tdm__text_order);
    for (int64_t i = 0; i < count; i++) {
        if (different == 0 || strcmp(name[different - 1], name[i]) != 0) name[different++] = name[i];
    }
    return tdm__classes_take(dataset, source, name, different);
}

static tdm_status take_names(tdm_dataset *dataset, const tdm_data_wanted *wanted, const char *source, const char *text,
                             const size_t *offset, int64_t count) {
    const char **name;
    if (wanted->class_names != NULL && wanted->class_names->count > 0)
        return tdm__classes_take(dataset, source, wanted->class_names->name, wanted->class_names->count);
    TDM_TRY(tdm__new(dataset->host, &name, (size_t)count, sizeof(*name), "labels"));
    for (int64_t i = 0; i < count; i++) name[i] = text + offset[i];
    const tdm_status status = take_different(dataset, source, name, count);
    tdm__delete(dataset->host, name);
    return status;
}

tdm_status tdm__classes_from_texts(tdm_dataset *dataset, const tdm_data_wanted *wanted, const char *source,
                                   const char *text, const size_t *offset, int64_t count, int64_t *labels) {
    bool are_numbers = wanted->class_names == NULL || wanted->class_names->count == 0;
    for (int64_t i = 0; i < count && are_numbers; i++) are_numbers = tdm__parse_int(text + offset[i], &labels[i]);
    return are_numbers ? TDM_OK : tdm__classes_from_names(dataset, wanted, source, text, offset, count, labels);
}

tdm_status tdm__classes_from_names(tdm_dataset *dataset, const tdm_data_wanted *wanted, const char *source,
                                   const char *text, const size_t *offset, int64_t count, int64_t *labels) {
    TDM_TRY(take_names(dataset, wanted, source, text, offset, count));
    for (int64_t i = 0; i < count; i++) {
        labels[i] = tdm__classes_find(&dataset->class_names, text + offset[i]);
        if (labels[i] < 0)
            TDM_FAIL(TDM_E_DATA, "%s: sample %lld has the label '%s', which is no class of the data trained on", source,
                     (long long)i, text + offset[i]);
    }
    return TDM_OK;
}
