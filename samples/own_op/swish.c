/* A layer of your own, y = x / (1 + exp(-beta x)), as a module that tandem loads: only installed headers are used.
 *   cc -std=c11 -O2 -ffp-contract=off -fPIC -shared swish.c $(pkg-config --cflags tandem) -o libswish.so -lm */
#include <math.h>

#include <tandem/sys/module.h>

static const tdm_host_calls *tandem;

typedef struct swish {
    double beta;
} swish;

/* Once for each layer: its shapes, without the batch, and its parameters, of which this one has none. */
static tdm_status infer(tdm_infer *of) {
    const swish *attrs = (const swish *)of->attrs;
    if (attrs->beta == 0)
        return tandem->fail(TDM_E_CONFIG, __FILE__, __LINE__, &of->origin, "%s: with beta 0 it is x / 2; leave it out",
                            of->layer);
    of->output = of->input[0];
    of->flops = 4;
    for (int i = 0; i < of->output.ndim; i++) of->flops *= (double)of->output.dim[i];
    return TDM_OK;
}

static int64_t numbers(const tdm_kernel_args *args) {
    int64_t count = args->rows;
    for (int i = 1; i < args->desc->y.ndim; i++) count *= args->desc->y.dim[i];
    return count;
}

static float gate(float x, float beta) {
    return 1.0f / (1.0f + expf(-beta * x));
}

static tdm_status forward(const tdm_kernel_args *args) {
    const float beta = (float)((const swish *)args->desc->attrs)->beta, *x = args->x[0];
    for (int64_t i = 0; i < numbers(args); i++) args->y[i] = x[i] * gate(x[i], beta);
    return TDM_OK;
}

/* Writes dx; where several layers read x, tandem adds. dx is NULL where nobody wants it. */
static tdm_status backward(const tdm_kernel_args *args) {
    const float beta = (float)((const swish *)args->desc->attrs)->beta, *x = args->x[0];
    for (int64_t i = 0; args->dx[0] != NULL && i < numbers(args); i++) {
        const float s = gate(x[i], beta);
        args->dx[0][i] = args->dy[i] * (s + x[i] * beta * s * (1.0f - s));
    }
    return TDM_OK;
}

static void init(const tdm_host_calls *calls) {
    tandem = calls;
}

/* What tandem reads of this file: structs whose members stand in their order, so that C11 and C++17 take them. */
/* clang-format off */
static const tdm_field keys[2] = {{                      /* that a YAML file may give; the last row is zeros */
    "beta", TDM_FIELD_FLOAT, offsetof(swish, beta), "1", /* key, kind, member, default */
    -100, 100, 0, 0, NULL,                               /* from, to; items of a list, words */
    TDM_FIELD_MAIN, 0, NULL,                             /* flags, types, unit */
    "the slope of the gate", "门的斜率"}};                /* help, help_zh */
static const tdm_op_def op = {
    "swish", "y = x / (1 + exp(-beta x))", "y = x / (1 + exp(-beta x))", NULL, /* name, doc, doc_zh, other names */
    1, 1, keys, sizeof(swish), TDM_OP_READS_X,                                 /* inputs, attributes, flags */
    infer, NULL, NULL};                                                        /* into ONNX, out of ONNX */
static const tdm_kernel kernel = {
    "swish", "ref", NULL, NULL, NULL, forward, backward, /* op, variant, fits, open, close */
    NULL, NULL, NULL, false, NULL, NULL, false};         /* statistics, recompute, algorithms, bf16, packing */
static const tdm_op_def *const ops[] = {&op, NULL};
static const tdm_kernel *const kernels[] = {&kernel, NULL};
TDM_BEGIN_DECLS
extern TDM_API const tdm_module tdm_module_v1;
TDM_END_DECLS
const tdm_module tdm_module_v1 = {
    TDM_MODULE_ABI, "swish", NULL, init, kernels,         /* abi, name, probe */
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, ops, 0}; /* devices and so on: none */
/* clang-format on */
