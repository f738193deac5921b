/* A data file, read from start to end. Only regular files. Gzip files are decompressed if the format allows them. */
#ifndef TDM_DATA_READER_H
#define TDM_DATA_READER_H

#include <stdbool.h>
#include <stddef.h>

#include <tandem/host.h>

typedef struct tdm_inflater tdm_inflater;
typedef struct tdm_reader {
    const tdm_host *host;
    const char *what, *path; /* borrowed; "images 'path'" begins every message */
    int fd;
    size_t file_bytes;
    size_t offset;          /* of the next byte of the file */
    size_t given;           /* bytes of content given to the caller so far */
    tdm_inflater *inflater; /* NULL: not compressed */
} tdm_reader;

/* Fails with TDM_E_DATA and a message about the file. */
#define TDM_FAIL_READ(reader, format, ...) \
    TDM_FAIL(TDM_E_DATA, "%s '%s': " format, (reader)->what, (reader)->path, ##__VA_ARGS__)

/* After a failure the reader is closed. */
tdm_status tdm__reader_open(tdm_reader *reader, const tdm_host *host, const char *what, const char *path,
                            bool may_be_gzip);
void tdm__reader_close(tdm_reader *reader);
/* Checks that the content can have `expected` bytes, header included. TDM_E_DATA if the file cannot hold them or they
 * are more than `most`. Call it before allocating that much. `shape`, for the message, explains the number. */
tdm_status tdm__reader_expect(const tdm_reader *reader, size_t expected, size_t most, const char *shape);
/* Reads exactly `count` bytes, or fails with TDM_E_DATA. */
tdm_status tdm__reader_take(tdm_reader *reader, void *out, size_t count);
/* Reads up to `count` bytes. *got is less only at the end of the content. */
tdm_status tdm__reader_take_some(tdm_reader *reader, void *out, size_t count, size_t *got);
/* TDM_E_DATA if any content is left. For gzip files this also verifies the checksum. */
tdm_status tdm__reader_end(tdm_reader *reader);

#endif
