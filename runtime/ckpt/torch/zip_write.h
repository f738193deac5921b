/* Writing a zip archive. For torch_write.c, and for its test. */
#ifndef TDM_CKPT_TORCH_ZIP_WRITE_H
#define TDM_CKPT_TORCH_ZIP_WRITE_H

#include "runtime/base/system/file.h"
#include "runtime/base/text/text.h"
#include "runtime/ckpt/torch/zip.h"

typedef struct tdm_zip_out {
    const tdm_host *host;
    tdm_out_file file; /* open; the caller's to finish or discard after a failure */
    tdm_text directory;
    uint64_t entries;
    uint64_t wide_from; /* sizes and offsets from here on are written with 64 bits (zip64): UINT32_MAX, less in tests */
} tdm_zip_out;

/* Adds archive/<name>. */
tdm_status tdm__zip_add(tdm_zip_out *a, const char *name, const void *data, size_t bytes);
/* Writes the directory, and finishes the file. */
tdm_status tdm__zip_end(tdm_zip_out *a);

/* Little-endian numbers, in the pickle too. */
void tdm__zip_put_byte(tdm_text *to, int byte);
void tdm__zip_put(tdm_text *to, uint64_t value, int bytes);

#endif
