/* JPEG files with libjpeg(-turbo): its default decoder, as Pillow uses it. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "runtime/backends/image/image.h"

enum { EXIF_MAX = 0xFFFF, EXIF_PREFIX = 6, REDUCED_MOST = 8, VECTOR = 32 };

typedef struct reading {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    int scans;       /* limit */
    bool has_pixels; /* of the whole picture */
    char why[JMSG_LENGTH_MAX];
    jmp_buf failed;
} reading;

static reading *reading_of(j_common_ptr jpeg) {
    return jpeg->client_data;
}

static void fail(j_common_ptr jpeg) {
    reading *r = reading_of(jpeg);
    r->errors.format_message(jpeg, r->why);
    longjmp(r->failed, 1);
}

/* A file that ends early would be filled up with grey. Other doubts are none of Pillow's either. */
static void warn(j_common_ptr jpeg, int level) {
    const reading *r = reading_of(jpeg);
    if (level < 0 && r->errors.msg_code == JWRN_JPEG_EOF && !r->has_pixels) fail(jpeg);
}

static void no_output(j_common_ptr jpeg) {
    (void)jpeg;
}

static void count_scans(j_common_ptr jpeg) {
    reading *r = reading_of(jpeg);
    if (r->jpeg.input_scan_number <= r->scans) return;
    snprintf(r->why, sizeof(r->why), "more than %d scans", r->scans);
    longjmp(r->failed, 1);
}

static void begin(reading *r, const void *bytes, size_t count) {
    r->jpeg.err = jpeg_std_error(&r->errors);
    r->errors.error_exit = fail;
    r->errors.emit_message = warn;
    r->errors.output_message = no_output;
    jpeg_create_decompress(&r->jpeg);
    r->jpeg.client_data = r;
    r->progress.progress_monitor = count_scans;
    r->jpeg.progress = &r->progress;
    jpeg_mem_src(&r->jpeg, bytes, (unsigned long)count);
    jpeg_save_markers(&r->jpeg, JPEG_APP0 + 1, EXIF_MAX);
    jpeg_read_header(&r->jpeg, TRUE);
}

static int orientation_of(const reading *r) {
    for (jpeg_saved_marker_ptr at = r->jpeg.marker_list; at != NULL; at = at->next) {
        if (at->data_length > EXIF_PREFIX && memcmp(at->data, "Exif\0\0", EXIF_PREFIX) == 0)
            return tdm__exif_orientation(at->data + EXIF_PREFIX, at->data_length - EXIF_PREFIX);
    }
    return 1;
}

/* What went wrong, after the jump. */
static tdm_status fail_reading(reading *r) {
    jpeg_destroy_decompress(&r->jpeg);
    if (r->errors.msg_code == JERR_OUT_OF_MEMORY) TDM_MODULE_FAIL(TDM_E_MEMORY, "libjpeg is out of memory");
    if (r->errors.msg_code == JWRN_JPEG_EOF || r->errors.msg_code == JERR_INPUT_EMPTY)
        TDM_MODULE_FAIL(TDM_E_DATA, "a JPEG that is cut off");
    TDM_MODULE_FAIL(TDM_E_DATA, "not a JPEG that can be read: %s", r->why);
}

tdm_status tdm__jpeg_probe(const void *bytes, size_t count, tdm_image_info *out) {
    reading r;
    memset(&r, 0, sizeof(r));
    if (setjmp(r.failed) != 0) return fail_reading(&r);
    begin(&r, bytes, count);
    *out = (tdm_image_info){.format = "JPEG",
                            .width = (int)r.jpeg.image_width,
                            .height = (int)r.jpeg.image_height,
                            .orientation = orientation_of(&r)};
    jpeg_destroy_decompress(&r.jpeg);
    return TDM_OK;
}

/* The output is grey, RGB or CMYK; the turn makes of it what is wanted. Grey is not taken from libjpeg's own luminance:
 * Pillow computes it from the colours. */
static tdm_status choose_output(reading *r, const tdm_image_decode *call) {
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    const int64_t pixels = (int64_t)jpeg->image_width * (int64_t)jpeg->image_height;
    TDM_MODULE_TRY(tdm__image_check_size(&call->limits, jpeg->image_width, jpeg->image_height));
    if (jpeg_has_multiple_scans(jpeg) && (size_t)(pixels * jpeg->num_components) > call->limits.memory / sizeof(JCOEF))
        TDM_MODULE_FAIL(TDM_E_DATA, "a progressive JPEG of %d x %d pixels needs more than %zu MiB to be read",
                        (int)jpeg->image_width, (int)jpeg->image_height, call->limits.memory >> 20);
    if (jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK)
        jpeg->out_color_space = JCS_CMYK;
    else
        jpeg->out_color_space = jpeg->jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
    return TDM_OK;
}

/* Programs of Adobe store CMYK inverted. */
static void invert(unsigned char *row, size_t count) {
    for (size_t i = 0; i < count; i++) row[i] = (unsigned char)(255 - row[i]);
}

/* Begins with the window's columns and rows where libjpeg can: it leaves out inverse transforms, not the decoding of
 * Huffman codes. Colours are spread over two pixels or more, so a block more on each side keeps the bits. Of
 * progressive files libjpeg smooths blocks with their neighbours; they are read whole. Returns the first column of the
 * rows. */
static JDIMENSION begin_window(reading *r, const tdm_turn *turn) {
    JDIMENSION left = 0;
#ifdef LIBJPEG_TURBO_VERSION
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    if (jpeg_has_multiple_scans(jpeg)) return 0;
    const int wide = jpeg->max_h_samp_factor * jpeg->min_DCT_scaled_size;
    const int high = jpeg->max_v_samp_factor * jpeg->min_DCT_scaled_size;
    const int all = (int)jpeg->output_width, first = turn->x > wide ? turn->x - wide : 0;
    const int last = turn->x + turn->width < all - wide ? turn->x + turn->width + wide : all;
    if (last - first < all) {
        JDIMENSION width = (JDIMENSION)(last - first);
        left = (JDIMENSION)first;
        jpeg_crop_scanline(jpeg, &left, &width);
    }
    if (turn->y > high) jpeg_skip_scanlines(jpeg, (JDIMENSION)(turn->y - high));
#else
    (void)r, (void)turn;
#endif
    return left;
}

/* libjpeg knows no way on from here, and has filled up with grey what is missing of the rows. */
static bool is_astray(int marker) {
    const bool is_frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xCC;
    const bool is_reserved = (marker > 0x01 && marker < 0xC0) || (marker >= 0xF0 && marker <= 0xFD);
    return is_frame || is_reserved || marker == 0xD8 || marker == 0xDE || marker == 0xDF;
}

/* After the last row libjpeg itself reads up to the end, as for Pillow. What lies below other parts is not decoded, but a
 * file that is cut off is refused all the same: a marker ends it. */
static void check_end(reading *r) {
    const unsigned char *at = r->jpeg.src->next_input_byte;
    if (r->jpeg.output_scanline == r->jpeg.output_height) {
        r->has_pixels = true;
        jpeg_finish_decompress(&r->jpeg);
        return;
    }
    if (is_astray(r->jpeg.unread_marker)) ERREXIT1(&r->jpeg, JERR_UNKNOWN_MARKER, r->jpeg.unread_marker);
    if (r->jpeg.unread_marker == JPEG_EOI || jpeg_has_multiple_scans(&r->jpeg)) return;
    if (memmem(at, r->jpeg.src->bytes_in_buffer, "\xff\xd9", 2) == NULL) WARNMS(&r->jpeg, JWRN_JPEG_EOF);
}

/* Whether libjpeg-turbo writes this row past the cache, as it does with rows that begin on a vector: reading such a row
 * takes longer than copying one. */
static bool is_streamed(const unsigned char *row) {
    return (uintptr_t)row % VECTOR == 0;
}

static void read_rows(reading *r, const tdm_turn *turn) {
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    const JDIMENSION left = begin_window(r, turn), bytes = jpeg->output_width * (JDIMENSION)jpeg->output_components;
    const int channels = jpeg->output_components;
    const size_t from = ((size_t)turn->x - left) * (size_t)channels;
    const bool is_inverted = jpeg->out_color_space == JCS_CMYK && jpeg->saw_Adobe_marker;
    const bool is_whole = (int)jpeg->output_width == turn->width;
    JSAMPROW row = jpeg->mem->alloc_large((j_common_ptr)jpeg, JPOOL_IMAGE, bytes + 2 * VECTOR);
    if (is_streamed(row)) row += VECTOR / 2;
    while ((int)jpeg->output_scanline < turn->y + turn->height) {
        const int y = (int)jpeg->output_scanline;
        JSAMPROW target = is_whole && y >= turn->y ? tdm__turn_target(turn, y, channels) : NULL;
        const bool is_direct = target != NULL && !is_streamed(target);
        jpeg_read_scanlines(jpeg, is_direct ? &target : &row, 1);
        if (is_direct || y < turn->y) continue;
        if (is_inverted) invert(row, bytes);
        tdm__turn_row(turn, y, row + from, channels);
    }
    check_end(r);
}

tdm_status tdm__jpeg_decode(const tdm_image_decode *call, tdm_pixels *out) {
    reading r;
    tdm_turn turn;
    memset(&r, 0, sizeof(r));
    r.scans = call->limits.scans;
    if (setjmp(r.failed) != 0) return fail_reading(&r);
    begin(&r, call->bytes, call->count);
    tdm_status status = choose_output(&r, call);
    if (status == TDM_OK)
        status = tdm__turn_begin(&turn, call, out, (int)r.jpeg.image_width, (int)r.jpeg.image_height,
                                 orientation_of(&r), REDUCED_MOST);
    if (status == TDM_OK) {
        r.jpeg.scale_num = (unsigned)(REDUCED_MOST / turn.reduce);
        r.jpeg.scale_denom = REDUCED_MOST;
        jpeg_start_decompress(&r.jpeg);
        read_rows(&r, &turn);
    }
    jpeg_destroy_decompress(&r.jpeg);
    return status;
}
