/* Decoded rows on their way to the output: colours as Pillow converts them, and the turn that the orientation asks for.
 */
#include <string.h>

#include "runtime/backends/image/image.h"

tdm_status tdm__image_check_size(const tdm_image_limits *limits, int64_t width, int64_t height) {
    if (width < 1 || height < 1)
        TDM_MODULE_FAIL(TDM_E_DATA, "a picture of %lld x %lld pixels", (long long)width, (long long)height);
    if (width > limits->pixels / height)
        TDM_MODULE_FAIL(TDM_E_DATA, "a picture of %lld x %lld pixels; at most %lld pixels are read", (long long)width,
                        (long long)height, (long long)limits->pixels);
    return TDM_OK;
}

/* Exif: where the stored picture's rows and columns go, by the orientation's number minus 1. */
static const struct {
    bool transpose, flip_x, flip_y;
} turns[8] = {{0, 0, 0}, {0, 1, 0}, {0, 1, 1}, {0, 0, 1}, {1, 0, 0}, {1, 1, 0}, {1, 1, 1}, {1, 0, 1}};

/* From the turned picture back to the stored one. */
static void turn_back(tdm_turn *turn, tdm_image_window window, int width, int height) {
    const int i = turn->orientation - 1;
    if (turns[i].flip_x) window.x = width - window.x - window.width;
    if (turns[i].flip_y) window.y = height - window.y - window.height;
    turn->x = turns[i].transpose ? window.y : window.x;
    turn->y = turns[i].transpose ? window.x : window.y;
    turn->width = turns[i].transpose ? window.height : window.width;
    turn->height = turns[i].transpose ? window.width : window.height;
}

tdm_status tdm__turn_begin(tdm_turn *turn, const tdm_image_decode *call, tdm_pixels *out, int width, int height,
                           int orientation, int most) {
    const bool on_side = turns[orientation - 1].transpose;
    TDM_MODULE_TRY(tdm__image_check_size(&call->limits, width, height));
    const int turned_width = on_side ? height : width, turned_height = on_side ? width : height;
    tdm_image_window window = {.reduce = 1, .width = turned_width, .height = turned_height};
    if (call->window != NULL) call->window(call->user, turned_width, turned_height, most, &window);
    const int last = window.reduce - 1;
    *turn = (tdm_turn){.out = out, .orientation = orientation, .reduce = window.reduce};
    turn_back(turn, window, (turned_width + last) / window.reduce, (turned_height + last) / window.reduce);
    out->width = window.width;
    out->height = window.height;
    out->channels = call->channels;
    return call->room(call->user, out, (size_t)out->width * (size_t)out->height * (size_t)out->channels);
}

/* As Pillow's MULDIV255: a * b / 255, rounded. */
static int product(int a, int b) {
    const int t = a * b + 128;
    return ((t >> 8) + t) >> 8;
}

static void colour_of(const unsigned char *in, int channels, unsigned char rgb[3]) {
    const int light = channels == 4 ? 255 - in[3] : 0;
    for (int c = 0; c < 3; c++) {
        const int value = channels == 4 ? light - product(in[c], light) : in[channels == 1 ? 0 : c];
        rgb[c] = (unsigned char)(value < 0 ? 0 : value);
    }
}

static void store(unsigned char *to, int wanted, const unsigned char *in, int channels) {
    unsigned char rgb[3];
    if (wanted == channels) {
        for (int c = 0; c < channels; c++) to[c] = in[c];
        return;
    }
    colour_of(in, channels, rgb);
    if (wanted == 1) /* ITU-R 601-2, as Pillow's convert("L") */
        to[0] = (unsigned char)((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
    else
        for (int c = 0; c < 3; c++) to[c] = rgb[c];
}

unsigned char *tdm__turn_target(const tdm_turn *turn, int y, int channels) {
    const tdm_pixels *out = turn->out;
    if (turn->orientation != 1 || channels != out->channels) return NULL;
    return out->data + (size_t)(y - turn->y) * (size_t)out->width * (size_t)channels;
}

void tdm__turn_row(const tdm_turn *turn, int y, const unsigned char *row, int channels) {
    const tdm_pixels *out = turn->out;
    unsigned char *same = tdm__turn_target(turn, y, channels);
    const bool transpose = turns[turn->orientation - 1].transpose;
    const bool flip_x = turns[turn->orientation - 1].flip_x, flip_y = turns[turn->orientation - 1].flip_y;
    y -= turn->y;
    if (same != NULL) {
        memcpy(same, row, (size_t)turn->width * (size_t)channels);
        return;
    }
    for (int x = 0; x < turn->width; x++) {
        int to_x = transpose ? y : x, to_y = transpose ? x : y;
        if (flip_x) to_x = out->width - 1 - to_x;
        if (flip_y) to_y = out->height - 1 - to_y;
        store(out->data + ((size_t)to_y * (size_t)out->width + (size_t)to_x) * (size_t)out->channels, out->channels,
              row + (size_t)x * (size_t)channels, channels);
    }
}
