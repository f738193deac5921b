/* Digits drawn from a small stroke font. Each one differs: it is shifted, scaled, turned, slanted, thicker or thinner,
 * wobbly and noisy. Sample `index` is a pure function of (seed, index). All its random numbers come from Philox with
 * that key and counter, and the drawing uses only operations that IEEE 754 rounds correctly. So a seed gives the same
 * bytes on every machine. */
#include <math.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/base/random/philox.h"
#include "runtime/data/formats.h"

enum { DIGITS = 10, MAX_POINTS = 18, SIDE_MIN = 12, SIDE_MAX = 4096 };
enum { RESIDENT_MAX = 1 << 28 }; /* drawing this many bytes takes seconds */
enum { STREAM_SHAPE, STREAM_NOISE };

/* One stroke per digit, on a grid of 20 by 28; y points down. */
/* clang-format off */
static const struct glyph {
    int count;
    signed char point[MAX_POINTS][2];
} font[DIGITS] = {
    {13, {{10, 0}, {16, 2}, {19, 8}, {20, 14}, {19, 20}, {16, 26}, {10, 28}, {4, 26}, {1, 20}, {0, 14}, {1, 8}, {4, 2},
          {10, 0}}},
    {3, {{4, 6}, {11, 0}, {11, 28}}},
    {9, {{1, 7}, {3, 2}, {8, 0}, {13, 0}, {17, 3}, {18, 8}, {15, 13}, {1, 28}, {19, 28}}},
    {14, {{2, 3}, {6, 0}, {12, 0}, {17, 3}, {17, 9}, {13, 13}, {7, 13}, {13, 13}, {18, 17}, {19, 22}, {15, 27}, {9, 28},
          {4, 27}, {1, 24}}},
    {4, {{13, 28}, {13, 0}, {1, 19}, {19, 19}}},
    {11, {{17, 0}, {4, 0}, {3, 12}, {9, 10}, {15, 12}, {19, 17}, {18, 23}, {14, 27}, {8, 28}, {3, 27}, {1, 24}}},
    {13, {{16, 1}, {10, 3}, {5, 9}, {2, 16}, {2, 22}, {5, 27}, {10, 28}, {15, 27}, {18, 22}, {17, 17}, {13, 14},
          {8, 14}, {3, 18}}},
    {3, {{1, 0}, {19, 0}, {8, 28}}},
    {17, {{10, 13}, {4, 10}, {3, 5}, {6, 1}, {10, 0}, {14, 1}, {17, 5}, {16, 10}, {10, 13}, {3, 17}, {1, 22}, {4, 27},
          {10, 28}, {16, 27}, {19, 22}, {17, 17}, {10, 13}}},
    {13, {{4, 27}, {10, 25}, {15, 19}, {18, 12}, {18, 6}, {15, 1}, {10, 0}, {5, 1}, {2, 6}, {3, 11}, {7, 14}, {12, 14},
          {17, 10}}},
};
/* clang-format on */

typedef struct glyph_dataset {
    tdm_dataset base;
    uint64_t seed;
    int64_t channels;
    int height, width;
    float noise; /* standard deviation, on the scale of 0 to 255 */
} glyph_dataset;

/* The random words of one stream of one sample, in order. */
typedef struct draws {
    uint64_t key;
    uint32_t counter[4], word[4];
    int left;
} draws;

static draws draws_of(const glyph_dataset *glyphs, int64_t index, uint32_t stream) {
    return (draws){.key = glyphs->seed, .counter = {0, stream, (uint32_t)index, (uint32_t)((uint64_t)index >> 32)}};
}

static uint32_t draw(draws *d) {
    if (d->left == 0) {
        tdm__philox_words(d->word, d->key, d->counter);
        d->counter[0]++;
        d->left = 4;
    }
    return d->word[4 - d->left--];
}

static float draw_between(draws *d, float low, float high) {
    return low + (high - low) * ((float)(draw(d) >> 8) * 0x1p-24f);
}

/* The sum of eight bytes: close enough to a normal number for an eye and for a network, without a logarithm. */
static float draw_normal(draws *d) {
    uint32_t a = draw(d), b = draw(d), mask = 0x00ff00ffu;
    uint32_t sum = (a & mask) + (a >> 8 & mask) + (b & mask) + (b >> 8 & mask);
    int total = (int)(sum & 0xffffu) + (int)(sum >> 16);
    return (float)(total - 1020) * (1.0f / 209.02153f); /* 8 * 127.5; sqrt(8 * (256^2 - 1) / 12) */
}

/* From the font's grid to pixels: [a b; c d] and a shift. */
typedef struct affine {
    float a, b, c, d, x, y;
} affine;

static affine draw_affine(draws *d, int height, int width) {
    float side = (float)(height < width ? height : width);
    float scale = side / 28.0f * draw_between(d, 0.66f, 0.82f);
    float aspect = draw_between(d, 0.85f, 1.15f), slant = draw_between(d, -0.15f, 0.15f);
    float angle = draw_between(d, -0.22f, 0.22f), square = angle * angle;
    float sine = angle * (1.0f - square / 6.0f + square * square / 120.0f);
    float cosine = 1.0f - square / 2.0f + square * square / 24.0f;
    affine t;
    t.a = scale * aspect * cosine;
    t.c = scale * aspect * sine;
    t.b = scale * (slant * cosine - sine);
    t.d = scale * (slant * sine + cosine);
    t.x = 0.5f * (float)(width - 1) + draw_between(d, -0.06f, 0.06f) * side;
    t.y = 0.5f * (float)(height - 1) + draw_between(d, -0.06f, 0.06f) * side;
    return t;
}

static int clamp_int(float value, int low, int high) {
    return value <= (float)low ? low : value >= (float)high ? high : (int)value;
}

/* Draws a line of half-width `half` from p to q: raises each pixel of the plane to the share of it that the line
 * covers.
 */
static void draw_line(unsigned char *plane, int height, int width, const float p[2], const float q[2], float half) {
    float reach = half + 0.5f;
    int left = clamp_int(fminf(p[0], q[0]) - reach, 0, width - 1);
    int right = clamp_int(fmaxf(p[0], q[0]) + reach + 1.0f, 0, width - 1);
    int top = clamp_int(fminf(p[1], q[1]) - reach, 0, height - 1);
    int bottom = clamp_int(fmaxf(p[1], q[1]) + reach + 1.0f, 0, height - 1);
    float dx = q[0] - p[0], dy = q[1] - p[1];
    float length2 = dx * dx + dy * dy, inverse = length2 > 0.0f ? 1.0f / length2 : 0.0f;
    for (int y = top; y <= bottom; y++) {
        for (int x = left; x <= right; x++) {
            float px = (float)x - p[0], py = (float)y - p[1];
            float along = (px * dx + py * dy) * inverse;
            along = along < 0.0f ? 0.0f : along > 1.0f ? 1.0f : along;
            px -= along * dx;
            py -= along * dy;
            float distance2 = px * px + py * py;
            if (distance2 >= reach * reach) continue;
            float cover = reach - sqrtf(distance2);
            unsigned char value = cover >= 1.0f ? 255 : (unsigned char)(cover * 255.0f + 0.5f);
            unsigned char *pixel = plane + (size_t)y * (size_t)width + (size_t)x;
            if (value > *pixel) *pixel = value;
        }
    }
}

static int draw_class(draws *d) {
    return (int)((uint64_t)draw(d) * DIGITS >> 32);
}

static int draw_digit(const glyph_dataset *glyphs, draws *d, unsigned char *plane) {
    int digit = draw_class(d);
    const struct glyph *glyph = &font[digit];
    affine t = draw_affine(d, glyphs->height, glyphs->width);
    int side = glyphs->height < glyphs->width ? glyphs->height : glyphs->width;
    float half = (float)side * draw_between(d, 0.035f, 0.06f);
    float at[2][2];
    for (int i = 0; i < glyph->count; i++) {
        float x = (float)glyph->point[i][0] - 10.0f + draw_between(d, -1.0f, 1.0f);
        float y = (float)glyph->point[i][1] - 14.0f + draw_between(d, -1.0f, 1.0f);
        at[i & 1][0] = t.a * x + t.b * y + t.x;
        at[i & 1][1] = t.c * x + t.d * y + t.y;
        if (i > 0) draw_line(plane, glyphs->height, glyphs->width, at[(i - 1) & 1], at[i & 1], half);
    }
    return digit;
}

/* Makes one channel: the strokes at the given brightness, plus noise. `from` and `to` may be the same. */
static void finish_channel(const unsigned char *from, unsigned char *to, size_t pixels, float brightness, float noise,
                           draws *d) {
    for (size_t i = 0; i < pixels; i++) {
        float value = brightness * (float)from[i];
        if (noise > 0.0f) value += noise * draw_normal(d);
        to[i] = (unsigned char)clamp_int(value + 0.5f, 0, 255);
    }
}

static tdm_status glyphs_read(const tdm_sample_reader *reader, int64_t index, void *x, void *target) {
    const glyph_dataset *glyphs = (const glyph_dataset *)reader->dataset;
    const int64_t row = tdm__dataset_row(reader->dataset, index);
    unsigned char *plane = x;
    size_t pixels = (size_t)glyphs->height * (size_t)glyphs->width;
    draws shape = draws_of(glyphs, row, STREAM_SHAPE);
    draws noise = draws_of(glyphs, row, STREAM_NOISE);
    if (x == NULL) {
        *(int64_t *)target = draw_class(&shape);
        return TDM_OK;
    }
    memset(plane, 0, pixels);
    *(int64_t *)target = draw_digit(glyphs, &shape, plane);
    /* All channels are made from the first plane, so it is finished last. */
    for (int64_t channel = glyphs->channels - 1; channel >= 0; channel--)
        finish_channel(plane, plane + (size_t)channel * pixels, pixels, draw_between(&shape, 0.75f, 1.0f),
                       glyphs->noise, &noise);
    return TDM_OK;
}

static tdm_status check_shape(const tdm_data_spec *spec, const tdm_shape *shape) {
    char text[TDM_DIMS_TEXT];
    bool is_image = shape->ndim == 2 || shape->ndim == 3;
    for (int i = 0; is_image && i < shape->ndim; i++) {
        bool is_side = i >= shape->ndim - 2;
        is_image = shape->dim[i] >= (is_side ? SIDE_MIN : 1) && shape->dim[i] <= SIDE_MAX;
    }
    if (!is_image)
        TDM_FAIL_AT(&spec->origin, TDM_E_DATA,
                    "glyphs draws images: model.input must be [channels, height, width] with sides of %d to %d, "
                    "found %s",
                    SIDE_MIN, SIDE_MAX, tdm__dims_print(text, shape));
    return TDM_OK;
}

static tdm_status glyphs_open(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    static const tdm_shape grey = {3, {1, 28, 28}};
    const tdm_shape *shape = wanted->input.ndim == 0 ? &grey : &wanted->input;
    glyph_dataset *glyphs = (glyph_dataset *)dataset;
    TDM_TRY(check_shape(spec, shape));
    if (spec->samples < 1)
        TDM_FAIL_AT(&spec->origin, TDM_E_DATA, "glyphs: samples must be at least 1, got %lld",
                    (long long)spec->samples);
    if (!(spec->noise >= 0.0 && spec->noise <= 1.0))
        TDM_FAIL_AT(&spec->origin, TDM_E_DATA, "glyphs: noise must be 0 to 1, got %g", spec->noise);
    dataset->count = spec->samples;
    dataset->x_is_bytes = true;
    TDM_TRY(tdm__dataset_take_shape(dataset, spec, wanted, shape, "glyphs"));
    glyphs->seed = tdm__data_seed(spec, wanted);
    glyphs->channels = shape->ndim == 3 ? shape->dim[0] : 1;
    glyphs->height = (int)shape->dim[shape->ndim - 2];
    glyphs->width = (int)shape->dim[shape->ndim - 1];
    glyphs->noise = (float)(spec->noise * 255.0);
    TDM_TRY(tdm__dataset_take_classes(dataset, spec, wanted, DIGITS, "glyphs"));
    TDM_TRY(tdm__dataset_take_part(dataset, spec, wanted, "glyphs"));
    tdm__dataset_set_resident(dataset, RESIDENT_MAX);
    return TDM_OK;
}

const tdm_dataset_ops tdm__glyphs_data = {.name = "glyphs",
                                          .bytes = sizeof(glyph_dataset),
                                          .only_labels = true,
                                          .is_made = true,
                                          .open = glyphs_open,
                                          .read = glyphs_read};
