/* Reads data files: plain ones with pread, gzip files with zlib through a fixed buffer. So memory is limited by what
 * the header announces and the file can hold, and a small compressed file cannot fill the memory. */
#include "runtime/data/read/reader.h"

#include <unistd.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/file.h"
#include "runtime/base/inflate.h"
#include "runtime/data/formats.h"

/* Images compress to a third or a tenth of their size. A file that compresses to a two-hundredth is not a data set. */
enum { RATIO_MAX = 200, RATIO_FREE = 1 << 20, INPUT_BYTES = 64 * 1024 };

struct tdm_inflater {
    tdm_zlib zlib;
    z_stream stream;
    bool between_members; /* at the start, or after the checksum of a gzip member */
    unsigned char input[INPUT_BYTES];
};

/* Reads up to `count` bytes. *got is less only at the end of the file. */
static tdm_status read_file(tdm_reader *reader, void *out, size_t count, size_t *got) {
    size_t left = reader->file_bytes - reader->offset;
    *got = count < left ? count : left;
    TDM_TRY(tdm__file_read(reader->fd, reader->path, out, *got, reader->offset, TDM_E_DATA));
    reader->offset += *got;
    return TDM_OK;
}

static void delete_inflater(tdm_reader *reader, tdm_inflater *inflater) {
    tdm__zlib_close(&inflater->zlib);
    tdm__delete(reader->host, inflater);
}

static tdm_status open_inflater(tdm_reader *reader) {
    tdm_inflater *inflater;
    TDM_TRY(tdm__new(reader->host, &inflater, 1, sizeof(*inflater), "gzip input"));
    const tdm_status status = tdm__zlib_open(&inflater->zlib);
    const bool loaded = inflater->zlib.handle != NULL;
    if (!loaded) delete_inflater(reader, inflater);
    TDM_TRY(status);
    if (!loaded) {
        TDM_FAIL(TDM_E_UNSUPPORTED,
                 "%s '%s' is a gzip file and needs zlib (libz.so.1), which is not installed; "
                 "install zlib1g, or gunzip the file",
                 reader->what, reader->path);
    }
    inflater->between_members = true;
    if (!tdm__zlib_begin(&inflater->zlib, &inflater->stream, reader->host, 15 + 16)) {
        delete_inflater(reader, inflater);
        TDM_FAIL(TDM_E_MEMORY, "%s '%s': zlib cannot start", reader->what, reader->path);
    }
    reader->inflater = inflater;
    return TDM_OK;
}

tdm_status tdm__reader_open(tdm_reader *reader, const tdm_host *host, const char *what, const char *path,
                            bool may_be_gzip) {
    tdm_status status = TDM_OK;
    *reader = (tdm_reader){.host = host, .what = what, .path = path, .fd = -1};
    if (path == NULL || path[0] == '\0') TDM_FAIL(TDM_E_DATA, "%s: the path of the file is missing", what);
    uint64_t bytes;
    TDM_TRY_DONE(tdm__file_open(&reader->fd, &bytes, NULL, path, TDM_E_DATA));
    reader->file_bytes = (size_t)bytes;
    if (may_be_gzip) {
        unsigned char magic[2] = {0};
        size_t got;
        TDM_TRY_DONE(read_file(reader, magic, sizeof(magic), &got));
        reader->offset = 0;
        if (magic[0] == 0x1f && magic[1] == 0x8b) TDM_TRY_DONE(open_inflater(reader));
    }
done:
    if (status != TDM_OK) tdm__reader_close(reader);
    return status;
}

void tdm__reader_close(tdm_reader *reader) {
    if (reader->inflater != NULL) {
        reader->inflater->zlib.end(&reader->inflater->stream);
        delete_inflater(reader, reader->inflater);
        reader->inflater = NULL;
    }
    if (reader->fd >= 0) close(reader->fd);
    reader->fd = -1;
}

tdm_status tdm__reader_expect(const tdm_reader *reader, size_t expected, size_t most, const char *shape) {
    if (reader->inflater == NULL && expected != reader->file_bytes)
        TDM_FAIL_READ(reader, "expected %zu bytes (%s), found %zu", expected, shape, reader->file_bytes);
    if (expected > most)
        TDM_FAIL_READ(reader, "holds %zu bytes (%s), at most %zu are allowed; use fewer samples", expected, shape,
                      most);
    if (reader->inflater != NULL && expected > RATIO_FREE && expected / RATIO_MAX > reader->file_bytes)
        TDM_FAIL_READ(reader, "expected %zu bytes (%s) from %zu compressed ones; more than %d to 1 is refused",
                      expected, shape, reader->file_bytes, RATIO_MAX);
    return TDM_OK;
}

static tdm_status fill_input(tdm_reader *reader) {
    tdm_inflater *inflater = reader->inflater;
    size_t got;
    if (inflater->stream.avail_in > 0) return TDM_OK;
    TDM_TRY(read_file(reader, inflater->input, sizeof(inflater->input), &got));
    inflater->stream.next_in = inflater->input;
    inflater->stream.avail_in = (uInt)got;
    return TDM_OK;
}

/* Makes one call of zlib. *ended: the file ends here, after a complete member. */
static tdm_status inflate_some(tdm_reader *reader, bool *ended) {
    tdm_inflater *inflater = reader->inflater;
    z_stream *stream = &inflater->stream;
    TDM_TRY(fill_input(reader));
    *ended = stream->avail_in == 0 && inflater->between_members;
    if (*ended) return TDM_OK;
    if (stream->avail_in == 0) TDM_FAIL_READ(reader, "the gzip file is cut off after %zu bytes", reader->file_bytes);
    inflater->between_members = false;
    int result = inflater->zlib.inflate(stream, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
        inflater->between_members = true;
        inflater->zlib.reset(stream); /* another member may follow, as with gzip */
    } else if (result == Z_MEM_ERROR) {
        TDM_FAIL(TDM_E_MEMORY, "%s '%s': zlib is out of memory", reader->what, reader->path);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
        TDM_FAIL_READ(reader, "damaged gzip data before byte %zu of the file: %s", reader->offset - stream->avail_in,
                      stream->msg != NULL ? stream->msg : "needs a dictionary");
    }
    return TDM_OK;
}

static tdm_status read_gzip(tdm_reader *reader, void *out, size_t count, size_t *got) {
    z_stream *stream = &reader->inflater->stream;
    bool ended = false;
    size_t done = 0;
    while (done < count && !ended) {
        uInt room = count - done > (size_t)1 << 30 ? (uInt)1 << 30 : (uInt)(count - done);
        stream->next_out = (unsigned char *)out + done;
        stream->avail_out = room;
        TDM_TRY(inflate_some(reader, &ended));
        done += room - stream->avail_out;
    }
    *got = done;
    return TDM_OK;
}

tdm_status tdm__reader_take_some(tdm_reader *reader, void *out, size_t count, size_t *got) {
    if (reader->inflater != NULL) {
        TDM_TRY(read_gzip(reader, out, count, got));
    } else {
        TDM_TRY(read_file(reader, out, count, got));
    }
    reader->given += *got;
    return TDM_OK;
}

tdm_status tdm__reader_take(tdm_reader *reader, void *out, size_t count) {
    size_t before = reader->given, got;
    TDM_TRY(tdm__reader_take_some(reader, out, count, &got));
    if (got < count)
        TDM_FAIL_READ(reader, "expected %zu bytes, found %zu%s", before + count, reader->given,
                      reader->inflater != NULL ? " in the gzip file" : "");
    return TDM_OK;
}

tdm_status tdm__reader_end(tdm_reader *reader) {
    unsigned char extra;
    size_t expected = reader->given, got;
    TDM_TRY(tdm__reader_take_some(reader, &extra, 1, &got));
    if (got != 0) TDM_FAIL_READ(reader, "expected %zu bytes, found more", expected);
    return TDM_OK;
}
