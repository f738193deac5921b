/* A checkpoint as one run of bytes, written front to end: archive.c. */
#ifndef TDM_CKPT_ARCHIVE_H
#define TDM_CKPT_ARCHIVE_H

#include "runtime/base/system/file.h"

typedef struct tdm_archive {
    tdm_file_ops ops;       /* what is written through them goes into the archive, one file behind the other */
    const tdm_file_ops *to; /* that take its bytes */
    char folder[32];
    const char *name; /* of the file that is open; borrowed */
    uint64_t bytes;   /* its size */
    bool has_header, failed;
} tdm_archive;

/* `archive` stays where it is. Files are opened with their sizes. */
void tdm__archive_begin(tdm_archive *archive, const tdm_file_ops *to, int64_t step);
tdm_status tdm__archive_end(tdm_archive *archive);

#endif
