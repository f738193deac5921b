#include "runtime/base/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/call/sized.h"
#include "runtime/base/status.h"

static int sink_open(void *user, int folder, const char *name, int flags, mode_t mode) {
    (void)user, (void)folder, (void)name, (void)flags, (void)mode;
    return 0;
}

static ssize_t sink_write(void *user, int fd, const void *bytes, size_t count, off_t offset) {
    tdm_sink *sink = user;
    (void)fd, (void)offset;
    if (sink->said == 0) sink->said = sink->writer->write(sink->writer->user, bytes, count);
    if (sink->said != 0) errno = EIO;
    if (sink->said != 0) return -1;
    sink->count += count;
    return (ssize_t)count;
}

static int sink_allocate(void *user, int fd, off_t bytes) {
    (void)user, (void)fd, (void)bytes;
    return 0;
}

static int sink_flush(void *user, int fd) {
    (void)user, (void)fd;
    return 0;
}

static int sink_unlink(void *user, int folder, const char *name) {
    (void)user, (void)folder, (void)name;
    return 0;
}

tdm_status tdm__sink_init(tdm_sink *sink, const tdm_writer *writer, const char *function) {
    *sink = (tdm_sink){.writer = writer};
    if (writer == NULL) TDM_FAIL(TDM_E_USAGE, "%s: the writer is NULL", function);
    TDM_TRY(tdm__sized_check("tdm_writer", writer, sizeof(*writer), sizeof(*writer)));
    if (writer->write == NULL) TDM_FAIL(TDM_E_USAGE, "%s: tdm_writer.write is NULL", function);
    sink->ops = (tdm_file_ops){.open = sink_open,
                               .pwrite = sink_write,
                               .allocate = sink_allocate,
                               .fsync = sink_flush,
                               .close = sink_flush,
                               .unlink = sink_unlink,
                               .user = sink};
    return TDM_OK;
}

tdm_status tdm__sink_end(const tdm_sink *sink, tdm_status status, const char *function) {
    if (sink->said == 0 || status == TDM_OK) return status;
    TDM_FAIL(sink->said == TDM_E_MEMORY ? TDM_E_MEMORY : TDM_E_IO,
             "%s: the writer returned %d after %llu bytes; what it has taken is to be thrown away", function,
             sink->said, (unsigned long long)sink->count);
}

/* ---- a buffer ---- */

static bool grow(tdm_buffer *buffer, size_t needed) {
    enum { ALIGN = 64, LEAST = 4096 };
    size_t capacity = buffer->capacity < LEAST ? LEAST : buffer->capacity;
    void *bytes = NULL;
    while (capacity < needed) {
        if (__builtin_mul_overflow(capacity, (size_t)2, &capacity)) return false;
    }
    if (posix_memalign(&bytes, ALIGN, capacity) != 0) return false;
    if (buffer->count > 0) memcpy(bytes, buffer->bytes, buffer->count);
    free(buffer->bytes);
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return true;
}

int tdm_buffer_write(void *user, const void *bytes, size_t count) {
    tdm_buffer *buffer = user;
    size_t needed;
    if (buffer == NULL || buffer->size < sizeof(*buffer) || (bytes == NULL && count > 0))
        TDM_FAIL(TDM_E_USAGE, "tdm_buffer_write: a pointer is NULL, or tdm_buffer.size is not sizeof(tdm_buffer)");
    if (__builtin_add_overflow(buffer->count, count, &needed) || (needed > buffer->capacity && !grow(buffer, needed)))
        TDM_FAIL(TDM_E_MEMORY, "tdm_buffer_write: out of memory for %zu bytes behind %zu", count, buffer->count);
    if (count > 0) memcpy((char *)buffer->bytes + buffer->count, bytes, count);
    buffer->count = needed;
    return TDM_OK;
}

void tdm_buffer_free(tdm_buffer *buffer) {
    if (buffer == NULL) return;
    free(buffer->bytes);
    buffer->bytes = NULL;
    buffer->count = buffer->capacity = 0;
}
