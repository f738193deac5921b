/* A picture that is worked on, and its memory, which is kept from one picture to the next. Bytes, rows of pixels.
 *
 * Every operation replaces the picture by its result, and gives the bytes that Pillow 13 gives (for `L` and `RGB`), so
 * that of torchvision's transforms on PIL images. One thread at a time. */
#ifndef TDM_IMAGE_CANVAS_H
#define TDM_IMAGE_CANVAS_H

#include <stdbool.h>

#include <tandem/host.h>
#include <tandem/sys/image.h>

#include "runtime/base/memory.h"

/* The longest side. */
enum { TDM_CANVAS_SIDE_MAX = 1 << 20 };

typedef struct tdm_canvas {
    const tdm_host *host;
    tdm_pixels now;   /* the picture */
    tdm_pixels other; /* where an operation puts its result */
    tdm_pixels work;  /* of resize; only `data` and `room` */
    int *coefficients;
    size_t coefficient_room;
} tdm_canvas;

void tdm__canvas_init(tdm_canvas *canvas, const tdm_host *host);
void tdm__canvas_deinit(tdm_canvas *canvas);
/* A tdm_pixels_room with a tdm_host as its user. Vectors may read 16 bytes beyond `bytes`. */
tdm_status tdm__pixels_room(void *host, tdm_pixels *pixels, size_t bytes);
/* Sets the size of canvas->other and makes room. */
tdm_status tdm__canvas_other(tdm_canvas *canvas, int64_t width, int64_t height);
/* canvas->other becomes the picture. */
void tdm__canvas_swap(tdm_canvas *canvas);
static inline size_t tdm__pixels_bytes(const tdm_pixels *pixels) {
    return (size_t)pixels->width * (size_t)pixels->height * (size_t)pixels->channels;
}

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
void tdm__canvas_grey(tdm_canvas *canvas);

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
