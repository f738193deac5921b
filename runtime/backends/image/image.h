/* What the files of this module share. */
#ifndef TDM_IMAGE_IMAGE_H
#define TDM_IMAGE_IMAGE_H

#include <stdbool.h>

#include <tandem/sys/image.h>

#include "runtime/backends/kit/module_host.h"

/* The value of the orientation's tag in Exif data (which begins with the byte order); 1 if there is none. */
int tdm__exif_orientation(const unsigned char *bytes, size_t count);

/* Pixels are decoded row by row, and turned on the way. */
typedef struct tdm_turn {
    const tdm_pixels *out;
    int orientation;
    int reduce;              /* as call->window wants it */
    int x, y, width, height; /* the window, in the reduced picture as it is stored */
} tdm_turn;
/* Checks the limits and asks for the window of a stored picture of width x height, which can be reduced `most` times;
 * sets out's size, and makes room. */
tdm_status tdm__turn_begin(tdm_turn *turn, const tdm_image_decode *call, tdm_pixels *out, int width, int height,
                           int orientation, int most);
/* Stores the window's part of row `y` of the stored picture: turn->width pixels of `channels` bytes (1, 3, or 4 for
 * CMYK), which become the channels of the output. */
void tdm__turn_row(const tdm_turn *turn, int y, const unsigned char *row, int channels);
/* Where tdm__turn_row would only copy: where row `y` lies in the output; else NULL. */
unsigned char *tdm__turn_target(const tdm_turn *turn, int y, int channels);
/* TDM_E_DATA if a picture has too many pixels. */
tdm_status tdm__image_check_size(const tdm_image_limits *limits, int64_t width, int64_t height);

tdm_status tdm__jpeg_probe(const void *bytes, size_t count, tdm_image_info *out);
tdm_status tdm__jpeg_decode(const tdm_image_decode *call, tdm_pixels *out);
tdm_status tdm__png_probe(const tdm_host *host, const void *bytes, size_t count, tdm_image_info *out);
tdm_status tdm__png_decode(const tdm_image_decode *call, tdm_pixels *out);
tdm_status tdm__png_encode(const tdm_host *host, const tdm_pixels *pixels,
                           tdm_status (*write)(void *user, const void *bytes, size_t count), void *user);

#endif
