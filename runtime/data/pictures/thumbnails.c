/* Small pictures of some samples, as PNG files in memory. */
#include <tandem/data.h>

#include <string.h>

#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/base/text/text.h"
#include "runtime/data/wanted.h"
#include "runtime/image/codec.h"

typedef struct thumbnails {
    const tdm_dataset *dataset;
    const tdm_image_ops *codec;
    tdm_sample_reader reader;
    tdm_canvas canvas;
    unsigned char *planes;
    tdm_text png;
    int side;
} thumbnails;

static tdm_status put(void *user, const void *bytes, size_t count) {
    tdm_text *png = user;
    tdm__text_add(png, bytes, count);
    if (png->failed) TDM_FAIL(TDM_E_MEMORY, "out of memory for small pictures");
    return TDM_OK;
}

static tdm_status shrink(thumbnails *t) {
    const int64_t width = t->canvas.now.width, height = t->canvas.now.height, longer = width > height ? width : height;
    if (longer <= t->side) return TDM_OK;
    const int64_t to_width = width * t->side / longer, to_height = height * t->side / longer;
    return tdm__canvas_resize(&t->canvas, to_width > 0 ? (int)to_width : 1, to_height > 0 ? (int)to_height : 1);
}

static tdm_status make_one(thumbnails *t, int64_t index) {
    int64_t label;
    if (index < 0 || index >= t->dataset->count)
        TDM_FAIL(TDM_E_DATA, "the data has %lld samples, and no sample %lld", (long long)t->dataset->count,
                 (long long)index);
    TDM_TRY(tdm__sample_read(&t->reader, index, t->planes, &label));
    TDM_TRY(tdm__canvas_take_planes(&t->canvas, t->dataset->x_shape.dim, t->planes));
    TDM_TRY(shrink(t));
    t->png.length = 0;
    return t->codec->encode(t->dataset->host, &t->canvas.now, put, &t->png);
}

static tdm_status make_all(thumbnails *t, const int64_t *index, int count, tdm_data_thumbnail *each, void *user) {
    TDM_TRY(tdm__sample_reader_open(&t->reader, t->dataset));
    TDM_TRY(tdm__new(t->dataset->host, &t->planes, tdm__dataset_x_bytes(t->dataset), 1, "sample"));
    for (int i = 0; i < count; i++) {
        const tdm_status status = make_one(t, index[i]);
        if (status != TDM_OK && status != TDM_E_DATA) return status;
        const bool is_made = status == TDM_OK;
        TDM_TRY(each(user, index[i], is_made ? t->png.data : NULL, is_made ? t->png.length : 0,
                     is_made ? NULL : tdm_error_message()));
    }
    return TDM_OK;
}

static tdm_status check_shape(const tdm_dataset *dataset) {
    const tdm_shape *shape = &dataset->x_shape;
    if (dataset->x_is_bytes && dataset->target_kind == TDM_TARGET_CLASS && shape->ndim == 3 &&
        (shape->dim[0] == 1 || shape->dim[0] == 3))
        return TDM_OK;
    TDM_FAIL(TDM_E_DATA, "%s: samples are not labelled pictures of 1 or 3 channels", dataset->ops->name);
}

tdm_status tdm_data_thumbnails(const tdm_host *host, const tdm_data_spec *spec, const tdm_data_use *use,
                               const int64_t *index, int count, int side, tdm_data_thumbnail *each, void *user) {
    thumbnails t = {.side = side};
    tdm_data_wanted wanted;
    tdm_dataset *dataset;
    if (spec == NULL || (index == NULL && count > 0) || each == NULL || side < 1)
        TDM_FAIL(TDM_E_USAGE, "tdm_data_thumbnails: spec, index or each is NULL, or side is below 1");
    TDM_EXTRA(PICTURES);
    TDM_TRY(tdm__host_take(&host));
    TDM_TRY(tdm__data_wanted_from(use, &wanted));
    TDM_TRY(tdm__codec_open(&t.codec, host, NULL));
    TDM_TRY(tdm__dataset_open(&dataset, host, spec, &wanted));
    t.dataset = dataset;
    tdm__canvas_init(&t.canvas, host);
    tdm__text_init(&t.png, host);
    tdm_status status = check_shape(dataset);
    if (status == TDM_OK) status = make_all(&t, index, count, each, user);
    tdm__sample_reader_close(&t.reader);
    tdm__delete(host, t.planes);
    tdm__text_deinit(&t.png);
    tdm__canvas_deinit(&t.canvas);
    tdm__dataset_close(dataset);
    return status;
}
