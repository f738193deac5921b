/* The losses on CUDA against the CPU's. Gradients of mse, and its sums where a thread does a row, are equal to the bit;
 * a real GPU's exp and log differ from the host's in the last places, which the tolerances of cross_entropy allow. In
 * bf16 the CPU's has the same rounded outputs, and its gradient is rounded afterwards. */
#include "ops/loss/cross_entropy/cross_entropy.h"
#include "ops/ops.h"
#include "runtime/base/bf16.h"
#include "tests/ops/cuda_device.h"
#include "tests/ops/op_memory.h"

static tdm_device *device;

static const tdm_loss_kernel *cuda_loss(const char *name) {
    const tdm_loss_kernel *const *loss = cuda_module()->losses;
    while (*loss != NULL && strcmp((*loss)->loss, name) != 0) loss++;
    return *loss;
}

static void numbers(uint32_t seed, float *out, int64_t count, float factor) {
    uint32_t x = seed;
    for (int64_t i = 0; i < count; i++) {
        x = x * 1664525u + 1013904223u;
        out[i] = (float)((int32_t)(x >> 15) - 65536) / 65536.0f * factor;
    }
}

/* ---- one run on both sides ---- */

typedef struct {
    const tdm_loss_def *loss;
    const void *attrs;
    int64_t rows, width;
    bool bf16, odd, without_dy, graph;
} setting;

typedef struct {
    op_memory memory;
    float *y, *dy;
    uint16_t *narrow_y, *narrow_dy; /* what the device has of them in bf16 */
    void *target;
    size_t target_bytes;
    tdm_step_values *values;
    double *loss_sum;
    int64_t *correct;
    tdm_loss_args here, there;
} sides;

/* Results begin with something in the sums, which must be added to, and dirt in the gradient. */
static void sides_open(sides *s, const setting *o) {
    const int64_t count = o->rows * o->width;
    const bool classes = o->loss->target == TDM_TARGET_CLASS;
    *s = (sides){.memory = {.device = device, .odd = o->odd}};
    op_memory *m = &s->memory;
    s->y = op_memory_floats(m, count, "y");
    s->target_bytes = classes ? (size_t)o->rows * sizeof(int64_t) : (size_t)count * sizeof(float);
    s->target = classes ? op_memory_new(m, s->target_bytes, "labels") : op_memory_floats(m, count, "targets");
    s->dy = o->without_dy ? NULL : op_memory_floats(m, count, "dy");
    if (o->bf16) s->narrow_y = op_memory_numbers(m, count, sizeof *s->narrow_y, "y in bf16");
    if (o->bf16 && s->dy != NULL) s->narrow_dy = op_memory_numbers(m, count, sizeof *s->narrow_dy, "dy in bf16");
    s->values = op_memory_new(m, sizeof *s->values, "the values");
    s->loss_sum = op_memory_new(m, sizeof *s->loss_sum, "the loss");
    s->correct = op_memory_new(m, sizeof *s->correct, "the hits");
    s->here = (tdm_loss_args){.attrs = o->attrs,
                              .rows = o->rows,
                              .width = o->width,
                              .y = s->y,
                              .target = s->target,
                              .values = s->values,
                              .dy = s->dy,
                              .loss_sum = s->loss_sum,
                              .correct = s->correct};
    s->there = s->here;
    s->there.device = device;
    s->there.precision = o->bf16 ? TDM_BF16 : TDM_F32;
    s->there.y = op_memory_there(m, o->bf16 ? (const void *)s->narrow_y : s->y);
    s->there.target = op_memory_there(m, s->target);
    s->there.values = op_memory_there(m, s->values);
    s->there.dy = op_memory_there(m, o->bf16 ? (const void *)s->narrow_dy : s->dy);
    s->there.loss_sum = op_memory_there(m, s->loss_sum);
    s->there.correct = op_memory_there(m, s->correct);
    numbers(11, s->y, count, 4);
    if (!classes) numbers(12, s->target, count, 4);
    for (int64_t n = 0; classes && n < o->rows; n++) ((int64_t *)s->target)[n] = n * 7919 % o->width;
    *s->values = (tdm_step_values){.loss_seed = 1.0f / (float)o->rows};
}

static void sums_begin(const sides *s) {
    *s->loss_sum = 1000.25;
    *s->correct = 77;
}

static float rounded(float value) {
    return tdm__bf16_float(tdm__bf16_of(value));
}

static void round_y(const sides *s, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        s->narrow_y[i] = tdm__bf16_of(s->y[i]);
        s->y[i] = rounded(s->y[i]);
    }
}

static void widen_dy(const sides *s, int64_t count) {
    for (int64_t i = 0; i < count; i++) s->dy[i] = tdm__bf16_float(s->narrow_dy[i]);
}

static void run_there(const sides *s, const setting *o) {
    const tdm_loss_kernel *loss = cuda_loss(o->loss->name);
    const int64_t count = o->rows * o->width;
    tdm_capture *capture = NULL;
    sums_begin(s);
    if (s->dy != NULL) memset(s->dy, OP_DIRT, (size_t)count * sizeof *s->dy);
    if (s->narrow_dy != NULL) memset(s->narrow_dy, OP_DIRT, (size_t)count * sizeof *s->narrow_dy);
    if (o->bf16) round_y(s, count);
    if (!o->graph) {
        op_memory_send(&s->memory);
        CHECK_OK(loss->run(&s->there));
    } else {
        CHECK_OK(device->ops->capture_begin(device));
        CHECK_OK(loss->run(&s->there));
        CHECK_OK(device->ops->capture_end(device, &capture));
        op_memory_send(&s->memory);
        if (capture != NULL) CHECK_OK(device->ops->capture_run(device, capture));
    }
    op_memory_fetch(&s->memory);
    op_memory_check(&s->memory, o->loss->name);
    if (s->narrow_dy != NULL) widen_dy(s, count);
    device->ops->capture_free(device, capture);
}

typedef struct {
    double loss_sum; /* relative */
    double dy;       /* times the seed */
} tolerance;

/* Where numbers may differ before they are rounded to bf16, the roundings may be neighbours. */
static bool differ(const setting *o, float got, float want, double most) {
    if (o->bf16) want = rounded(want);
    if (o->bf16 && most > 0) most += fabs((double)want) / 128;
    return !(fabs((double)got - (double)want) <= most) && !(isnan(got) && isnan(want));
}

static void compare(const sides *s, const setting *o, const tolerance *most) {
    const int64_t count = s->dy != NULL ? o->rows * o->width : 0, hits = *s->correct;
    const double sum = *s->loss_sum;
    int failures = tdm_test_failures, differences = 0;
    float *dy = calloc((size_t)count + 1, sizeof *dy);
    if (count > 0) memcpy(dy, s->dy, (size_t)count * sizeof *dy);
    run_there(s, o); /* the same bits once more */
    CHECK(memcmp(&sum, s->loss_sum, sizeof sum) == 0 && hits == *s->correct);
    CHECK(count == 0 || memcmp(dy, s->dy, (size_t)count * sizeof *dy) == 0);
    sums_begin(s);
    CHECK_OK(o->loss->run(&s->here));
    if (!isfinite(*s->loss_sum))
        CHECK(sum == *s->loss_sum || (isnan(sum) && isnan(*s->loss_sum)));
    else
        CHECK_NEAR(sum, *s->loss_sum, most->loss_sum * fabs(*s->loss_sum));
    CHECK_INT(hits, *s->correct);
    for (int64_t i = 0; i < count; i++)
        differences += differ(o, dy[i], s->dy[i], most->dy * (double)s->values->loss_seed);
    CHECK_INT(differences, 0);
    if (tdm_test_failures != failures)
        fprintf(stderr, "  %s, %lld x %lld%s%s%s%s\n", o->loss->name, (long long)o->rows, (long long)o->width,
                o->bf16 ? ", bf16" : "", o->odd ? ", odd" : "", o->without_dy ? ", without dy" : "",
                o->graph ? ", captured" : "");
    free(dy);
}

static void check(const setting *o, const tolerance *most) {
    sides s;
    sides_open(&s, o);
    run_there(&s, o);
    compare(&s, o, most);
    op_memory_free(&s.memory);
}

static void check_variants(const setting *o, const tolerance *most) {
    for (int bf16 = 0; bf16 < 2; bf16++) {
        setting variant = *o;
        variant.bf16 = bf16 != 0;
        check(&variant, most);
        variant.odd = variant.graph = true;
        check(&variant, most);
        variant.without_dy = true;
        check(&variant, most);
    }
}

/* ---- the losses ---- */

/* 1e-6 of a sum of thousands is far above what the last places of exp and log make, and far below any wrong term. */
static const tolerance entropy_tolerance = {1e-6, 2e-6}, equal = {0, 0}, squares_tolerance = {1e-14, 0};

TEST(cross_entropy) {
    static const int64_t width[] = {2, 10, 32, 33, 100, 1024, 1025, 3001}, rows[] = {1, 7, 60, 1025};
    const tdm_cross_entropy_attrs plain = {.ignore_index = -100}, smooth = {.label_smoothing = 0.1, .ignore_index = 1};
    for (size_t w = 0; w < sizeof width / sizeof *width; w++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows && rows[r] * width[w] < 200000; r++) {
            check_variants(&(setting){&tdm__cross_entropy_loss, &plain, rows[r], width[w], 0, 0, 0, 0},
                           &entropy_tolerance);
            check_variants(&(setting){&tdm__cross_entropy_loss, &smooth, rows[r], width[w], 0, 0, 0, 0},
                           &entropy_tolerance);
        }
}

TEST(mse) {
    static const int64_t width[] = {1, 3, 32, 33, 700, 5000}, rows[] = {1, 7, 1025};
    for (size_t w = 0; w < sizeof width / sizeof *width; w++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows && rows[r] * width[w] < 200000; r++)
            check_variants(&(setting){&tdm__mse_loss, NULL, rows[r], width[w], 0, 0, 0, 0},
                           width[w] <= 32 && rows[r] <= 1024 ? &equal : &squares_tolerance);
}

/* More rows than the workspace has room for at a time. */
TEST(rows_in_parts) {
    const tdm_cross_entropy_attrs attrs = {.ignore_index = -100};
    check(&(setting){&tdm__cross_entropy_loss, &attrs, 70001, 2, 0, 0, 0, 0}, &entropy_tolerance);
    check(&(setting){&tdm__mse_loss, NULL, 70001, 1, 0, 0, 0, 0}, &squares_tolerance);
}

/* ---- special rows ---- */

static void check_special(int64_t width, bool bf16) {
    const tdm_cross_entropy_attrs attrs = {.ignore_index = 1};
    const setting o = {&tdm__cross_entropy_loss, &attrs, 5, width, bf16, 0, 0, 0};
    sides s;
    sides_open(&s, &o);
    int64_t *label = s.target;
    label[0] = 1;                                              /* ignored */
    label[1] = 0, s.y[width] = 3e38f, s.y[width + 1] = -1e30f; /* exp would overflow */
    label[2] = width - 1;                                      /* equal outputs: the first is the answer */
    for (int64_t c = 0; c < width; c++) s.y[2 * width + c] = 0.5f;
    label[3] = 0;
    for (int64_t c = 0; c < width; c++) s.y[3 * width + c] = 0.5f;
    label[4] = 0, s.y[4 * width] = -INFINITY; /* an infinite loss */
    run_there(&s, &o);
    compare(&s, &o, &entropy_tolerance);
    for (int64_t c = 0; c < width; c++) CHECK_NEAR(s.dy[c], 0, 0);
    s.y[3 * width + 2] = NAN;
    run_there(&s, &o);
    CHECK(isnan(*s.loss_sum));
    compare(&s, &o, &entropy_tolerance);
    op_memory_free(&s.memory);
}

TEST(special_rows) {
    static const int64_t width[] = {10, 40, 1500};
    for (size_t w = 0; w < 3; w++) {
        check_special(width[w], false);
        check_special(width[w], true);
    }
}

/* The host refuses them earlier; here nothing may be read outside, and the run must see it. */
static void check_wrong_label(int64_t width, int64_t wrong, bool bf16) {
    const tdm_cross_entropy_attrs attrs = {.ignore_index = -100};
    const setting o = {&tdm__cross_entropy_loss, &attrs, 2, width, bf16, 0, 0, 0};
    sides s;
    sides_open(&s, &o);
    ((int64_t *)s.target)[0] = 0;
    ((int64_t *)s.target)[1] = wrong;
    run_there(&s, &o);
    CHECK(isnan(*s.loss_sum));
    for (int64_t c = 0; c < width; c++) CHECK(!isnan(s.dy[c]) && isnan(s.dy[width + c]));
    op_memory_free(&s.memory);
}

TEST(wrong_labels_make_nan) {
    static const int64_t width[] = {10, 40, 1500};
    for (size_t w = 0; w < 3; w++) {
        const int64_t wrong[] = {width[w], -1, INT64_MIN, INT64_MAX};
        for (size_t i = 0; i < 4; i++) {
            check_wrong_label(width[w], wrong[i], false);
            check_wrong_label(width[w], wrong[i], true);
        }
    }
}

TEST_MAIN({
    device = cuda_open();
    RUN(cross_entropy);
    RUN(mse);
    RUN(rows_in_parts);
    RUN(special_rows);
    RUN(wrong_labels_make_nan);
    device->ops->close(device);
})
