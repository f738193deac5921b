/* Reading one picture of a list. */
#ifndef TDM_DATA_PICTURES_PICTURE_FILE_H
#define TDM_DATA_PICTURES_PICTURE_FILE_H

#include "runtime/data/pictures/picture_list.h"
#include "runtime/data/transforms/transforms.h"

/* The bytes of a file, kept from one picture to the next. */
typedef struct tdm_file_bytes {
    unsigned char *data;
    size_t room;
} tdm_file_bytes;

/* Reads a whole open file. TDM_E_DATA, without the file's name, if it is too large for a picture. */
tdm_status tdm__file_take(int fd, const char *path, const tdm_host *host, tdm_file_bytes *memory, uint64_t count);
/* How a picture is decoded. */
typedef struct tdm_picture_call {
    const tdm_image_ops *codec;
    int channels;                   /* 1 or 3 */
    const tdm_transform_spec *spec; /* its steps are done, the first crops and resize on the way; NULL: none */
    tdm_picture_key key;
} tdm_picture_call;
/* Decodes a file of `count` bytes into the canvas, and does the steps. TDM_E_DATA does not name the file. */
tdm_status tdm__picture_decode(const tdm_picture_call *call, const void *bytes, size_t count, tdm_canvas *canvas);
/* The same with picture `index`. TDM_E_DATA names the file. Several threads may read a list, each with memory
 * of its own. */
tdm_status tdm__picture_read(const tdm_picture_call *call, const tdm_picture_list *list, int64_t index,
                             tdm_file_bytes *memory, tdm_canvas *canvas);
/* The size of its file; -1: it cannot be opened. */
int64_t tdm__picture_bytes(const tdm_picture_list *list, int64_t index);
/* Only the file's header. */
tdm_status tdm__picture_probe(const tdm_image_ops *codec, const tdm_picture_list *list, int64_t index,
                              tdm_file_bytes *memory, tdm_image_info *out);

#endif
