/* Shapes, parameters and refusals of the op definitions: what a user reads when layers do not fit. */
#include "ops/ops.h"
#include "runtime/base/field/field.h"
#include "tests/support/tdm_test.h"

typedef struct {
    tdm_infer infer;
    _Alignas(16) char attrs[1024];
    tdm_status status;
} layer;

static const tdm_op_def *find_op(const char *name) {
    for (const tdm_op_def *const *op = tdm_builtin_ops; *op != NULL; op++)
        if (strcmp((*op)->name, name) == 0) return *op;
    return NULL;
}

/* `attrs` as "out=4 kernel=3"; every further shape is one more input. */
static void infer(layer *l, const char *op_name, const char *attrs, const tdm_shape *input, int inputs) {
    memset(l, 0, sizeof *l);
    l->status = TDM_E_INTERNAL;
    const tdm_op_def *op = find_op(op_name);
    REQUIRE(op != NULL && op->attrs_bytes <= sizeof l->attrs);
    tdm_zone zone;
    tdm__zone_init(&zone, tdm_host_default());
    tdm_text why;
    tdm__text_init(&why, tdm_host_default());
    if (op->attrs != NULL) CHECK_OK(tdm__field_set_initial(op->attrs, l->attrs, &zone));
    char words[128], *rest = NULL;
    snprintf(words, sizeof words, "%s", attrs);
    for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        *value++ = '\0';
        CHECK(tdm__field_set_text(tdm__field_find(op->attrs, word), l->attrs, value, &zone, &why));
    }
    tdm__text_deinit(&why);
    tdm__zone_deinit(&zone);
    static char name[64];
    snprintf(name, sizeof name, "%s 'body.0'", op_name);
    l->infer = (tdm_infer){.attrs = l->attrs,
                           .input_count = inputs,
                           .layer = name,
                           .origin = {.file = "net.yaml", .line = 7, .column = 5}};
    for (int i = 0; i < inputs; i++) l->infer.input[i] = input[i];
    l->status = tdm__op_infer(op, &l->infer);
}

static void check_output(const char *op, const char *attrs, tdm_shape input, const char *want) {
    layer l;
    infer(&l, op, attrs, &input, 1);
    CHECK_OK(l.status);
    CHECK_TEXT(tdm__shape_text(&l.infer.output).text, want);
}

static void check_refused(const char *op, const char *attrs, tdm_shape input, const char *message) {
    layer l;
    infer(&l, op, attrs, &input, 1);
    CHECK_INT(l.status, TDM_E_CONFIG);
    CHECK_TEXT(tdm_error_message(), message);
    CHECK_TEXT(tdm_error_last()->file, "net.yaml");
    CHECK_INT(tdm_error_last()->line, 7);
}

#define IMAGE(...) ((tdm_shape){3, {__VA_ARGS__}})
#define SERIES(...) ((tdm_shape){2, {__VA_ARGS__}})
#define FLAT(n) ((tdm_shape){1, {n}})

TEST(output_shapes) {
    check_output("linear", "out=10", FLAT(7), "10");
    check_output("linear", "out=10", ((tdm_shape){2, {5, 7}}), "5x10");
    check_output("linear", "out=10 in=4", IMAGE(3, 5, 4), "3x5x10");
    check_output("conv2d", "out=8 kernel=3", IMAGE(3, 10, 12), "8x8x10");
    check_output("conv2d", "out=8 kernel=3 padding=1 stride=2", IMAGE(3, 10, 11), "8x5x6");
    check_output("conv2d", "out=8 kernel=[3,5] dilation=[2,1] padding=[0,2]", IMAGE(3, 10, 11), "8x6x11");
    check_output("maxpool2d", "kernel=2", IMAGE(3, 5, 4), "3x2x2");
    check_output("maxpool2d", "kernel=3x2 stride=2 padding=1 dilation=2x3", IMAGE(3, 9, 8), "3x4x4");
    check_output("maxpool2d", "kernel=3 stride=2 dilation=2 ceil_mode=true", IMAGE(3, 8, 9), "3x3x3");
    check_output("conv2d", "out=8 kernel=[4,1] dilation=3 padding=same", IMAGE(3, 5, 11), "8x5x11");
    check_output("conv2d", "out=8 kernel=3 stride=2 padding=valid", IMAGE(3, 10, 11), "8x4x5");
    check_output("conv1d", "out=8 kernel=3", SERIES(3, 10), "8x8");
    check_output("conv1d", "out=8 kernel=4 padding=2 stride=3 dilation=2", SERIES(3, 10), "8x3");
    check_output("conv1d", "out=8 kernel=4 dilation=3 padding=same", SERIES(3, 5), "8x5");
    check_output("conv1d", "out=8 kernel=3 padding=valid stride=2", SERIES(3, 6), "8x2");
    check_output("maxpool1d", "kernel=3 stride=2 padding=1", SERIES(3, 9), "3x5");
    check_output("maxpool1d", "kernel=2 ceil_mode=true", SERIES(3, 5), "3x3");
    check_output("adaptive_avgpool1d", "out=4", SERIES(3, 9), "3x4");
    check_output("transpose", "", SERIES(3, 9), "9x3");
    check_output("maxpool2d", "kernel=3 stride=2 padding=1", IMAGE(3, 112, 112), "3x56x56");
    check_output("maxpool2d", "kernel=2 ceil_mode=true", IMAGE(3, 5, 4), "3x3x2");
    check_output("maxpool2d", "kernel=3 stride=2 ceil_mode=true", IMAGE(3, 112, 111), "3x56x55");
    check_output("maxpool2d", "kernel=2 padding=1 ceil_mode=true", IMAGE(3, 4, 5),
                 "3x3x3"); /* not a window of padding */
    check_output("avgpool2d", "kernel=5 stride=3 ceil_mode=true", IMAGE(3, 4, 3), "3x1x1");
    check_output("avgpool2d", "kernel=[2,3] stride=[1,3]", IMAGE(3, 5, 9), "3x4x3");
    check_output("adaptive_avgpool2d", "out=[1,7]", IMAGE(3, 5, 4), "3x1x7");
    check_output("batchnorm2d", "", IMAGE(3, 5, 4), "3x5x4");
    check_output("batchnorm1d", "in=9", FLAT(9), "9");
    check_output("batchnorm1d", "", (tdm_shape){2, {3, 7}}, "3x7");
    check_output("dropout2d", "", IMAGE(3, 5, 4), "3x5x4");
    check_output("adaptive_maxpool2d", "out=1x7", IMAGE(3, 5, 4), "3x1x7");
    check_output("upsample", "scale=2", IMAGE(3, 5, 4), "3x10x8");
    check_output("upsample", "scale=0.5", IMAGE(3, 5, 4), "3x2x2");
    check_output("upsample", "scale=1.7", IMAGE(3, 5, 4), "3x8x6");
    check_output("upsample", "size=7x2 mode=bilinear align_corners=true", IMAGE(3, 5, 4), "3x7x2");
    check_output("log_softmax", "", FLAT(10), "10");
    check_output("layernorm", "", IMAGE(3, 5, 4), "3x5x4");
    check_output("layernorm", "normalized_shape=[5,4]", IMAGE(3, 5, 4), "3x5x4");
    check_output("groupnorm", "groups=3", FLAT(9), "9");
    check_output("relu", "", IMAGE(3, 5, 4), "3x5x4");
    static const char *const activations[] = {"leaky_relu", "sigmoid", "tanh", "silu", "gelu", "hardswish", "identity"};
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        check_output(activations[i], "", IMAGE(3, 5, 4), "3x5x4");
    check_output("gelu", "approximate=tanh", IMAGE(3, 5, 4), "3x5x4");
    check_output("dropout", "", FLAT(9), "9");
    check_output("flatten", "", IMAGE(3, 5, 4), "60");
    check_output("flatten", "", FLAT(4), "4");
}

TEST(parameters) {
    layer l;
    tdm_shape image = IMAGE(4, 5, 5);
    infer(&l, "conv2d", "out=6 kernel=[3,2] groups=2", &image, 1);
    REQUIRE(l.status == TDM_OK && l.infer.param_count == 2);
    CHECK_TEXT(l.infer.param[0].suffix, "weight");
    CHECK_TEXT(tdm__shape_text(&l.infer.param[0].shape).text, "6x2x3x2");
    CHECK_INT(l.infer.param[0].init, TDM_INIT_UNIFORM_FAN_IN);
    CHECK_INT(l.infer.param[0].fan_in, 12);
    CHECK_TEXT(l.infer.param[1].suffix, "bias");
    CHECK_TEXT(tdm__shape_text(&l.infer.param[1].shape).text, "6");
    CHECK_INT(l.infer.param[1].fan_in, 12);
    CHECK_NEAR(l.infer.flops, 2.0 * 12 * 6 * 3 * 4, 0);

    tdm_shape flat = FLAT(30), steps = {2, {5, 30}};
    infer(&l, "linear", "out=7", &steps, 1);
    REQUIRE(l.status == TDM_OK && l.infer.param_count == 2);
    CHECK_TEXT(tdm__shape_text(&l.infer.param[0].shape).text, "7x30");
    CHECK(!l.infer.param[1].is_bias); /* of features, not of channels */
    CHECK_NEAR(l.infer.flops, 5 * 420, 0);
    infer(&l, "linear", "out=7", &flat, 1);
    CHECK(l.infer.param[1].is_bias);
    infer(&l, "linear", "out=7 bias=false in=30", &flat, 1);
    REQUIRE(l.status == TDM_OK && l.infer.param_count == 1);
    CHECK_TEXT(tdm__shape_text(&l.infer.param[0].shape).text, "7x30");
    CHECK_NEAR(l.infer.flops, 420, 0);

    infer(&l, "batchnorm2d", "", &image, 1);
    REQUIRE(l.status == TDM_OK && l.infer.param_count == 2 && l.infer.buffer_count == 3);
    CHECK_INT(l.infer.param[0].init, TDM_INIT_ONES);
    CHECK_INT(l.infer.param[1].init, TDM_INIT_ZEROS);
    CHECK_TEXT(l.infer.buffer[0].suffix, "running_mean");
    CHECK_TEXT(l.infer.buffer[1].suffix, "running_var");
    CHECK_INT(l.infer.buffer[1].init, TDM_INIT_ONES);
    CHECK_TEXT(l.infer.buffer[2].suffix, "num_batches_tracked");
    CHECK(l.infer.buffer[2].is_counter && l.infer.buffer[2].shape.ndim == 0);

    infer(&l, "layernorm", "normalized_shape=[5,5]", &image, 1);
    REQUIRE(l.status == TDM_OK && l.infer.param_count == 2);
    CHECK_TEXT(tdm__shape_text(&l.infer.param[0].shape).text, "5x5");
    CHECK_INT(l.infer.param[0].init, TDM_INIT_ONES);
    CHECK_INT(l.infer.param[1].init, TDM_INIT_ZEROS);
    infer(&l, "layernorm", "bias=false", &image, 1);
    CHECK_INT(l.infer.param_count, 1);
    CHECK_TEXT(tdm__shape_text(&l.infer.param[0].shape).text, "5");
    infer(&l, "layernorm", "elementwise_affine=false", &image, 1);
    CHECK_INT(l.infer.param_count, 0);
    infer(&l, "groupnorm", "groups=2", &image, 1);
    REQUIRE(l.status == TDM_OK && l.infer.param_count == 2);
    CHECK_TEXT(tdm__shape_text(&l.infer.param[1].shape).text, "4");

    infer(&l, "batchnorm2d", "affine=false track_running_stats=false", &image, 1);
    CHECK_INT(l.infer.param_count + l.infer.buffer_count, 0);

    infer(&l, "batchnorm1d", "init=zeros", &steps, 1);
    REQUIRE(l.status == TDM_OK && l.infer.param_count == 2 && l.infer.buffer_count == 3);
    CHECK_TEXT(tdm__shape_text(&l.infer.param[0].shape).text, "5");
    CHECK_INT(l.infer.param[0].init, TDM_INIT_ZEROS);
    CHECK_TEXT(l.infer.buffer[2].suffix, "num_batches_tracked");
    CHECK_INT(l.infer.least_rows, 0);
    CHECK_INT(l.infer.statistics, 11);
    infer(&l, "batchnorm1d", "track_running_stats=false", &flat, 1);
    CHECK_INT(l.infer.least_rows, 2);
    CHECK_INT(l.infer.least_rows_in_evaluation, 2);
}

TEST(one_value_in_a_group) {
    layer l;
    const tdm_shape point = {3, {4, 1, 1}};
    infer(&l, "groupnorm", "groups=2", &point, 1);
    REQUIRE(l.status == TDM_OK);
    CHECK_INT(l.infer.least_rows + l.infer.least_rows_in_evaluation, 0);
    infer(&l, "groupnorm", "groups=4", &point, 1); /* as torch refuses it */
    REQUIRE(l.status == TDM_OK);
    CHECK_INT(l.infer.least_rows, 2);
    CHECK_INT(l.infer.least_rows_in_evaluation, 2);
}

TEST(parameters_of_series) {
    layer l;
    tdm_shape series = SERIES(4, 9);
    infer(&l, "conv1d", "out=6 kernel=3 groups=2", &series, 1);
    REQUIRE(l.status == TDM_OK && l.infer.param_count == 2);
    CHECK_TEXT(tdm__shape_text(&l.infer.param[0].shape).text, "6x2x3");
    CHECK_TEXT(tdm__shape_text(&l.infer.param[1].shape).text, "6");
    CHECK_INT(l.infer.param[0].fan_in, 6);
    CHECK(l.infer.param[1].is_bias);
    CHECK_NEAR(l.infer.flops, 2.0 * 6 * 6 * 7, 0);
}

TEST(refusals) {
    check_refused(
        "linear", "out=10", IMAGE(128, 8, 8),
        "linear 'body.0' works along the last dimension, and its input is 128x8x8; put `flatten` before it, or "
        "write `in: 8` if that is meant");
    check_refused("linear", "out=10 in=128", IMAGE(128, 8, 8),
                  "linear 'body.0': `in` says 128 features, but its input 128x8x8 has 8; correct it or leave it out");
    check_refused("linear", "out=10 in=512", FLAT(8192),
                  "linear 'body.0': `in` says 512 features, but its input 8192 has 8192; correct it or leave it out");
    check_refused("conv2d", "out=8 kernel=3", FLAT(784),
                  "conv2d 'body.0' needs an input of channels x height x width, got 784");
    check_refused("conv2d", "out=8 kernel=7 padding=1", IMAGE(3, 3, 3),
                  "conv2d 'body.0': kernel 7x7 is larger than the padded input 5x5");
    check_refused("conv2d", "out=8 kernel=7", IMAGE(3, 5, 9),
                  "conv2d 'body.0': kernel 7x7 is larger than the input 5x9");
    check_refused("conv2d", "out=8 kernel=3 dilation=4", IMAGE(3, 8, 8),
                  "conv2d 'body.0': kernel 9x9 (spread by its dilation) is larger than the input 8x8");
    check_refused("conv2d", "out=8 kernel=3 padding=same stride=[1,2]", IMAGE(3, 8, 8),
                  "conv2d 'body.0': `padding: same` needs a stride of 1, got 1x2");
    check_refused("conv2d", "out=8 kernel=1 groups=2", IMAGE(3, 8, 8),
                  "conv2d 'body.0': groups must divide the channels of the input, got 2 groups and 3 channels");
    check_refused("conv2d", "out=8 kernel=1 groups=3", IMAGE(3, 8, 8),
                  "conv2d 'body.0': groups must divide `out`, got 3 groups and 8 channels");
    check_refused("conv2d", "out=8 kernel=1 in=4", IMAGE(3, 8, 8),
                  "conv2d 'body.0': `in` says 4 channels, but its input 3x8x8 has 3; correct it or leave it out");
    check_refused("maxpool2d", "kernel=3 padding=2", IMAGE(3, 8, 8),
                  "maxpool2d 'body.0': padding may be at most half the kernel 3x3, got 2x2");
    check_refused("maxpool2d", "kernel=3 padding=2 dilation=2", IMAGE(3, 8, 8),
                  "maxpool2d 'body.0': padding may be at most half the kernel 3x3, got 2x2");
    check_refused("maxpool2d", "kernel=3 dilation=4", IMAGE(3, 8, 9),
                  "maxpool2d 'body.0': kernel 9x9 (spread by its dilation) is larger than the input 8x9");
    check_refused("maxpool2d", "kernel=2 padding=1 dilation=2", IMAGE(3, 1, 4),
                  "maxpool2d 'body.0': with dilation 2x2 some window has no point of the input 1x4");
    check_refused("maxpool2d", "kernel=9 stride=1 ceil_mode=true", IMAGE(3, 8, 8),
                  "maxpool2d 'body.0': no window 9x9 fits into the input 8x8");
    check_refused("avgpool2d", "kernel=9", IMAGE(3, 8, 8),
                  "avgpool2d 'body.0': kernel 9x9 is larger than the input 8x8");
    check_refused("dropout2d", "", FLAT(8), "dropout2d 'body.0' needs an input of channels x height x width, got 8");
    check_refused("adaptive_maxpool2d", "out=1", IMAGE(1, 65536, 65536),
                  "adaptive_maxpool2d 'body.0': its input may have at most 2147483647 points, got 1x65536x65536");
    check_refused("upsample", "", IMAGE(3, 5, 4),
                  "upsample 'body.0' needs `scale` or `size`, and not both, got neither");
    check_refused("upsample", "scale=2 size=3", IMAGE(3, 5, 4),
                  "upsample 'body.0' needs `scale` or `size`, and not both, got both");
    check_refused("upsample", "scale=2 align_corners=true", IMAGE(3, 5, 4),
                  "upsample 'body.0': align_corners is for `mode: bilinear`; remove it, or choose that mode");
    check_refused("upsample", "scale=0.2", IMAGE(3, 5, 4),
                  "upsample 'body.0': with scale 0.2 its input 3x5x4 would have an output of 0 points along the width");
    check_refused("layernorm", "normalized_shape=[3,5]", IMAGE(3, 5, 4),
                  "layernorm 'body.0': normalized_shape must be the last dimensions of the input 3x5x4, got 3x5");
    check_refused("layernorm", "normalized_shape=[1,3,5,4]", IMAGE(3, 5, 4),
                  "layernorm 'body.0': normalized_shape must be the last dimensions of the input 3x5x4, got 1x3x5x4");
    check_refused("groupnorm", "groups=2", IMAGE(3, 5, 4),
                  "groupnorm 'body.0': groups must divide the channels of the input, got 2 groups and 3 channels");
    check_refused("batchnorm2d", "", FLAT(8),
                  "batchnorm2d 'body.0' needs an input of channels x height x width, got 8; batchnorm1d takes that");
    check_refused(
        "batchnorm1d", "", IMAGE(3, 5, 4),
        "batchnorm1d 'body.0' needs an input of channels, or of channels x points, got 3x5x4; batchnorm2d takes that");
    check_refused("batchnorm1d", "in=7", FLAT(8),
                  "batchnorm1d 'body.0': `in` says 7 channels, but its input 8 has 8; correct it or leave it out");
    check_refused("linear", "out=16777216", FLAT(16777216),
                  "linear 'body.0': its weight 16777216x16777216 has more elements than any machine can hold");
    check_refused("conv2d", "out=16777216 kernel=4096 padding=4096", IMAGE(16777216, 1, 1),
                  "conv2d 'body.0': its output 16777216x4098x4098 has more elements than any machine can hold");
    check_refused(
        "adaptive_avgpool2d", "out=4096", IMAGE(16777216, 1, 1),
        "adaptive_avgpool2d 'body.0': its output 16777216x4096x4096 has more elements than any machine can hold");
}

TEST(refusals_of_series) {
    check_refused("conv1d", "out=8 kernel=3", FLAT(784),
                  "conv1d 'body.0' needs an input of channels x points, got 784");
    check_refused("conv1d", "out=8 kernel=3", IMAGE(1, 8, 8),
                  "conv1d 'body.0' needs an input of channels x points, got 1x8x8");
    check_refused("conv1d", "out=8 kernel=7", SERIES(3, 5),
                  "conv1d 'body.0': kernel 7 is larger than the input of 5 points");
    check_refused("conv1d", "out=8 kernel=3 dilation=4 padding=1", SERIES(3, 6),
                  "conv1d 'body.0': kernel 9 (spread by its dilation) is larger than the padded input of 8 points");
    check_refused("conv1d", "out=8 kernel=3 padding=same stride=2", SERIES(3, 8),
                  "conv1d 'body.0': `padding: same` needs a stride of 1, got 2");
    check_refused("conv1d", "out=8 kernel=1 groups=2", SERIES(3, 8),
                  "conv1d 'body.0': groups must divide the channels of the input, got 2 groups and 3 channels");
    check_refused("conv1d", "out=8 kernel=1 in=4", SERIES(3, 8),
                  "conv1d 'body.0': `in` says 4 channels, but its input 3x8 has 3; correct it or leave it out");
    check_refused("maxpool1d", "kernel=3", IMAGE(1, 8, 8),
                  "maxpool1d 'body.0' needs an input of channels x points, got 1x8x8");
    check_refused("maxpool1d", "kernel=3 padding=2", SERIES(3, 8),
                  "maxpool1d 'body.0': padding may be at most half the kernel 1x3, got 0x2");
    check_refused("maxpool1d", "kernel=9", SERIES(3, 8), "maxpool1d 'body.0': kernel 1x9 is larger than the input 1x8");
    check_refused("adaptive_avgpool1d", "out=1", FLAT(9),
                  "adaptive_avgpool1d 'body.0' needs an input of channels x points, got 9");
    check_refused("transpose", "", IMAGE(1, 8, 8), "transpose 'body.0' needs an input of two dimensions, got 1x8x8");
}

TEST(log_softmax_wants_classes) {
    check_refused("log_softmax", "", IMAGE(3, 5, 4),
                  "log_softmax 'body.0' needs an input of one number for each class, got 3x5x4; put `flatten` and "
                  "`linear: <classes>` in front of it");
}

TEST(add_wants_one_shape) {
    layer l;
    tdm_shape input[3] = {IMAGE(64, 8, 8), IMAGE(64, 8, 8), IMAGE(64, 4, 4)};
    infer(&l, "add", "", input, 3);
    CHECK_INT(l.status, TDM_E_CONFIG);
    CHECK_TEXT(tdm_error_message(), "add 'body.0' needs inputs of the same shape, got 64x8x8 and, as input 3, 64x4x4");
    infer(&l, "add", "", input, 2);
    CHECK_OK(l.status);
    CHECK_TEXT(tdm__shape_text(&l.infer.output).text, "64x8x8");
}

TEST(concat_wants_one_shape_but_for_dim) {
    layer l;
    tdm_shape input[3] = {IMAGE(64, 8, 8), IMAGE(32, 8, 8), IMAGE(3, 8, 8)};
    infer(&l, "concat", "", input, 3);
    CHECK_OK(l.status);
    CHECK_TEXT(tdm__shape_text(&l.infer.output).text, "99x8x8");
    infer(&l, "concat", "dim=2", input, 2);
    CHECK_TEXT(tdm_error_message(),
               "concat 'body.0' needs inputs of the same shape, except along dim 2, got 64x8x8 and, as "
               "input 2, 32x8x8");
    infer(&l, "concat", "dim=0", input, 3);
    CHECK_TEXT(tdm_error_message(),
               "concat 'body.0': dim must be 1 to 3 for inputs such as 64x8x8 (0 is the batch), got 0");
    infer(&l, "concat", "dim=-4", input, 3);
    CHECK_TEXT(tdm_error_message(),
               "concat 'body.0': dim must be 1 to 3 for inputs such as 64x8x8 (0 is the batch), got -4");
    input[1] = FLAT(32);
    infer(&l, "concat", "", input, 2);
    CHECK_INT(l.status, TDM_E_CONFIG);
    tdm_shape wide[2] = {IMAGE(8, 3, 5), IMAGE(8, 3, 2)};
    infer(&l, "concat", "dim=-1", wide, 2);
    CHECK_TEXT(tdm__shape_text(&l.infer.output).text, "8x3x7");
}

TEST_MAIN(RUN(output_shapes); RUN(parameters); RUN(one_value_in_a_group); RUN(parameters_of_series); RUN(refusals);
          RUN(refusals_of_series); RUN(log_softmax_wants_classes); RUN(add_wants_one_shape);
          RUN(concat_wants_one_shape_but_for_dim);)
