/* A zip archive as torch.save writes it, and as other programs pack it again: with the records for files above 4 GiB
 * (zip64), stored or deflated. For the files of this folder, and for the fuzz target. */
#ifndef TDM_CKPT_TORCH_ZIP_H
#define TDM_CKPT_TORCH_ZIP_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/inflate.h"

enum {
    TDM_ZIP_ENTRIES = 100 * 1000,
    TDM_ZIP_EXPANDS = 1032, /* deflated bytes never give more than so many times as many */
    TDM_ZIP_WHY = 400
};

/* An open file, and zlib for what is compressed in it. */
typedef struct tdm_zip_file {
    const tdm_host *host;
    int fd;        /* borrowed */
    tdm_zlib zlib; /* handle NULL: not installed, a fault only if an entry is compressed; opened before rights are given
                      up */
} tdm_zip_file;

/* Where the data of an entry is. Plain data: it is sent from one process to another. */
typedef struct tdm_zip_data {
    uint64_t at, packed; /* in the file */
    uint64_t bytes;      /* once it is read; `packed` unless deflated */
    uint32_t crc;
    bool deflated;
} tdm_zip_data;

typedef struct tdm_zip_entry {
    char name[200];
    tdm_zip_data data;
    uint64_t header_at; /* of its local header */
} tdm_zip_entry;

typedef struct tdm_zip {
    const tdm_zip_file *file; /* borrowed */
    uint64_t bytes;
    tdm_zip_entry *entry;
    int count;
} tdm_zip;

/* Reads the directory of the archive. False: `why` says what is wrong. The entries are in host memory. */
bool tdm__zip_open(tdm_zip *out, const tdm_zip_file *file, char why[TDM_ZIP_WHY]);
const tdm_zip_entry *tdm__zip_find(const tdm_zip *zip, const char *folder, const char *name); /* NULL: none */
void tdm__zip_close(tdm_zip *zip);

/* All bytes of an entry, `data->bytes`, and never more; its checksum must be right. The message has no subject: "is
 * damaged". TDM_E_CHECKPOINT: damaged; TDM_E_UNSUPPORTED: zlib is not installed. */
tdm_status tdm__zip_read(const tdm_zip_file *file, const tdm_zip_data *data, void *to);
bool tdm__zip_read_at(int fd, void *to, size_t count, uint64_t at);
uint32_t tdm__zip_crc(uint32_t crc, const void *bytes, size_t count);

#endif
