/* tandem/sys/image.h - what a module that reads and writes pictures offers.
 *
 * Pixels are what Pillow gives for Image.open(file).convert("RGB"), or "L", turned as the file's Exif orientation says.
 */
#ifndef TANDEM_SYS_IMAGE_H
#define TANDEM_SYS_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include <tandem/host.h>

TDM_BEGIN_DECLS

/* `height` rows of `width` pixels of `channels` bytes: 1 grey, 3 red, green, blue. */
typedef struct tdm_pixels {
    int width, height, channels;
    unsigned char *data;
    size_t room; /* bytes at `data` */
} tdm_pixels;

/* Makes room for `bytes` bytes at pixels->data; what was there is lost. Called before anything is decoded. */
typedef tdm_status tdm_pixels_room(void *user, tdm_pixels *pixels, size_t bytes);

/* Beyond one of them a file is refused before memory is taken for it. */
typedef struct tdm_image_limits {
    int64_t pixels; /* width x height as stored */
    int scans;      /* of a progressive JPEG: each goes over all pixels */
    size_t memory;  /* bytes that a decoder keeps beside the pixels */
} tdm_image_limits;

typedef struct tdm_image_info {
    const char *format; /* "JPEG", "PNG" */
    int width, height;  /* as stored, before the orientation */
    int orientation;    /* Exif: 1 to 8; 1 if the file says nothing */
} tdm_image_info;

/* A part of a picture that is reduced first: to 1 / `reduce` of its size, rounded up. Pixels of the reduced picture. */
typedef struct tdm_image_window {
    int reduce; /* 1, 2, 4 or 8 */
    int x, y, width, height;
} tdm_image_window;

typedef struct tdm_image_decode {
    const void *bytes; /* the whole file */
    size_t count;
    const tdm_host *host; /* memory for what is not the pixels */
    int channels;         /* wanted: 1 or 3 */
    tdm_image_limits limits;
    tdm_pixels_room *room;
    /* Told the size of the picture after turning, and by how much it can be reduced at most (1: a PNG), it sets what is
     * to be decoded, inside the picture. Without reducing, the pixels are those that the whole picture has there. What
     * lies below the window may not be read at all. NULL: everything, in full size. */
    void (*window)(void *user, int width, int height, int most, tdm_image_window *out);
    void *user; /* passed to `room` and `window` */
} tdm_image_decode;

/* All may be called from several threads at once, and take memory from the host (libjpeg takes its own). What is wrong
 * with a file is TDM_E_DATA, with a clause without the file's name: "a JPEG that is cut off". */
typedef struct tdm_image_ops {
    /* Reads the header alone. */
    tdm_status (*probe)(const tdm_host *host, const void *bytes, size_t count, tdm_image_info *out);
    tdm_status (*decode)(const tdm_image_decode *call, tdm_pixels *out);
    /* Writes a PNG file by calls of `write`; the same pixels give the same bytes. */
    tdm_status (*encode)(const tdm_host *host, const tdm_pixels *pixels,
                         tdm_status (*write)(void *user, const void *bytes, size_t count), void *user);
} tdm_image_ops;

TDM_END_DECLS
#endif
