/* RandAugment (Cubuk et al. 2019) with the 14 operations and 31 magnitudes of torchvision. */
#include <math.h>

#include "runtime/base/field/field_rows.h"
#include "runtime/data/transforms/transforms.h"

enum { BINS = 31 };

/* At magnitude m: m-th of BINS numbers from 0 to `most`. */
static double share(double most, int64_t magnitude) {
    return most * (double)magnitude / (BINS - 1);
}

/* torchvision's inverse matrix for shears and moves: shears turn about `centre`. */
static tdm_status move(tdm_canvas *canvas, double shear_x, double shear_y, double by_x, double by_y, bool at_corner) {
    const double cx = at_corner ? 0.0 : canvas->now.width * 0.5, cy = at_corner ? 0.0 : canvas->now.height * 0.5;
    const double a = cos(-shear_y) / cos(shear_y), b = -cos(-shear_y) * tan(shear_x) / cos(shear_y);
    const double c = sin(-shear_y) / cos(shear_y), d = -sin(-shear_y) * tan(shear_x) / cos(shear_y) + 1.0;
    double m[6] = {d, -b, 0.0, -c, a, 0.0};
    m[2] = m[0] * (-cx - by_x) + m[1] * (-cy - by_y) + cx;
    m[5] = m[3] * (-cx - by_x) + m[4] * (-cy - by_y) + cy;
    return tdm__canvas_affine(canvas, m);
}

typedef enum operation {
    IDENTITY,
    SHEAR_X,
    SHEAR_Y,
    TRANSLATE_X,
    TRANSLATE_Y,
    ROTATE,
    BRIGHTNESS,
    COLOR,
    CONTRAST,
    SHARPNESS,
    POSTERIZE,
    SOLARIZE,
    AUTOCONTRAST,
    EQUALIZE,
    OPERATIONS
} operation;

/* Those that the operation may turn into their opposite. */
static bool is_signed(operation what) {
    return what >= SHEAR_X && what <= SHARPNESS;
}

static tdm_status operate(tdm_canvas *canvas, operation what, int64_t magnitude, double sign) {
    const double factor = 1.0 + sign * share(0.9, magnitude);
    switch (what) {
    case SHEAR_X:
        return move(canvas, atan(sign * share(0.3, magnitude)), 0.0, 0.0, 0.0, true);
    case SHEAR_Y:
        return move(canvas, 0.0, atan(sign * share(0.3, magnitude)), 0.0, 0.0, true);
    case TRANSLATE_X:
        return move(canvas, 0.0, 0.0, trunc(sign * share(150.0 / 331.0 * canvas->now.width, magnitude)), 0.0, false);
    case TRANSLATE_Y:
        return move(canvas, 0.0, 0.0, 0.0, trunc(sign * share(150.0 / 331.0 * canvas->now.height, magnitude)), false);
    case ROTATE:
        return tdm__canvas_rotate(canvas, sign * share(30.0, magnitude));
    case SHARPNESS:
        return tdm__canvas_sharpness(canvas, (float)factor);
    case BRIGHTNESS:
        tdm__canvas_brightness(canvas, (float)factor);
        break;
    case COLOR:
        tdm__canvas_saturation(canvas, (float)factor);
        break;
    case CONTRAST:
        tdm__canvas_contrast(canvas, (float)factor);
        break;
    case POSTERIZE:
        tdm__canvas_posterize(canvas, 8 - (int)nearbyint((double)magnitude / ((BINS - 1) / 4.0)));
        break;
    case SOLARIZE:
        tdm__canvas_solarize(canvas, (int)ceil(255.0 - share(255.0, magnitude)));
        break;
    case AUTOCONTRAST:
        tdm__canvas_autocontrast(canvas);
        break;
    case EQUALIZE:
        tdm__canvas_equalize(canvas);
        break;
    default:
        break;
    }
    return TDM_OK;
}

static tdm_status rand_augment_train(const tdm_transform_step *step, tdm_canvas *canvas, tdm_draws *draws) {
    for (int64_t i = 0; i < step->num_ops; i++) {
        const operation what = (operation)tdm__draw_below(draws, OPERATIONS);
        const double sign = is_signed(what) && tdm__draw_below(draws, 2) == 1 ? -1.0 : 1.0;
        const tdm_status status = operate(canvas, what, step->magnitude, sign);
        if (status != TDM_OK) return status;
    }
    return TDM_OK;
}

static const tdm_field rand_augment_rows[] = {
    {FIELD(INT, tdm_transform_step, num_ops, "2"), RANGE(1, 16), HELP("operations on each picture", "每张图的操作数")},
    {FIELD(INT, tdm_transform_step, magnitude, "9"), RANGE(0, 30), HELP("strength, of 30", "强度，最大 30")},
    {0},
};
const tdm_transform_def tdm__rand_augment_transform = {
    .name = "rand_augment",
    .doc = "some of 14 operations, drawn for each picture (RandAugment)",
    .doc_zh = "对每张图随机选用 14 种操作中的几种（RandAugment）",
    .rows = rand_augment_rows,
    .train = rand_augment_train,
};
