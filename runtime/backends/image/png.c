/* PNG files with libpng. */
#include <png.h>
#include <stdio.h>
#include <string.h>

#include "runtime/backends/image/image.h"

/* Of text and other chunks, which nothing here reads. libpng 1.6.39 takes as much memory for an eXIf chunk as its header
 * names; refused, it goes on without the chunk. */
enum { CHUNK_BYTES = 1 << 20, CHUNKS = 64, MOST_BEFORE_ROWS = 2 * CHUNK_BYTES };

/* Behind the last row libpng decompresses what is left, to no end: a byte may become a thousand. No honest file has
 * more than this, beside the rows as they are and an eighth of that. */
enum { BEHIND_ROWS = 8192 };

typedef struct reading {
    const tdm_host *host;
    const unsigned char *at, *end;
    size_t allowed; /* bytes that may still be read */
    size_t most;    /* bytes that libpng may take at once */
    png_structp png;
    png_infop info;
    unsigned char *rows; /* one row, or all rows of an interlaced picture */
    png_bytepp row;
    char why[160];
    bool is_short, lacks_memory;
} reading;

static void fail(png_structp png, png_const_charp why) {
    reading *r = png_get_error_ptr(png);
    snprintf(r->why, sizeof(r->why), "%s", why);
    png_longjmp(png, 1);
}

static void ignore(png_structp png, png_const_charp why) {
    (void)png, (void)why;
}

static void take(png_structp png, png_bytep to, size_t count) {
    reading *r = png_get_io_ptr(png);
    if ((size_t)(r->end - r->at) < count) {
        r->is_short = true;
        png_error(png, "cut off");
    }
    if (r->allowed < count) png_error(png, "it has more data than pixels");
    r->allowed -= count;
    memcpy(to, r->at, count);
    r->at += count;
}

/* libpng's messages do not say whether the file is damaged or memory is short. */
static png_voidp take_memory(png_structp png, png_alloc_size_t bytes) {
    reading *r = png_get_mem_ptr(png);
    if (bytes > r->most) return NULL;
    void *memory = tdm__module_new(r->host, bytes);
    r->lacks_memory = r->lacks_memory || memory == NULL;
    return memory;
}

static void give_memory(png_structp png, png_voidp memory) {
    (void)png;
    tdm__module_delete(memory);
}

static bool create(reading *r, const tdm_host *host, const void *bytes, size_t count) {
    *r = (reading){.host = host,
                   .at = bytes,
                   .end = (const unsigned char *)bytes + count,
                   .allowed = SIZE_MAX,
                   .most = MOST_BEFORE_ROWS};
    r->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, r, fail, ignore, r, take_memory, give_memory);
    if (r->png != NULL) r->info = png_create_info_struct(r->png);
    return r->info != NULL;
}

static void begin(reading *r) {
    png_set_chunk_malloc_max(r->png, CHUNK_BYTES);
    png_set_chunk_cache_max(r->png, CHUNKS);
    png_set_user_limits(r->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_read_fn(r->png, r, take);
    png_read_info(r->png, r->info);
    r->most = SIZE_MAX;
}

static void end(reading *r) {
    tdm__module_delete(r->rows);
    tdm__module_delete(r->row);
    png_destroy_read_struct(&r->png, &r->info, NULL);
}

static tdm_status fail_reading(reading *r) {
    end(r);
    if (r->lacks_memory) TDM_MODULE_FAIL(TDM_E_MEMORY, "out of memory while reading a PNG");
    if (r->is_short) TDM_MODULE_FAIL(TDM_E_DATA, "a PNG that is cut off");
    TDM_MODULE_FAIL(TDM_E_DATA, "not a PNG that can be read: %s", r->why);
}

static int orientation_of(const reading *r) {
    png_bytep exif = NULL;
    png_uint_32 count = 0;
    if (png_get_eXIf_1(r->png, r->info, &count, &exif) == 0 || exif == NULL) return 1;
    return tdm__exif_orientation(exif, count);
}

tdm_status tdm__png_probe(const tdm_host *host, const void *bytes, size_t count, tdm_image_info *out) {
    reading r;
    if (!create(&r, host, bytes, count)) {
        end(&r);
        TDM_MODULE_FAIL(TDM_E_MEMORY, "libpng is out of memory");
    }
    if (setjmp(png_jmpbuf(r.png)) != 0) return fail_reading(&r);
    begin(&r);
    *out = (tdm_image_info){.format = "PNG",
                            .width = (int)png_get_image_width(r.png, r.info),
                            .height = (int)png_get_image_height(r.png, r.info),
                            .orientation = orientation_of(&r)};
    end(&r);
    return TDM_OK;
}

/* 8 bits a channel: 16 become their high byte, fewer are spread over 0 to 255, a palette becomes colours; transparency
 * is dropped. */
static int set_transforms(reading *r) {
    const int colour = png_get_color_type(r->png, r->info), bits = png_get_bit_depth(r->png, r->info);
    if (bits == 16) png_set_strip_16(r->png);
    if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(r->png);
    if (colour == PNG_COLOR_TYPE_GRAY && bits < 8) png_set_expand_gray_1_2_4_to_8(r->png);
    if ((colour & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(r->png, r->info, PNG_INFO_tRNS) != 0)
        png_set_strip_alpha(r->png);
    const int passes = png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    return passes;
}

static void allocate(reading *r, size_t height, size_t bytes, bool all) {
    size_t total = bytes;
    const bool fits = !all || !__builtin_mul_overflow(height, bytes, &total);
    r->rows = fits ? tdm__module_new(r->host, total) : NULL;
    r->row = all ? tdm__module_new(r->host, height * sizeof(*r->row)) : NULL;
    if (r->rows == NULL || (all && r->row == NULL)) {
        r->lacks_memory = true;
        png_error(r->png, "out of memory");
    }
    for (size_t y = 0; all && y < height; y++) r->row[y] = r->rows + y * bytes;
}

/* Called before the last of these rows is read. */
static void allow(reading *r, size_t rows, size_t bytes) {
    r->allowed = rows * (bytes + bytes / 8) + BEHIND_ROWS;
}

static void read_rows(reading *r, const tdm_turn *turn, int height, bool all, size_t stored_bytes) {
    const int channels = png_get_channels(r->png, r->info);
    const size_t left = (size_t)turn->x * (size_t)channels;
    allocate(r, (size_t)height, png_get_rowbytes(r->png, r->info), all);
    if (all) {
        allow(r, (size_t)height, stored_bytes);
        png_read_image(r->png, r->row);
    }
    for (int y = 0; y < height; y++) {
        if (!all && y == height - 1) allow(r, 1, stored_bytes);
        if (!all) png_read_row(r->png, r->rows, NULL);
        if (y >= turn->y && y < turn->y + turn->height)
            tdm__turn_row(turn, y, (all ? r->row[y] : r->rows) + left, channels);
    }
}

tdm_status tdm__png_decode(const tdm_image_decode *call, tdm_pixels *out) {
    reading r;
    tdm_turn turn;
    if (!create(&r, call->host, call->bytes, call->count)) {
        end(&r);
        TDM_MODULE_FAIL(TDM_E_MEMORY, "libpng is out of memory");
    }
    if (setjmp(png_jmpbuf(r.png)) != 0) return fail_reading(&r);
    begin(&r);
    const int width = (int)png_get_image_width(r.png, r.info), height = (int)png_get_image_height(r.png, r.info);
    tdm_status status = tdm__turn_begin(&turn, call, out, width, height, orientation_of(&r), 1);
    const size_t stored = png_get_rowbytes(r.png, r.info); /* before transforms */
    if (status == TDM_OK) read_rows(&r, &turn, height, set_transforms(&r) > 1, stored);
    end(&r);
    return status;
}

/* ---- writing ---- */

typedef struct writing {
    const tdm_host *host;
    tdm_status (*write)(void *user, const void *bytes, size_t count);
    void *user;
    tdm_status status;
} writing;

static void put(png_structp png, png_bytep bytes, size_t count) {
    writing *w = png_get_io_ptr(png);
    w->status = w->write(w->user, bytes, count);
    if (w->status != TDM_OK) png_error(png, "stopped");
}

static void flush(png_structp png) {
    (void)png;
}

static void stop(png_structp png, png_const_charp why) {
    (void)why;
    png_longjmp(png, 1);
}

static png_voidp take_for_writing(png_structp png, png_alloc_size_t bytes) {
    const writing *w = png_get_mem_ptr(png);
    return tdm__module_new(w->host, bytes);
}

static tdm_status end_writing(writing *w, png_structp png, png_infop info) {
    png_destroy_write_struct(&png, &info);
    if (w->status != TDM_OK) return w->status;
    TDM_MODULE_FAIL(TDM_E_MEMORY, "libpng cannot write the picture: out of memory");
}

tdm_status tdm__png_encode(const tdm_host *host, const tdm_pixels *pixels,
                           tdm_status (*write)(void *user, const void *bytes, size_t count), void *user) {
    writing w = {host, write, user, TDM_OK};
    png_structp png =
        png_create_write_struct_2(PNG_LIBPNG_VER_STRING, NULL, stop, ignore, &w, take_for_writing, give_memory);
    png_infop info = png != NULL ? png_create_info_struct(png) : NULL;
    if (info == NULL || setjmp(png_jmpbuf(png)) != 0) return end_writing(&w, png, info);
    png_set_write_fn(png, &w, put, flush);
    png_set_IHDR(png, info, (png_uint_32)pixels->width, (png_uint_32)pixels->height, 8,
                 pixels->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (int y = 0; y < pixels->height; y++)
        png_write_row(png, pixels->data + (size_t)y * (size_t)pixels->width * (size_t)pixels->channels);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return TDM_OK;
}
