/* The bytes of an entry: stored, or deflated and expanded by zlib into memory of the size that the directory says. */
#include <errno.h>
#include <unistd.h>

#include "runtime/base/status.h"
#include "runtime/ckpt/torch/zip.h"

enum { PIECE = 16 * 1024, MOST_AT_ONCE = 1 << 30 }; /* bytes; zlib counts in unsigned int */

bool tdm__zip_read_at(int fd, void *to, size_t count, uint64_t at) {
    size_t got = 0;
    while (got < count) {
        const ssize_t n = pread(fd, (char *)to + got, count - got, (off_t)(at + got));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        got += (size_t)n;
    }
    return true;
}

uint32_t tdm__zip_crc(uint32_t crc, const void *bytes, size_t count) {
    static const uint32_t half[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                      0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                      0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    const uint8_t *at = bytes;
    crc = ~crc;
    for (size_t i = 0; i < count; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ half[crc & 15];
        crc = crc >> 4 ^ half[crc & 15];
    }
    return ~crc;
}

/* Expands until the stream ends, which must be where both its bytes and the room do. */
static tdm_status inflate_all(const tdm_zip_file *file, const tdm_zip_data *data, z_stream *stream, uint8_t *to) {
    uint8_t piece[PIECE], beyond; /* `beyond`: room for a byte too many, which shows that there is one */
    uint64_t read = 0, done = 0;
    int result = Z_OK;
    while (result == Z_OK) {
        if (stream->avail_in == 0 && read < data->packed) {
            const uint64_t left = data->packed - read;
            stream->avail_in = left < PIECE ? (uInt)left : PIECE;
            stream->next_in = piece;
            if (!tdm__zip_read_at(file->fd, piece, stream->avail_in, data->at + read))
                TDM_FAIL(TDM_E_IO, "cannot be read");
            read += stream->avail_in;
        }
        const uint64_t left = data->bytes - done;
        const uInt room = left == 0 ? 1 : left < MOST_AT_ONCE ? (uInt)left : MOST_AT_ONCE;
        stream->next_out = left == 0 ? &beyond : to + done;
        stream->avail_out = room;
        result = file->zlib.inflate(stream, Z_NO_FLUSH);
        if (left == 0 && stream->avail_out == 0) TDM_FAIL(TDM_E_CHECKPOINT, "expands to more than its archive says");
        if (left > 0) done += room - stream->avail_out;
    }
    if (result == Z_MEM_ERROR) TDM_FAIL(TDM_E_MEMORY, "needs more memory than there is");
    if (result != Z_STREAM_END || stream->avail_in != 0 || read != data->packed || done != data->bytes)
        TDM_FAIL(TDM_E_CHECKPOINT, "is damaged");
    return TDM_OK;
}

static tdm_status read_deflated(const tdm_zip_file *file, const tdm_zip_data *data, void *to) {
    z_stream stream = {.avail_in = 0};
    if (file->zlib.handle == NULL)
        TDM_FAIL(TDM_E_UNSUPPORTED, "is compressed and needs zlib (libz.so.1), which is not installed; install zlib1g");
    if (!tdm__zlib_begin(&file->zlib, &stream, file->host, -15)) /* no header of zlib's around it */
        TDM_FAIL(TDM_E_MEMORY, "needs more memory than there is");
    const tdm_status status = inflate_all(file, data, &stream, to);
    (void)file->zlib.end(&stream);
    return status;
}

tdm_status tdm__zip_read(const tdm_zip_file *file, const tdm_zip_data *data, void *to) {
    if (data->deflated) {
        TDM_TRY(read_deflated(file, data, to));
    } else if (!tdm__zip_read_at(file->fd, to, data->bytes, data->at)) {
        TDM_FAIL(TDM_E_IO, "cannot be read");
    }
    if (tdm__zip_crc(0, to, data->bytes) != data->crc) TDM_FAIL(TDM_E_CHECKPOINT, "is damaged");
    return TDM_OK;
}
