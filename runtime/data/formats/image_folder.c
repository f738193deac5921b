/* Pictures in a folder whose sub-folders are the classes, in a flat folder, or named by a table. Files are listed when
 * the dataset is opened, and decoded when a sample is read, by several threads at once. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/data/classes.h"
#include "runtime/data/pictures/bad_samples.h"
#include "runtime/data/pictures/picture_file.h"
#include "runtime/image/codec.h"

typedef struct picture_dataset {
    tdm_dataset base;
    tdm_picture_list list;
    const tdm_image_ops *codec;
    int64_t *labels;
    int64_t ignored; /* the label of pictures that have none or cannot be read */
    int channels;
    bool skips;           /* on_bad_sample: skip */
    atomic_uchar *warned; /* for each file: it was reported */
} picture_dataset;

/* ---- reading ---- */

/* A picture that cannot be read does not count: its label is ignored, on every rank that meets it. */
static tdm_status skip(const picture_dataset *own, int64_t row, tdm_canvas *canvas, int64_t *label) {
    if (atomic_exchange(&own->warned[row], 1) == 0) {
        tdm__bad_samples_add(own->base.bad, row, tdm_error_message());
        TDM_WARN(own->base.host, "data", "%s; it is left out (on_bad_sample: skip)", tdm_error_message());
    }
    *label = own->ignored;
    canvas->now.width = canvas->now.height = 1;
    canvas->now.channels = own->channels;
    TDM_TRY(tdm__pixels_room(own->base.host, &canvas->now, 3));
    memset(canvas->now.data, 0, 3);
    return tdm__canvas_resize(canvas, (int)own->base.x_shape.dim[2], (int)own->base.x_shape.dim[1]);
}

static tdm_status image_folder_picture(const tdm_sample_reader *reader, int64_t index, tdm_canvas *canvas,
                                       void *target) {
    TDM_EXTRA(PICTURES);
    const picture_dataset *own = (const picture_dataset *)reader->dataset;
    const int64_t row = tdm__dataset_row(reader->dataset, index);
    *(int64_t *)target = own->labels[row];
    const tdm_picture_call call = {.codec = own->codec,
                                   .channels = own->channels,
                                   .spec = reader->dataset->steps,
                                   .key = tdm__sample_key(reader, row)};
    const tdm_status status = tdm__picture_read(&call, &own->list, row, reader->file, canvas);
    return status == TDM_E_DATA && own->skips ? skip(own, row, canvas, target) : status;
}

static tdm_status image_folder_measure(const tdm_sample_reader *reader, int64_t index, int64_t size[2]) {
    TDM_EXTRA(PICTURES);
    const picture_dataset *own = (const picture_dataset *)reader->dataset;
    const int64_t row = tdm__dataset_row(reader->dataset, index);
    tdm_image_info info;
    TDM_TRY(tdm__picture_probe(own->codec, &own->list, row, reader->file, &info));
    size[0] = info.height;
    size[1] = info.width;
    return TDM_OK;
}

static const char *image_folder_file(const tdm_dataset *dataset, int64_t index) {
    return tdm__picture_path(&((const picture_dataset *)dataset)->list, tdm__dataset_row(dataset, index));
}

static bool image_folder_is_left_out(const tdm_dataset *dataset, int64_t index) {
    return atomic_load(&((const picture_dataset *)dataset)->warned[tdm__dataset_row(dataset, index)]) != 0;
}

/* ---- comparing ---- */

/* So many sizes are asked for at most: each may take a message to the server of a shared disk. */
enum { SIZES_MOST = 4096 };

static void image_folder_add_content(const tdm_dataset *dataset, tdm_hasher *hasher) {
    const picture_dataset *own = (const picture_dataset *)dataset;
    const int64_t count = dataset->count, sizes = count < SIZES_MOST ? count : SIZES_MOST;
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = tdm__dataset_row(dataset, i);
        const char *path = tdm__picture_path(&own->list, row);
        tdm__hash_add(hasher, path, strlen(path) + 1);
        tdm__hash_add(hasher, &own->labels[row], sizeof(own->labels[row]));
    }
    for (int64_t k = 0; k < sizes; k++) {
        const int64_t index = count / sizes * k + count % sizes * k / sizes;
        const int64_t bytes = tdm__picture_bytes(&own->list, tdm__dataset_row(dataset, index));
        tdm__hash_add(hasher, &bytes, sizeof(bytes));
    }
}

/* ---- opening ---- */

static tdm_status take_names(picture_dataset *own, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                             const char *source) {
    const tdm_picture_list *list = &own->list;
    const bool are_known = wanted->class_names != NULL && wanted->class_names->count > 0;
    if (list->class_count == 0)
        return tdm__classes_from_texts(&own->base, wanted, source, list->labels.data, list->label_at, list->count,
                                       own->labels);
    if (list->class_count == 1 && !are_known)
        TDM_FAIL(TDM_E_DATA,
                 "%s has one class folder only, '%s'; name the folder above it, or keep pictures of another class, too",
                 source, list->labels.data + list->class_at[0]);
    (void)spec;
    return tdm__classes_from_names(&own->base, wanted, source, list->labels.data, list->label_at, list->count,
                                   own->labels);
}

static tdm_status take_labels(picture_dataset *own, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                              const char *source) {
    const tdm_picture_list *list = &own->list;
    int64_t classes = 0;
    TDM_TRY(tdm__dataset_take(&own->base, &own->labels, (size_t)list->count, sizeof(*own->labels), "labels"));
    if (list->label_at == NULL) {
        for (int64_t i = 0; i < list->count; i++) own->labels[i] = own->ignored;
    } else {
        TDM_TRY(take_names(own, spec, wanted, source));
    }
    for (int64_t i = 0; i < list->count; i++) {
        if (own->labels[i] != own->ignored && own->labels[i] < 0)
            TDM_FAIL(TDM_E_DATA, "%s: label of '%s' must be 0 or more, found %lld", source, tdm__picture_path(list, i),
                     (long long)own->labels[i]);
        if (own->labels[i] >= classes) classes = own->labels[i] + 1;
    }
    if (own->base.class_names.count > classes) classes = own->base.class_names.count;
    TDM_TRY(tdm__dataset_take_classes(&own->base, spec, wanted, classes, source));
    own->base.has_ignored = own->base.has_ignored || list->label_at == NULL || own->skips;
    return TDM_OK;
}

static tdm_status take_size(picture_dataset *own, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                            const char *source) {
    const bool has_input = wanted->input.ndim == 3;
    tdm_picture_size size = {0, 0};
    own->channels = has_input && wanted->input.dim[0] == 1 ? 1 : 3;
    if (wanted->transform != NULL) size = tdm__transform_size(wanted->transform, !wanted->evaluates);
    if (size.height == 0 && has_input) size = (tdm_picture_size){wanted->input.dim[1], wanted->input.dim[2]};
    if (size.height == 0)
        TDM_FAIL(TDM_E_DATA,
                 "%s: pictures may differ in size; make them equal in data.transform, for example [{resize: 256}, "
                 "{center_crop: 224}]",
                 source);
    const tdm_shape shape = {3, {own->channels, size.height, size.width}};
    return tdm__dataset_take_pictures(&own->base, spec, wanted, &shape, source);
}

static tdm_status open_list(picture_dataset *own, const tdm_data_spec *spec) {
    const tdm_host *host = own->base.host;
    if (spec->file != NULL) return tdm__picture_table_open(&own->list, host, spec->file, spec->path);
    if (spec->path == NULL) TDM_FAIL(TDM_E_DATA, "image_folder: neither path nor file is given");
    return tdm__picture_list_open(&own->list, host, spec->path);
}

static void warn_of(const picture_dataset *own, const char *source, int64_t count, const char *first, const char *why) {
    char more[40] = " is";
    if (count == 0) return;
    if (count > 1) snprintf(more, sizeof(more), " and %lld more are", (long long)(count - 1));
    TDM_WARN(own->base.host, "data", "%s: '%s'%s left out: %s", source, first, more, why);
}

static void warn_of_others(const picture_dataset *own, const char *source) {
    const tdm_picture_list *list = &own->list;
    warn_of(own, source, list->others, list->other, "only regular .jpg, .jpeg and .png files are read");
    if (list->class_count > 0)
        warn_of(own, source, list->beside, list->beside_name, "only pictures in the folder of a class are read");
}

static tdm_status open_all(picture_dataset *own, const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    TDM_EXTRA(PICTURES);
    const char *source = spec->file != NULL ? spec->file : spec->path;
    TDM_TRY(tdm__codec_open(&own->codec, own->base.host, wanted->module_path));
    TDM_TRY(open_list(own, spec));
    own->base.count = own->list.count;
    own->ignored = wanted->ignore_index;
    own->skips = spec->on_bad_sample == TDM_BAD_SAMPLE_SKIP;
    TDM_TRY(tdm__dataset_take(&own->base, &own->warned, (size_t)own->list.count, 1, "list of pictures"));
    if (own->skips)
        TDM_TRY(tdm__dataset_take(&own->base, &own->base.bad, 1, sizeof(*own->base.bad), "pictures left out"));
    TDM_TRY(take_labels(own, spec, wanted, source));
    TDM_TRY(take_size(own, spec, wanted, source));
    if (!wanted->is_told) warn_of_others(own, source);
    return tdm__dataset_take_part(&own->base, spec, wanted, source);
}

static tdm_status image_folder_open(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    return tdm__error_at(open_all((picture_dataset *)dataset, spec, wanted), &spec->inputs_at);
}

static void image_folder_close(tdm_dataset *dataset) {
    tdm__picture_list_close(&((picture_dataset *)dataset)->list);
}

const tdm_dataset_ops tdm__image_folder_data = {.name = "image_folder",
                                                .bytes = sizeof(picture_dataset),
                                                .only_labels = true,
                                                .open = image_folder_open,
                                                .picture = image_folder_picture,
                                                .measure = image_folder_measure,
                                                .file = image_folder_file,
                                                .is_left_out = image_folder_is_left_out,
                                                .add_content = image_folder_add_content,
                                                .close = image_folder_close};
