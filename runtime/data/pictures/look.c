/* A look at a folder of pictures, see look.h. */
#include "runtime/data/pictures/look.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/base/status.h"
#include "runtime/data/pictures/picture_file.h"
#include "runtime/image/codec.h"

enum { MOST = 200, SIDE = 32 };

typedef struct look {
    tdm_picture_list list;
    const tdm_image_ops *codec;
    tdm_file_bytes file;
    tdm_canvas canvas;
    int sides[MOST], count;
    double sum[3], squares[3], pixels;
} look;

static void add_pixels(look *l) {
    const tdm_pixels *now = &l->canvas.now;
    const size_t bytes = tdm__pixels_bytes(now);
    for (size_t i = 0; i < bytes; i++) {
        const double value = now->data[i] / 255.0;
        l->sum[i % 3] += value;
        l->squares[i % 3] += value * value;
    }
    l->pixels += (double)(bytes / 3);
}

static tdm_status look_at(look *l, int64_t index) {
    const tdm_transform_spec spec = {
        .step = {{.kind = TDM_TRANSFORM_RESIZE, .size = TDM_INT_NULL, .height = SIDE, .width = SIDE}}, .step_count = 1};
    const tdm_picture_call call = {.codec = l->codec, .channels = 3, .spec = &spec};
    tdm_image_info info;
    TDM_TRY(tdm__picture_probe(l->codec, &l->list, index, &l->file, &info));
    TDM_TRY(tdm__picture_read(&call, &l->list, index, &l->file, &l->canvas));
    l->sides[l->count++] = info.width < info.height ? info.width : info.height;
    add_pixels(l);
    return TDM_OK;
}

static int by_number(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

static tdm_status look_at_some(look *l, const char *folder, tdm_pictures_seen *out) {
    TDM_TRY(tdm__codec_open(&l->codec, l->list.host, NULL));
    if (l->list.class_count < 2)
        TDM_FAIL(TDM_E_DATA, "'%s' has %s; it needs a folder for each of at least two classes", folder,
                 l->list.class_count == 1 ? "one class folder only" : "no class folders");
    if (l->list.count < TDM_LOOK_LEAST)
        TDM_FAIL(TDM_E_DATA, "'%s' has %lld pictures; to train and to test there must be at least %d", folder,
                 (long long)l->list.count, TDM_LOOK_LEAST);
    const int64_t some = l->list.count < MOST ? l->list.count : MOST;
    for (int64_t i = 0; i < some; i++) {
        const tdm_status status = look_at(l, l->list.count * i / some);
        if (status != TDM_OK && status != TDM_E_DATA) return status;
    }
    if (l->count == 0) TDM_FAIL(TDM_E_DATA, "'%s': no picture could be read, last %s", folder, tdm_error_message());
    qsort(l->sides, (size_t)l->count, sizeof(l->sides[0]), by_number);
    *out = (tdm_pictures_seen){
        .pictures = l->list.count, .classes = l->list.class_count, .short_side = l->sides[l->count / 2]};
    for (int c = 0; c < 3; c++) {
        const double mean = l->sum[c] / l->pixels, variance = l->squares[c] / l->pixels - mean * mean;
        out->mean[c] = mean;
        out->stdev[c] = sqrt(variance > 1e-4 ? variance : 1e-4);
    }
    return TDM_OK;
}

tdm_status tdm__pictures_look(const tdm_host *host, const char *folder, tdm_pictures_seen *out) {
    look *l;
    TDM_TRY(tdm__new(host, &l, 1, sizeof(*l), "pictures"));
    tdm__canvas_init(&l->canvas, host);
    tdm_status status = tdm__picture_list_open(&l->list, host, folder);
    if (status == TDM_OK) status = look_at_some(l, folder, out);
    tdm__picture_list_close(&l->list);
    tdm__canvas_deinit(&l->canvas);
    tdm__delete(host, l->file.data);
    tdm__delete(host, l);
    return status;
}
