/* A data file, read from front to back. Regular files only; gzip is undone on the way where the format allows it. */
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
    size_t given;           /* bytes handed out so far */
    tdm_inflater *inflater; /* NULL: not compressed */
} tdm_reader;

/* The reader needs no close after a failure. */
tdm_status tdm__reader_open(tdm_reader *reader, const tdm_host *host, const char *what, const char *path,
                            bool may_be_gzip);
void tdm__reader_close(tdm_reader *reader);
/* The whole content has `expected` bytes, header included: TDM_E_DATA before anything of that size is allocated if the
 * file cannot hold them, or if they are more than tandem reads. `shape` says where the number comes from. */
tdm_status tdm__reader_expect(const tdm_reader *reader, size_t expected, const char *shape);
/* Up to `count` bytes; *got is less than that only at the end of the content. */
tdm_status tdm__reader_read(tdm_reader *reader, void *out, size_t count, size_t *got);
/* Exactly `count` bytes, or TDM_E_DATA. */
tdm_status tdm__reader_take(tdm_reader *reader, void *out, size_t count);
/* Nothing may be left; for gzip this also checks the checksum at its end. */
tdm_status tdm__reader_end(tdm_reader *reader);

#endif
