/* The losses on CUDA against the CPU's, with the tolerances of their cases. In bf16 the CPU's has the same rounded
 * outputs, and its gradient is rounded afterwards. */
#include "runtime/base/bf16.h"
#include "tests/ops/cuda_device.h"
#include "tests/ops/loss_case.h"
#include "tests/ops/op_memory.h"

static tdm_device *device;

static const tdm_loss_kernel *cuda_loss(const char *name) {
    const tdm_loss_kernel *const *loss = cuda_module()->losses;
    while (*loss != NULL && strcmp((*loss)->loss, name) != 0) loss++;
    return *loss;
}

/* ---- one run on both sides ---- */

typedef struct {
    const loss_case *test;
    int64_t rows, width;
    bool bf16, odd, without_dy, graph, mixed;
} setting;

typedef struct {
    op_memory memory;
    float *y, *dy;
    uint16_t *narrow_y, *narrow_dy; /* what the device has of them in bf16 */
    void *target;
    tdm_step_values *values;
    double *loss_sum;
    int64_t *correct;
    double *weight; /* NULL: none */
    tdm_loss_args here, there;
} sides;

/* The CPU's kernel reads the weights of the section. */
static void open_weight(sides *s, const tdm_loss_section *section) {
    const tdm_numbers *weight = section->weight.count > 0 ? &section->weight : &section->pos_weight;
    const size_t bytes = (size_t)weight->count * sizeof(*weight->item);
    if (weight->count == 0) return;
    s->weight = op_memory_new(&s->memory, bytes, "weights");
    memcpy(s->weight, weight->item, bytes);
}

/* Results begin with something in the sums, which must be added to, and dirt in the gradient. */
static void sides_open(sides *s, const setting *o) {
    const int64_t count = o->rows * o->width;
    const tdm_loss_def *loss = loss_named(o->test->loss);
    const bool classes = loss->target == TDM_TARGET_CLASS;
    *s = (sides){.memory = {.device = device, .odd = o->odd}};
    op_memory *m = &s->memory;
    s->y = op_memory_floats(m, count, "y");
    s->target = classes ? op_memory_new(m, loss_target_bytes(loss, o->rows, o->width), "labels")
                        : op_memory_floats(m, count, "targets");
    s->dy = o->without_dy ? NULL : op_memory_floats(m, count, "dy");
    if (o->bf16) s->narrow_y = op_memory_numbers(m, count, sizeof *s->narrow_y, "y in bf16");
    if (o->bf16 && s->dy != NULL) s->narrow_dy = op_memory_numbers(m, count, sizeof *s->narrow_dy, "dy in bf16");
    s->values = op_memory_new(m, sizeof *s->values, "the values");
    s->loss_sum = op_memory_new(m, sizeof *s->loss_sum, "the loss");
    s->correct = op_memory_new(m, sizeof *s->correct, "the hits");
    open_weight(s, &o->test->section);
    s->here = (tdm_loss_args){.section = &o->test->section,
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
    s->there.weight = s->weight != NULL ? op_memory_there(m, s->weight) : NULL;
    s->there.precision = o->bf16 ? TDM_BF16 : TDM_F32;
    s->there.y = op_memory_there(m, o->bf16 ? (const void *)s->narrow_y : s->y);
    s->there.target = op_memory_there(m, s->target);
    s->there.values = op_memory_there(m, s->values);
    s->there.dy = op_memory_there(m, o->bf16 ? (const void *)s->narrow_dy : s->dy);
    s->there.loss_sum = op_memory_there(m, s->loss_sum);
    s->there.correct = op_memory_there(m, s->correct);
    loss_numbers(11, s->y, count, 4);
    loss_targets(o->test, o->rows, o->width, o->mixed, s->target);
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
    const tdm_loss_kernel *loss = cuda_loss(o->test->loss);
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
        CHECK_OK(device->ops->captures->begin(device));
        CHECK_OK(loss->run(&s->there));
        CHECK_OK(device->ops->captures->end(device, &capture));
        op_memory_send(&s->memory);
        if (capture != NULL) CHECK_OK(device->ops->captures->run(device, capture));
    }
    op_memory_fetch(&s->memory);
    op_memory_check(&s->memory, o->test->loss);
    if (s->narrow_dy != NULL) widen_dy(s, count);
    device->ops->captures->free(device, capture);
}

/* Where numbers may differ before they are rounded to bf16, the roundings may be neighbours. */
static bool differ(const setting *o, float got, float want, double most) {
    if (o->bf16) want = rounded(want);
    if (o->bf16 && most > 0) most += fabs((double)want) / 128;
    return !(fabs((double)got - (double)want) <= most) && !(isnan(got) && isnan(want));
}

static void compare(const sides *s, const setting *o) {
    const int64_t count = s->dy != NULL ? o->rows * o->width : 0, hits = *s->correct;
    const double sum = *s->loss_sum;
    int failures = tdm_test_failures, differences = 0;
    float *dy = calloc((size_t)count + 1, sizeof *dy);
    if (count > 0) memcpy(dy, s->dy, (size_t)count * sizeof *dy);
    run_there(s, o); /* the same bits once more */
    CHECK(memcmp(&sum, s->loss_sum, sizeof sum) == 0 && hits == *s->correct);
    CHECK(count == 0 || memcmp(dy, s->dy, (size_t)count * sizeof *dy) == 0);
    sums_begin(s);
    CHECK_OK(tdm__loss_of_rows(loss_named(o->test->loss), NULL, &s->here));
    if (!isfinite(*s->loss_sum))
        CHECK(sum == *s->loss_sum || (isnan(sum) && isnan(*s->loss_sum)));
    else
        CHECK_NEAR(sum, *s->loss_sum, o->test->cuda_sum * fabs(*s->loss_sum));
    CHECK_INT(hits, *s->correct);
    for (int64_t i = 0; i < count; i++)
        differences += differ(o, dy[i], s->dy[i], o->test->cuda_dy * (double)s->values->loss_seed);
    CHECK_INT(differences, 0);
    if (tdm_test_failures != failures)
        fprintf(stderr, "  %s, %lld x %lld%s%s%s%s%s\n", o->test->loss, (long long)o->rows, (long long)o->width,
                o->bf16 ? ", bf16" : "", o->odd ? ", odd" : "", o->without_dy ? ", without dy" : "",
                o->graph ? ", captured" : "", o->mixed ? ", mixed" : "");
    free(dy);
}

static void check(const setting *o) {
    sides s;
    sides_open(&s, o);
    run_there(&s, o);
    compare(&s, o);
    op_memory_free(&s.memory);
}

static void check_variants(const loss_case *c, int64_t rows, int64_t width, bool mixed) {
    if (cuda_loss(c->loss) == NULL) return; /* told by name below */
    for (int bf16 = 0; bf16 < 2; bf16++) {
        setting variant = {.test = c, .rows = rows, .width = width, .bf16 = bf16 != 0, .mixed = mixed};
        check(&variant);
        variant.odd = variant.graph = true;
        check(&variant);
        variant.without_dy = true;
        check(&variant);
    }
}

/* ---- all losses ---- */

TEST(every_loss_has_a_kernel) {
    for (const tdm_loss_def *const *loss = tdm_builtin_losses; *loss != NULL; loss++) {
        if (cuda_loss((*loss)->name) != NULL) continue;
        tdm_test_failures++;
        fprintf(stderr, "%s has no kernel on CUDA: write ops/loss/%s/%s.cu\n", (*loss)->name, (*loss)->name,
                (*loss)->name);
    }
}

TEST(cases) {
    each_loss_size(check_variants);
}

/* ---- special rows of cross_entropy ---- */

static const loss_case without_class_1 = {"cross_entropy", .section = {.ignore_index = 1}, .cuda_sum = 1e-6,
                                          .cuda_dy = 2e-6};

static void check_special(int64_t width, bool bf16) {
    const setting o = {.test = &without_class_1, .rows = 5, .width = width, .bf16 = bf16};
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
    compare(&s, &o);
    for (int64_t c = 0; c < width; c++) CHECK_NEAR(s.dy[c], 0, 0);
    s.y[3 * width + 2] = NAN;
    run_there(&s, &o);
    CHECK(isnan(*s.loss_sum));
    compare(&s, &o);
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
    static const loss_case usual = {"cross_entropy", .section = {.ignore_index = -100}};
    const setting o = {.test = &usual, .rows = 2, .width = width, .bf16 = bf16};
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
        const int64_t wrong[] = {
            width[w], -1, INT64_MIN, INT64_MAX, tdm_label_pack(0, width[w], 1), tdm_label_pack(width[w], 0, 1)};
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            check_wrong_label(width[w], wrong[i], false);
            check_wrong_label(width[w], wrong[i], true);
        }
    }
}

TEST_MAIN({
    device = cuda_open();
    RUN(every_loss_has_a_kernel);
    RUN(cases);
    RUN(special_rows);
    RUN(wrong_labels_make_nan);
    device->ops->close(device);
})
