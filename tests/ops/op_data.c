/* See op_data.h. */
#include "tests/ops/op_data.h"

#include <tandem/job.h>

#include "ops/ops.h"
#include "runtime/base/bf16.h"
#include "runtime/base/field/field.h"
#include "runtime/base/random/rng.h"
#include "tests/support/tdm_test.h"

void *op_take(size_t bytes) {
    void *memory = calloc(1, bytes > 0 ? bytes : 1);
    if (memory == NULL) abort();
    return memory;
}

/* ---- the case ---- */

static const tdm_op_def *find_op(const char *name) {
    for (const tdm_op_def *const *op = tdm_builtin_ops; *op != NULL; op++)
        if (strcmp((*op)->name, name) == 0) return *op;
    return NULL;
}

const tdm_kernel *op_reference(const char *op) {
    for (const tdm_kernel *const *kernel = tdm_builtin_kernels; *kernel != NULL; kernel++)
        if (strcmp((*kernel)->op, op) == 0) return *kernel;
    return NULL;
}

static bool set_attrs(op_data *data, const char *text) {
    tdm_zone zone;
    tdm__zone_init(&zone, tdm_host_default());
    tdm_text why;
    tdm__text_init(&why, tdm_host_default());
    bool good = data->def->attrs == NULL || tdm__field_set_initial(data->def->attrs, data->attrs, &zone) == TDM_OK;
    char *words = strdup(text != NULL ? text : ""), *rest = NULL;
    for (char *word = strtok_r(words, " ", &rest); good && word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        *value++ = '\0';
        const tdm_field *row = tdm__field_find(data->def->attrs, word);
        good = row != NULL && tdm__field_set_text(row, data->attrs, value, &zone, &why);
        if (!good) fprintf(stderr, "%s: %s: %s\n", data->def->name, word, why.data != NULL ? why.data : "no such key");
    }
    free(words);
    tdm__text_deinit(&why);
    tdm__zone_deinit(&zone);
    return good;
}

static tdm_shape with_rows(int64_t rows, const tdm_shape *shape) {
    tdm_shape out = {shape->ndim + 1, {rows}};
    for (int i = 0; i < shape->ndim; i++) out.dim[i + 1] = shape->dim[i];
    return out;
}

tdm_shape op_data_shape(const op_data *data, int input) {
    const bool is_other = input > 0 && input < data->infer.input_count && data->test->other.ndim > 0;
    return is_other ? with_rows(data->test->rows, &data->test->other) : data->x_shape;
}

int64_t op_data_count(const op_data *data, int input) {
    const tdm_shape shape = op_data_shape(data, input);
    return tdm__shape_count(&shape);
}

static float *normal(tdm_rng *rng, int64_t count) {
    float *out = op_take((size_t)count * sizeof *out);
    tdm__rng_normal(rng, out, (size_t)count, 0, 1);
    return out;
}

/* Of an op that reads whole numbers. */
static void make_whole(float *x, int64_t count, int below) {
    for (int64_t i = 0; i < count; i++) x[i] = floorf(fmodf(fabsf(x[i]) * 97.0f, (float)below));
}

static void fill(op_data *data, uint64_t seed) {
    tdm_rng rng;
    tdm__rng_seed(&rng, seed, TDM_RNG_TORCH_AVX2);
    for (int i = 0; i < data->infer.input_count; i++) {
        data->x[i] = normal(&rng, op_data_count(data, i));
        if (data->test->whole > 0) make_whole(data->x[i], op_data_count(data, i), data->test->whole);
    }
    data->dy = normal(&rng, data->y_count);
    for (int i = 0; i < data->infer.param_count; i++) {
        data->param_count[i] = tdm__shape_count(&data->infer.param[i].shape);
        data->param[i] = normal(&rng, data->param_count[i]);
    }
    for (int i = 0; i < data->infer.buffer_count; i++) {
        if (data->infer.buffer[i].is_counter) continue;
        data->buffer_count[i] = tdm__shape_count(&data->infer.buffer[i].shape);
        data->buffer[i] = normal(&rng, data->buffer_count[i]);
        if (data->infer.buffer[i].init == TDM_INIT_ONES)
            for (int64_t k = 0; k < data->buffer_count[i]; k++) data->buffer[i][k] = fabsf(data->buffer[i][k]) + 0.5f;
    }
    const int inputs = data->infer.input_count, params = data->infer.param_count;
    if (inputs < TDM_MAX_INPUTS) data->x[inputs] = normal(&rng, data->x_count);
    if (params < TDM_MAX_PARAMS)
        data->param[params] = normal(&rng, data->param_count[params] = data->infer.output.dim[0]);
    data->counter = 3;
    data->position = op_take((size_t)data->test->rows * sizeof *data->position);
    for (int64_t n = 0; n < data->test->rows; n++) data->position[n] = 5 + 3 * n;
}

bool op_data_open(op_data *data, const char *op, const op_case *test, uint64_t seed) {
    *data = (op_data){.test = test, .def = find_op(op)};
    if (data->def == NULL) return false;
    data->attrs = op_take(data->def->attrs_bytes);
    if (!set_attrs(data, test->attrs)) return false;
    data->infer = (tdm_infer){.attrs = data->attrs, .input_count = test->inputs > 0 ? test->inputs : 1, .layer = op};
    for (int i = 0; i < data->infer.input_count; i++)
        data->infer.input[i] = i > 0 && test->other.ndim > 0 ? test->other : test->input;
    if (tdm__op_infer(data->def, &data->infer) != TDM_OK) {
        fprintf(stderr, "%s\n", tdm_error_message());
        return false;
    }
    data->x_shape = with_rows(test->rows, &test->input);
    data->y_shape = with_rows(test->rows, &data->infer.output);
    data->x_count = tdm__shape_count(&data->x_shape);
    data->y_count = tdm__shape_count(&data->y_shape);
    fill(data, seed);
    return true;
}

void op_data_close(op_data *data) {
    free(data->attrs);
    for (int i = 0; i < TDM_MAX_INPUTS; i++) free(data->x[i]);
    for (int i = 0; i < TDM_MAX_PARAMS; i++) free(data->param[i]);
    for (int i = 0; i < TDM_MAX_BUFFERS; i++) free(data->buffer[i]);
    free(data->dy);
    free(data->position);
}

static float rounded(float value) {
    return tdm__bf16_float(tdm__bf16_of(value));
}

void op_round(float *numbers, int64_t count) {
    for (int64_t i = 0; i < count; i++) numbers[i] = rounded(numbers[i]);
}

void op_data_round(op_data *data) {
    for (int i = 0; i < TDM_MAX_INPUTS; i++)
        if (data->x[i] != NULL) op_round(data->x[i], op_data_count(data, i));
    for (int i = 0; i < TDM_MAX_PARAMS; i++)
        if (data->param[i] != NULL) op_round(data->param[i], data->param_count[i]);
    op_round(data->dy, data->y_count);
}

static void keep_tf32(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bits &= 0xffffe000u;
        memcpy(&x[i], &bits, sizeof bits);
    }
}

void op_data_keep_tf32(op_data *data) {
    keep_tf32(data->x[0], data->x_count);
    keep_tf32(data->dy, data->y_count);
    for (int i = 0; i < data->infer.param_count; i++) keep_tf32(data->param[i], data->param_count[i]);
}

const char *op_data_name(const op_data *data) {
    static char name[256];
    snprintf(name, sizeof name, "%s '%s' %d x %lld x %s", data->def->name,
             data->test->attrs != NULL ? data->test->attrs : "", data->infer.input_count, (long long)data->test->rows,
             tdm__shape_text(&data->test->input).text);
    return name;
}

/* ---- layouts, by an index formula that shares nothing with the kernels ---- */

static int64_t index_in(tdm_layout layout, const int64_t dim[4], int64_t n, int64_t c, int64_t h, int64_t w) {
    int64_t channels = layout == TDM_LAYOUT_C8 ? 8 : 16;
    switch (layout) {
    case TDM_LAYOUT_NHWC:
        return ((n * dim[2] + h) * dim[3] + w) * dim[1] + c;
    case TDM_LAYOUT_C8:
    case TDM_LAYOUT_C16:
        return (((n * (dim[1] / channels) + c / channels) * dim[2] + h) * dim[3] + w) * channels + c % channels;
    case TDM_LAYOUT_PLAIN:
    case TDM_LAYOUT_COUNT:
        break;
    }
    return ((n * dim[1] + c) * dim[2] + h) * dim[3] + w;
}

bool op_layout_applies(tdm_layout layout, const tdm_shape *shape) {
    if (layout == TDM_LAYOUT_PLAIN) return true;
    if (shape->ndim != 4) return false;
    if (layout == TDM_LAYOUT_C8) return shape->dim[1] % 8 == 0;
    return layout != TDM_LAYOUT_C16 || shape->dim[1] % 16 == 0;
}

void op_convert(float *to, const float *from, const tdm_shape *shape, int64_t rows, tdm_layout layout, bool to_plain) {
    const int64_t *d = shape->dim;
    if (layout == TDM_LAYOUT_PLAIN) {
        memcpy(to, from, (size_t)(tdm__shape_count(shape) / d[0] * rows) * sizeof *to);
        return;
    }
    int64_t plain = 0;
    for (int64_t n = 0; n < rows; n++)
        for (int64_t c = 0; c < d[1]; c++)
            for (int64_t h = 0; h < d[2]; h++)
                for (int64_t w = 0; w < d[3]; w++, plain++) {
                    int64_t at = index_in(layout, d, n, c, h, w);
                    if (to_plain)
                        to[plain] = from[at];
                    else
                        to[at] = from[plain];
                }
}
