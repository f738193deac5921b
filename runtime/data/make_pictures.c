/* Writes drawn digits as PNG files, a folder for each digit. */
#include "runtime/data/make_pictures.h"

#include <stdio.h>

#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/base/system/file.h"
#include "runtime/image/codec.h"

enum { SIDE = 32, DIGITS = 10, MOST = 1000000 };

static const char *const names[DIGITS] = {"zero", "one", "two",   "three", "four",
                                          "five", "six", "seven", "eight", "nine"};

static tdm_status write_picture(const tdm_host *host, const tdm_image_ops *codec, const char *folder, int64_t index,
                                int64_t label, const tdm_pixels *pixels) {
    tdm_zone zone;
    const char *path;
    tdm__zone_init(&zone, host);
    tdm_status status = tdm__zone_printf(&zone, &path, "%s/%s/%06lld.png", folder, names[label], (long long)index);
    if (status == TDM_OK) status = tdm__codec_write(codec, host, pixels, path);
    tdm__zone_deinit(&zone);
    return status;
}

static tdm_status write_all(const tdm_host *host, const tdm_image_ops *codec, const tdm_dataset *glyphs,
                            const char *folder) {
    unsigned char planes[3 * SIDE * SIDE], data[3 * SIDE * SIDE];
    const tdm_pixels pixels = {.width = SIDE, .height = SIDE, .channels = 3, .data = data};
    for (int64_t i = 0; i < glyphs->count; i++) {
        int64_t label;
        TDM_TRY(tdm__dataset_read(glyphs, i, planes, &label));
        for (int p = 0; p < SIDE * SIDE; p++) {
            for (int c = 0; c < 3; c++) data[3 * p + c] = planes[c * SIDE * SIDE + p];
        }
        TDM_TRY(write_picture(host, codec, folder, i, label, &pixels));
    }
    return TDM_OK;
}

static tdm_status make_folders(const tdm_host *host, const char *folder) {
    tdm_status status = TDM_OK;
    tdm_zone zone;
    tdm__zone_init(&zone, host);
    for (int i = 0; i < DIGITS && status == TDM_OK; i++) {
        const char *path;
        status = tdm__zone_printf(&zone, &path, "%s/%s", folder, names[i]);
        if (status == TDM_OK) status = tdm__folder_make(host, &tdm__file_system, path);
    }
    tdm__zone_deinit(&zone);
    return status;
}

tdm_status tdm__make_pictures(const tdm_host *host, const char *folder, int64_t samples, int64_t seed) {
    TDM_EXTRA(PICTURES);
    const tdm_data_spec spec = {.format = TDM_DATA_GLYPHS, .samples = samples, .seed = seed, .noise = 0.1};
    const tdm_data_wanted wanted = {.input = {3, {3, SIDE, SIDE}}, .ignore_index = INT64_MIN};
    const tdm_image_ops *codec;
    tdm_dataset *glyphs;
    if (samples < 1 || samples > MOST)
        TDM_FAIL(TDM_E_USAGE, "data make: samples must be 1 to %d, got %lld", MOST, (long long)samples);
    TDM_TRY(tdm__codec_open(&codec, host, NULL));
    TDM_TRY(tdm__dataset_open(&glyphs, host, &spec, &wanted));
    tdm_status status = make_folders(host, folder);
    if (status == TDM_OK) status = write_all(host, codec, glyphs, folder);
    tdm__dataset_close(glyphs);
    return status;
}
