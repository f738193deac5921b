/* What linear and conv2d choose of the algorithms that cuDNN and cublasLt offer, where some refuse to run and some lose
 * NaN; and what they say of it. On emulated CUDA. */
#include <tandem/job.h>

#include "tests/cuda/emulated.h"
#include "tests/ops/op_driver.h"

static const op_case plain = {.attrs = "out=3 kernel=3", .rows = 2, .input = {3, {2, 5, 5}}};
static const op_case neighbours = {.attrs = "out=8 kernel=3", .rows = 2, .input = {3, {8, 5, 5}}};
static const op_case product = {.attrs = "out=8", .rows = 4, .input = {1, {5}}};

/* One knob of the fakes for one block. */
static void set(const char *name, const char *value) {
    if (value != NULL)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static const tdm_kernel *kernel_of(const emulated *e, const char *op) {
    const tdm_kernel *const *kernel = e->module->kernels;
    while (*kernel != NULL && strcmp((*kernel)->op, op) != 0) kernel++;
    return *kernel;
}

static tdm_device *open_device(const emulated *e, int precision) {
    const tdm_device_options options = {.precision = precision, .deterministic = true};
    tdm_device *device = NULL;
    CHECK_OK(e->ops->open(&device, tdm_host_default(), &options));
    if (device == NULL) exit(1);
    return device;
}

/* What is chosen for a layer with a relu behind it. */
static tdm_status choose(const char *op, const op_case *test, int precision, tdm_algorithms *out) {
    const emulated *e = emulated_open();
    const tdm_kernel *kernel = kernel_of(e, op);
    tdm_device *device = open_device(e, precision);
    tdm_kernel_fit fit = {.x_layout = {TDM_LAYOUT_PLAIN}};
    void *state = NULL;
    op_data data;
    memset(out, 0, sizeof *out);
    if (!op_data_open(&data, op, test, 1)) exit(1);
    tdm_kernel_desc desc = {.op = op,
                            .attrs = data.attrs,
                            .input_count = 1,
                            .x = {data.x_shape},
                            .y = data.y_shape,
                            .param_count = data.infer.param_count,
                            .param = {data.infer.param[0].shape, data.infer.param[1].shape},
                            .needs_dx = {true},
                            .precision = precision,
                            .epilogue = TDM_EPILOGUE_RELU};
    CHECK(kernel->fits(&desc, &fit));
    desc.x_layout[0] = fit.x_layout[0];
    desc.y_layout = fit.y_layout;
    desc.weight_channels = fit.weight_channels;
    const tdm_status status = kernel->open(device, &desc, data.x_shape.dim[0], true, &state);
    if (status == TDM_OK) {
        CHECK(kernel->algorithms != NULL);
        kernel->algorithms(state, out);
        CHECK_INT(out->count, 3);
        kernel->close(state);
    }
    op_data_close(&data);
    e->ops->close(device);
    CHECK_INT(e->live(), 0);
    return status;
}

/* The same numbers as the reference's, and NaN where it has NaN. */
static void check_numbers(const char *op, const op_case *test, int precision) {
    const emulated *e = emulated_open();
    tdm_device *device = open_device(e, precision);
    op_data data;
    op_result got, want;
    REQUIRE(op_data_open(&data, op, test, 6));
    op_data_keep_tf32(&data);
    data.x[0][1] = NAN;
    op_run(&got, kernel_of(e, op), &data,
           &(op_setting){.relu = true, .training = true, .device = device, .precision = precision});
    op_run(&want, op_reference(op), &data, &(op_setting){.training = true});
    CHECK_OK(got.status);
    int nans = 0, differ = 0;
    for (int64_t i = 0; i < want.y_count; i++) {
        const float relu = want.y[i] < 0.0f ? 0.0f : want.y[i];
        nans += isnan(want.y[i]) != 0;
        CHECK(isnan(got.y[i]) == isnan(want.y[i]));
        differ += !isnan(want.y[i]) && fabsf(got.y[i] - relu) > 1e-5f * (1 + fabsf(relu));
    }
    CHECK(nans > 0);
    CHECK_INT(differ, 0);
    op_result_close(&got);
    op_result_close(&want);
    op_data_close(&data);
    e->ops->close(device);
}

TEST(what_is_chosen_is_told) {
    tdm_algorithms chosen;
    CHECK_OK(choose("conv2d", &plain, TDM_F32, &chosen));
    CHECK_TEXT(chosen.of[0].pass, "forward");
    CHECK_TEXT(chosen.of[0].name, "cuDNN implicit_precomp_gemm");
    CHECK_TEXT(chosen.of[0].math, "f32");
    CHECK_TEXT(chosen.of[0].fused, "bias and relu");
    CHECK(chosen.of[0].workspace_bytes > 0);
    CHECK_TEXT(chosen.of[1].pass, "dx");
    CHECK_TEXT(chosen.of[1].name, "cuDNN 1");
    CHECK(chosen.of[1].fused == NULL);
    CHECK_TEXT(chosen.of[2].pass, "dw");
    CHECK_TEXT(chosen.slow, "");
    CHECK_OK(choose("conv2d", &neighbours, TDM_TF32, &chosen));
    CHECK_TEXT(chosen.of[0].math, "tf32");
    CHECK_OK(choose("conv2d", &neighbours, TDM_BF16, &chosen));
    CHECK_TEXT(chosen.of[0].math, "bf16");
    CHECK_OK(choose("linear", &product, TDM_F32, &chosen));
    CHECK_TEXT(chosen.of[0].name, "cublasLt 1, tile 1, stages 1, split 1, reduction 2");
    CHECK_TEXT(chosen.of[0].fused, "bias and relu");
    CHECK_TEXT(chosen.slow, "");
}

static const int precisions[] = {TDM_F32, TDM_TF32, TDM_BF16};
enum { PRECISIONS = 3 };

TEST(what_refuses_is_passed_over) {
    static const char *const statuses[] = {NULL, "2000", "3000", "3008", "4000", "5000"};
    tdm_algorithms chosen;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        set("CUDNN_EMULATED_STATUS", statuses[i]);
        for (int p = 0; p < PRECISIONS; p++) {
            set("CUDNN_EMULATED_REFUSES", "fused:1,forward:1");
            CHECK_OK(choose("conv2d", &neighbours, precisions[p], &chosen));
            CHECK_TEXT(chosen.of[0].name, "cuDNN implicit_gemm");
            CHECK_TEXT(chosen.of[0].fused, "bias and relu");
            CHECK_TEXT(chosen.slow, "");
            set("CUDNN_EMULATED_REFUSES", "fused:1");
            CHECK_OK(choose("conv2d", &neighbours, precisions[p], &chosen));
            CHECK_TEXT(chosen.of[0].name, "cuDNN implicit_precomp_gemm");
            CHECK_TEXT(chosen.of[0].fused, "");
        }
        check_numbers("conv2d", &plain, TDM_F32);
        check_numbers("conv2d", &neighbours, TDM_TF32);
    }
    set("CUDNN_EMULATED_STATUS", NULL);
    set("CUDNN_EMULATED_REFUSES", NULL);
}

TEST(where_all_refuse_it_is_im2col) {
    static const char *const refusals[] = {"fused:*,forward:*", "dx:*", "dw:*"};
    static const char *const words[] = {"for forward; the last, implicit_gemm: CUDNN_STATUS_NOT_SUPPORTED",
                                        "for dx; the last, 1: CUDNN_STATUS_NOT_SUPPORTED",
                                        "for dw; the last, 1: CUDNN_STATUS_NOT_SUPPORTED"};
    tdm_algorithms chosen;
    for (int i = 0; i < 3; i++) {
        set("CUDNN_EMULATED_REFUSES", refusals[i]);
        for (int p = 0; p < PRECISIONS; p++) {
            CHECK_OK(choose("conv2d", &neighbours, precisions[p], &chosen));
            CHECK_HAS(chosen.of[0].name, "cublasLt ");
            CHECK_HAS(chosen.slow, "runs by im2col, which is slower: cuDNN refuses every algorithm that it offers ");
            CHECK_HAS(chosen.slow, words[i]);
        }
        check_numbers("conv2d", &plain, TDM_F32);
        check_numbers("conv2d", &neighbours, TDM_TF32);
    }
    set("CUDNN_EMULATED_REFUSES", NULL);
}

TEST(a_relu_that_loses_nan_is_passed_over) {
    tdm_algorithms chosen;
    set("CUDNN_EMULATED_DROPS_NAN", "0,1");
    for (int p = 0; p < PRECISIONS; p++) {
        CHECK_OK(choose("conv2d", &neighbours, precisions[p], &chosen));
        CHECK_TEXT(chosen.of[0].name, "cuDNN implicit_precomp_gemm");
        CHECK_TEXT(chosen.of[0].fused, "");
    }
    check_numbers("conv2d", &plain, TDM_F32);
    check_numbers("conv2d", &neighbours, TDM_TF32);
    set("CUDNN_EMULATED_REFUSES", "forward:1"); /* nothing but what loses NaN is left of the first one */
    CHECK_OK(choose("conv2d", &neighbours, TDM_TF32, &chosen));
    CHECK_TEXT(chosen.of[0].name, "cuDNN implicit_gemm");
    CHECK_TEXT(chosen.of[0].fused, "");
    check_numbers("conv2d", &neighbours, TDM_TF32);
    set("CUDNN_EMULATED_REFUSES", NULL);
    set("CUDNN_EMULATED_DROPS_NAN", NULL);
}

TEST(products_pass_over_what_refuses) {
    static const char *const statuses[] = {NULL, "1", "3", "7", "8", "11", "13", "14", "16"};
    tdm_algorithms chosen;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        set("CUBLASLT_EMULATED_STATUS", statuses[i]);
        set("CUBLASLT_EMULATED_REFUSES", "1");
        CHECK_OK(choose("linear", &product, TDM_F32, &chosen));
        CHECK_HAS(chosen.of[0].name, "cublasLt 2,");
        CHECK_TEXT(chosen.of[0].fused, "bias and relu");
        check_numbers("linear", &product, TDM_TF32);
        set("CUBLASLT_EMULATED_REFUSES", "1,2");
        CHECK_STATUS(choose("linear", &product, TDM_F32, &chosen), TDM_E_UNSUPPORTED);
        CHECK_HAS(tdm_error_message(), "has no algorithm for a product of 4 x 8 x 5 (batch 1, f32)");
        CHECK_HAS(tdm_error_message(), "it refuses the algorithms that it offers: CUBLAS_STATUS_");
    }
    set("CUBLASLT_EMULATED_STATUS", NULL);
    set("CUBLASLT_EMULATED_REFUSES", NULL);
}

TEST(products_pass_over_a_relu_that_loses_nan) {
    tdm_algorithms chosen;
    set("CUBLASLT_EMULATED_DROPS_NAN", "1");
    for (int p = 0; p < PRECISIONS; p++) {
        CHECK_OK(choose("linear", &product, precisions[p], &chosen));
        CHECK_HAS(chosen.of[0].name, "cublasLt 2,");
        CHECK_TEXT(chosen.of[0].fused, "bias and relu");
    }
    check_numbers("linear", &product, TDM_F32);
    set("CUBLASLT_EMULATED_DROPS_NAN", "1,2");
    for (int p = 0; p < PRECISIONS; p++) {
        CHECK_OK(choose("linear", &product, precisions[p], &chosen));
        CHECK_HAS(chosen.of[0].name, "cublasLt 1,");
        CHECK_TEXT(chosen.of[0].fused, "bias");
    }
    check_numbers("linear", &product, TDM_F32);
    set("CUBLASLT_EMULATED_DROPS_NAN", NULL);
}

TEST_MAIN(RUN(what_is_chosen_is_told); RUN(what_refuses_is_passed_over); RUN(where_all_refuse_it_is_im2col);
          RUN(a_relu_that_loses_nan_is_passed_over); RUN(products_pass_over_what_refuses);
          RUN(products_pass_over_a_relu_that_loses_nan);)
