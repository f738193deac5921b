/* Every loss of the list: what its definition promises, and its cases. Then closed forms, ignored rows, wrong labels
 * and shapes of single losses. Against PyTorch: op_fixture_test.c. */
#include "ops/loss/classes.h"
#include "runtime/base/isa.h"
#include "runtime/base/largest.h"
#include "runtime/device/threads.h"
#include "tests/ops/loss_case.h"
#include "tests/support/tdm_test.h"

/* ---- all losses ---- */

TEST(every_loss_has_cases) {
    for (const tdm_loss_def *const *loss = tdm_builtin_losses; *loss != NULL; loss++) {
        int cases = 0;
        for (int i = 0; i < LOSS_CASES; i++) cases += strcmp(loss_cases[i].loss, (*loss)->name) == 0;
        if (cases > 0) continue;
        tdm_test_failures++;
        fprintf(stderr, "%s has no case: write ops/loss/%s/%s_cases.def\n", (*loss)->name, (*loss)->name,
                (*loss)->name);
    }
    for (int i = 0; i < LOSS_CASES; i++) CHECK(loss_named(loss_cases[i].loss) != NULL);
}

TEST(definitions) {
    for (const tdm_loss_def *const *loss = tdm_builtin_losses; *loss != NULL; loss++) {
        const tdm_loss_def *l = *loss;
        CHECK(l->name[0] != '\0' && l->doc[0] != '\0' && l->doc_zh[0] != '\0');
        CHECK(l->denominator != NULL && l->run != NULL);
        CHECK(l->target == TDM_TARGET_VALUES || l->infer != NULL); /* who else says how many classes there are? */
        CHECK(loss_named(l->name) == l);
    }
}

/* Programs in C name losses by these. */
TEST(places_are_those_of_the_enum) {
    CHECK_TEXT(tdm_builtin_losses[TDM_CROSS_ENTROPY]->name, "cross_entropy");
    CHECK_TEXT(tdm_builtin_losses[TDM_MSE]->name, "mse");
    CHECK_TEXT(tdm_builtin_losses[TDM_L1]->name, "l1");
    CHECK_TEXT(tdm_builtin_losses[TDM_SMOOTH_L1]->name, "smooth_l1");
    CHECK_TEXT(tdm_builtin_losses[TDM_BCE_WITH_LOGITS]->name, "bce_with_logits");
    CHECK_TEXT(tdm_builtin_losses[TDM_NLL]->name, "nll");
    CHECK_TEXT(tdm_builtin_losses[TDM_SOFT_CROSS_ENTROPY]->name, "soft_cross_entropy");
}

enum { MOST_OF_SLOPES = 2048, SLOPES = 64 };
static const double sum_before = 1000.25;
static const int64_t correct_before = 77;

/* Slopes of the sum of the losses, at some of the outputs. A row's loss is rounded to float, which they feel. */
static void check_slopes(const loss_case *c, tdm_loss_args args, float *y) {
    const int64_t count = args.rows * args.width;
    const float *dy = args.dy, step = 1.0f / 16, factor[4] = {-2, -1, 1, 2};
    args.dy = NULL;
    for (int64_t i = 0; i < count; i += 1 + count / SLOPES) {
        const float kept = y[i];
        double f[4] = {0};
        for (int k = 0; k < 4; k++) {
            y[i] = kept + factor[k] * step;
            args.loss_sum = &f[k];
            CHECK_OK(tdm__loss_of_rows(loss_named(c->loss), NULL, &args));
        }
        y[i] = kept;
        const double slope = (8 * (f[2] - f[1]) - (f[3] - f[0])) / (12 * (double)step);
        CHECK_NEAR((double)dy[i], slope * (double)args.values->loss_seed, 3e-5 + 1e-5 * fabs(slope));
    }
}

static void check_size(const loss_case *c, int64_t rows, int64_t width, bool mixed) {
    const tdm_loss_def *loss = loss_named(c->loss);
    const size_t count = (size_t)(rows * width);
    float *y = calloc(count, sizeof *y), *dy = calloc(count, sizeof *dy), *again = calloc(count, sizeof *again);
    void *target = calloc(1, loss_target_bytes(loss, rows, width));
    const int failures = tdm_test_failures;
    const tdm_step_values values = {.loss_seed = 1};
    double sum[3] = {sum_before, sum_before, sum_before};
    int64_t correct[3] = {correct_before, correct_before, correct_before};
    loss_numbers(11, y, (int64_t)count, 4);
    loss_targets(c, rows, width, mixed, target);
    memset(dy, 0xFF, count * sizeof *dy); /* NaN */
    float *const to[3] = {dy, again, NULL};
    tdm_loss_args args = {
        .section = &c->section, .rows = rows, .width = width, .y = y, .target = target, .values = &values};
    for (int k = 0; k < 3; k++) {
        args.dy = to[k], args.loss_sum = &sum[k], args.correct = &correct[k];
        CHECK_OK(tdm__loss_of_rows(loss, NULL, &args));
        CHECK(sum[k] == sum[0] && correct[k] == correct[0]); /* the same bits, and without a gradient too */
    }
    CHECK(memcmp(dy, again, count * sizeof *dy) == 0);
    const int64_t hits = correct[0] - correct_before;
    const double denominator = loss->denominator(&c->section, rows, width, target);
    const double most = (double)(c->section.weight.count > 0 ? 8 * rows : rows * width);
    CHECK(isfinite(sum[0]) && denominator >= 0 && denominator <= most);
    CHECK(hits >= 0 && hits <= (loss->target == TDM_TARGET_CLASS ? rows : 0));
    double other = 0;
    args.dy = dy, args.loss_sum = &other;
    CHECK_OK(tdm__loss_of_rows(loss, NULL, &args));
    CHECK_NEAR(sum[0] - sum_before, other, 1e-12 * (sum_before + fabs(other))); /* it is added to what is there */
    if (count <= MOST_OF_SLOPES && !c->kinks) check_slopes(c, args, y);
    if (tdm_test_failures != failures)
        fprintf(stderr, "  %s, case %d, %lld x %lld%s\n", c->loss, (int)(c - loss_cases), (long long)rows,
                (long long)width, mixed ? ", mixed" : "");
    free(y), free(dy), free(again), free(target);
}

TEST(cases) {
    each_loss_size(check_size);
}

static void begin(void) {}

/* More rows than whose losses are kept at a time, and enough numbers for threads to share. */
enum { SHARED_ROWS = 1100, SHARED_WIDTH = 40, SHARED = SHARED_ROWS * SHARED_WIDTH };

typedef struct {
    double sum;
    int64_t correct;
    float dy[SHARED];
} shared_outcome;

static void run_shared(const tdm_loss_def *loss, const void *target, int count, shared_outcome *out) {
    const tdm_step_values values = {.loss_seed = 0.5f};
    tdm_threads *threads = NULL;
    static float y[SHARED];
    loss_numbers(3, y, SHARED, 4);
    tdm_loss_args args = {.section = &(tdm_loss_section){.ignore_index = 3, .label_smoothing = 0.1},
                          .rows = SHARED_ROWS,
                          .width = SHARED_WIDTH,
                          .y = y,
                          .target = target,
                          .values = &values,
                          .dy = out->dy,
                          .loss_sum = &out->sum,
                          .correct = &out->correct};
    REQUIRE_OK(tdm__threads_open(&threads, tdm_host_default(), count, 0, begin));
    CHECK_OK(tdm__loss_of_rows(loss, threads, &args));
    tdm__threads_close(threads);
}

TEST(threads_that_share_the_rows_change_no_bit) {
    for (const tdm_loss_def *const *loss = tdm_builtin_losses; *loss != NULL; loss++) {
        const loss_case like = {.loss = (*loss)->name, .section = {.ignore_index = 3}};
        void *target = calloc(1, loss_target_bytes(*loss, SHARED_ROWS, SHARED_WIDTH));
        static shared_outcome one, many;
        loss_targets(&like, SHARED_ROWS, SHARED_WIDTH, false, target);
        memset(&one, 0, sizeof one);
        run_shared(*loss, target, 1, &one);
        CHECK(one.sum != 0 && ((*loss)->target != TDM_TARGET_CLASS || one.correct > 0));
        for (int threads = 2; threads <= 7; threads++) {
            memset(&many, 0, sizeof many);
            run_shared(*loss, target, threads, &many);
            CHECK(memcmp(&one, &many, sizeof one) == 0);
        }
        free(target);
    }
}

/* The message is of the first of two, whichever thread finds its own first, and says the row of the batch. */
TEST(a_wrong_label_among_shared_rows_is_named) {
    static int64_t label[SHARED_ROWS];
    static float y[SHARED], dy[SHARED];
    const tdm_step_values values = {.loss_seed = 1};
    double sum = 0;
    int64_t correct = 0;
    tdm_threads *threads = NULL;
    tdm_loss_args args = {.section = &(tdm_loss_section){.ignore_index = -100},
                          .rows = SHARED_ROWS,
                          .width = SHARED_WIDTH,
                          .y = y,
                          .target = label,
                          .values = &values,
                          .dy = dy,
                          .loss_sum = &sum,
                          .correct = &correct};
    label[700] = label[1000] = SHARED_WIDTH;
    REQUIRE_OK(tdm__threads_open(&threads, tdm_host_default(), 2, 0, begin));
    CHECK_STATUS(tdm__loss_of_rows(&tdm__cross_entropy_loss, threads, &args), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "got 40 in row 700 of the batch");
    CHECK(sum == 0 && correct == 0);
    tdm__threads_close(threads);
}

/* ---- single losses ---- */

static const tdm_origin origin = {.file = "net.yaml", .line = 12, .column = 7};

typedef struct {
    double sum;
    int64_t correct;
    float dy[64];
    tdm_status status;
} outcome;

static outcome run(const tdm_loss_def *loss, const tdm_loss_section *section, int64_t rows, int64_t width,
                   const float *y, const void *target, float seed) {
    const tdm_step_values step = {.loss_seed = seed};
    outcome out = {0};
    for (int i = 0; i < 64; i++) out.dy[i] = NAN;
    tdm_loss_args args = {.section = section,
                          .rows = rows,
                          .width = width,
                          .y = y,
                          .target = target,
                          .values = &step,
                          .dy = out.dy,
                          .loss_sum = &out.sum,
                          .correct = &out.correct};
    out.status = tdm__loss_of_rows(loss, NULL, &args);
    return out;
}

static outcome cross_entropy(const tdm_loss_section *section, int64_t rows, int64_t width, const float *y,
                             const int64_t *label, float seed) {
    return run(&tdm__cross_entropy_loss, section, rows, width, y, label, seed);
}

static const tdm_loss_section usual = {.label_smoothing = 0, .ignore_index = -100};

TEST(equal_outputs_cost_log_of_classes) {
    const float y[8] = {0};
    outcome out = cross_entropy(&usual, 2, 4, y, (const int64_t[]){0, 3}, 0.5f);
    CHECK_OK(out.status);
    CHECK_NEAR(out.sum, 2 * log(4), 1e-7);
    const float want[8] = {-0.375f, 0.125f, 0.125f, 0.125f, 0.125f, 0.125f, 0.125f, -0.375f};
    for (int i = 0; i < 8; i++) CHECK_NEAR(out.dy[i], want[i], 1e-7);
    CHECK_INT(out.correct, 1); /* of equal outputs the first is the answer */
}

TEST(large_outputs_do_not_overflow) {
    const float y[4] = {1e30f, -1e30f, 3e38f, 0};
    outcome out = cross_entropy(&usual, 2, 2, y, (const int64_t[]){0, 0}, 1);
    CHECK_NEAR(out.sum, 0, 0);
    CHECK_NEAR(out.dy[0], 0, 0);
    CHECK_INT(out.correct, 2);
}

TEST(nan_is_seen) {
    const float y[3] = {1, NAN, 0};
    outcome out = cross_entropy(&usual, 1, 3, y, (const int64_t[]){0}, 1);
    CHECK_OK(out.status);
    CHECK(isnan(out.sum) && isnan(out.dy[0]));
    CHECK_INT(out.correct, 0); /* torch.argmax answers 1 */
}

TEST(ignored_rows_do_not_count) {
    const tdm_loss_section section = {.label_smoothing = 0.1, .ignore_index = 2};
    const float y[9] = {0, 0, 0, 9, 9, 9, 0, 0, 0};
    const int64_t label[3] = {0, 2, 1}, none[3] = {2, 2, 2};
    CHECK(tdm__cross_entropy_loss.denominator(&section, 3, 3, label) == 2);
    outcome out = cross_entropy(&section, 3, 3, y, label, 0.5f);
    CHECK_NEAR(out.sum, 2 * log(3), 1e-6);
    for (int i = 3; i < 6; i++) CHECK_NEAR(out.dy[i], 0, 0);
    CHECK_INT(out.correct, 1);
    CHECK(tdm__cross_entropy_loss.denominator(&section, 3, 3, none) == 0);
    out = cross_entropy(&section, 3, 3, y, none, INFINITY);
    CHECK_NEAR(out.sum, 0, 0);
    for (int i = 0; i < 9; i++) CHECK_NEAR(out.dy[i], 0, 0);
}

static const tdm_loss_section weighted = {.ignore_index = 3, .weight = {4, (const double[]){0.5, 2, 0, 1}}};

TEST(a_label_counts_by_the_weight_of_its_class) {
    const float y[16] = {0};
    const int64_t label[4] = {0, 1, 2, 3}; /* the third weighs 0, the last is ignored */
    CHECK(tdm__cross_entropy_loss.denominator(&weighted, 4, 4, label) == 2.5);
    CHECK(tdm__nll_loss.denominator(&weighted, 4, 4, label) == 2.5);
    CHECK(tdm__cross_entropy_loss.denominator(&weighted, 4, 4, NULL) == 4);
    CHECK(tdm__soft_cross_entropy_loss.denominator(&weighted, 4, 4, y) == 4);
    outcome out = cross_entropy(&weighted, 4, 4, y, label, 0.4f);
    CHECK_NEAR(out.sum, 2.5 * log(4), 1e-6);
    CHECK_NEAR(out.dy[0], -0.75f * 0.5f * 0.4f, 1e-7);
    CHECK_NEAR(out.dy[4], 0.25f * 2 * 0.4f, 1e-7);
    for (int i = 8; i < 16; i++) CHECK(out.dy[i] == 0);
}

TEST(a_soft_target_that_is_certain_costs_what_its_label_does) {
    const float y[4] = {0.5f, -1, 2, 0}, t[4] = {0, 1, 0, 0};
    const int64_t label = 1;
    const outcome hard = cross_entropy(&weighted, 1, 4, y, &label, 0.5f);
    const outcome soft = run(&tdm__soft_cross_entropy_loss, &weighted, 1, 4, y, t, 0.5f);
    CHECK_NEAR(soft.sum, hard.sum, 1e-7);
    for (int c = 0; c < 4; c++) CHECK_NEAR(soft.dy[c], hard.dy[c], 1e-7);
}

TEST(nll_closed_form) {
    const float y[8] = {-1, -2, -3, -4, -5, -6, -7, -8};
    outcome out = run(&tdm__nll_loss, &weighted, 2, 4, y, (const int64_t[]){1, 3}, 0.25f);
    CHECK_NEAR(out.sum, 4, 0);
    for (int i = 0; i < 8; i++) CHECK(out.dy[i] == (i == 1 ? -0.5f : 0));
    CHECK_INT(out.correct, 0);
    out = run(&tdm__nll_loss, &weighted, 1, 4, y, (const int64_t[]){4}, 1);
    CHECK_INT(out.status, TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "nll expects labels from 0 to 3");
}

TEST(a_mixed_label_costs_its_two_classes) {
    const float y[3] = {0.5f, -1, 2};
    const int64_t plain[2] = {0, 2}, mixed = tdm_label_pack(0, 2, TDM_LABEL_PARTS / 4);
    for (int smoothed = 0; smoothed < 2; smoothed++) {
        const tdm_loss_section section = {.label_smoothing = smoothed * 0.1, .ignore_index = -100};
        const outcome first = cross_entropy(&section, 1, 3, y, &plain[0], 1);
        const outcome second = cross_entropy(&section, 1, 3, y, &plain[1], 1);
        const outcome both = cross_entropy(&section, 1, 3, y, &mixed, 1);
        CHECK_OK(both.status);
        CHECK_NEAR(both.sum, 0.75 * first.sum + 0.25 * second.sum, 2e-7);
        for (int c = 0; c < 3; c++) CHECK_NEAR(both.dy[c], 0.75f * first.dy[c] + 0.25f * second.dy[c], 1e-7);
        CHECK_INT(both.correct, 0); /* the largest output is that of the lighter class */
    }
}

TEST(the_heavier_class_is_the_answer) {
    const float y[2] = {0, 1};
    const int64_t half = TDM_LABEL_PARTS / 2,
                  label[3] = {tdm_label_pack(0, 1, half), tdm_label_pack(0, 1, half + 1), tdm_label_pack(1, 0, half)};
    for (int i = 0; i < 3; i++) CHECK_INT(cross_entropy(&usual, 1, 2, y, &label[i], 1).correct, i > 0);
}

TEST(labels_are_packed) {
    const int64_t last = TDM_LABEL_CLASSES - 1, parts[3] = {1, TDM_LABEL_PARTS / 2, TDM_LABEL_PARTS - 1};
    const int64_t classes[4] = {0, 1, last - 1, last}, plain[5] = {0, last, -100, INT64_MIN, TDM_LABEL_MIXED - 1};
    for (int i = 0; i < 4 * 4 * 3; i++) {
        const int64_t first = classes[i % 4], second = classes[i / 4 % 4], weight = parts[i / 16];
        const tdm_label label = tdm_label_unpack(tdm_label_pack(first, second, weight));
        CHECK(label.first == first && label.second == second && tdm_label_fits(label, TDM_LABEL_CLASSES));
        CHECK(label.weight == (first == second ? 0 : (double)weight / (double)TDM_LABEL_PARTS));
    }
    for (int i = 0; i < 5; i++) {
        const tdm_label label = tdm_label_unpack(plain[i]);
        CHECK(label.first == plain[i] && label.second == plain[i] && label.weight == 0);
    }
}

TEST(wrong_classes_of_mixed_labels_are_refused) {
    const float y[6] = {0};
    const int64_t label[2][2] = {{tdm_label_pack(0, 3, 5), 0}, {tdm_label_pack(3, 1, 5), 0}};
    for (int i = 0; i < 2; i++) {
        CHECK_INT(cross_entropy(&usual, 2, 3, y, label[i], 1).status, TDM_E_DATA);
        CHECK_TEXT(tdm_error_message(),
                   "cross_entropy expects labels from 0 to 2 (the model gives 3 classes), got 3 in row 0 of the batch");
    }
}

TEST(labels_out_of_range_are_refused) {
    const float y[6] = {0};
    outcome out = cross_entropy(&usual, 2, 3, y, (const int64_t[]){2, 3}, 1);
    CHECK_INT(out.status, TDM_E_DATA);
    CHECK_TEXT(tdm_error_message(),
               "cross_entropy expects labels from 0 to 2 (the model gives 3 classes), got 3 in row 1 of "
               "the batch");
    out = cross_entropy(&usual, 2, 3, y, (const int64_t[]){-1, 0}, 1);
    CHECK_INT(out.status, TDM_E_DATA);
    out = cross_entropy(&usual, 1, 3, y, (const int64_t[]){INT64_MIN}, 1);
    CHECK_INT(out.status, TDM_E_DATA);
}

/* Rows are added in double in row order: a sum of float32 row losses would lose the small ones. */
TEST(rows_are_added_in_double) {
    float y[2000];
    int64_t label[1000];
    for (int i = 0; i < 1000; i++) y[2 * i] = i == 0 ? -30000.0f : 9.0f, y[2 * i + 1] = 0, label[i] = 0;
    double sum = 0, one = 0;
    int64_t correct = 0;
    const tdm_step_values step = {.loss_seed = 1};
    tdm_loss_args args = {.section = &usual,
                          .rows = 1,
                          .width = 2,
                          .y = y + 2,
                          .target = label + 1,
                          .values = &step,
                          .loss_sum = &one,
                          .correct = &correct};
    CHECK_OK(tdm__loss_of_rows(&tdm__cross_entropy_loss, NULL, &args)); /* also: no gradient wanted */
    args.rows = 1000, args.y = y, args.target = label, args.loss_sum = &sum;
    CHECK_OK(tdm__loss_of_rows(&tdm__cross_entropy_loss, NULL, &args));
    CHECK_NEAR(sum, 30000 + 999 * one, 1e-9);
    CHECK_INT(correct, 1 + 999); /* both runs were added */
}

TEST(mse_closed_form) {
    const float y[4] = {1, 2, 3, 4}, t[4] = {1, 0, 6, 4.5f};
    CHECK(tdm__mse_loss.denominator(NULL, 2, 2, t) == 4);
    outcome out = run(&tdm__mse_loss, NULL, 2, 2, y, t, 0.25f);
    CHECK_NEAR(out.sum, 13.25, 0);
    const float want[4] = {0, 1, -1.5f, -0.25f};
    for (int i = 0; i < 4; i++) CHECK_NEAR(out.dy[i], want[i], 0);
    CHECK_INT(out.correct, 0);
}

TEST(shapes) {
    int64_t classes = 0;
    const tdm_shape good = {1, {10}}, image = {3, {64, 8, 8}}, one = {1, {1}};
    CHECK_OK(tdm__cross_entropy_loss.infer(&usual, &good, &origin, &classes));
    CHECK_INT(classes, 10);
    CHECK_STATUS(tdm__cross_entropy_loss.infer(&usual, &image, &origin, &classes), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "the model gives 64x8x8; end it with `flatten` and `linear: <classes>`");
    CHECK_INT(tdm_error_last()->line, 12);
    CHECK_STATUS(tdm__cross_entropy_loss.infer(&usual, &one, &origin, &classes), TDM_E_CONFIG);
    CHECK(tdm__mse_loss.infer == NULL); /* any shape will do */
    tdm_loss_section pos_weighted = {.pos_weight = {3, (const double[]){1, 2, 3}}};
    CHECK_STATUS(tdm__bce_with_logits_loss.infer(&pos_weighted, &good, &origin, &classes), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "loss.pos_weight has 3 numbers, but the model gives 10 outputs");
    pos_weighted.pos_weight.count = 1;
    CHECK_OK(tdm__bce_with_logits_loss.infer(&pos_weighted, &good, &origin, &classes));
    CHECK_STATUS(tdm__nll_loss.infer(&weighted, &good, &origin, &classes), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "loss.weight has 4 numbers, but the model gives 10 classes; write one for each");
}

/* ---- loops over classes ---- */

enum { MOST_OF_CLASSES = 1100, CLASS_RESULTS = 4 * MOST_OF_CLASSES + 5 };

/* A bit for each place that the loop takes for tdm__largest, of some places and of the right one. */
static int hits_at(const tdm_class_lanes *lanes, const float *y, int64_t width) {
    const int64_t place[] = {0, width / 3, width / 2, width - 1, tdm__largest(y, width)};
    int bits = 0;
    for (int i = 0; i < 5; i++) {
        int64_t hits = 0;
        const float most = lanes->max_and_hit(y, width, place[i], &hits);
        CHECK(most == lanes->max(y, width) || isnan(most));
        CHECK_INT(hits, place[i] == place[4]);
        bits |= (int)hits << i;
    }
    return bits;
}

/* Everything that the loops give, one behind the other. */
static void class_results(const tdm_class_lanes *lanes, const float *y, int64_t width, const tdm_class_targets *of,
                          float out[CLASS_RESULTS]) {
    const float most = lanes->max(y, width);
    double sums[3] = {lanes->exp_sum(y, width, most)};
    const tdm_softmax_row row = {y, width, most, (float)log(sums[0])};
    float *softmax = out + width, *taken = out + 2 * width;
    lanes->expected(&row, of, &sums[1], &sums[2]);
    lanes->log_softmax(out, &row);
    lanes->softmax(softmax, &row, 0.25f);
    memcpy(taken, softmax, (size_t)width * sizeof *taken);
    lanes->take_targets(taken, width, of, 0.5f);
    lanes->log_softmax_gradient(out + 3 * width, out, y, width);
    out[4 * width] = most;
    out[4 * width + 1] = (float)hits_at(lanes, y, width);
    for (int i = 0; i < 3; i++) out[4 * width + 2 + i] = (float)sums[i];
}

static void check_class_lanes(const float *y, int64_t width, const tdm_class_targets *of) {
    static const tdm_class_lanes *const lanes[] = TDM_ISA_KERNELS(&tdm__class_lanes);
    static float want[CLASS_RESULTS], got[CLASS_RESULTS];
    class_results(lanes[0], y, width, of, want);
    const float most = y[tdm__largest(y, width)];
    CHECK(want[4 * width] == most || (isnan(most) && isnan(want[4 * width])));
    for (int isa = 1; isa <= (int)tdm__isa(); isa++) {
        class_results(lanes[isa], y, width, of, got);
        for (int64_t i = 0; i < 4 * width + 5; i++)
            CHECK((isnan(got[i]) && isnan(want[i])) || memcmp(&got[i], &want[i], sizeof want[i]) == 0);
    }
}

TEST(loops_over_classes_have_equal_bits_on_every_instruction_set) {
    static float y[MOST_OF_CLASSES], t[MOST_OF_CLASSES];
    static double weight[MOST_OF_CLASSES];
    static const float special[] = {NAN, INFINITY, -INFINITY, -0.0f, 0.0f, 3e38f, 1e-42f};
    for (int64_t width = 1; width <= MOST_OF_CLASSES; width += width < 70 ? 1 : 103) {
        loss_numbers((uint32_t)width, y, width, 4);
        loss_numbers(7 * (uint32_t)width, t, width, 1);
        for (int64_t c = 0; c < width; c++) weight[c] = 0.5 + (double)(c % 7) / 3;
        y[width - 1] = y[width / 2] = y[width / 3]; /* of equal ones the first */
        const tdm_class_weights weights = {(int)width, weight}, none = {0};
        check_class_lanes(y, width, &(tdm_class_targets){t, 0.9, 0.1 / (double)width, none});
        check_class_lanes(y, width, &(tdm_class_targets){NULL, 0.0, 0.1 / (double)width, weights});
        for (int i = 0; i < (int)(sizeof special / sizeof *special); i++) {
            y[width / 2] = special[i], y[0] = special[(i + 4) % 7];
            check_class_lanes(y, width, &(tdm_class_targets){t, 0.9, 0.1, weights});
        }
    }
}

TEST_MAIN(RUN(every_loss_has_cases); RUN(definitions); RUN(places_are_those_of_the_enum); RUN(cases);
          RUN(threads_that_share_the_rows_change_no_bit); RUN(a_wrong_label_among_shared_rows_is_named);
          RUN(loops_over_classes_have_equal_bits_on_every_instruction_set); RUN(equal_outputs_cost_log_of_classes);
          RUN(large_outputs_do_not_overflow); RUN(nan_is_seen); RUN(ignored_rows_do_not_count);
          RUN(a_label_counts_by_the_weight_of_its_class); RUN(a_soft_target_that_is_certain_costs_what_its_label_does);
          RUN(nll_closed_form); RUN(a_mixed_label_costs_its_two_classes); RUN(the_heavier_class_is_the_answer);
          RUN(labels_are_packed); RUN(wrong_classes_of_mixed_labels_are_refused); RUN(labels_out_of_range_are_refused);
          RUN(rows_are_added_in_double); RUN(mse_closed_form); RUN(shapes);)
