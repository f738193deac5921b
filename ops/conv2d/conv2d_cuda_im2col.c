/* conv2d by matrix products: the inputs of each output are written out as a column (im2col), so that one product per
 * image and group computes the convolution. Images are processed in chunks whose columns fit into the workspace.
 *
 * The layouts differ only in the products: with nhwc, y is transposed. */

#include "ops/conv2d/conv2d_cuda.h"
#include "ops/fused.h"
#include "runtime/backends/cuda/kit/library.h"

enum { CHUNK_BYTES = 64 << 20 };
enum { FULL, LAST, SIZES }; /* sizes of chunks: the last may have fewer rows */

typedef struct {
    int64_t rows;                              /* 0: no chunk has this size */
    tdm_cuda_matmul *forward, *weight, *input; /* the products of one group */
} chunk_products;

typedef struct {
    tdm_conv_method method;
    chunk_products products[SIZES];
    int64_t depth, points, out_group; /* elements of a column, columns of an image, channels of y in a group */
    size_t columns, parts;            /* byte offsets in the workspace, after the part that the products use */
} im2col;

static void close_method(tdm_conv_method *method) {
    im2col *c = (im2col *)method;
    for (int i = 0; i < SIZES; i++) {
        tdm__cuda_matmul_close(c->products[i].forward);
        tdm__cuda_matmul_close(c->products[i].weight);
        tdm__cuda_matmul_close(c->products[i].input);
    }
    tdm__module_delete(c);
}

/* c[m,n] = a[m,k] b[k,n], for each of `rows` images. */
static tdm_cuda_matmul_shape product(const im2col *c, int64_t rows, int64_t m, int64_t n, int64_t k) {
    const tdm_cuda_number number = c->method.sizes.number;
    return (tdm_cuda_matmul_shape){.m = m, .n = n, .k = k, .factors = number, .result = number, .batch = rows};
}

/* Per image: y[out,points] = w[out,depth] columns[depth,points]; with nhwc the transposed product. */
static tdm_status open_products(im2col *c, chunk_products *p, int64_t rows) {
    const tdm_conv_sizes *s = &c->method.sizes;
    const int64_t depth = c->depth, points = c->points, out = c->out_group;
    const int64_t columns = s->groups * depth * points, y = s->out * points, w = tdm__conv_weight_count(s);
    tdm_cuda_matmul_shape forward =
        s->nhwc ? product(c, rows, points, out, depth) : product(c, rows, out, points, depth);
    forward.transpose_a = forward.transpose_b = s->nhwc;
    *(s->nhwc ? &forward.stride_a : &forward.stride_b) = columns;
    forward.stride_c = y;
    tdm_cuda_matmul_shape weight = product(c, rows, out, depth, points);
    weight.transpose_a = s->nhwc;
    weight.transpose_b = true;
    weight.result = TDM_CUDA_FLOAT;
    weight.stride_a = y;
    weight.stride_b = columns;
    weight.stride_c = w;
    tdm_cuda_matmul_shape input = product(c, rows, depth, points, out);
    input.transpose_a = true;
    input.transpose_b = s->nhwc;
    input.stride_b = y;
    input.stride_c = columns;
    p->rows = rows;
    TDM_MODULE_TRY(tdm__cuda_matmul_open(&p->forward, c->method.device, &forward));
    if (s->training) TDM_MODULE_TRY(tdm__cuda_matmul_open(&p->weight, c->method.device, &weight));
    if (s->training && s->needs_dx) TDM_MODULE_TRY(tdm__cuda_matmul_open(&p->input, c->method.device, &input));
    return TDM_OK;
}

static tdm_status prepare(im2col *c) {
    const tdm_conv_sizes *s = &c->method.sizes;
    const size_t columns = (size_t)(s->groups * c->depth * c->points) * tdm__cuda_size(s->number);
    const size_t part = s->training ? (size_t)tdm__conv_weight_count(s) * sizeof(float) : 0;
    int64_t chunk = (int64_t)(CHUNK_BYTES / (columns + part));
    if (chunk < 1) chunk = 1;
    if (chunk > s->rows) chunk = s->rows;
    TDM_MODULE_TRY(open_products(c, &c->products[FULL], chunk));
    if (s->rows % chunk != 0) TDM_MODULE_TRY(open_products(c, &c->products[LAST], s->rows % chunk));
    for (int i = 0; i < SIZES; i++) {
        const chunk_products *p = &c->products[i];
        c->columns = tdm__larger(c->columns, tdm__cuda_matmul_workspace(p->forward));
        c->columns = tdm__larger(c->columns, tdm__cuda_matmul_workspace(p->weight));
        c->columns = tdm__larger(c->columns, tdm__cuda_matmul_workspace(p->input));
    }
    c->columns = tdm__cuda_part(c->columns);
    c->parts = c->columns + tdm__cuda_part((size_t)chunk * columns);
    return tdm__cuda_workspace(c->method.device, c->parts + (size_t)chunk * part);
}

static void *in_workspace(const im2col *c, size_t offset) {
    return (char *)c->method.device->workspace + offset;
}

/* Return the address `count` elements after `start`. */
static const void *after(const im2col *c, const void *start, int64_t count) {
    return tdm__cuda_at(start, count, c->method.sizes.number);
}
static void *writable_after(const im2col *c, void *start, int64_t count) {
    return (char *)start + count * (int64_t)tdm__cuda_size(c->method.sizes.number);
}

static const chunk_products *products_of(const im2col *c, int64_t rows) {
    return &c->products[rows == c->products[FULL].rows ? FULL : LAST];
}

static int64_t chunk_rows(const im2col *c, int64_t row) {
    const int64_t chunk = c->products[FULL].rows, left = c->method.sizes.rows - row;
    return left < chunk ? left : chunk;
}

/* Return where group g begins in y, in the weights and in columns. With nhwc there is one group. */
static int64_t y_offset(const im2col *c, int64_t g) {
    return g * c->out_group * c->points;
}
static int64_t w_offset(const im2col *c, int64_t g) {
    return g * c->out_group * c->depth;
}
static int64_t column_offset(const im2col *c, int64_t g) {
    return g * c->depth * c->points;
}

static tdm_status forward(tdm_conv_method *method, const void *x, const void *w, const void *bias, void *y,
                          bool *done) {
    const im2col *c = (const im2col *)method;
    const tdm_conv_sizes *s = &method->sizes;
    void *columns = in_workspace(c, c->columns);
    (void)bias;
    *done = false;
    for (int64_t row = 0, rows; row < s->rows; row += rows) {
        rows = chunk_rows(c, row);
        const chunk_products *p = products_of(c, rows);
        const int64_t first = row * s->out * c->points;
        TDM_MODULE_TRY(tdm__conv_columns(method->device, s, rows, after(c, x, row * tdm__conv_in_count(s)), columns));
        for (int64_t g = 0; g < s->groups; g++) {
            const void *filters = after(c, w, w_offset(c, g)), *group_columns = after(c, columns, column_offset(c, g));
            TDM_MODULE_TRY(tdm__cuda_matmul_run(p->forward, s->nhwc ? group_columns : filters,
                                                s->nhwc ? filters : group_columns, NULL,
                                                writable_after(c, y, first + y_offset(c, g))));
        }
    }
    return TDM_OK;
}

static tdm_status backward_weight(const im2col *c, const chunk_products *p, const void *x, const void *dy, float *dw,
                                  bool first) {
    const tdm_conv_sizes *s = &c->method.sizes;
    void *columns = in_workspace(c, c->columns);
    float *parts = in_workspace(c, c->parts);
    TDM_MODULE_TRY(tdm__conv_columns(c->method.device, s, p->rows, x, columns));
    for (int64_t g = 0; g < s->groups; g++)
        TDM_MODULE_TRY(tdm__cuda_matmul_run(p->weight, after(c, dy, y_offset(c, g)),
                                            after(c, columns, column_offset(c, g)), NULL, parts + w_offset(c, g)));
    return tdm__conv_add_parts(c->method.device, dw, parts, p->rows, tdm__conv_weight_count(s), first);
}

static tdm_status backward_input(const im2col *c, const chunk_products *p, const void *w, const void *dy, void *dx) {
    const tdm_conv_sizes *s = &c->method.sizes;
    void *columns = in_workspace(c, c->columns);
    for (int64_t g = 0; g < s->groups; g++)
        TDM_MODULE_TRY(tdm__cuda_matmul_run(p->input, after(c, w, w_offset(c, g)), after(c, dy, y_offset(c, g)), NULL,
                                            writable_after(c, columns, column_offset(c, g))));
    return tdm__conv_gather(c->method.device, s, p->rows, columns, dx);
}

static tdm_status backward(tdm_conv_method *method, const void *x, const void *w, const void *dy, float *dw, void *dx,
                           void *scratch) {
    const im2col *c = (const im2col *)method;
    const tdm_conv_sizes *s = &method->sizes;
    (void)scratch;
    for (int64_t row = 0, rows; row < s->rows; row += rows) {
        rows = chunk_rows(c, row);
        const chunk_products *p = products_of(c, rows);
        const void *here = after(c, dy, row * s->out * c->points);
        const int64_t at = row * tdm__conv_in_count(s);
        if (dw != NULL) TDM_MODULE_TRY(backward_weight(c, p, after(c, x, at), here, dw, row == 0));
        if (dx != NULL) TDM_MODULE_TRY(backward_input(c, p, w, here, writable_after(c, dx, at)));
    }
    return TDM_OK;
}

static void algorithms(const tdm_conv_method *method, tdm_algorithms *out) {
    const chunk_products *p = &((const im2col *)method)->products[FULL];
    tdm__cuda_matmul_algorithm(p->forward, "forward", tdm__fused_names, out);
    tdm__cuda_matmul_algorithm(p->weight, "dw", tdm__fused_names, out);
    tdm__cuda_matmul_algorithm(p->input, "dx", tdm__fused_names, out);
}

static const tdm_conv_method_ops ops = {
    .forward = forward, .backward = backward, .algorithms = algorithms, .close = close_method};

tdm_status tdm__conv_im2col_open(tdm_conv_method **out, tdm_cuda_device *device, const tdm_conv_sizes *sizes) {
    im2col *c = tdm__module_new(device->base.host, sizeof *c);
    *out = NULL;
    if (c == NULL) TDM_MODULE_FAIL(TDM_E_MEMORY, "conv2d: out of memory for %zu bytes of state", sizeof *c);
    c->method = (tdm_conv_method){.ops = &ops, .device = device, .sizes = *sizes};
    c->out_group = sizes->out / sizes->groups;
    c->depth = sizes->stored / sizes->groups * sizes->taps;
    c->points = tdm__conv_points(sizes);
    const tdm_status status = prepare(c);
    if (status != TDM_OK) {
        close_method(&c->method);
        return status;
    }
    *out = &c->method;
    return TDM_OK;
}
