/* Matrix products by cublasLt. Everything that costs host time, descriptors and the choice of an algorithm, happens at
 * open; a run is one call.
 *
 * cublasLt's matrices are column-major: a row-major c[m, n] is its c^T[n, m], so it is asked for c^T = op(b)^T op(a)^T,
 * whose factors lie in memory as they are. Its bias then runs along n, as ours does. */
#include <math.h>
#include <string.h>

#include <tandem/job.h>

#include "ops/cuda_module/passes.h"
#include "runtime/base/bf16.h"
#include "runtime/device/cuda/cuda_private.h"

/* Arenas and batches start at multiples of 32 bytes or more, so that algorithms which read 16 at once serve nearly
 * always; for the slices of convolutions there is a second one, where cublasLt has it. */
enum { ALIGNED, UNALIGNED, ALGORITHMS };
enum { WHOLE = 16 };

/* What NVIDIA advises for its largest GPUs; only what the chosen algorithm wants is taken. */
enum { MOST_WORKSPACE = 32 << 20, CANDIDATES = 8 };

struct tdm_cuda_matmul {
    tdm_cuda_device *device;
    tdm_cuda_matmul_shape shape;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, c; /* ours; cublasLt gets b as its first factor */
    cublasLtMatmulAlgo_t algorithm[ALGORITHMS];
    bool has[ALGORITHMS];
    size_t workspace_bytes;
    bool bias, relu;         /* in the epilogue */
    bool own_bias, own_relu; /* by a pass of ours */
};

/* rows x columns, row-major */
static tdm_status open_layout(tdm_cuda_matmul *mm, cublasLtMatrixLayout_t *out, tdm_cuda_number number, int64_t rows,
                              int64_t columns, int64_t stride) {
    const tdm_cuda_libraries *l = mm->device->libraries;
    const cudaDataType type = number == TDM_CUDA_BF16 ? CUDA_R_16BF : CUDA_R_32F;
    const int32_t batch = (int32_t)mm->shape.batch;
    TDM_CUBLAS(l, cublasLtMatrixLayoutCreate(out, type, (uint64_t)columns, (uint64_t)rows, columns));
    if (batch == 1) return TDM_OK;
    TDM_CUBLAS(l, cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
    TDM_CUBLAS(
        l, cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
    return TDM_OK;
}

static tdm_status open_operation(tdm_cuda_matmul *mm) {
    const tdm_cuda_libraries *l = mm->device->libraries;
    const tdm_cuda_matmul_shape *s = &mm->shape;
    const cublasComputeType_t compute =
        mm->device->precision == TDM_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const cublasOperation_t first = s->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = s->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    TDM_CUBLAS(l, cublasLtMatmulDescCreate(&mm->operation, compute, CUDA_R_32F));
    TDM_CUBLAS(l, cublasLtMatmulDescSetAttribute(mm->operation, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first));
    TDM_CUBLAS(l, cublasLtMatmulDescSetAttribute(mm->operation, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second));
    TDM_CUDA_TRY(
        open_layout(mm, &mm->a, s->factors, s->transpose_a ? s->k : s->m, s->transpose_a ? s->m : s->k, s->stride_a));
    TDM_CUDA_TRY(
        open_layout(mm, &mm->b, s->factors, s->transpose_b ? s->n : s->k, s->transpose_b ? s->k : s->n, s->stride_b));
    return open_layout(mm, &mm->c, s->result, s->m, s->n, s->stride_c);
}

/* Its numbers are those of the result, which is cublasLt's default and, for floats and bf16, all it has. */
static tdm_status set_bias(tdm_cuda_matmul *mm, const void *bias) {
    TDM_CUBLAS(mm->device->libraries,
               cublasLtMatmulDescSetAttribute(mm->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    return TDM_OK;
}

static tdm_status set_epilogue(tdm_cuda_matmul *mm, bool bias, bool relu) {
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    if (relu) epilogue = bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    if (bias && !relu) epilogue = CUBLASLT_EPILOGUE_BIAS;
    mm->bias = bias;
    mm->relu = relu;
    mm->own_bias = mm->shape.bias && !bias;
    mm->own_relu = mm->shape.relu && !relu;
    TDM_CUBLAS(mm->device->libraries, cublasLtMatmulDescSetAttribute(mm->operation, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                                     &epilogue, sizeof epilogue));
    return set_bias(mm, NULL);
}

/* ---- the choice of algorithms ---- */

/* Where a sum is split among blocks, the parts are added in the workspace, in order, by a pass of their own: the other
 * schemes add into the result as blocks come by. */
static tdm_status set_preference(tdm_cuda_matmul *mm, cublasLtMatmulPreference_t wish, int index) {
    const uint32_t factors = index == ALIGNED ? WHOLE : (uint32_t)tdm__cuda_size(mm->shape.factors);
    const uint32_t result = index == ALIGNED ? WHOLE : (uint32_t)tdm__cuda_size(mm->shape.result);
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        uint32_t bytes;
    } operand[] = {{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, factors},
                   {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, factors},
                   {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, result},
                   {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, result}};
    const tdm_cuda_libraries *l = mm->device->libraries;
    const uint64_t most = MOST_WORKSPACE;
    const uint32_t schemes =
        mm->device->deterministic ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_MASK;
    TDM_CUBLAS(
        l, cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most));
    TDM_CUBLAS(l, cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                                       sizeof schemes));
    for (size_t i = 0; i < sizeof operand / sizeof operand[0]; i++)
        TDM_CUBLAS(l, cublasLtMatmulPreferenceSetAttribute(wish, operand[i].attribute, &operand[i].bytes,
                                                           sizeof operand[i].bytes));
    return TDM_OK;
}

static tdm_status ask(tdm_cuda_matmul *mm, cublasLtMatmulPreference_t wish, int index) {
    const tdm_cuda_libraries *l = mm->device->libraries;
    cublasLtMatmulHeuristicResult_t candidate[CANDIDATES];
    int count = 0;
    TDM_CUDA_TRY(set_preference(mm, wish, index));
    /* No algorithm is offered for a bias that is nowhere, and where it is says how it is aligned; run sets the true
     * one. */
    if (mm->bias)
        TDM_CUDA_TRY(set_bias(mm, tdm__cuda_at(mm->device->workspace, index == ALIGNED ? 0 : 1, mm->shape.result)));
    const cublasStatus_t status =
        l->blas.cublasLtMatmulAlgoGetHeuristic((cublasLtHandle_t)mm->device->blas, mm->operation, mm->b, mm->a, mm->c,
                                               mm->c, wish, CANDIDATES, candidate, &count);
    mm->has[index] = false;
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return TDM_OK;
    if (status != CUBLAS_STATUS_SUCCESS)
        return tdm__cublas_error(l, status, "cublasLtMatmulAlgoGetHeuristic", __FILE__, __LINE__);
    for (int i = 0; i < count && !mm->has[index]; i++) {
        if (candidate[i].state != CUBLAS_STATUS_SUCCESS) continue;
        mm->algorithm[index] = candidate[i].algo;
        if (candidate[i].workspaceSize > mm->workspace_bytes) mm->workspace_bytes = candidate[i].workspaceSize;
        mm->has[index] = true;
    }
    return TDM_OK;
}

/* *found: whole operands have an algorithm. Others may never come; should they, run says so. */
static tdm_status ask_all(tdm_cuda_matmul *mm, bool *found) {
    const tdm_cuda_libraries *l = mm->device->libraries;
    cublasLtMatmulPreference_t wish = NULL;
    tdm_status status = TDM_OK;
    mm->workspace_bytes = 0;
    TDM_CUBLAS(l, cublasLtMatmulPreferenceCreate(&wish));
    for (int i = 0; i < ALGORITHMS && status == TDM_OK; i++) status = ask(mm, wish, i);
    (void)l->blas.cublasLtMatmulPreferenceDestroy(wish);
    TDM_CUDA_TRY(status);
    *found = mm->has[ALIGNED];
    return *found ? tdm__cuda_workspace(mm->device, mm->workspace_bytes) : TDM_OK;
}

/* `which`: "" or what is special about it. */
static tdm_status no_algorithm(const tdm_cuda_matmul *mm, const char *which) {
    TDM_CUDA_FAIL(
        TDM_E_UNSUPPORTED, "%s: cublasLt %zu has no algorithm for a product of %lld x %lld x %lld (batch %lld, %s)%s",
        mm->device->base.name, mm->device->libraries->blas.version, (long long)mm->shape.m, (long long)mm->shape.n,
        (long long)mm->shape.k, (long long)mm->shape.batch, mm->shape.factors == TDM_CUDA_BF16 ? "bf16" : "f32", which);
}

static tdm_status choose(tdm_cuda_matmul *mm) {
    bool found = false;
    TDM_CUDA_TRY(set_epilogue(mm, mm->shape.bias, mm->shape.relu));
    TDM_CUDA_TRY(ask_all(mm, &found));
    if (!found && (mm->bias || mm->relu)) {
        TDM_CUDA_TRY(set_epilogue(mm, false, false));
        TDM_CUDA_TRY(ask_all(mm, &found));
    }
    return found ? TDM_OK : no_algorithm(mm, "");
}

/* ---- NaN ---- */

static tdm_status run_algorithm(tdm_cuda_matmul *mm, int index, const void *a, const void *b, void *c) {
    static const float one = 1.0f, zero = 0.0f;
    TDM_CUBLAS(mm->device->libraries, cublasLtMatmul((cublasLtHandle_t)mm->device->blas, mm->operation, &one, b, mm->b,
                                                     a, mm->a, &zero, c, mm->c, c, mm->c, &mm->algorithm[index],
                                                     mm->device->workspace, mm->workspace_bytes, mm->device->stream));
    return TDM_OK;
}

static size_t extent(int64_t numbers, int64_t batch, int64_t stride, tdm_cuda_number number) {
    return (size_t)(numbers + (batch - 1) * stride) * tdm__cuda_size(number);
}

static bool all_nan(const void *numbers, size_t count, tdm_cuda_number number) {
    bool all = true;
    for (size_t i = 0; i < count; i++) {
        const float value =
            number == TDM_CUDA_BF16 ? tdm__bf16_float(((const uint16_t *)numbers)[i]) : ((const float *)numbers)[i];
        all = all && isnan(value);
    }
    return all;
}

/* One buffer is all operands and the result: whatever is read is NaN, so whatever is written must be. */
static tdm_status try_nan(tdm_cuda_matmul *mm, void *memory, size_t bytes, bool *passes) {
    enum { SEEN = 64 };
    float seen[SEEN];
    const size_t count = (size_t)mm->shape.n < SEEN ? (size_t)mm->shape.n : SEEN;
    cudaStream_t stream = mm->device->stream;
    *passes = true;
    for (int i = 0; i < ALGORITHMS; i++) {
        if (!mm->has[i]) continue;
        TDM_CUDA(cudaMemsetAsync(memory, 0xff, bytes, stream));
        TDM_CUDA_TRY(set_bias(mm, mm->bias ? memory : NULL));
        TDM_CUDA_TRY(run_algorithm(mm, i, memory, memory, memory));
        TDM_CUDA(cudaMemcpyAsync(seen, memory, count * tdm__cuda_size(mm->shape.result), cudaMemcpyDefault, stream));
        TDM_CUDA(cudaStreamSynchronize(stream));
        *passes = *passes && all_nan(seen, count, mm->shape.result);
    }
    return TDM_OK;
}

/* cublasLt does not say what its relu makes of NaN. A run that has diverged must show, so its algorithms are tried, and
 * where NaN becomes 0 the relu is a pass of ours. */
static tdm_status check_relu(tdm_cuda_matmul *mm) {
    const tdm_cuda_matmul_shape *s = &mm->shape;
    size_t bytes[] = {extent(s->m * s->k, s->batch, s->stride_a, s->factors),
                      extent(s->k * s->n, s->batch, s->stride_b, s->factors),
                      extent(s->m * s->n, s->batch, s->stride_c, s->result)};
    size_t most = bytes[0] > bytes[1] ? bytes[0] : bytes[1];
    void *memory = NULL;
    bool passes = false, found = false;
    if (!mm->relu) return TDM_OK;
    if (bytes[2] > most) most = bytes[2];
    if (cudaMalloc(&memory, most) == cudaSuccess) {
        const tdm_status status = try_nan(mm, memory, most, &passes);
        (void)cudaFree(memory);
        TDM_CUDA_TRY(status);
    } else {
        (void)cudaGetLastError(); /* no room to try: take the way that is known */
    }
    if (passes) return TDM_OK;
    TDM_CUDA_TRY(set_epilogue(mm, s->bias, false));
    TDM_CUDA_TRY(ask_all(mm, &found));
    if (found) return TDM_OK;
    TDM_CUDA_TRY(set_epilogue(mm, false, false));
    TDM_CUDA_TRY(ask_all(mm, &found));
    return found ? TDM_OK : no_algorithm(mm, "");
}

/* ---- open, run, close ---- */

static tdm_status prepare(tdm_cuda_matmul *mm) {
    TDM_CUDA_ENTER(&mm->device->base);
    TDM_CUDA_TRY(open_operation(mm));
    TDM_CUDA_TRY(choose(mm));
    return check_relu(mm);
}

tdm_status tdm__cuda_matmul_open(tdm_cuda_matmul **out, tdm_cuda_device *device, const tdm_cuda_matmul_shape *shape) {
    const tdm_host *host = device->base.host;
    *out = NULL;
    tdm_cuda_matmul *mm = host->allocate(host->user, sizeof *mm, _Alignof(tdm_cuda_matmul));
    if (mm == NULL) TDM_CUDA_FAIL(TDM_E_MEMORY, "out of memory for %zu bytes, a matrix product", sizeof *mm);
    memset(mm, 0, sizeof *mm);
    mm->device = device;
    mm->shape = *shape;
    const tdm_status status = prepare(mm);
    if (status != TDM_OK) {
        tdm__cuda_matmul_close(mm);
        return status;
    }
    *out = mm;
    return TDM_OK;
}

tdm_status tdm__cuda_matmul_run(tdm_cuda_matmul *mm, const void *a, const void *b, const void *bias, void *c) {
    const uintptr_t addresses = (uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (mm->bias ? (uintptr_t)bias : 0);
    const int index = addresses % WHOLE == 0 ? ALIGNED : UNALIGNED;
    if (!mm->has[index]) return no_algorithm(mm, " of matrices that do not begin at multiples of 16 bytes");
    if (mm->bias) TDM_CUDA_TRY(set_bias(mm, bias));
    TDM_CUDA_TRY(run_algorithm(mm, index, a, b, c));
    if (!mm->own_bias && !mm->own_relu) return TDM_OK;
    return tdm__cuda_bias(mm->device, mm->shape.result, c, mm->own_bias ? bias : NULL, mm->shape.m * mm->shape.batch,
                          mm->shape.n, 1, mm->own_relu);
}

size_t tdm__cuda_matmul_workspace(const tdm_cuda_matmul *matmul) {
    return matmul != NULL ? matmul->workspace_bytes : 0;
}

void tdm__cuda_matmul_close(tdm_cuda_matmul *mm) {
    if (mm == NULL) return;
    const tdm_host *host = mm->device->base.host;
    const tdm_cublaslt *blas = &mm->device->libraries->blas;
    if (mm->c != NULL) (void)blas->cublasLtMatrixLayoutDestroy(mm->c);
    if (mm->b != NULL) (void)blas->cublasLtMatrixLayoutDestroy(mm->b);
    if (mm->a != NULL) (void)blas->cublasLtMatrixLayoutDestroy(mm->a);
    if (mm->operation != NULL) (void)blas->cublasLtMatmulDescDestroy(mm->operation);
    host->release(host->user, mm);
}
