/* The kernels of the dnnl module against the reference kernels: all cases, layouts, settings.
 *
 * Tolerance: 1e-5 of the largest magnitude of each result. oneDNN sums in float, in an order of its own; the reference
 * in double. One unit in the last place is 6e-8, so this allows some 170 of them, and a wrong index or a missing term
 * is far outside. */
#include <pthread.h>

#include "ops/ops.h"
#include "runtime/base/isa.h"
#include "runtime/module/module.h"
#include "tests/ops/batchnorm_special.h"
#include "tests/ops/op_cases.h"
#include "tests/ops/op_conform.h"
#include "tests/ops/op_driver.h"
#include "tests/support/tdm_test.h"

static const double tolerance = 1e-5;

static const tdm_module *module(void) {
    static const tdm_module *found;
    tdm_module_report report;
    if (found != NULL) return found;
    if (tdm__module_find(&found, tdm_host_default(), "dnnl", NULL, &report) != TDM_OK || found == NULL)
        SKIP_PROGRAM(report.text);
    op_thread_begin = found->thread_begin;
    return found;
}

static const tdm_kernel *find(const char *op) {
    const tdm_kernel *const *kernel = module()->kernels;
    while (*kernel != NULL && strcmp((*kernel)->op, op) != 0) kernel++;
    return *kernel;
}

TEST(settings) {
    for (const tdm_kernel *const *kernel = module()->kernels; *kernel != NULL; kernel++) {
        op_conform_count count = op_conform(*kernel, tolerance);
        printf("       %-20s %4d runs, %4d settings declined\n", (*kernel)->op, count.runs, count.declined);
        CHECK(count.runs > 0);
    }
}

/* ---- replicas are threads: the same bits on each, all at once, and states that change threads ---- */

enum { REPLICAS = 3, ROUNDS = 4 };

typedef struct {
    const tdm_kernel *kernel;
    const op_data *data;
    op_result result;
} replica;

static void *run_replica(void *argument) {
    replica *r = argument;
    const bool blocks = op_layout_applies(TDM_LAYOUT_C16, &r->data->x_shape);
    const op_setting setting = {.layout = blocks ? TDM_LAYOUT_C16 : TDM_LAYOUT_PLAIN, .training = true};
    op_run(&r->result, r->kernel, r->data, &setting);
    return NULL;
}

static bool same(const op_data *data, const op_result *a, const op_result *b) {
    const size_t number = sizeof(float);
    if (!a->ran || !b->ran || a->status != TDM_OK || b->status != TDM_OK) return false;
    bool equal = memcmp(a->y, b->y, (size_t)a->y_count * number) == 0 &&
                 memcmp(a->dx[0], b->dx[0], (size_t)a->x_count[0] * number) == 0;
    for (int i = 0; i < data->infer.param_count; i++)
        equal = equal && memcmp(a->dparam[i], b->dparam[i], (size_t)data->param_count[i] * number) == 0;
    for (int i = 0; i < data->infer.buffer_count; i++)
        if (a->buffer[i] != NULL)
            equal = equal && memcmp(a->buffer[i], b->buffer[i], (size_t)data->buffer_count[i] * number) == 0;
    return equal && a->counter == b->counter;
}

static void check_replicas(const char *op, const op_case *test) {
    op_data data;
    REQUIRE(op_data_open(&data, op, test, 5));
    const tdm_kernel *kernel = find(op);
    REQUIRE(kernel != NULL);
    replica alone = {kernel, &data, {0}};
    (void)run_replica(&alone);
    if (!alone.result.ran) printf("       %s: %s\n", op, alone.result.why);
    for (int round = 0; round < ROUNDS && alone.result.ran; round++) {
        replica each[REPLICAS];
        pthread_t thread[REPLICAS];
        for (int i = 0; i < REPLICAS; i++) each[i] = (replica){kernel, &data, {0}};
        for (int i = 0; i < REPLICAS; i++) CHECK(pthread_create(&thread[i], NULL, run_replica, &each[i]) == 0);
        for (int i = 0; i < REPLICAS; i++) pthread_join(thread[i], NULL);
        for (int i = 0; i < REPLICAS; i++) {
            CHECK(same(&data, &each[i].result, &alone.result));
            op_result_close(&each[i].result);
        }
    }
    op_result_close(&alone.result);
    op_data_close(&data);
}

TEST(replicas_at_once_have_equal_bits) {
    check_replicas("conv2d", &(op_case){.attrs = "out=32 kernel=3 padding=1", .rows = 6, .input = {3, {16, 13, 10}}});
    check_replicas("conv2d", &(op_case){.attrs = "out=5 kernel=3 groups=5", .rows = 3, .input = {3, {5, 9, 9}}});
    check_replicas("maxpool2d", &(op_case){.attrs = "kernel=2", .rows = 4, .input = {3, {32, 9, 9}}});
}

/* ---- the number of threads changes nothing ---- */

static bool is_one_of(const char *op, const char *names) {
    const char *found = strstr(names, op);
    return found != NULL && (found[strlen(op)] == ' ' || found[strlen(op)] == '\0');
}

static void check_threads_in(const char *op, const op_case *test, tdm_layout layout, int precision) {
    static const int threads[] = {2, 3, 4, 7};
    op_data data;
    REQUIRE(op_data_open(&data, op, test, 7));
    if (precision == TDM_BF16) op_data_round(&data);
    const tdm_kernel *kernel = find(op);
    REQUIRE(kernel != NULL);
    const bool relu = is_one_of(op, "conv2d linear batchnorm2d add"); /* others have none behind them */
    op_setting setting = {.layout = layout, .training = true, .relu = relu, .threads = 1, .precision = precision};
    op_result one, many;
    op_run(&one, kernel, &data, &setting);
    for (size_t i = 0; i < sizeof threads / sizeof threads[0] && one.ran; i++) {
        setting.threads = threads[i];
        op_run(&many, kernel, &data, &setting);
        CHECK(same(&data, &one, &many));
        op_result_close(&many);
    }
    CHECK(one.ran);
    op_result_close(&one);
    op_data_close(&data);
}

static void check_threads(const char *op, const op_case *test, tdm_layout layout) {
    check_threads_in(op, test, layout, TDM_F32);
}

static void check_linear(int in, int rows, int out) {
    char attrs[32];
    snprintf(attrs, sizeof attrs, "out=%d", out);
    check_threads("linear", &(op_case){.attrs = attrs, .rows = rows, .input = {1, {in}}}, TDM_LAYOUT_PLAIN);
}

TEST(threads_change_no_bit) {
    const tdm_layout blocked = TDM_LAYOUT_C16;
    /* Several chunks, also with a last wave that is not full. */
    check_threads("conv2d", &(op_case){.attrs = "out=64 kernel=3 padding=1", .rows = 14, .input = {3, {3, 32, 32}}},
                  TDM_LAYOUT_PLAIN);
    check_threads("conv2d", &(op_case){.attrs = "out=128 kernel=3 padding=1", .rows = 20, .input = {3, {64, 16, 16}}},
                  blocked);
    check_threads("conv2d", &(op_case){.attrs = "out=32 kernel=3 padding=1", .rows = 6, .input = {3, {16, 13, 10}}},
                  blocked);
    check_threads("batchnorm2d", &(op_case){.attrs = "", .rows = 29, .input = {3, {32, 9, 9}}}, blocked);
    check_threads("batchnorm1d", &(op_case){.attrs = "", .rows = 700, .input = {1, {96}}}, TDM_LAYOUT_PLAIN);
    check_threads("batchnorm1d", &(op_case){.attrs = "", .rows = 29, .input = {2, {13, 333}}}, TDM_LAYOUT_PLAIN);
    check_threads("relu6", &(op_case){.attrs = "", .rows = 29, .input = {3, {32, 9, 11}}}, blocked);
    check_threads("batchnorm2d", &(op_case){.attrs = "", .rows = 29, .input = {3, {13, 21, 9}}}, TDM_LAYOUT_PLAIN);
    check_threads("maxpool2d", &(op_case){.attrs = "kernel=2", .rows = 29, .input = {3, {32, 9, 9}}}, blocked);
    check_threads("maxpool2d", &(op_case){.attrs = "kernel=3 stride=2", .rows = 29, .input = {3, {12, 19, 11}}},
                  TDM_LAYOUT_NHWC);
    check_threads("maxpool1d", &(op_case){.attrs = "kernel=2", .rows = 29, .input = {2, {13, 199}}}, TDM_LAYOUT_PLAIN);
    check_threads("adaptive_maxpool2d", &(op_case){.attrs = "out=4", .rows = 29, .input = {3, {16, 13, 33}}},
                  TDM_LAYOUT_PLAIN);
    check_threads("embedding",
                  &(op_case){.attrs = "vocabulary=700 dim=120", .rows = 29, .input = {1, {40}}, .whole = 90},
                  TDM_LAYOUT_PLAIN);
    check_threads("layernorm", &(op_case){.attrs = "", .rows = 29, .input = {2, {13, 333}}}, TDM_LAYOUT_PLAIN);
    check_threads("relu", &(op_case){.attrs = "", .rows = 29, .input = {3, {32, 9, 11}}}, blocked);
    check_threads("add", &(op_case){.attrs = "", .rows = 29, .input = {3, {32, 9, 11}}, .inputs = 3}, blocked);
    check_threads(
        "concat",
        &(op_case){.attrs = "dim=2", .rows = 29, .input = {3, {32, 9, 5}}, .other = {3, {32, 4, 5}}, .inputs = 2},
        blocked);
    check_threads("slice", &(op_case){.attrs = "start=3 end=43", .rows = 67, .input = {1, {600}}}, TDM_LAYOUT_PLAIN);
    check_threads("transpose", &(op_case){.attrs = "", .rows = 29, .input = {2, {33, 50}}}, TDM_LAYOUT_PLAIN);
    check_threads("log_softmax", &(op_case){.attrs = "", .rows = 67, .input = {1, {1000}}}, TDM_LAYOUT_PLAIN);
    check_threads("groupnorm", &(op_case){.attrs = "groups=4", .rows = 29, .input = {3, {32, 9, 9}}}, TDM_LAYOUT_PLAIN);
    check_threads("upsample", &(op_case){.attrs = "scale=2 mode=bilinear", .rows = 29, .input = {3, {13, 9, 11}}},
                  TDM_LAYOUT_PLAIN);
    check_threads("conv1d", &(op_case){.attrs = "out=32 kernel=5 padding=2", .rows = 29, .input = {2, {24, 111}}},
                  TDM_LAYOUT_PLAIN);
    check_threads("lstm", &(op_case){.attrs = "hidden=40 layers=2", .rows = 67, .input = {2, {13, 24}}},
                  TDM_LAYOUT_PLAIN);
    check_threads("gru", &(op_case){.attrs = "hidden=72 outputs=all", .rows = 49, .input = {2, {13, 200}}},
                  TDM_LAYOUT_PLAIN);
    /* Sums that oneDNN's own threads would cut. */
    static const int shape[][3] = {{16, 1000, 32},  {4, 2000, 16},   {8192, 64, 10},   {20000, 16, 8},
                                   {300, 2500, 64}, {1000, 1, 300},  {784, 33, 129},   {17, 100, 100},
                                   {129, 130, 5},   {1, 300, 257},   {2000, 300, 200}, {1025, 388, 379},
                                   {784, 574, 480}, {264, 442, 247}, {22, 500, 1169},  {932, 881, 1226}};
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i += TDM_EVERY(3))
        check_linear(shape[i][0], shape[i][1], shape[i][2]);
}

/* sgemm chooses its code by shape: parts of a product must have the bits of the whole wherever they are shared out. */
TEST(threads_change_no_bit_of_drawn_products) {
    enum { DRAWN = 24, LARGEST = 1500 };
    uint32_t state = 1;
    for (int i = 0; i < DRAWN; i += TDM_EVERY(8)) {
        int size[3];
        for (int k = 0; k < 3; k++) size[k] = 1 + (int)((state = state * 1664525u + 1013904223u) >> 8) % LARGEST;
        check_linear(size[0], size[1], size[2]);
    }
}

/* ---- direct convolutions ---- */

static const op_case direct[] = {
    {.attrs = "out=32 kernel=3 padding=1", .rows = 8, .input = {3, {32, 13, 11}}},
    {.attrs = "out=64 kernel=3 padding=1 bias=false", .rows = 8, .input = {3, {32, 4, 4}}},
    {.attrs = "out=32 kernel=3 padding=1 stride=2", .rows = 3, .input = {3, {32, 9, 15}}},
    {.attrs = "out=32 kernel=[3,2] dilation=[2,1] padding=same", .rows = 6, .input = {3, {32, 6, 7}}},
    {.attrs = "out=48 kernel=3 padding=1", .rows = 5, .input = {3, {32, 5, 5}}},
};
enum { DIRECT_COUNT = sizeof direct / sizeof direct[0] };

TEST(direct_convolutions) {
    op_conform_count count = {0};
    for (uint64_t i = 0; i < DIRECT_COUNT; i++)
        op_conform_case_on(&count, NULL, find("conv2d"), &direct[i], 60 + i, tolerance);
    CHECK(count.runs > 0);
    for (int i = 0; i < DIRECT_COUNT; i++) check_threads("conv2d", &direct[i], TDM_LAYOUT_C16);
}

/* Eight pictures of 11 columns can be cut into groups, three cannot, and go to oneDNN. */
TEST(directly_or_by_onednn_the_bits_are_equal) {
    op_setting setting = {.layout = TDM_LAYOUT_C16, .training = true};
    op_data data;
    op_result all, some;
    REQUIRE(op_data_open(&data, "conv2d", &direct[0], 9));
    op_run(&all, find("conv2d"), &data, &setting);
    setting.rows = 3;
    op_run(&some, find("conv2d"), &data, &setting);
    REQUIRE(all.ran && some.ran);
    CHECK(memcmp(some.y, all.y, (size_t)some.y_count * sizeof(float)) == 0);
    CHECK(memcmp(some.dx[0], all.dx[0], (size_t)some.x_count[0] * sizeof(float)) == 0);
    op_result_close(&some);
    op_result_close(&all);
    op_data_close(&data);
}

/* Not a case of the op: only these kernels store what is over 2 MiB past the cache, and an emulated GPU takes half a
 * minute for it. */
TEST(batchnorm2d_past_the_cache) {
    static const op_case large = {.attrs = "", .rows = 9, .input = {3, {32, 45, 45}}, .large = true};
    op_conform_count count = {0};
    op_conform_case_on(&count, NULL, find("batchnorm2d"), &large, 40, tolerance);
    CHECK(count.runs > 0);
}

/* Features; neighbouring channels by 16, by 8 and all; planes; series. */
TEST(batchnorm_of_special_values) {
    static const struct {
        const char *op;
        op_case test;
    } tried[] = {
        {"batchnorm1d", {.rows = 9, .input = {1, {32}}}},
        {"batchnorm1d", {.rows = 3, .input = {2, {17, 19}}}},
        {"batchnorm2d", {.rows = 3, .input = {3, {32, 3, 5}}}},
        {"batchnorm2d", {.rows = 3, .input = {3, {24, 3, 5}}}},
        {"batchnorm2d", {.rows = 2, .input = {3, {17, 3, 5}}}},
        {"batchnorm2d", {.rows = 9, .input = {3, {32, 45, 45}}}},
    };
    int ran = 0;
    for (size_t i = 0; i < sizeof tried / sizeof tried[0]; i++) {
        for (int variant = 0; variant < 4 * TDM_LAYOUT_COUNT; variant++) {
            const op_setting setting = {.layout = (tdm_layout)(variant / 4),
                                        .training = true,
                                        .replicas = variant % 2 == 1 ? 2 : 1,
                                        .precision = variant % 4 < 2 ? TDM_F32 : TDM_BF16};
            if (setting.precision == TDM_BF16 && !tdm__has_fast_bf16()) continue;
            ran += special_check(find(tried[i].op), &tried[i].test, &setting);
        }
    }
    CHECK(ran > 0);
}

/* ---- means ---- */

/* Rows of several stretches, whose first and last windows are cut; channels that are no whole vector. */
static const op_case means[] = {
    {.attrs = "kernel=2", .rows = 2, .input = {3, {3, 6, 262}}},
    {.attrs = "kernel=3 stride=1 padding=1", .rows = 2, .input = {3, {5, 4, 131}}},
    {.attrs = "kernel=3 stride=2 padding=1 ceil_mode=true", .rows = 2, .input = {3, {48, 7, 140}}},
    {.attrs = "kernel=[2,5] stride=[1,3] padding=[1,2] count_include_pad=false", .rows = 2, .input = {3, {20, 5, 200}}},
};
enum { MEANS_COUNT = sizeof means / sizeof means[0] };
static const op_case adaptive[] = {
    {.attrs = "out=[3,100]", .rows = 2, .input = {3, {3, 7, 230}}},
    {.attrs = "out=[2,70]", .rows = 2, .input = {3, {20, 6, 140}}},
    {.attrs = "out=1", .rows = 2, .input = {3, {32, 7, 7}}},
    {.attrs = "out=1", .rows = 3, .input = {3, {7, 5, 3}}},
};
enum { ADAPTIVE_COUNT = sizeof adaptive / sizeof adaptive[0] };

TEST(means_have_the_bits_of_the_reference) {
    op_conform_count count = {0};
    for (uint64_t i = 0; i < MEANS_COUNT; i++)
        op_conform_case_on(&count, NULL, find("avgpool2d"), &means[i], 80 + i, 0);
    for (uint64_t i = 0; i < ADAPTIVE_COUNT; i++)
        op_conform_case_on(&count, NULL, find("adaptive_avgpool2d"), &adaptive[i], 90 + i, 0);
    CHECK(count.runs > 0);
}

TEST(log_softmax_has_the_bits_of_the_reference) {
    const op_cases *cases = op_cases_of("log_softmax");
    op_conform_count count = {0};
    for (int i = 0; i < cases->count; i++)
        op_conform_case_on(&count, NULL, find("log_softmax"), &cases->items[i], 100 + (uint64_t)i, 0);
    CHECK(count.runs > 0);
}

/* ---- bf16 ---- */

/* 1 x 1, and weights that do not fit the second-level cache: products of matrices. */
static const op_case wide[] = {
    {.attrs = "out=64 kernel=1", .rows = 9, .input = {3, {256, 8, 8}}, .large = true},
    {.attrs = "out=288 kernel=1 bias=false", .rows = 5, .input = {3, {32, 3, 7}}, .large = true},
    {.attrs = "out=512 kernel=3 padding=1", .rows = 3, .input = {3, {256, 4, 4}}, .large = true},
    {.attrs = "out=512 kernel=3 stride=2 padding=1 bias=false", .rows = 2, .input = {3, {256, 5, 4}}, .large = true},
    {.attrs = "out=1024 kernel=1 stride=2", .rows = 2, .input = {3, {1040, 3, 3}}, .large = true},
    {.attrs = "out=264 kernel=[3,2] dilation=2 padding=[2,1]", .rows = 2, .input = {3, {712, 3, 4}}, .large = true},
};
enum { WIDE_COUNT = sizeof wide / sizeof wide[0] };
/* The reference kernels take most of a minute for them under sanitizers, which see them with several threads, too. */
#ifdef TDM_SANITIZED
enum { WIDE_COMPARED = 0 };
#else
enum { WIDE_COMPARED = WIDE_COUNT };
#endif

static bool can_bf16(void) {
    if (!tdm__has_fast_bf16()) printf("       no fast bf16 here\n");
    return tdm__has_fast_bf16();
}

/* The reference gets the same rounded data, and its results are rounded. */
TEST(bf16) {
    if (!can_bf16()) return;
    for (const tdm_kernel *const *kernel = module()->kernels; *kernel != NULL; kernel++) {
        if (!(*kernel)->takes_bf16) continue;
        op_conform_count count = op_conform_bf16(NULL, *kernel, tolerance);
        for (int i = 0; i < WIDE_COMPARED && strcmp((*kernel)->op, "conv2d") == 0; i++)
            op_conform_case_bf16(&count, NULL, *kernel, &wide[i], 40 + (uint64_t)i, tolerance);
        printf("       %-20s %4d runs, %4d settings declined\n", (*kernel)->op, count.runs, count.declined);
        CHECK(count.runs > 0);
    }
}

TEST(threads_change_no_bit_of_bf16) {
    if (!can_bf16()) return;
    static const op_case convs[] = {
        {.attrs = "out=64 kernel=3 padding=1", .rows = 14, .input = {3, {16, 32, 32}}},
        {.attrs = "out=128 kernel=3 stride=2 padding=1", .rows = 20, .input = {3, {64, 16, 16}}},
    };
    for (size_t i = 0; i < sizeof convs / sizeof convs[0]; i++)
        check_threads_in("conv2d", &convs[i], TDM_LAYOUT_NHWC, TDM_BF16);
    for (int i = 0; i < WIDE_COUNT; i++) check_threads_in("conv2d", &wide[i], TDM_LAYOUT_NHWC, TDM_BF16);
    check_threads_in("batchnorm2d", &(op_case){.attrs = "", .rows = 29, .input = {3, {48, 9, 9}}}, TDM_LAYOUT_NHWC,
                     TDM_BF16);
    check_threads_in("batchnorm1d", &(op_case){.attrs = "", .rows = 700, .input = {1, {96}}}, TDM_LAYOUT_PLAIN,
                     TDM_BF16);
    check_threads_in("linear", &(op_case){.attrs = "out=768", .rows = 33, .input = {1, {1024}}}, TDM_LAYOUT_PLAIN,
                     TDM_BF16);
    check_threads_in("linear", &(op_case){.attrs = "out=10", .rows = 7, .input = {1, {300}}}, TDM_LAYOUT_PLAIN,
                     TDM_BF16);
}

/* The largest stacks leave no room for a thread. */
TEST(threads_that_cannot_be_had_are_a_failure) {
    const op_case test = {.attrs = "kernel=2", .rows = 29, .input = {3, {32, 9, 9}}};
    op_setting setting = {.layout = TDM_LAYOUT_C16, .training = true, .threads = 5};
    op_data data;
    op_result r;
    pthread_attr_t before, huge;
    REQUIRE(op_data_open(&data, "maxpool2d", &test, 7));
    CHECK_INT(pthread_getattr_default_np(&before), 0);
    CHECK_INT(pthread_attr_init(&huge), 0);
    CHECK_INT(pthread_attr_setstacksize(&huge, (size_t)1 << 47), 0);
    CHECK_INT(pthread_setattr_default_np(&huge), 0);
    op_run(&r, find("maxpool2d"), &data, &setting);
    CHECK_INT(pthread_setattr_default_np(&before), 0);
    CHECK_INT(r.status, TDM_E_MEMORY);
    CHECK_HAS(tdm_error_message(), ": 5 threads for one device cannot be started: ");
    CHECK_HAS(tdm_error_message(), "; set it lower");
    op_result_close(&r);
    op_run(&r, find("maxpool2d"), &data, &setting);
    CHECK(r.ran);
    CHECK_INT(r.status, TDM_OK);
    op_result_close(&r);
    pthread_attr_destroy(&huge);
    pthread_attr_destroy(&before);
    op_data_close(&data);
}

/* A NaN that comes in must reach the loss, or a run that has diverged would not be noticed. */
/* In which layouts the kernel offers the relu is the library's choice for this processor. */
TEST(relu_lets_nan_through) {
    const op_case test = {.attrs = "out=16 kernel=3 padding=1", .rows = 2, .input = {3, {16, 8, 8}}};
    const tdm_layout layouts[] = {TDM_LAYOUT_PLAIN, TDM_LAYOUT_NHWC, TDM_LAYOUT_C8, TDM_LAYOUT_C16};
    int runs = 0;
    for (size_t k = 0; k < sizeof(layouts) / sizeof(layouts[0]); k++) {
        op_data data;
        op_result r;
        REQUIRE(op_data_open(&data, "conv2d", &test, 6));
        data.x[0][9] = NAN;
        op_run(&r, find("conv2d"), &data, &(op_setting){.layout = layouts[k], .training = true, .relu = true});
        int nans = 0;
        for (int64_t i = 0; i < r.y_count && r.ran; i++) nans += isnan(r.y[i]) ? 1 : 0;
        CHECK(!r.ran || nans > 0);
        runs += r.ran;
        op_result_close(&r);
        op_data_close(&data);
    }
    CHECK(runs > 0);
}

/* Normal numbers hardly ever reach 6, so others are tried, and what is no number. */
TEST(relu6_has_both_bounds) {
    const op_case test = {.rows = 3, .input = {3, {16, 4, 5}}};
    op_data data;
    op_result want, got;
    REQUIRE(op_data_open(&data, "relu6", &test, 7));
    for (int64_t i = 0; i < data.x_count; i++) data.x[0][i] = data.x[0][i] * 8.0f;
    data.x[0][0] = NAN, data.x[0][20] = INFINITY, data.x[0][40] = -INFINITY, data.x[0][60] = 6.0f,
    data.x[0][80] = -0.0f;
    op_run(&want, op_reference("relu6"), &data, &(op_setting){.training = true});
    op_run(&got, find("relu6"), &data, &(op_setting){.training = true});
    REQUIRE(got.ran && want.ran);
    CHECK(op_near("y", got.y, want.y, got.y_count, 0) && op_near("dx", got.dx[0], want.dx[0], got.y_count, 0));
    CHECK(isnan(got.y[0]) && got.y[20] == 6.0f && got.y[40] == 0.0f && got.dx[0][20] == 0.0f);
    op_result_close(&want);
    op_result_close(&got);
    op_data_close(&data);
}

/* Threads meet such a number in any order; the message names the first. */
TEST(embedding_names_the_first_number_without_a_row) {
    const op_case test = {.attrs = "vocabulary=9 dim=700", .rows = 10, .input = {1, {40}}, .whole = 9};
    op_data data;
    op_result r;
    REQUIRE(op_data_open(&data, "embedding", &test, 3));
    data.x[0][7] = 8.5f, data.x[0][8] = -1, data.x[0][399] = 9;
    op_run(&r, find("embedding"), &data, &(op_setting){.training = true, .threads = 3});
    CHECK_INT(r.status, TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "embedding: an input is 8.5, and with a vocabulary of 9 it must be a whole number");
    op_result_close(&r);
    op_data_close(&data);
}

/* Rows so long that their outputs are computed in several tiles, each with points of the next under its windows. */
TEST(conv1d_in_tiles) {
    const op_case test = {.attrs = "out=16 kernel=9 padding=same", .rows = 9, .input = {2, {120, 200}}};
    op_data data;
    op_result want, got;
    REQUIRE(op_data_open(&data, "conv1d", &test, 12));
    op_run(&want, op_reference("conv1d"), &data, &(op_setting){.training = true});
    op_run(&got, find("conv1d"), &data, &(op_setting){.training = true, .threads = 2});
    CHECK(got.ran && op_results_near(&data, &got, &want, tolerance));
    op_result_close(&got);
    op_result_close(&want);
    op_data_close(&data);
}

/* Few different numbers: the first of equal maxima and the last NaN have an index of their own, which dx shows. */
static void check_maxima(const char *op, const op_case *test) {
    const tdm_layout layouts[] = {TDM_LAYOUT_PLAIN, TDM_LAYOUT_NHWC, TDM_LAYOUT_C8, TDM_LAYOUT_C16};
    op_data data;
    op_result want, got;
    REQUIRE(op_data_open(&data, op, test, 11));
    const int64_t row = test->input.dim[test->input.ndim - 1];
    for (int64_t i = 0; i < data.x_count; i++) {
        data.x[0][i] = floorf(data.x[0][i]);
        if (i % 11 == 0) data.x[0][i] = i / (8 * row) % 2 == 0 ? NAN : -INFINITY;
        if (i < 2 * row) data.x[0][i] = -INFINITY;
    }
    op_run(&want, op_reference(op), &data, &(op_setting){.training = true});
    for (size_t k = 0; k < sizeof(layouts) / sizeof(layouts[0]); k++) {
        if (layouts[k] != TDM_LAYOUT_PLAIN && !op_layout_applies(layouts[k], &data.x_shape)) continue;
        op_run(&got, find(op), &data, &(op_setting){.layout = layouts[k], .training = true, .threads = 2});
        CHECK(got.ran && op_results_near(&data, &got, &want, 0.0));
        op_result_close(&got);
    }
    op_result_close(&want);
    op_data_close(&data);
}

TEST(maxima_of_equal_numbers) {
    static const op_case images[] = {
        {.attrs = "kernel=2", .rows = 2, .input = {3, {16, 8, 39}}},
        {.attrs = "kernel=2", .rows = 2, .input = {3, {6, 9, 66}}},
        {.attrs = "kernel=3 stride=2 padding=1", .rows = 2, .input = {3, {16, 8, 39}}},
        {.attrs = "kernel=3 stride=2 padding=1 ceil_mode=true", .rows = 2, .input = {3, {12, 7, 70}}},
        {.attrs = "kernel=3 stride=1 padding=1", .rows = 2, .input = {3, {20, 7, 21}}},
        {.attrs = "kernel=[2,5] stride=[1,3] padding=[1,2]", .rows = 2, .input = {3, {5, 7, 61}}},
        {.attrs = "kernel=3 stride=2 padding=1 dilation=[2,3]", .rows = 2, .input = {3, {16, 9, 45}}},
        {.attrs = "kernel=3 stride=4 dilation=2", .rows = 2, .input = {3, {13, 9, 45}}},
        {.attrs = "kernel=[3,2] stride=2 dilation=2", .rows = 2, .input = {3, {4, 9, 19}}},
        {.attrs = "kernel=15 stride=3 padding=7", .rows = 2, .input = {3, {8, 9, 17}}},
    };
    static const op_case series[] = {
        {.attrs = "kernel=2", .rows = 2, .input = {2, {3, 77}}},
        {.attrs = "kernel=3 stride=2 padding=1", .rows = 2, .input = {2, {2, 90}}},
        {.attrs = "kernel=5 stride=1 padding=2", .rows = 2, .input = {2, {2, 23}}},
        {.attrs = "kernel=4 stride=3 dilation=2", .rows = 2, .input = {2, {2, 23}}},
    };
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++) check_maxima("maxpool2d", &images[i]);
    for (size_t i = 0; i < sizeof series / sizeof series[0]; i++) check_maxima("maxpool1d", &series[i]);
    check_maxima("adaptive_maxpool2d", &(op_case){.attrs = "out=3x2", .rows = 2, .input = {3, {16, 8, 39}}});
}

TEST_MAIN(RUN(settings); RUN(replicas_at_once_have_equal_bits); RUN(threads_change_no_bit);
          RUN(threads_change_no_bit_of_drawn_products); RUN(threads_that_cannot_be_had_are_a_failure);
          RUN(relu_lets_nan_through); RUN(relu6_has_both_bounds); RUN(maxima_of_equal_numbers);
          RUN(embedding_names_the_first_number_without_a_row); RUN(conv1d_in_tiles); RUN(direct_convolutions);
          RUN(directly_or_by_onednn_the_bits_are_equal); RUN(batchnorm2d_past_the_cache);
          RUN(batchnorm_of_special_values); RUN(means_have_the_bits_of_the_reference);
          RUN(log_softmax_has_the_bits_of_the_reference); RUN(bf16); RUN(threads_change_no_bit_of_bf16);)
