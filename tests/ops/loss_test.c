/* Losses: closed forms, slopes, ignored rows, wrong labels and shapes. Against PyTorch: op_fixture_test.c. */
#include "ops/loss/cross_entropy/cross_entropy.h"
#include "ops/ops.h"
#include "tests/support/tdm_test.h"

static const tdm_origin origin = {.file = "net.yaml", .line = 12, .column = 7};

typedef struct {
    double sum;
    int64_t correct;
    float dy[64];
    tdm_status status;
} outcome;

static outcome run(const tdm_loss_def *loss, const void *attrs, int64_t rows, int64_t width, const float *y,
                   const void *target, float seed) {
    const tdm_step_values step = {.loss_seed = seed};
    outcome out = {0};
    for (int i = 0; i < 64; i++) out.dy[i] = NAN;
    tdm_loss_args args = {.attrs = attrs,
                          .rows = rows,
                          .width = width,
                          .y = y,
                          .target = target,
                          .values = &step,
                          .dy = out.dy,
                          .loss_sum = &out.sum,
                          .correct = &out.correct};
    out.status = loss->run(&args);
    return out;
}

static outcome cross_entropy(const tdm_cross_entropy_attrs *attrs, int64_t rows, int64_t width, const float *y,
                             const int64_t *label, float seed) {
    return run(&tdm__cross_entropy_loss, attrs, rows, width, y, label, seed);
}

static const tdm_cross_entropy_attrs usual = {.label_smoothing = 0, .ignore_index = -100};

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
    const tdm_cross_entropy_attrs attrs = {.label_smoothing = 0.1, .ignore_index = 2};
    const float y[9] = {0, 0, 0, 9, 9, 9, 0, 0, 0};
    const int64_t label[3] = {0, 2, 1}, none[3] = {2, 2, 2};
    CHECK_INT(tdm__cross_entropy_loss.denominator(&attrs, 3, 3, label), 2);
    outcome out = cross_entropy(&attrs, 3, 3, y, label, 0.5f);
    CHECK_NEAR(out.sum, 2 * log(3), 1e-6);
    for (int i = 3; i < 6; i++) CHECK_NEAR(out.dy[i], 0, 0);
    CHECK_INT(out.correct, 1);
    CHECK_INT(tdm__cross_entropy_loss.denominator(&attrs, 3, 3, none), 0);
    out = cross_entropy(&attrs, 3, 3, y, none, INFINITY);
    CHECK_NEAR(out.sum, 0, 0);
    for (int i = 0; i < 9; i++) CHECK_NEAR(out.dy[i], 0, 0);
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
    tdm_loss_args args = {.attrs = &usual,
                          .rows = 1,
                          .width = 2,
                          .y = y + 2,
                          .target = label + 1,
                          .values = &step,
                          .loss_sum = &one,
                          .correct = &correct};
    CHECK_OK(tdm__cross_entropy_loss.run(&args)); /* also: no gradient wanted */
    args.rows = 1000, args.y = y, args.target = label, args.loss_sum = &sum;
    CHECK_OK(tdm__cross_entropy_loss.run(&args));
    CHECK_NEAR(sum, 30000 + 999 * one, 1e-9);
    CHECK_INT(correct, 1 + 999); /* both runs were added */
}

TEST(gradients_are_slopes) {
    const tdm_cross_entropy_attrs attrs = {.label_smoothing = 0.2, .ignore_index = -100};
    float y[10] = {0.5f, -1, 0.25f, 2, 0, 1, 1, -0.5f, 0.125f, -2};
    const int64_t label[2] = {3, 0};
    outcome out = cross_entropy(&attrs, 2, 5, y, label, 1);
    for (int i = 0; i < 10; i++) {
        float kept = y[i];
        const float step = 1.0f / 16;
        double f[4];
        const float factor[4] = {-2, -1, 1, 2};
        for (int k = 0; k < 4; k++) {
            y[i] = kept + factor[k] * step;
            f[k] = cross_entropy(&attrs, 2, 5, y, label, 1).sum;
        }
        y[i] = kept;
        CHECK_NEAR(out.dy[i], (8 * (f[2] - f[1]) - (f[3] - f[0])) / (12 * (double)step), 1e-5);
    }
}

TEST(mse_closed_form) {
    const float y[4] = {1, 2, 3, 4}, t[4] = {1, 0, 6, 4.5f};
    CHECK_INT(tdm__mse_loss.denominator(NULL, 2, 2, t), 4);
    outcome out = run(&tdm__mse_loss, NULL, 2, 2, y, t, 0.25f);
    CHECK_NEAR(out.sum, 13.25, 0);
    const float want[4] = {0, 1, -1.5f, -0.25f};
    for (int i = 0; i < 4; i++) CHECK_NEAR(out.dy[i], want[i], 0);
    CHECK_INT(out.correct, 0);
}

TEST(shapes) {
    int64_t classes = 0;
    const tdm_shape good = {1, {10}}, image = {3, {64, 8, 8}}, one = {1, {1}};
    CHECK_OK(tdm__cross_entropy_loss.infer(&good, &origin, &classes));
    CHECK_INT(classes, 10);
    CHECK_STATUS(tdm__cross_entropy_loss.infer(&image, &origin, &classes), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "the model gives 64x8x8; end it with `flatten` and `linear: <classes>`");
    CHECK_INT(tdm_error_last()->line, 12);
    CHECK_STATUS(tdm__cross_entropy_loss.infer(&one, &origin, &classes), TDM_E_CONFIG);
    CHECK(tdm__mse_loss.infer == NULL); /* any shape will do */
    CHECK(tdm_builtin_losses[0] == &tdm__cross_entropy_loss && tdm_builtin_losses[1] == &tdm__mse_loss);
    CHECK(tdm_builtin_losses[2] == NULL);
}

TEST_MAIN(RUN(equal_outputs_cost_log_of_classes); RUN(large_outputs_do_not_overflow); RUN(nan_is_seen);
          RUN(ignored_rows_do_not_count); RUN(labels_out_of_range_are_refused); RUN(rows_are_added_in_double);
          RUN(gradients_are_slopes); RUN(mse_closed_form); RUN(shapes);)
