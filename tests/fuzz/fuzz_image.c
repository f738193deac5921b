/* Pictures from hostile hands: nothing crashes, limits hold, a picture is whole, and it survives being written and read
 * again. Byte 0 says how the rest is read: its lowest bit grey, the next three how small it may be. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tandem/sys/module.h>

#include "runtime/image/codec.h"
#include "runtime/module/module.h"

#define MUST(condition)                                  \
    do {                                                 \
        if (!(condition)) {                              \
            fprintf(stderr, "broken: %s\n", #condition); \
            abort();                                     \
        }                                                \
    } while (0)

TDM_API extern const tdm_module tdm_module_v1; /* the module's files are linked in */

enum { MOST_PIXELS = 1 << 16, MOST_WRITTEN = 1 << 20, CANARY = 0xa5, SPARE = 16 };

static unsigned char room[3 * MOST_PIXELS + SPARE], again[3 * MOST_PIXELS + SPARE], written[MOST_WRITTEN];

static tdm_status take(void *user, tdm_pixels *pixels, size_t bytes) {
    MUST(bytes <= 3 * MOST_PIXELS);
    pixels->data = user;
    pixels->room = bytes;
    memset(pixels->data + bytes, CANARY, SPARE);
    return TDM_OK;
}

static tdm_status keep(void *user, const void *bytes, size_t count) {
    size_t *used = user;
    MUST(count <= MOST_WRITTEN - *used);
    memcpy(written + *used, bytes, count);
    *used += count;
    return TDM_OK;
}

static tdm_status decode(const void *bytes, size_t count, int channels, int least, unsigned char *to, tdm_pixels *out) {
    const tdm_image_decode call = {.bytes = bytes,
                                   .count = count,
                                   .channels = channels,
                                   .least_width = least,
                                   .least_height = least,
                                   .limits = {.pixels = MOST_PIXELS, .scans = 20, .memory = (size_t)8 << 20},
                                   .room = take,
                                   .user = to};
    *out = (tdm_pixels){0};
    return tdm_module_v1.image->decode(&call, out);
}

static void check(const tdm_pixels *pixels, int channels, const unsigned char *to) {
    const size_t count = (size_t)pixels->width * (size_t)pixels->height * (size_t)channels;
    MUST(pixels->width > 0 && pixels->height > 0 && pixels->channels == channels);
    MUST(pixels->data == to && count <= pixels->room);
    for (int i = 0; i < SPARE; i++) MUST(to[pixels->room + (size_t)i] == CANARY);
}

static void check_written(const tdm_pixels *pixels) {
    const size_t count = (size_t)pixels->width * (size_t)pixels->height * (size_t)pixels->channels;
    size_t used = 0;
    tdm_pixels back;
    MUST(tdm_module_v1.image->encode(pixels, keep, &used) == TDM_OK);
    MUST(decode(written, used, pixels->channels, 0, again, &back) == TDM_OK);
    MUST(back.width == pixels->width && back.height == pixels->height);
    MUST(memcmp(back.data, pixels->data, count) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const int channels = (data[0] & 1) != 0 ? 1 : 3, least = (data[0] >> 1 & 7) * 16;
    tdm_module_v1.init(&tdm__host_calls);
    tdm_image_info info;
    tdm_pixels pixels;
    const tdm_status probed = tdm_module_v1.image->probe(data + 1, size - 1, &info);
    MUST(probed == TDM_OK || (probed == TDM_E_DATA && tdm_error_message()[0] != '\0'));
    if (probed == TDM_OK) MUST(info.width > 0 && info.height > 0 && info.orientation >= 1 && info.orientation <= 8);
    const tdm_status decoded = decode(data + 1, size - 1, channels, least, room, &pixels);
    MUST(decoded == TDM_OK || (decoded == TDM_E_DATA && tdm_error_message()[0] != '\0'));
    if (decoded != TDM_OK) return 0;
    MUST(probed == TDM_OK);
    check(&pixels, channels, room);
    if (pixels.width * pixels.height <= 64 * 64) check_written(&pixels);
    return 0;
}
