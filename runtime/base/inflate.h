/* zlib's inflate, opened when the first compressed bytes are read, so that programs without such files do not need it.
 */
#ifndef TDM_BASE_INFLATE_H
#define TDM_BASE_INFLATE_H

#include <stdbool.h>
#include <zlib.h>

#include <tandem/host.h>

typedef struct tdm_zlib {
    void *handle; /* NULL: zlib is not installed */
    int (*init)(z_streamp stream, int window_bits, const char *version, int stream_bytes);
    int (*inflate)(z_streamp stream, int flush);
    int (*reset)(z_streamp stream);
    int (*end)(z_streamp stream);
} tdm_zlib;

/* TDM_OK also where zlib is not installed. */
tdm_status tdm__zlib_open(tdm_zlib *out);
void tdm__zlib_close(tdm_zlib *zlib);
/* Begins a stream, which is zero, with memory of the host. False: out of memory. `end` of *zlib ends it. */
bool tdm__zlib_begin(const tdm_zlib *zlib, z_stream *stream, const tdm_host *host, int window_bits);

#endif
