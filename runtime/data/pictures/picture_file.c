/* Reading one picture, see picture_file.h. */
#include "runtime/data/pictures/picture_file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/status.h"
#include "runtime/base/system/beneath.h"
#include "runtime/image/codec.h"

enum { FILE_MAX = 256 << 20 };

static tdm_status cannot_open(int error) {
    switch (error) {
    case EXDEV:
    case ELOOP:
        TDM_FAIL(TDM_E_DATA, "a link that leads out of the folder");
    case ENOENT:
        TDM_FAIL(TDM_E_DATA, "there is no such file");
    default:
        errno = error;
        TDM_FAIL(error == ENOMEM                      ? TDM_E_MEMORY
                 : error == EMFILE || error == ENFILE ? TDM_E_IO
                                                      : TDM_E_DATA,
                 "cannot be opened: %m");
    }
}

tdm_status tdm__file_take(int fd, const char *path, const tdm_host *host, tdm_file_bytes *memory, uint64_t count) {
    if (count > FILE_MAX) TDM_FAIL(TDM_E_DATA, "%llu bytes; at most %d are read", (unsigned long long)count, FILE_MAX);
    TDM_TRY(tdm__grow(host, &memory->data, &memory->room, (size_t)count + 1, 1, "picture"));
    return tdm__file_read(fd, path, memory->data, (size_t)count, 0, TDM_E_DATA);
}

static tdm_status read_open(int fd, const char *path, const tdm_host *host, tdm_file_bytes *memory, size_t *count) {
    struct stat found;
    if (fstat(fd, &found) != 0) return cannot_open(errno);
    if (!S_ISREG(found.st_mode)) TDM_FAIL(TDM_E_DATA, "not a regular file");
    *count = (size_t)found.st_size;
    return tdm__file_take(fd, path, host, memory, *count);
}

static tdm_status read_bytes(const tdm_picture_list *list, const char *path, tdm_file_bytes *memory, size_t *count) {
    const int fd = tdm__open_beneath(list->root.fd, path, 0);
    if (fd < 0) return cannot_open(errno);
    const tdm_status status = read_open(fd, path, list->host, memory, count);
    close(fd);
    return status;
}

static tdm_status name_it(tdm_status status, const tdm_picture_list *list, const char *path) {
    if (status != TDM_E_DATA) return status;
    TDM_FAIL(status, "picture '%s/%s': %s", list->root.path, path, tdm_error_message());
}

typedef struct decoding {
    const tdm_picture_call *call;
    tdm_canvas *canvas;
} decoding;

static tdm_status make_room(void *user, tdm_pixels *pixels, size_t bytes) {
    return tdm__pixels_room(((decoding *)user)->canvas->host, pixels, bytes);
}

static void choose_window(void *user, int width, int height, int most, tdm_image_window *out) {
    const decoding *d = user;
    tdm__framing_open(d->canvas, width, height);
    if (d->call->spec != NULL) tdm__transform_frame(d->call->spec, d->canvas, &d->call->key);
    tdm__framing_window(d->canvas, most, out);
}

tdm_status tdm__picture_decode(const tdm_picture_call *call, const void *bytes, size_t count, tdm_canvas *canvas) {
    decoding d = {call, canvas};
    const tdm_image_decode decode = {.bytes = bytes,
                                     .count = count,
                                     .host = canvas->host,
                                     .channels = call->channels,
                                     .limits = TDM_IMAGE_LIMITS,
                                     .room = make_room,
                                     .window = choose_window,
                                     .user = &d};
    canvas->steps_done = 0;
    TDM_TRY(call->codec->decode(&decode, &canvas->now));
    TDM_TRY(tdm__framing_finish(canvas));
    return call->spec != NULL ? tdm__transform_picture(call->spec, canvas, &call->key) : TDM_OK;
}

tdm_status tdm__picture_read(const tdm_picture_call *call, const tdm_picture_list *list, int64_t index,
                             tdm_file_bytes *memory, tdm_canvas *canvas) {
    const char *path = tdm__picture_path(list, index);
    size_t count = 0;
    tdm_status status = read_bytes(list, path, memory, &count);
    if (status == TDM_OK) status = tdm__picture_decode(call, memory->data, count, canvas);
    return name_it(status, list, path);
}

int64_t tdm__picture_bytes(const tdm_picture_list *list, int64_t index) {
    struct stat found;
    const int fd = tdm__open_beneath(list->root.fd, tdm__picture_path(list, index), 0);
    if (fd < 0) return -1;
    const bool is_known = fstat(fd, &found) == 0;
    close(fd);
    return is_known ? (int64_t)found.st_size : -1;
}

tdm_status tdm__picture_probe(const tdm_image_ops *codec, const tdm_picture_list *list, int64_t index,
                              tdm_file_bytes *memory, tdm_image_info *out) {
    const char *path = tdm__picture_path(list, index);
    size_t count = 0;
    tdm_status status = read_bytes(list, path, memory, &count);
    if (status == TDM_OK) status = codec->probe(list->host, memory->data, count, out);
    return name_it(status, list, path);
}
