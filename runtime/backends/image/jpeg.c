/* JPEG files with libjpeg(-turbo): its default decoder, as Pillow uses it. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "runtime/backends/image/image.h"

enum { EXIF_MAX = 0xFFFF, EXIF_PREFIX = 6 };

typedef struct reading {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    int scans; /* limit */
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
    if (level < 0 && reading_of(jpeg)->errors.msg_code == JWRN_JPEG_EOF) fail(jpeg);
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

/* The smallest of 1/8, 1/4, 1/2 and 1 whose result is not smaller than wanted. */
static unsigned eighths_of(const struct jpeg_decompress_struct *jpeg, const tdm_image_decode *call, int orientation) {
    const int64_t least_width = orientation >= 5 ? call->least_height : call->least_width;
    const int64_t least_height = orientation >= 5 ? call->least_width : call->least_height;
    unsigned eighths = 1;
    if (call->least_width <= 0 || call->least_height <= 0) return 8;
    while (eighths < 8 && ((int64_t)jpeg->image_width * eighths < least_width * 8 ||
                           (int64_t)jpeg->image_height * eighths < least_height * 8))
        eighths *= 2;
    return eighths;
}

/* The output is grey, RGB or CMYK; the turn makes of it what is wanted. Grey is not taken from libjpeg's own luminance:
 * Pillow computes it from the colours. */
static tdm_status choose_output(reading *r, const tdm_image_decode *call, int orientation) {
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
    jpeg->scale_num = eighths_of(jpeg, call, orientation);
    jpeg->scale_denom = 8;
    return TDM_OK;
}

/* Programs of Adobe store CMYK inverted. */
static void invert(unsigned char *row, size_t count) {
    for (size_t i = 0; i < count; i++) row[i] = (unsigned char)(255 - row[i]);
}

static void read_rows(reading *r, const tdm_turn *turn) {
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    const JDIMENSION bytes = jpeg->output_width * (JDIMENSION)jpeg->output_components;
    const bool is_inverted = jpeg->out_color_space == JCS_CMYK && jpeg->saw_Adobe_marker;
    JSAMPARRAY row = jpeg->mem->alloc_sarray((j_common_ptr)jpeg, JPOOL_IMAGE, bytes, 1);
    while (jpeg->output_scanline < jpeg->output_height) {
        const int y = (int)jpeg->output_scanline;
        jpeg_read_scanlines(jpeg, row, 1);
        if (is_inverted) invert(row[0], bytes);
        tdm__turn_row(turn, y, (int)jpeg->output_width, row[0], jpeg->output_components);
    }
}

tdm_status tdm__jpeg_decode(const tdm_image_decode *call, tdm_pixels *out) {
    reading r;
    tdm_turn turn;
    memset(&r, 0, sizeof(r));
    r.scans = call->limits.scans;
    if (setjmp(r.failed) != 0) return fail_reading(&r);
    begin(&r, call->bytes, call->count);
    const int orientation = orientation_of(&r);
    tdm_status status = choose_output(&r, call, orientation);
    if (status == TDM_OK) {
        jpeg_calc_output_dimensions(&r.jpeg);
        status = tdm__turn_begin(&turn, call, out, (int)r.jpeg.output_width, (int)r.jpeg.output_height, orientation);
    }
    if (status == TDM_OK) {
        jpeg_start_decompress(&r.jpeg);
        read_rows(&r, &turn);
    }
    jpeg_destroy_decompress(&r.jpeg);
    return status;
}
