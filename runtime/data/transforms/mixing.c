/* mixup and cutmix: their settings, what is drawn for a sample, and how two samples become one. */
#include "runtime/data/transforms/mixing.h"

#include <math.h>
#include <string.h>

#include <tandem/sys/label.h>

#include "runtime/base/field/field_rows.h"
#include "runtime/base/status.h"
#include "runtime/data/transforms/transforms.h"

/* ---- the steps ---- */

#define ALPHA_MAX 1000

static const tdm_field mixup_rows[] = {
    {FIELD(FLOAT, tdm_transform_step, alpha, "0.2"), RANGE(0, ALPHA_MAX), FLAGS(MAIN | OPEN_MIN),
     HELP("the other sample's weight is drawn from Beta(alpha, alpha)", "另一样本的权重取自 Beta(alpha, alpha)")},
    {FIELD(FLOAT, tdm_transform_step, p, "1"), RANGE(0, 1),
     HELP("probability that a sample is mixed", "样本被混合的概率")},
    {0},
};
const tdm_transform_def tdm__mixup_transform = {
    .name = "mixup",
    .doc = "training samples and labels are averaged with those of another sample (MixUp); with cutmix: one of the two",
    .doc_zh = "训练样本及其标签与另一样本加权平均（MixUp）；与 cutmix 同列时随机选用其一",
    .rows = mixup_rows,
};

static const tdm_field cutmix_rows[] = {
    {FIELD(FLOAT, tdm_transform_step, alpha, "1"), RANGE(0, ALPHA_MAX), FLAGS(MAIN | OPEN_MIN),
     HELP("the area of the box is drawn from Beta(alpha, alpha), as a fraction of the picture",
          "方框面积占比取自 Beta(alpha, alpha)")},
    {FIELD(FLOAT, tdm_transform_step, p, "1"), RANGE(0, 1),
     HELP("probability that a sample is mixed", "样本被混合的概率")},
    {0},
};
const tdm_transform_def tdm__cutmix_transform = {
    .name = "cutmix",
    .doc = "a box of each training picture comes from another one, and labels are weighted by area (CutMix); with "
           "mixup: one of the two",
    .doc_zh = "训练图片的一个方框取自另一图片，标签按面积加权（CutMix）；与 mixup 同列时随机选用其一",
    .rows = cutmix_rows,
};

static bool mixes(const tdm_transform_step *step) {
    return step->kind == TDM_TRANSFORM_MIXUP || step->kind == TDM_TRANSFORM_CUTMIX;
}

static const char *name_of(const tdm_transform_step *step) {
    return step->kind == TDM_TRANSFORM_MIXUP ? tdm__mixup_transform.name : tdm__cutmix_transform.name;
}

bool tdm__transform_mixes(const tdm_transform_spec *spec) {
    for (int i = 0; spec != NULL && i < spec->step_count; i++) {
        if (mixes(&spec->step[i])) return true;
    }
    return false;
}

/* ---- what can be mixed ---- */

const char *tdm__mixing_fault(const tdm_transform_spec *spec) {
    int seen[TDM_TRANSFORM_KINDS] = {0};
    for (int i = 0; spec != NULL && i < spec->step_count; i++) {
        const tdm_transform_step *step = &spec->step[i];
        const bool follows = seen[TDM_TRANSFORM_MIXUP] + seen[TDM_TRANSFORM_CUTMIX] > 0;
        if (follows && !mixes(step)) return "mixup and cutmix must come after the other steps for pictures";
        if (mixes(step) && seen[step->kind]++ > 0) return "mixup and cutmix may be listed once each";
    }
    return NULL;
}

static tdm_status take_steps(tdm_mixing *mixing, const tdm_transform_spec *spec) {
    const char *fault = tdm__mixing_fault(spec);
    if (fault != NULL) TDM_FAIL(TDM_E_CONFIG, "data.transform: %s", fault);
    for (int i = 0; spec != NULL && i < spec->step_count; i++) {
        if (!mixes(&spec->step[i])) continue;
        if (mixing->count == 0) mixing->position = i;
        mixing->step[mixing->count++] = &spec->step[i];
    }
    return TDM_OK;
}

static tdm_status take_shape(tdm_mixing *mixing, const tdm_dataset *dataset) {
    const tdm_shape *shape = &dataset->x_shape;
    mixing->height = shape->ndim >= 2 ? shape->dim[shape->ndim - 2] : 1;
    mixing->width = shape->dim[shape->ndim - 1];
    mixing->planes = 1;
    for (int i = 0; i < shape->ndim - 2; i++) mixing->planes *= shape->dim[i];
    for (int i = 0; i < mixing->count; i++) {
        if (mixing->step[i]->kind == TDM_TRANSFORM_CUTMIX && shape->ndim < 2)
            TDM_FAIL(TDM_E_CONFIG,
                     "data.transform: cutmix needs pictures, but model.input has one dimension; write model.input: "
                     "[channels, height, width], or use mixup");
    }
    return TDM_OK;
}

tdm_status tdm__mixing_init(tdm_mixing *mixing, const tdm_transform_spec *spec, const tdm_dataset *dataset,
                            uint64_t seed, int64_t ignore_index) {
    *mixing = (tdm_mixing){.seed = seed, .samples = dataset->count, .ignore_index = ignore_index};
    TDM_TRY(take_steps(mixing, spec));
    if (mixing->count == 0) return TDM_OK;
    const char *name = name_of(mixing->step[0]);
    if (dataset->target_kind != TDM_TARGET_CLASS)
        TDM_FAIL(TDM_E_CONFIG, "data.transform: %s mixes labels, but the loss needs float targets; remove it", name);
    if (dataset->classes > TDM_LABEL_CLASSES)
        TDM_FAIL(TDM_E_CONFIG, "data.transform: %s can mix labels of at most %lld classes, the model has %lld", name,
                 (long long)TDM_LABEL_CLASSES, (long long)dataset->classes);
    if (ignore_index >= TDM_LABEL_MIXED)
        TDM_FAIL(TDM_E_CONFIG, "data.transform: with %s, loss.ignore_index must be below 2^62; use -100", name);
    return take_shape(mixing, dataset);
}

/* ---- what is drawn ---- */

/* Between 0 and 1, both excluded. */
static double draw_inside(tdm_draws *draws) {
    return ((double)tdm__draw_word(draws) + 0.5) * 0x1p-32;
}

/* Up to 1: Johnk 1964, with logarithms, because powers of 1 / alpha underflow. Above: Ulrich 1984. */
double tdm__draw_beta(tdm_draws *draws, double alpha) {
    if (alpha > 1.0) {
        const double u = draw_inside(draws), v = draw_inside(draws);
        return 0.5 + 0.5 * sqrt(1.0 - pow(u, 2.0 / (2.0 * alpha - 1.0))) * cos(2.0 * M_PI * v);
    }
    for (;;) { /* at least half of the pairs are accepted */
        const double a = log(draw_inside(draws)) / alpha, b = log(draw_inside(draws)) / alpha;
        if (exp(a) + exp(b) <= 1.0) return 1.0 / (1.0 + exp(b - a));
    }
}

/* The partner's weight as parts of the label. At least one part is left for the sample itself. */
static int64_t parts_of(double weight) {
    const int64_t parts = (int64_t)nearbyint(weight * (double)TDM_LABEL_PARTS);
    return parts < TDM_LABEL_PARTS ? parts : TDM_LABEL_PARTS - 1;
}

static int64_t clamped(int64_t value, int64_t most) {
    return value < 0 ? 0 : value < most ? value : most;
}

/* A box with `weight` of the area around a point, as far as it is inside. */
static void draw_box(const tdm_mixing *mixing, tdm_draws *draws, double weight, tdm_mix *mix) {
    const int64_t x = tdm__draw_below(draws, mixing->width), y = tdm__draw_below(draws, mixing->height);
    const double r = 0.5 * sqrt(weight);
    const int64_t half_width = (int64_t)(r * (double)mixing->width),
                  half_height = (int64_t)(r * (double)mixing->height);
    mix->left = clamped(x - half_width, mixing->width), mix->right = clamped(x + half_width, mixing->width);
    mix->top = clamped(y - half_height, mixing->height), mix->bottom = clamped(y + half_height, mixing->height);
    const double area = (double)(mix->right - mix->left) * (double)(mix->bottom - mix->top);
    mix->parts = parts_of(area / ((double)mixing->width * (double)mixing->height));
}

tdm_mix tdm__mixing_draw(const tdm_mixing *mixing, int64_t epoch, int64_t sample) {
    tdm_draws draws = tdm__draws(mixing->seed, epoch, sample, mixing->position);
    tdm_mix mix = {.partner = -1};
    const tdm_transform_step *step = mixing->step[tdm__draw_below(&draws, mixing->count)];
    if (tdm__draw_between(&draws, 0.0, 1.0) >= step->p) return mix;
    const uint64_t high = tdm__draw_word(&draws), low = tdm__draw_word(&draws);
    const int64_t partner = (int64_t)((high << 32 | low) % (uint64_t)mixing->samples);
    const double weight = tdm__draw_beta(&draws, step->alpha);
    mix.cuts = step->kind == TDM_TRANSFORM_CUTMIX;
    if (mix.cuts)
        draw_box(mixing, &draws, weight, &mix);
    else
        mix.parts = parts_of(weight);
    if (mix.parts > 0 && partner != sample) mix.partner = partner;
    return mix;
}

/* ---- mixing ---- */

/* Each product and the sum are rounded, as in torch. */
static void average(float *x, const float *partner, int64_t count, int64_t parts) {
    const float weight = (float)parts / (float)TDM_LABEL_PARTS, own = 1.0f - weight;
    for (int64_t i = 0; i < count; i++) x[i] = x[i] * own + partner[i] * weight;
}

void tdm__mix_samples(const tdm_mixing *mixing, const tdm_mix *mix, float *x, const float *partner) {
    const int64_t rows = mixing->planes * mixing->height;
    if (!mix->cuts) {
        average(x, partner, rows * mixing->width, mix->parts);
        return;
    }
    for (int64_t row = 0; row < rows; row++) {
        if (row % mixing->height < mix->top || row % mixing->height >= mix->bottom) continue;
        const size_t at = (size_t)(row * mixing->width + mix->left);
        memcpy(x + at, partner + at, (size_t)(mix->right - mix->left) * sizeof(float));
    }
}
