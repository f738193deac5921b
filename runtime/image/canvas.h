/* A picture that is worked on, and its memory, which is kept from one picture to the next. Bytes, rows of pixels.
 *
 * Every operation replaces the picture by its result, and gives the bytes that Pillow 13 gives (for `L` and `RGB`), and
 * so those of torchvision's transforms on PIL images. One thread at a time. */
#ifndef TDM_IMAGE_CANVAS_H
#define TDM_IMAGE_CANVAS_H

#include <stdbool.h>

#include <tandem/host.h>
#include <tandem/sys/image.h>

#include "runtime/base/memory.h"

/* The longest side. */
enum { TDM_CANVAS_SIDE_MAX = 1 << 20 };

typedef struct tdm_box {
    int64_t x, y, width, height;
} tdm_box;

/* Crops and a resize, known before the picture is decoded, so that only what they need is decoded and computed. */
typedef struct tdm_framing {
    bool is_open; /* the canvas has a size and no pixels: crop and resize are written down here */
    bool is_resized;
    tdm_box picture;       /* all of it */
    tdm_box part;          /* of the picture, which is resized */
    int64_t width, height; /* to this */
    tdm_box result;        /* of what it is resized to; without a resize, of the picture */
    tdm_box window;        /* what is decoded, in pixels of the reduced picture */
    int reduce;
} tdm_framing;

typedef struct tdm_canvas {
    const tdm_host *host;
    tdm_framing framing;
    int steps_done;   /* of data.transform, by the framing */
    tdm_pixels now;   /* the picture */
    tdm_pixels other; /* where an operation puts its result */
    tdm_pixels work;  /* of resize; only `data` and `room` */
    int *coefficients;
    size_t coefficient_room;
} tdm_canvas;

void tdm__canvas_init(tdm_canvas *canvas, const tdm_host *host);
void tdm__canvas_deinit(tdm_canvas *canvas);
/* What a tdm_pixels_room does. Vectors may read 64 bytes beyond `bytes`. */
tdm_status tdm__pixels_room(const tdm_host *host, tdm_pixels *pixels, size_t bytes);
/* The picture becomes that of planes of bytes; `size` is channels, height, width. */
tdm_status tdm__canvas_take_planes(tdm_canvas *canvas, const int64_t size[3], const unsigned char *planes);
/* Sets the size of canvas->other and makes room. */
tdm_status tdm__canvas_other(tdm_canvas *canvas, int64_t width, int64_t height);
/* canvas->other becomes the picture. */
void tdm__canvas_swap(tdm_canvas *canvas);
static inline size_t tdm__pixels_bytes(const tdm_pixels *pixels) {
    return (size_t)pixels->width * (size_t)pixels->height * (size_t)pixels->channels;
}

/* A framing: between open and window, crop and resize change only the picture's size, and fail with TDM_E_UNSUPPORTED
 * if the framing cannot express them: a crop that reaches beyond the picture, a second resize. `window` closes it and
 * says what to decode, reduced to no less than twice the size that it gets and at most `most` times. When the window
 * lies in the canvas, `finish` does what was written down. Without reducing, pixels are those of the same operations
 * one after the other. */
void tdm__framing_open(tdm_canvas *canvas, int width, int height);
tdm_status tdm__framing_crop(tdm_canvas *canvas, int64_t x, int64_t y, int64_t width, int64_t height);
tdm_status tdm__framing_resize(tdm_canvas *canvas, int width, int height);
void tdm__framing_window(tdm_canvas *canvas, int most, tdm_image_window *out);
tdm_status tdm__framing_finish(tdm_canvas *canvas);

/* Image.resize, BILINEAR: each pixel is the mean of those that it covers, weighted with a triangle. */
tdm_status tdm__canvas_resize(tdm_canvas *canvas, int width, int height);
/* Image.crop: what lies outside is black. */
tdm_status tdm__canvas_crop(tdm_canvas *canvas, int64_t x, int64_t y, int64_t width, int64_t height);
void tdm__canvas_flip(tdm_canvas *canvas); /* left and right */
/* Image.rotate, NEAREST: counterclockwise, about the centre, in the same frame. */
tdm_status tdm__canvas_rotate(tdm_canvas *canvas, double degrees);
/* Image.transform, AFFINE, NEAREST: output (x, y) is input (m0 x + m1 y + m2, m3 x + m4 y + m5). */
tdm_status tdm__canvas_affine(tdm_canvas *canvas, const double matrix[6]);

/* ImageEnhance's Brightness, Contrast, Color and Sharpness. */
void tdm__canvas_brightness(tdm_canvas *canvas, float factor);
void tdm__canvas_contrast(tdm_canvas *canvas, float factor);
void tdm__canvas_saturation(tdm_canvas *canvas, float factor);
tdm_status tdm__canvas_sharpness(tdm_canvas *canvas, float factor);
/* torchvision's adjust_hue: `turn` is a fraction of the circle, -0.5 to 0.5. */
void tdm__canvas_hue(tdm_canvas *canvas, double turn);
/* torchvision's Grayscale: as many channels as before, all the same. */
void tdm__canvas_gray(tdm_canvas *canvas);

/* ImageOps' functions of these names. */
void tdm__canvas_posterize(tdm_canvas *canvas, int bits);
void tdm__canvas_solarize(tdm_canvas *canvas, int threshold);
void tdm__canvas_autocontrast(tdm_canvas *canvas);
void tdm__canvas_equalize(tdm_canvas *canvas);

/* Fills a rectangle inside the picture. */
void tdm__canvas_erase(tdm_canvas *canvas, int x, int y, int width, int height, const unsigned char value[3]);
/* Puts the channels one after the other, as models read them: out[channel][row][column]. */
void tdm__canvas_planes(const tdm_canvas *canvas, unsigned char *out);

#endif
