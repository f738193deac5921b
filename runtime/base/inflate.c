#include "runtime/base/inflate.h"

#include <dlfcn.h>
#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/library.h"

enum { ROOM = 1 << 20 }; /* bytes of address space */

static void *allocate(void *opaque, uInt count, uInt bytes) {
    const tdm_host *host = opaque;
    size_t total;
    if (!tdm__mul_fits(count, bytes, &total)) return NULL;
    return tdm__host_allocate(host, total, TDM_ALIGN);
}

static void release(void *opaque, void *pointer) {
    const tdm_host *host = opaque;
    tdm__delete(host, pointer);
}

static bool find_call(const tdm_zlib *zlib, const char *name, void *call) {
    void *symbol = dlsym(zlib->handle, name);
    memcpy(call, &symbol, sizeof(symbol)); /* POSIX allows this; ISO C has no such conversion */
    return symbol != NULL;
}

tdm_status tdm__zlib_open(tdm_zlib *out) {
    char why[256];
    *out = (tdm_zlib){.handle = NULL};
    TDM_TRY(tdm__library_open(&out->handle, "libz.so.1", ROOM, why, sizeof(why)));
    if (out->handle == NULL) return TDM_OK;
    if (!find_call(out, "inflateInit2_", &out->init) || !find_call(out, "inflate", &out->inflate) ||
        !find_call(out, "inflateReset", &out->reset) || !find_call(out, "inflateEnd", &out->end))
        tdm__zlib_close(out);
    return TDM_OK;
}

void tdm__zlib_close(tdm_zlib *zlib) {
    if (zlib->handle != NULL) dlclose(zlib->handle);
    zlib->handle = NULL;
}

bool tdm__zlib_begin(const tdm_zlib *zlib, z_stream *stream, const tdm_host *host, int window_bits) {
    stream->zalloc = allocate;
    stream->zfree = release;
    memcpy(&stream->opaque, &host, sizeof(host)); /* zlib passes it to `allocate`, which takes it as const again */
    return zlib->init(stream, window_bits, ZLIB_VERSION, (int)sizeof(z_stream)) == Z_OK;
}
