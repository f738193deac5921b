/* Milliseconds of each kernel of the dnnl module, forward and backward, at the shapes of the two convolutional samples.
 * A program to run by hand (it is in no suite, and asserts nothing):
 *
 *   TANDEM_MODULE_PATH=lib/tandem tests/bench_dnnl [THREADS [fast]]
 *
 * Times are the processor time of the calling thread, the least of many runs; so they hold on a busy machine, and with
 * more than one thread they leave out what the others did. */
#include <time.h>

#include "ops/ops.h"
#include <tandem/job.h>

#include "runtime/device/threads.h"
#include "runtime/module/module.h"
#include "tests/ops/op_driver.h"
#include "tests/support/tdm_test.h"

typedef struct {
    const char *net, *op;
    op_case test;
    tdm_layout x; /* what comes from the layer before */
    tdm_layout y; /* of a reorder */
    bool relu, first;
} bench_case;

static const bench_case cases[] = {
    {"cifar",
     "conv2d",
     {.attrs = "out=64 kernel=3 padding=1", .rows = 32, .input = {3, {3, 32, 32}}},
     TDM_LAYOUT_PLAIN,
     0,
     true,
     true},
    {"cifar",
     "maxpool2d",
     {.attrs = "kernel=2", .rows = 32, .input = {3, {64, 32, 32}}},
     TDM_LAYOUT_C16,
     0,
     false,
     false},
    {"cifar",
     "conv2d",
     {.attrs = "out=128 kernel=3 padding=1", .rows = 32, .input = {3, {64, 16, 16}}},
     TDM_LAYOUT_C16,
     0,
     true,
     false},
    {"cifar",
     "maxpool2d",
     {.attrs = "kernel=2", .rows = 32, .input = {3, {128, 16, 16}}},
     TDM_LAYOUT_C16,
     0,
     false,
     false},
    {"cifar", "reorder", {.rows = 32, .input = {3, {128, 8, 8}}}, TDM_LAYOUT_C16, TDM_LAYOUT_PLAIN, false, false},
    {"cifar", "linear", {.attrs = "out=512", .rows = 32, .input = {1, {8192}}}, TDM_LAYOUT_PLAIN, 0, true, false},
    {"cifar", "linear", {.attrs = "out=10", .rows = 32, .input = {1, {512}}}, TDM_LAYOUT_PLAIN, 0, false, false},
    {"mnist",
     "conv2d",
     {.attrs = "out=64 kernel=3 padding=1", .rows = 64, .input = {3, {1, 28, 28}}},
     TDM_LAYOUT_PLAIN,
     0,
     true,
     true},
    {"mnist",
     "conv2d",
     {.attrs = "out=128 kernel=3 padding=1", .rows = 64, .input = {3, {64, 28, 28}}},
     TDM_LAYOUT_C16,
     0,
     true,
     false},
    {"mnist",
     "maxpool2d",
     {.attrs = "kernel=2", .rows = 64, .input = {3, {128, 28, 28}}},
     TDM_LAYOUT_C16,
     0,
     false,
     false},
    {"mnist", "reorder", {.rows = 64, .input = {3, {128, 14, 14}}}, TDM_LAYOUT_C16, TDM_LAYOUT_PLAIN, false, false},
    {"mnist", "linear", {.attrs = "out=1024", .rows = 64, .input = {1, {25088}}}, TDM_LAYOUT_PLAIN, 0, true, false},
    {"mnist", "linear", {.attrs = "out=10", .rows = 64, .input = {1, {1024}}}, TDM_LAYOUT_PLAIN, 0, false, false},
    {"-", "batchnorm2d", {.rows = 32, .input = {3, {64, 32, 32}}}, TDM_LAYOUT_C16, 0, true, false},
};

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void *memory(size_t bytes) {
    void *p = aligned_alloc(4096, (bytes + 4096) / 4096 * 4096);
    if (p == NULL) abort();
    memset(p, 0, bytes + 1);
    return p;
}

static float *numbers(int64_t count) {
    float *p = memory((size_t)count * sizeof *p);
    for (int64_t i = 0; i < count; i++) p[i] = (float)((uint32_t)(i * 2654435761u) >> 16) / 65536.0f - 0.5f;
    return p;
}

static const tdm_kernel *choose(const tdm_kernel *const *kernels, tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    for (; *kernels != NULL; kernels++) {
        if (strcmp((*kernels)->op, desc->op) != 0) continue;
        *fit = (tdm_kernel_fit){.y_layout = desc->y_layout};
        if ((*kernels)->fits == NULL || (*kernels)->fits(desc, fit)) return *kernels;
    }
    return NULL;
}

static double best_of(tdm_status (*run)(const tdm_kernel_args *), const tdm_kernel_args *args) {
    double best = INFINITY, spent = 0;
    for (int i = 0; i < 100 && spent < 400; i++) {
        const double start = now_ms();
        CHECK_OK(run(args));
        const double ms = now_ms() - start;
        spent += ms;
        if (ms < best) best = ms;
    }
    return best;
}

/* Shapes and parameters: from the op's definition, or of the input for reorder. */
static bool describe(const bench_case *c, int threads, bool fast, op_data *data, tdm_kernel_desc *desc) {
    *desc = (tdm_kernel_desc){.op = c->op,
                              .input_count = 1,
                              .threads = threads,
                              .fast = fast,
                              .training = true,
                              .x_layout = {c->x},
                              .y_layout = c->y};
    if (strcmp(c->op, "reorder") == 0) {
        desc->x[0] = (tdm_shape){4, {c->test.rows, c->test.input.dim[0], c->test.input.dim[1], c->test.input.dim[2]}};
        desc->y = desc->x[0];
    } else {
        if (!op_data_open(data, c->op, &c->test, 1)) return false;
        desc->attrs = data->attrs;
        desc->param_count = data->infer.param_count, desc->buffer_count = data->infer.buffer_count;
        desc->x[0] = data->x_shape, desc->y = data->y_shape;
        for (int i = 0; i < desc->param_count; i++) desc->param[i] = data->infer.param[i].shape;
    }
    desc->needs_dx[0] = !c->first;
    return true;
}

static void bench(const bench_case *c, const tdm_kernel *const *kernels, int threads, bool fast) {
    op_data data = {0};
    tdm_kernel_desc desc;
    tdm_kernel_fit fit, again = {0};
    REQUIRE(describe(c, threads, fast, &data, &desc));
    const tdm_kernel *kernel = choose(kernels, &desc, &fit);
    REQUIRE(kernel != NULL);
    if (c->relu && (fit.epilogue & TDM_EPILOGUE_RELU) != 0) {
        desc.epilogue = TDM_EPILOGUE_RELU;
        CHECK(kernel->fits(&desc, &again));
        fit = again;
    }
    desc.x_layout[0] = fit.x_layout[0], desc.y_layout = fit.y_layout;
    const int64_t x_count = tdm__shape_count(&desc.x[0]), y_count = tdm__shape_count(&desc.y);
    int64_t counter = 0;
    tdm_device device = {.host = tdm_host_default()};
    REQUIRE_OK(tdm__threads_open(&device.threads, device.host, threads, 0, op_thread_begin));
    tdm_kernel_args args = {.desc = &desc,
                            .device = &device,
                            .rows = c->test.rows,
                            .training = true,
                            .x = {numbers(x_count)},
                            .y = numbers(y_count),
                            .dy = numbers(y_count),
                            .counter = &counter};
    args.dx[0] = c->first ? NULL : numbers(x_count);
    args.saved = memory(fit.saved_bytes), args.scratch = memory(fit.scratch_bytes);
    for (int i = 0; i < desc.param_count; i++) {
        args.param[i] = numbers(data.param_count[i]);
        args.dparam[i] = numbers(data.param_count[i]);
    }
    for (int i = 0; i < desc.buffer_count; i++) args.buffer[i] = data.buffer[i];
    double start = now_ms();
    if (kernel->open != NULL) REQUIRE_OK(kernel->open(&device, &desc, args.rows, true, &args.state));
    const double open_ms = now_ms() - start, forward = best_of(kernel->forward, &args);
    const double backward = best_of(kernel->backward, &args);
    printf("%-6s %-12s %-28s %-5s %8.3f %8.3f %8.3f   %7.2f\n", c->net, c->op,
           c->test.attrs != NULL ? c->test.attrs : "", kernel->variant, open_ms, forward, backward,
           (double)fit.scratch_bytes / 1048576.0);
    if (kernel->close != NULL) kernel->close(args.state);
    tdm__threads_close(device.threads);
}

int tdm_test_failures;
int main(int argc, char **argv) {
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    const bool fast = argc > 2 && strcmp(argv[2], "fast") == 0;
    const tdm_compute_options wish = {.device = TDM_DEVICE_CPU};
    tdm_compute compute;
    const double start = now_ms();
    if (tdm__compute_open(&compute, tdm_host_default(), &wish) != TDM_OK) return 1;
    op_thread_begin = compute.thread_begin;
    printf("%s (%.2f ms)\n", compute.report.text, now_ms() - start);
    printf("%-6s %-12s %-28s %-5s %8s %8s %8s   %7s\n", "net", "op", "", "kind", "open", "forward", "backward",
           "scratch MiB");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) bench(&cases[i], compute.kernels, threads, fast);
    tdm__compute_close(&compute, tdm_host_default());
    return tdm_test_failures != 0;
}
