/* A contact sheet: what the model sees of some samples, as one PNG file. */
#include <tandem/data.h>

#include <string.h>

#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/data/wanted.h"
#include "runtime/image/codec.h"

enum { COLUMNS = 8, ROWS = 8, GAP = 2, SIDE_MAX = 512 };

/* Draws a sample, planes of bytes, into its square. */
static void draw_sample(const tdm_pixels *sheet, const tdm_shape *shape, int64_t index, const unsigned char *planes) {
    const int64_t channels = shape->dim[0], height = shape->dim[1], width = shape->dim[2];
    const int64_t left = GAP + index % COLUMNS * (width + GAP), top = GAP + index / COLUMNS * (height + GAP);
    for (int64_t y = 0; y < height; y++) {
        unsigned char *to = sheet->data + ((top + y) * sheet->width + left) * 3;
        for (int64_t x = 0; x < width; x++) {
            for (int64_t c = 0; c < 3; c++) *to++ = planes[(channels == 3 ? c : 0) * height * width + y * width + x];
        }
    }
}

static tdm_status fill(const tdm_dataset *dataset, int64_t count, const tdm_pixels *sheet) {
    tdm_status status = TDM_OK;
    tdm_sample_reader reader;
    unsigned char *planes = NULL;
    int64_t label;
    TDM_TRY(tdm__sample_reader_open(&reader, dataset));
    TDM_TRY_DONE(tdm__new(dataset->host, &planes, tdm__dataset_x_bytes(dataset), 1, "sample"));
    for (int64_t i = 0; i < count; i++) { /* spread evenly over the data */
        const int64_t index = dataset->count * i / count;
        status = tdm__sample_read(&reader, index, planes, &label);
        if (status == TDM_OK) draw_sample(sheet, &dataset->x_shape, i, planes);
        if (status == TDM_E_DATA) status = TDM_OK; /* its square stays white: `check` has named it */
        TDM_TRY_DONE(status);
    }
done:
    tdm__delete(dataset->host, planes);
    tdm__sample_reader_close(&reader);
    return status;
}

static tdm_status write_sheet(const tdm_dataset *dataset, const tdm_image_ops *codec, const char *path) {
    const tdm_shape *shape = &dataset->x_shape;
    const int64_t count = dataset->count < COLUMNS * ROWS ? dataset->count : COLUMNS * ROWS;
    const int64_t columns = count < COLUMNS ? count : COLUMNS, rows = (count + COLUMNS - 1) / COLUMNS;
    tdm_pixels sheet = {.width = (int)(GAP + columns * (shape->dim[2] + GAP)),
                        .height = (int)(GAP + rows * (shape->dim[1] + GAP)),
                        .channels = 3};
    const size_t bytes = (size_t)sheet.width * (size_t)sheet.height * 3;
    tdm_status status;
    TDM_TRY_DONE(tdm__new(dataset->host, &sheet.data, bytes, 1, "contact sheet"));
    memset(sheet.data, 255, bytes);
    TDM_TRY_DONE(fill(dataset, count, &sheet));
    TDM_TRY_DONE(tdm__codec_write(codec, dataset->host, &sheet, path));
done:
    tdm__delete(dataset->host, sheet.data);
    return status;
}

tdm_status tdm_data_sheet(const tdm_host *host, const tdm_data_spec *spec, const tdm_data_use *use, const char *path) {
    const tdm_image_ops *codec;
    tdm_data_wanted wanted;
    tdm_dataset *dataset;
    if (spec == NULL || path == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_data_sheet: spec or path is NULL");
    TDM_EXTRA(PICTURES);
    TDM_TRY(tdm__host_take(&host));
    TDM_TRY(tdm__data_wanted_from(use, &wanted));
    TDM_TRY(tdm__codec_open(&codec, host, NULL));
    TDM_TRY(tdm__dataset_open(&dataset, host, spec, &wanted));
    const tdm_shape *shape = &dataset->x_shape;
    tdm_status status;
    if (!dataset->x_is_bytes || shape->ndim != 3 || (shape->dim[0] != 1 && shape->dim[0] != 3) ||
        shape->dim[1] > SIDE_MAX || shape->dim[2] > SIDE_MAX)
        status = tdm__fail(TDM_E_DATA, __FILE__, __LINE__, NULL,
                           "a contact sheet shows pictures of 1 or 3 channels and at most %d pixels a side", SIDE_MAX);
    else
        status = write_sheet(dataset, codec, path);
    tdm__dataset_close(dataset);
    return status;
}
