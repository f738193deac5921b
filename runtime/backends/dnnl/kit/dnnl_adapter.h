/* oneDNN's C API under one set of names. Versions 2.5 to 2.7 and 3.x differ in how tensors and operations are
 * described.
 *
 * All differences are here; dnnl_call.c has the rest. A tensor description is a struct in version 2 and a handle in
 * version 3; a `ref` is what functions take. An operation is first planned (dnnl_primitive_desc_t), then made
 * (dnnl_primitive_t). The caller provides scratchpads: oneDNN's own belong to the thread that made the primitive, and a
 * replica may be run by different threads in turn. */
#ifndef TDM_OPS_DNNL_ADAPTER_H
#define TDM_OPS_DNNL_ADAPTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <oneapi/dnnl/dnnl.h>

#if DNNL_VERSION_MAJOR < 2 || (DNNL_VERSION_MAJOR == 2 && DNNL_VERSION_MINOR < 5)
#error "oneDNN 2.5 or newer is needed"
#endif

/* TDM_DNNL(dnnl_sgemm)(...): a call that lets no exception out (edge.cpp). */
#define TDM_DNNL(name) (*tdm__edge_##name)
#define TDM_EDGE(name) extern __typeof__(&name) const tdm__edge_##name;
#include "runtime/backends/dnnl/kit/edge.def"
#undef TDM_EDGE

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t tdm_dnnl_ref;
#else
typedef const dnnl_memory_desc_t *tdm_dnnl_ref;
#endif

static inline dnnl_status_t tdm__dnnl_desc_init(dnnl_memory_desc_t *desc, int ndims, const dnnl_dims_t dims,
                                                dnnl_data_type_t number, dnnl_format_tag_t tag) {
#if DNNL_VERSION_MAJOR >= 3
    return TDM_DNNL(dnnl_memory_desc_create_with_tag)(desc, ndims, dims, number, tag);
#else
    return TDM_DNNL(dnnl_memory_desc_init_by_tag)(desc, ndims, dims, number, tag);
#endif
}

/* A matrix; `strides` are of its rows and columns, in elements. */
static inline dnnl_status_t tdm__dnnl_matrix_init(dnnl_memory_desc_t *desc, int64_t rows, int64_t columns,
                                                  const int64_t strides[2], dnnl_data_type_t number) {
    const dnnl_dims_t dims = {rows, columns}, steps = {strides[0], strides[1]};
#if DNNL_VERSION_MAJOR >= 3
    return TDM_DNNL(dnnl_memory_desc_create_with_strides)(desc, 2, dims, number, steps);
#else
    return TDM_DNNL(dnnl_memory_desc_init_by_strides)(desc, 2, dims, number, steps);
#endif
}

static inline void tdm__dnnl_desc_deinit(dnnl_memory_desc_t *desc) {
#if DNNL_VERSION_MAJOR >= 3
    if (*desc != NULL) dnnl_memory_desc_destroy(*desc);
    *desc = NULL;
#else
    (void)desc;
#endif
}

static inline tdm_dnnl_ref tdm__dnnl_ref(const dnnl_memory_desc_t *desc) {
#if DNNL_VERSION_MAJOR >= 3
    return *desc;
#else
    return desc;
#endif
}

static inline size_t tdm__dnnl_bytes(tdm_dnnl_ref desc) {
    return dnnl_memory_desc_get_size(desc);
}

/* Returns the tensor that a planned operation takes as `argument` (DNNL_ARG_...). */
static inline tdm_dnnl_ref tdm__dnnl_argument(dnnl_primitive_desc_t plan, int argument) {
    return dnnl_primitive_desc_query_md(plan, dnnl_query_exec_arg_md, argument);
}

/* oneDNN's name for how it does the operation: "jit:avx512_core"; NULL: it does not say. */
static inline const char *tdm__dnnl_name(dnnl_primitive_desc_t plan) {
    const char *name = NULL;
    const dnnl_status_t status = TDM_DNNL(dnnl_primitive_desc_query)(plan, dnnl_query_impl_info_str, 0, (void *)&name);
    return status == dnnl_success ? name : NULL;
}

/* Whether oneDNN multiplies with its gemm, which takes memory for itself (gemm.h). */
static inline bool tdm__dnnl_is_gemm(dnnl_primitive_desc_t plan) {
    const char *name = tdm__dnnl_name(plan);
    return name != NULL && strstr(name, "gemm") != NULL && strncmp(name, "brg", 3) != 0;
}

/* Returns dnnl_unimplemented if oneDNN fell back to code that is slower than tandem's own reference. */
static inline dnnl_status_t tdm__dnnl_refuse_fallback(dnnl_primitive_desc_t plan) {
    const char *name = NULL;
    const dnnl_status_t status = TDM_DNNL(dnnl_primitive_desc_query)(plan, dnnl_query_impl_info_str, 0, (void *)&name);
    return status == dnnl_success && strncmp(name, "ref", 3) == 0 ? dnnl_unimplemented : status;
}

typedef enum tdm_dnnl_pass { TDM_DNNL_FORWARD, TDM_DNNL_BACKWARD_DATA, TDM_DNNL_BACKWARD_WEIGHTS } tdm_dnnl_pass;

typedef struct tdm_dnnl_conv {
    dnnl_alg_kind_t algorithm;
    tdm_dnnl_ref x, weights, bias, y;            /* bias: NULL if there is none */
    dnnl_dims_t stride, dilation, before, after; /* padding above and to the left, below and to the right */
} tdm_dnnl_conv;

/* Plans one pass of a convolution. `forward`: the plan of the forward pass, which the backward passes need. */
static inline dnnl_status_t tdm__dnnl_conv_plan(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                                dnnl_primitive_attr_t attr, tdm_dnnl_pass pass, const tdm_dnnl_conv *c,
                                                dnnl_primitive_desc_t forward) {
#if DNNL_VERSION_MAJOR >= 3
    switch (pass) {
    case TDM_DNNL_FORWARD:
        return TDM_DNNL(dnnl_convolution_forward_primitive_desc_create)(
            out, engine, dnnl_forward_training, c->algorithm, c->x, c->weights, c->bias, c->y, c->stride, c->dilation,
            c->before, c->after, attr);
    case TDM_DNNL_BACKWARD_DATA:
        return TDM_DNNL(dnnl_convolution_backward_data_primitive_desc_create)(out, engine, c->algorithm, c->x,
                                                                              c->weights, c->y, c->stride, c->dilation,
                                                                              c->before, c->after, forward, attr);
    default:
        return TDM_DNNL(dnnl_convolution_backward_weights_primitive_desc_create)(
            out, engine, c->algorithm, c->x, c->weights, c->bias, c->y, c->stride, c->dilation, c->before, c->after,
            forward, attr);
    }
#else
    dnnl_convolution_desc_t desc;
    dnnl_status_t status;
    if (pass == TDM_DNNL_FORWARD) {
        status = TDM_DNNL(dnnl_dilated_convolution_forward_desc_init)(&desc, dnnl_forward_training, c->algorithm, c->x,
                                                                      c->weights, c->bias, c->y, c->stride, c->dilation,
                                                                      c->before, c->after);
    } else if (pass == TDM_DNNL_BACKWARD_DATA) {
        status = TDM_DNNL(dnnl_dilated_convolution_backward_data_desc_init)(
            &desc, c->algorithm, c->x, c->weights, c->y, c->stride, c->dilation, c->before, c->after);
    } else {
        status = TDM_DNNL(dnnl_dilated_convolution_backward_weights_desc_init)(
            &desc, c->algorithm, c->x, c->weights, c->bias, c->y, c->stride, c->dilation, c->before, c->after);
    }
    if (status != dnnl_success) return status;
    return TDM_DNNL(dnnl_primitive_desc_create)(out, &desc, attr, engine, forward);
#endif
}

/* Plans c = a b + bias. bias: NULL if there is none. */
static inline dnnl_status_t tdm__dnnl_matmul_plan(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                                  dnnl_primitive_attr_t attr, tdm_dnnl_ref a, tdm_dnnl_ref b,
                                                  tdm_dnnl_ref bias, tdm_dnnl_ref c) {
#if DNNL_VERSION_MAJOR >= 3
    return TDM_DNNL(dnnl_matmul_primitive_desc_create)(out, engine, a, b, bias, c, attr);
#else
    dnnl_matmul_desc_t desc;
    const dnnl_status_t status = TDM_DNNL(dnnl_matmul_desc_init)(&desc, a, b, bias, c);
    return status == dnnl_success ? TDM_DNNL(dnnl_primitive_desc_create)(out, &desc, attr, engine, NULL) : status;
#endif
}

/* Returns the channels per block of the layout that is best for convolutions on this processor; 1: no blocks. */
static inline int64_t tdm__dnnl_channel_block(void) {
#if defined(__x86_64__)
    const unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();
    if ((isa & (unsigned)dnnl_cpu_isa_avx512_core) == (unsigned)dnnl_cpu_isa_avx512_core) return 16;
    if ((isa & (unsigned)dnnl_cpu_isa_sse41) == (unsigned)dnnl_cpu_isa_sse41) return 8;
#endif
    return 1;
}

/* Returns whether every part of a product (m x n, sums of k) with at least 64 rows or columns has the same bits as in
 * the whole product. sgemm chooses its code, and with it the order of sums, by processor and sizes. With AVX-512 the
 * parts differ if sums have 768 terms or more and either m and n are both above 510 or b is transposed; with AVX2 they
 * differ in every fourth shape. This promises only sizes well inside these limits, and only for version 2 (test
 * threads_change_no_bit_of_drawn_products). */
static inline bool tdm__dnnl_sgemm_parts(int64_t m, int64_t n, int64_t k, bool transposed_b) {
    if (DNNL_VERSION_MAJOR != 2 || tdm__dnnl_channel_block() != 16) return false;
    return k <= 512 || (!transposed_b && (m <= 500 || n <= 500));
}

/* Returns whether sgemm multiplies one row by a transposed matrix as ops/linear/linear_row_lanes.h does. Only version 2
 * has been read. */
static inline bool tdm__dnnl_sums_rows_by_avx2(void) {
#if defined(__x86_64__)
    const unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();
    return DNNL_VERSION_MAJOR == 2 && (isa & (unsigned)dnnl_cpu_isa_avx2) == (unsigned)dnnl_cpu_isa_avx2;
#else
    return false;
#endif
}

#endif
