/* Steps that change colours: color_jitter, to_gray, random_erasing. */
#include <math.h>

#include "runtime/base/field/field_rows.h"
#include "runtime/data/transforms/transforms.h"

enum { TRIES = 10 };

/* ---- color_jitter ---- */

enum { BRIGHTNESS, CONTRAST, SATURATION, HUE, CHANGES };

/* A factor of 1 - by to 1 + by, not below 0. */
static double draw_factor(tdm_draws *draws, double by) {
    return tdm__draw_between(draws, by < 1.0 ? 1.0 - by : 0.0, 1.0 + by);
}

static void change(const tdm_transform_step *step, tdm_canvas *canvas, int which, const double factor[CHANGES]) {
    if (which == BRIGHTNESS && step->brightness > 0.0) tdm__canvas_brightness(canvas, (float)factor[which]);
    if (which == CONTRAST && step->contrast > 0.0) tdm__canvas_contrast(canvas, (float)factor[which]);
    if (which == SATURATION && step->saturation > 0.0) tdm__canvas_saturation(canvas, (float)factor[which]);
    if (which == HUE && step->hue > 0.0) tdm__canvas_hue(canvas, factor[which]);
}

/* In an order that is drawn, too. */
static tdm_status jitter_train(const tdm_transform_step *step, tdm_canvas *canvas, tdm_draws *draws) {
    int order[CHANGES] = {BRIGHTNESS, CONTRAST, SATURATION, HUE};
    const double factor[CHANGES] = {draw_factor(draws, step->brightness), draw_factor(draws, step->contrast),
                                    draw_factor(draws, step->saturation),
                                    tdm__draw_between(draws, -step->hue, step->hue)};
    for (int i = CHANGES - 1; i > 0; i--) {
        const int other = (int)tdm__draw_below(draws, i + 1), before = order[i];
        order[i] = order[other];
        order[other] = before;
    }
    for (int i = 0; i < CHANGES; i++) change(step, canvas, order[i], factor);
    return TDM_OK;
}

static const tdm_field jitter_rows[] = {
    {FIELD(FLOAT, tdm_transform_step, brightness, "0"), RANGE(0, 100),
     HELP("the factor is drawn from 1 - this to 1 + this, and not below 0", "亮度系数取自 1 ± 此值，不低于 0")},
    {FIELD(FLOAT, tdm_transform_step, contrast, "0"), RANGE(0, 100), HELP("likewise", "同上")},
    {FIELD(FLOAT, tdm_transform_step, saturation, "0"), RANGE(0, 100), HELP("likewise", "同上")},
    {FIELD(FLOAT, tdm_transform_step, hue, "0"), RANGE(0, 0.5), .unit = "turns",
     HELP("hues move by at most this much of the colour circle", "色相最多移动色环的这一比例")},
    {0},
};
const tdm_transform_def tdm__color_jitter_transform = {
    .name = "color_jitter",
    .doc = "brightness, contrast, saturation and hue change, in an order that is drawn",
    .doc_zh = "随机改变亮度、对比度、饱和度与色相，顺序也随机",
    .rows = jitter_rows,
    .train = jitter_train,
};

/* ---- to_gray ---- */

static tdm_status gray(const tdm_transform_step *step, tdm_canvas *canvas) {
    (void)step;
    tdm__canvas_gray(canvas);
    return TDM_OK;
}

static tdm_status gray_train(const tdm_transform_step *step, tdm_canvas *canvas, tdm_draws *draws) {
    (void)draws;
    return gray(step, canvas);
}

const tdm_transform_def tdm__to_gray_transform = {
    .name = "to_gray",
    .doc = "all channels become the luma",
    .doc_zh = "各通道都变为亮度",
    .train = gray_train,
    .evaluate = gray,
};

/* ---- random_erasing ---- */

/* On bytes and to black: as torchvision's RandomErasing between ToTensor and Normalize. */
static tdm_status erasing_train(const tdm_transform_step *step, tdm_canvas *canvas, tdm_draws *draws) {
    static const unsigned char black[3] = {0, 0, 0};
    const int64_t width = canvas->now.width, height = canvas->now.height;
    const double area = (double)width * (double)height, low = log(step->ratio.item[0]), high = log(step->ratio.item[1]);
    if (tdm__draw_between(draws, 0.0, 1.0) >= step->p) return TDM_OK;
    for (int i = 0; i < TRIES; i++) {
        const double part = area * tdm__draw_between(draws, step->scale.item[0], step->scale.item[1]);
        const double aspect = exp(tdm__draw_between(draws, low, high));
        const int64_t h = (int64_t)nearbyint(sqrt(part * aspect)), w = (int64_t)nearbyint(sqrt(part / aspect));
        if (h >= height || w >= width) continue;
        const int64_t y = tdm__draw_below(draws, height - h + 1), x = tdm__draw_below(draws, width - w + 1);
        tdm__canvas_erase(canvas, (int)x, (int)y, (int)w, (int)h, black);
        break;
    }
    return TDM_OK;
}

static const char *erasing_fault(const tdm_transform_step *step) {
    if (step->scale.item[0] > step->scale.item[1]) return "scale must rise";
    return step->ratio.item[0] > step->ratio.item[1] ? "ratio must rise" : NULL;
}

static const tdm_field erasing_rows[] = {
    {FIELD(FLOAT, tdm_transform_step, p, "0.5"), RANGE(0, 1), FLAGS(MAIN), HELP("probability", "概率")},
    {FIELD(FLOATS, tdm_transform_step, scale, "[0.02, 0.33]"), RANGE(0, 1), ITEMS(2, 2), FLAGS(OPEN_MIN),
     HELP("area of the rectangle, as a fraction of the picture: from, to", "矩形面积占比的范围")},
    {FIELD(FLOATS, tdm_transform_step, ratio, "[0.3, 3.3]"), RANGE(0, 1000), ITEMS(2, 2), FLAGS(OPEN_MIN),
     HELP("height / width of the rectangle: from, to", "矩形高宽比的范围")},
    {0},
};
const tdm_transform_def tdm__random_erasing_transform = {
    .name = "random_erasing",
    .doc = "a rectangle becomes black, as torchvision's RandomErasing before Normalize",
    .doc_zh = "随机矩形涂黑，同 torchvision 在 Normalize 之前的 RandomErasing",
    .rows = erasing_rows,
    .train = erasing_train,
    .fault = erasing_fault,
};
