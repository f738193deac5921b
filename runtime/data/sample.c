/* Reading samples of a dataset, and hashing some. */
#include <string.h>

#include "runtime/base/round.h"
#include "runtime/base/status.h"
#include "runtime/data/formats.h"
#include "runtime/data/pictures/picture_file.h"
#include "runtime/data/tables/features.h"
#include "runtime/data/transform.h"

static bool is_picture(const tdm_dataset *dataset) {
    return dataset->ops->picture != NULL || (dataset->steps != NULL && dataset->steps->step_count > 0);
}

static tdm_status make_parts(tdm_sample_reader *reader) {
    const tdm_dataset *dataset = reader->dataset;
    const tdm_host *host = dataset->host;
    size_t raw;
    TDM_TRY(tdm__new(host, &reader->canvas, 1, sizeof(*reader->canvas), "picture"));
    tdm__canvas_init(reader->canvas, host);
    TDM_TRY(tdm__new(host, &reader->file, 1, sizeof(*reader->file), "picture"));
    if (dataset->ops->picture != NULL) return TDM_OK;
    if (!tdm__shape_elements(&dataset->raw_shape, &raw)) TDM_FAIL(TDM_E_INTERNAL, "reader: the dataset has no shape");
    return tdm__new(host, &reader->raw, raw, 1, "sample");
}

tdm_status tdm__sample_reader_open(tdm_sample_reader *reader, const tdm_dataset *dataset) {
    *reader = (tdm_sample_reader){.dataset = dataset};
    if (!is_picture(dataset)) return TDM_OK;
    TDM_TRY_ELSE(make_parts(reader), tdm__sample_reader_close(reader));
    return TDM_OK;
}

void tdm__sample_reader_close(tdm_sample_reader *reader) {
    if (reader->dataset == NULL) return;
    const tdm_host *host = reader->dataset->host;
    if (reader->canvas != NULL) tdm__canvas_deinit(reader->canvas);
    if (reader->file != NULL) tdm__delete(host, reader->file->data);
    tdm__delete(host, reader->canvas);
    tdm__delete(host, reader->file);
    tdm__delete(host, reader->raw);
    *reader = (tdm_sample_reader){.dataset = NULL};
}

tdm_picture_key tdm__sample_key(const tdm_sample_reader *reader, int64_t row) {
    const tdm_dataset *dataset = reader->dataset;
    return (tdm_picture_key){
        .seed = dataset->seed, .epoch = dataset->draws ? reader->epoch : 0, .sample = row, .training = dataset->draws};
}

/* Draws a sample that another format has as bytes. */
static tdm_status draw_raw(const tdm_sample_reader *reader, int64_t index, void *target) {
    const tdm_dataset *dataset = reader->dataset;
    const tdm_picture_key key = tdm__sample_key(reader, tdm__dataset_row(dataset, index));
    TDM_TRY(dataset->ops->read(reader, index, reader->raw, target));
    TDM_TRY(tdm__canvas_take_planes(reader->canvas, dataset->raw_shape.dim, reader->raw));
    return tdm__transform_picture(dataset->steps, reader->canvas, &key);
}

static tdm_status check_size(const tdm_dataset *dataset, const tdm_canvas *canvas, int64_t row) {
    const tdm_shape *wanted = &dataset->x_shape;
    const tdm_pixels *now = &canvas->now;
    if (wanted->ndim == 3 && now->channels == wanted->dim[0] && now->height == wanted->dim[1] &&
        now->width == wanted->dim[2])
        return TDM_OK;
    if (wanted->ndim != 3 && tdm__pixels_bytes(now) == tdm__dataset_x_bytes(dataset)) return TDM_OK;
    TDM_FAIL(TDM_E_DATA,
             "%s: sample %lld has %d x %d pixels after data.transform, and the model takes %lld x %lld; add resize and "
             "center_crop",
             dataset->ops->name, (long long)row, now->width, now->height,
             wanted->ndim == 3 ? (long long)wanted->dim[2] : 0, wanted->ndim == 3 ? (long long)wanted->dim[1] : 0);
}

tdm_status tdm__sample_read(const tdm_sample_reader *reader, int64_t index, void *x, void *target) {
    const tdm_dataset *dataset = reader->dataset;
    if (reader->canvas == NULL) return dataset->ops->read(reader, index, x, target);
    TDM_TRY(dataset->ops->picture != NULL ? dataset->ops->picture(reader, index, reader->canvas, target)
                                          : draw_raw(reader, index, target));
    TDM_TRY(check_size(dataset, reader->canvas, tdm__dataset_row(dataset, index)));
    tdm__canvas_planes(reader->canvas, x);
    return TDM_OK;
}

tdm_status tdm__sample_take(const tdm_sample_reader *reader, int64_t index, void *x, void *target) {
    const tdm_status status = tdm__sample_read(reader, index, x, target);
    if (status != TDM_E_DATA || reader->dataset->ops->measure == NULL) return status;
    TDM_FAIL(TDM_E_DATA, "%s; repair or remove it, or write on_bad_sample: skip", tdm_error_message());
}

tdm_status tdm__dataset_read(const tdm_dataset *dataset, int64_t index, void *x, void *target) {
    tdm_sample_reader reader;
    TDM_TRY(tdm__sample_reader_open(&reader, dataset));
    const tdm_status status = tdm__sample_read(&reader, index, x, target);
    tdm__sample_reader_close(&reader);
    return status;
}

tdm_status tdm__dataset_fill(const tdm_dataset *dataset, const tdm_transform *transform, int64_t first, int64_t count,
                             void *x, void *targets) {
    const size_t x_bytes = tdm__dataset_x_bytes(dataset), target_bytes = tdm__dataset_target_bytes(dataset);
    tdm_status status = TDM_OK;
    tdm_sample_reader reader;
    TDM_TRY(tdm__sample_reader_open(&reader, dataset));
    for (int64_t i = 0; i < count; i++) {
        char *sample = (char *)x + (size_t)i * x_bytes;
        TDM_TRY_DONE(tdm__sample_read(&reader, first + i, sample, (char *)targets + (size_t)i * target_bytes));
        if (!dataset->x_is_bytes) tdm__transform_floats(transform, (float *)sample);
    }
done:
    tdm__sample_reader_close(&reader);
    return status;
}

enum { SAMPLES_HASHED = 16 }; /* beside the first sample */

tdm_status tdm__dataset_hash(const tdm_dataset *dataset, char out[TDM_HASH_TEXT]) {
    size_t x_bytes = tdm__dataset_x_bytes(dataset), target_bytes = tdm__dataset_target_bytes(dataset);
    int64_t last = dataset->count - 1;
    tdm_hash128 hash[SAMPLES_HASHED + 1] = {{0}};
    char *sample = NULL;
    tdm_sample_reader reader;
    TDM_TRY(tdm__sample_reader_open(&reader, dataset));
    tdm_status status = tdm__new(dataset->host, &sample, x_bytes + TDM_ALIGN + target_bytes, 1, "sample");
    char *target = sample + tdm__round_up(x_bytes, TDM_ALIGN);
    for (int i = 0; i <= SAMPLES_HASHED && status == TDM_OK; i++) {
        int64_t index = last / SAMPLES_HASHED * i + last % SAMPLES_HASHED * i / SAMPLES_HASHED;
        status = tdm__sample_take(&reader, index, sample, target);
        hash[i] = tdm__hash(sample, x_bytes);
        hash[i].low ^= tdm__hash64(target, target_bytes, (uint64_t)i);
    }
    tdm__delete(dataset->host, sample);
    tdm__sample_reader_close(&reader);
    for (int64_t i = 0; i < dataset->class_names.count; i++) {
        const char *name = dataset->class_names.name[i];
        hash[0].high ^= tdm__hash64(name, strlen(name), (uint64_t)i);
    }
    tdm__hash_print(out, tdm__hash(hash, sizeof(hash)));
    return status;
}

/* Samples have the numbers of these. */
static tdm_status add_names(const tdm_dataset *dataset, tdm_hasher *hasher) {
    tdm_text text;
    tdm__text_init(&text, dataset->host);
    for (int64_t i = 0; i < dataset->class_names.count; i++)
        tdm__text_add(&text, dataset->class_names.name[i], strlen(dataset->class_names.name[i]) + 1);
    if (dataset->features != NULL) tdm__features_print(dataset->features, &text);
    const bool failed = text.failed;
    if (!failed) tdm__hash_add(hasher, text.data, text.length);
    tdm__text_deinit(&text);
    if (failed) TDM_FAIL(TDM_E_MEMORY, "out of memory while comparing data");
    return TDM_OK;
}

tdm_status tdm__dataset_hash_content(const tdm_dataset *dataset, uint64_t of_files, char out[TDM_HASH_TEXT]) {
    tdm_hasher *hasher;
    out[0] = '\0';
    if (dataset->ops->add_content == NULL) return TDM_OK;
    TDM_TRY(tdm__hash_open(&hasher, dataset->host));
    const tdm_status status = add_names(dataset, hasher);
    dataset->ops->add_content(dataset, hasher);
    if (dataset->row_files != NULL) tdm__hash_add(hasher, &of_files, sizeof(of_files));
    tdm__hash_print(out, tdm__hash_value(hasher));
    tdm__hash_close(hasher);
    return status;
}
