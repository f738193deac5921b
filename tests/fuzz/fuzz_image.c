/* Pictures from hostile hands: nothing crashes, limits hold, a part has the pixels that the whole has there, and what
 * was read survives being written and read again. Byte 0: its lowest bit is grey, the next two the reduction. Bytes 1
 * to 4: which part. */
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

enum { MOST_PIXELS = 1 << 16, MOST_WRITTEN = 1 << 20, CANARY = 0xa5, SPARE = 16, HEAD = 5, SMALL = 64 * 64 };

static unsigned char room[2][3 * MOST_PIXELS + SPARE], written[MOST_WRITTEN];

/* One decoding. */
typedef struct wanted {
    const uint8_t *head; /* which part; NULL: all */
    unsigned char *to;
    tdm_image_window window; /* what was asked for */
    tdm_pixels pixels;
} wanted;

static tdm_status take(void *user, tdm_pixels *pixels, size_t bytes) {
    const wanted *w = user;
    MUST(bytes <= 3 * MOST_PIXELS);
    pixels->data = w->to;
    pixels->room = bytes;
    memset(pixels->data + bytes, CANARY, SPARE);
    return TDM_OK;
}

static void choose(void *user, int width, int height, int most, tdm_image_window *out) {
    wanted *w = user;
    MUST(width > 0 && height > 0 && (most == 1 || most == 8));
    int reduce = 1 << (w->head[0] >> 1 & 3);
    if (reduce > most) reduce = most;
    const int columns = (width + reduce - 1) / reduce, rows = (height + reduce - 1) / reduce;
    *out = (tdm_image_window){.reduce = reduce, .x = w->head[1] % columns, .y = w->head[2] % rows};
    out->width = 1 + w->head[3] % (columns - out->x);
    out->height = 1 + w->head[4] % (rows - out->y);
    w->window = *out;
}

static tdm_status decode(const void *bytes, size_t count, int channels, wanted *w) {
    const tdm_image_decode call = {.bytes = bytes,
                                   .count = count,
                                   .host = tdm_host_default(),
                                   .channels = channels,
                                   .limits = {.pixels = MOST_PIXELS, .scans = 20, .memory = (size_t)8 << 20},
                                   .room = take,
                                   .window = w->head != NULL ? choose : NULL,
                                   .user = w};
    w->pixels = (tdm_pixels){0};
    const tdm_status status = tdm_module_v1.image->decode(&call, &w->pixels);
    MUST(status == TDM_OK || (status == TDM_E_DATA && tdm_error_message()[0] != '\0'));
    if (status != TDM_OK) return status;
    const tdm_pixels *p = &w->pixels;
    MUST(p->width > 0 && p->height > 0 && p->channels == channels && p->data == w->to);
    MUST((size_t)p->width * (size_t)p->height * (size_t)channels <= p->room);
    for (int i = 0; i < SPARE; i++) MUST(w->to[p->room + (size_t)i] == CANARY);
    return status;
}

/* Both have the same channels. */
static void check_part(const wanted *part, const tdm_pixels *whole) {
    const tdm_image_window *at = &part->window;
    const size_t pixel = (size_t)whole->channels, row = (size_t)at->width * pixel;
    MUST(at->x + at->width <= whole->width && at->y + at->height <= whole->height);
    for (int y = 0; y < at->height; y++) {
        const size_t from = ((size_t)(at->y + y) * (size_t)whole->width + (size_t)at->x) * pixel;
        MUST(memcmp(part->pixels.data + (size_t)y * row, whole->data + from, row) == 0);
    }
}

static tdm_status keep(void *user, const void *bytes, size_t count) {
    size_t *used = user;
    MUST(count <= MOST_WRITTEN - *used);
    memcpy(written + *used, bytes, count);
    *used += count;
    return TDM_OK;
}

static void check_written(const tdm_pixels *pixels) {
    const size_t count = (size_t)pixels->width * (size_t)pixels->height * (size_t)pixels->channels;
    size_t used = 0;
    wanted back = {.to = room[1]};
    MUST(tdm_module_v1.image->encode(tdm_host_default(), pixels, keep, &used) == TDM_OK);
    MUST(decode(written, used, pixels->channels, &back) == TDM_OK);
    MUST(back.pixels.width == pixels->width && back.pixels.height == pixels->height);
    MUST(memcmp(back.pixels.data, pixels->data, count) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < HEAD) return 0;
    const uint8_t *bytes = data + HEAD;
    const size_t count = size - HEAD;
    const int channels = (data[0] & 1) != 0 ? 1 : 3;
    tdm_image_info info;
    wanted part = {.head = data, .to = room[0]}, whole = {.to = room[1]};
    tdm_module_v1.init(&tdm__host_calls);
    const tdm_status probed = tdm_module_v1.image->probe(tdm_host_default(), bytes, count, &info);
    MUST(probed == TDM_OK || (probed == TDM_E_DATA && tdm_error_message()[0] != '\0'));
    if (probed == TDM_OK) MUST(info.width > 0 && info.height > 0 && info.orientation >= 1 && info.orientation <= 8);
    if (decode(bytes, count, channels, &part) != TDM_OK) return 0;
    MUST(probed == TDM_OK && part.pixels.width == part.window.width && part.pixels.height == part.window.height);
    if (part.window.reduce == 1 && decode(bytes, count, channels, &whole) == TDM_OK) check_part(&part, &whole.pixels);
    if (part.pixels.width * part.pixels.height <= SMALL) check_written(&part.pixels);
    return 0;
}
