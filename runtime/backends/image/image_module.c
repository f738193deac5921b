/* libtandem-image.so: pictures with libjpeg and libpng. */
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

#include "runtime/backends/image/image.h"

static int probe_module(char *text, size_t bytes) {
#ifdef LIBJPEG_TURBO_VERSION
    snprintf(text, bytes, "libjpeg-turbo, libpng %s", png_get_libpng_ver(NULL));
#else
    snprintf(text, bytes, "libjpeg %d, libpng %s", JPEG_LIB_VERSION, png_get_libpng_ver(NULL));
#endif
    return 1;
}

/* Files are known by their first bytes, not by their names. */
static bool begins_with(const void *bytes, size_t count, const char *start, size_t length) {
    return count >= length && memcmp(bytes, start, length) == 0;
}

static bool is_jpeg(const void *bytes, size_t count) {
    return begins_with(bytes, count, "\xff\xd8\xff", 3);
}

static bool is_png(const void *bytes, size_t count) {
    return begins_with(bytes, count, "\x89PNG\r\n\x1a\n", 8);
}

static tdm_status refuse(const void *bytes, size_t count) {
    static const struct {
        const char *start, *name;
        size_t length, at;
    } known[] = {{"GIF8", "a GIF", 4, 0},       {"BM", "a BMP", 2, 0},    {"II*\0", "a TIFF", 4, 0},
                 {"MM\0*", "a TIFF", 4, 0},     {"WEBP", "a WebP", 4, 8}, {"ftypheic", "a HEIC", 8, 4},
                 {"ftypavif", "an AVIF", 8, 4}, {"<svg", "an SVG", 4, 0}};
    if (count == 0) TDM_MODULE_FAIL(TDM_E_DATA, "an empty file");
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (count >= known[i].at &&
            begins_with((const char *)bytes + known[i].at, count - known[i].at, known[i].start, known[i].length))
            TDM_MODULE_FAIL(TDM_E_DATA, "%s picture; convert it to JPEG or PNG", known[i].name);
    }
    TDM_MODULE_FAIL(TDM_E_DATA, "neither a JPEG nor a PNG");
}

static tdm_status probe(const tdm_host *host, const void *bytes, size_t count, tdm_image_info *out) {
    if (is_jpeg(bytes, count)) return tdm__jpeg_probe(bytes, count, out);
    return is_png(bytes, count) ? tdm__png_probe(host, bytes, count, out) : refuse(bytes, count);
}

static tdm_status decode(const tdm_image_decode *call, tdm_pixels *out) {
    if (is_jpeg(call->bytes, call->count)) return tdm__jpeg_decode(call, out);
    return is_png(call->bytes, call->count) ? tdm__png_decode(call, out) : refuse(call->bytes, call->count);
}

static const tdm_image_ops ops = {.probe = probe, .decode = decode, .encode = tdm__png_encode};

TDM_API extern const tdm_module tdm_module_v1;
const tdm_module tdm_module_v1 = {
    .abi = TDM_MODULE_ABI,
    .name = "image",
    .probe = probe_module,
    .init = tdm__module_init,
    .image = &ops,
};
