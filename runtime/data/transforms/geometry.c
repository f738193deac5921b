/* Steps that move pixels: resize, crops, flips, turns. */
#include <math.h>

#include "runtime/base/field/field_rows.h"
#include "runtime/base/status.h"
#include "runtime/data/transforms/transforms.h"

enum { SIDE = 16384, TRIES = 10 };

#define SIZE_ROWS(what, what_zh)                                                                             \
    {FIELD(INT, tdm_transform_step, size, "null"), RANGE(1, SIDE), FLAGS(NULLABLE | MAIN), .unit = "pixels", \
     HELP(what, what_zh)},                                                                                   \
        {FIELD(INT, tdm_transform_step, height, "null"), RANGE(1, SIDE), FLAGS(NULLABLE), .unit = "pixels",  \
         HELP("height of the result, instead of size", "结果的高，代替 size")},                              \
    {                                                                                                        \
        FIELD(INT, tdm_transform_step, width, "null"), RANGE(1, SIDE), FLAGS(NULLABLE),                      \
            .unit = "pixels", HELP("width of the result, instead of size", "结果的宽，代替 size")            \
    }

static const char *size_fault(const tdm_transform_step *step) {
    const bool has_size = step->size != TDM_INT_NULL, has_height = step->height != TDM_INT_NULL,
               has_width = step->width != TDM_INT_NULL;
    if (has_height != has_width) return "needs both height and width";
    return has_size == has_height ? "needs either size, or height and width" : NULL;
}

/* Of a crop: `size` is both its sides. */
static tdm_picture_size crop_of(const tdm_transform_step *step) {
    const bool is_square = step->size != TDM_INT_NULL;
    return (tdm_picture_size){is_square ? step->size : step->height, is_square ? step->size : step->width};
}

/* As Python's round: ties to even. */
static int64_t rounded(double value) {
    return (int64_t)nearbyint(value);
}

static tdm_picture_size to_size(const tdm_transform_step *step, tdm_picture_size before, bool training) {
    (void)before, (void)training;
    return crop_of(step);
}

/* ---- resize ---- */

static tdm_status resize_short(tdm_canvas *canvas, int64_t size) {
    const int64_t width = canvas->now.width, height = canvas->now.height, least = width < height ? width : height;
    const int64_t longer = size * (width < height ? height : width) / least;
    if (longer > TDM_CANVAS_SIDE_MAX)
        TDM_FAIL(TDM_E_DATA, "a picture of %lld x %lld pixels is too long to be resized to a short side of %lld",
                 (long long)width, (long long)height, (long long)size);
    return width < height ? tdm__canvas_resize(canvas, (int)size, (int)longer)
                          : tdm__canvas_resize(canvas, (int)(width == height ? size : longer), (int)size);
}

static tdm_status resize(const tdm_transform_step *step, tdm_canvas *canvas) {
    if (step->size != TDM_INT_NULL) return resize_short(canvas, step->size);
    return tdm__canvas_resize(canvas, (int)step->width, (int)step->height);
}

static tdm_status resize_train(const tdm_transform_step *step, tdm_canvas *canvas, tdm_draws *draws) {
    (void)draws;
    return resize(step, canvas);
}

static tdm_picture_size resize_size(const tdm_transform_step *step, tdm_picture_size before, bool training) {
    (void)before, (void)training;
    if (step->size != TDM_INT_NULL) return (tdm_picture_size){0, 0};
    return (tdm_picture_size){step->height, step->width};
}

static const tdm_field resize_rows[] = {
    SIZE_ROWS("the short side of the result; the other follows from the picture", "结果的短边；长边按比例"), {0}};
const tdm_transform_def tdm__resize_transform = {
    .name = "resize",
    .doc = "resizes with antialiasing, as torchvision's Resize (bilinear)",
    .doc_zh = "抗锯齿缩放，同 torchvision 的 Resize（双线性）",
    .rows = resize_rows,
    .train = resize_train,
    .evaluate = resize,
    .size = resize_size,
    .only_frames = true,
    .fault = size_fault,
};

/* ---- crops ---- */

/* From the middle; black where the picture is smaller. */
static tdm_status crop_middle(const tdm_transform_step *step, tdm_canvas *canvas) {
    const int64_t width = canvas->now.width, height = canvas->now.height;
    const tdm_picture_size to = crop_of(step);
    const int64_t x = width < to.width ? -((to.width - width) / 2) : rounded((double)(width - to.width) / 2.0);
    const int64_t y = height < to.height ? -((to.height - height) / 2) : rounded((double)(height - to.height) / 2.0);
    return tdm__canvas_crop(canvas, x, y, to.width, to.height);
}

static tdm_status center_crop_train(const tdm_transform_step *step, tdm_canvas *canvas, tdm_draws *draws) {
    (void)draws;
    return crop_middle(step, canvas);
}

#define CROP_ROWS SIZE_ROWS("both sides of the result", "结果的两边")
static const tdm_field crop_rows[] = {CROP_ROWS, {0}};
const tdm_transform_def tdm__center_crop_transform = {
    .name = "center_crop",
    .doc = "the middle of the picture; black where it is smaller",
    .doc_zh = "取图片中央；不足处为黑",
    .rows = crop_rows,
    .train = center_crop_train,
    .evaluate = crop_middle,
    .size = to_size,
    .only_frames = true,
    .fault = size_fault,
};

static tdm_status random_crop_train(const tdm_transform_step *step, tdm_canvas *canvas, tdm_draws *draws) {
    const int64_t width = canvas->now.width + 2 * step->padding, height = canvas->now.height + 2 * step->padding;
    const tdm_picture_size to = crop_of(step);
    if (width < to.width || height < to.height)
        TDM_FAIL(TDM_E_DATA, "the picture has %d x %d pixels, and random_crop takes %lld x %lld; put resize before it",
                 canvas->now.width, canvas->now.height, (long long)to.width, (long long)to.height);
    const int64_t y = tdm__draw_below(draws, height - to.height + 1);
    const int64_t x = tdm__draw_below(draws, width - to.width + 1);
    return tdm__canvas_crop(canvas, x - step->padding, y - step->padding, to.width, to.height);
}

static const tdm_field random_crop_rows[] = {
    CROP_ROWS,
    {FIELD(INT, tdm_transform_step, padding, "0"), RANGE(0, SIDE), .unit = "pixels",
     HELP("black pixels that are added on each side first", "先在四周补的黑边")},
    {0},
};
const tdm_transform_def tdm__random_crop_transform = {
    .name = "random_crop",
    .doc = "a part of the picture, anywhere; evaluation takes the middle",
    .doc_zh = "随机位置裁剪；评估时取中央",
    .rows = random_crop_rows,
    .train = random_crop_train,
    .evaluate = crop_middle,
    .size = to_size,
    .only_frames = true,
    .fault = size_fault,
};

/* ---- random_resized_crop ---- */

/* A part with a drawn area and ratio; else the largest middle part with a ratio in the range. */
static tdm_status crop_part(const tdm_transform_step *step, tdm_canvas *canvas, tdm_draws *draws) {
    const double all_width = canvas->now.width, all_height = canvas->now.height, area = all_width * all_height;
    const double low = step->ratio.item[0], high = step->ratio.item[1], ratio = all_width / all_height;
    int64_t width = canvas->now.width, height = canvas->now.height;
    for (int i = 0; i < TRIES; i++) {
        const double part = area * tdm__draw_between(draws, step->scale.item[0], step->scale.item[1]);
        const double aspect = exp(tdm__draw_between(draws, log(low), log(high)));
        const int64_t w = rounded(sqrt(part * aspect)), h = rounded(sqrt(part / aspect));
        if (w < 1 || w > width || h < 1 || h > height) continue;
        const int64_t y = tdm__draw_below(draws, height - h + 1);
        const int64_t x = tdm__draw_below(draws, width - w + 1);
        return tdm__canvas_crop(canvas, x, y, w, h);
    }
    if (ratio < low) height = rounded(all_width / low);
    if (ratio > high) width = rounded(all_height * high);
    return tdm__canvas_crop(canvas, (canvas->now.width - width) / 2, (canvas->now.height - height) / 2, width, height);
}

static tdm_status random_resized_crop_train(const tdm_transform_step *step, tdm_canvas *canvas, tdm_draws *draws) {
    TDM_TRY(crop_part(step, canvas, draws));
    return tdm__canvas_resize(canvas, (int)crop_of(step).width, (int)crop_of(step).height);
}

/* What people evaluate with: the short side at 256 / 224 of the crop. */
static tdm_status random_resized_crop_evaluate(const tdm_transform_step *step, tdm_canvas *canvas) {
    const tdm_picture_size to = crop_of(step);
    const int64_t longer = to.height > to.width ? to.height : to.width;
    TDM_TRY(resize_short(canvas, rounded((double)longer * 256.0 / 224.0)));
    return crop_middle(step, canvas);
}

static const char *random_resized_crop_fault(const tdm_transform_step *step) {
    const char *fault = size_fault(step);
    if (fault != NULL) return fault;
    if (step->scale.item[0] > step->scale.item[1]) return "scale must rise";
    return step->ratio.item[0] > step->ratio.item[1] ? "ratio must rise" : NULL;
}

static const tdm_field random_resized_crop_rows[] = {
    CROP_ROWS,
    {FIELD(FLOATS, tdm_transform_step, scale, "[0.08, 1]"), RANGE(0, 1), ITEMS(2, 2), FLAGS(OPEN_MIN),
     HELP("area of the part, as a fraction of the picture: from, to", "裁剪面积占比的范围")},
    {FIELD(FLOATS, tdm_transform_step, ratio, "[0.75, 1.3333333333333333]"), RANGE(0, 1000), ITEMS(2, 2),
     FLAGS(OPEN_MIN), HELP("width / height of the part: from, to", "裁剪宽高比的范围")},
    {0},
};
const tdm_transform_def tdm__random_resized_crop_transform = {
    .name = "random_resized_crop",
    .doc = "a part of drawn size and place, resized; evaluation: resize to 256/224 of it, then center_crop",
    .doc_zh = "随机大小和位置的一块再缩放；评估时先缩放到其 256/224，再取中央",
    .rows = random_resized_crop_rows,
    .train = random_resized_crop_train,
    .evaluate = random_resized_crop_evaluate,
    .size = to_size,
    .only_frames = true,
    .fault = random_resized_crop_fault,
};

/* ---- flips and turns ---- */

static tdm_status flip_train(const tdm_transform_step *step, tdm_canvas *canvas, tdm_draws *draws) {
    if (tdm__draw_between(draws, 0.0, 1.0) < step->p) tdm__canvas_flip(canvas);
    return TDM_OK;
}

static const tdm_field flip_rows[] = {
    {FIELD(FLOAT, tdm_transform_step, p, "0.5"), RANGE(0, 1), FLAGS(MAIN), HELP("probability", "概率")},
    {0},
};
const tdm_transform_def tdm__random_horizontal_flip_transform = {
    .name = "random_horizontal_flip",
    .doc = "left and right are exchanged, or not",
    .doc_zh = "随机左右翻转",
    .rows = flip_rows,
    .train = flip_train,
};

static tdm_status rotation_train(const tdm_transform_step *step, tdm_canvas *canvas, tdm_draws *draws) {
    return tdm__canvas_rotate(canvas, tdm__draw_between(draws, -step->degrees, step->degrees));
}

static const tdm_field rotation_rows[] = {
    {FIELD(FLOAT, tdm_transform_step, degrees, NULL), RANGE(0, 180), FLAGS(REQUIRED | MAIN), .unit = "degrees",
     HELP("up to this much to either side; the corners become black", "向两侧最多转这么多度；角落为黑")},
    {0},
};
const tdm_transform_def tdm__random_rotation_transform = {
    .name = "random_rotation",
    .doc = "turns the picture about its middle",
    .doc_zh = "绕中心随机旋转",
    .rows = rotation_rows,
    .train = rotation_train,
};
