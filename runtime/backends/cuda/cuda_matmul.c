/* Matrix products by cublasLt. Everything that costs host time, descriptors and the choice of an algorithm, happens at
 * open; a run is one call.
 *
 * cublasLt's matrices are column-major: a row-major c[m, n] is its c^T[n, m]. It therefore computes c^T = op(b)^T
 * op(a)^T, whose factors are already in that order in memory. Its bias then runs along n, as ours does. */
#include <stdio.h>
#include <string.h>

#include <tandem/job.h>

#include "runtime/backends/cuda/kit/passes.h"
#include "runtime/backends/cuda/cuda_private.h"

/* Arenas and batches start at multiples of 32 bytes or more, so an algorithm that reads 16 bytes at once nearly always
 * fits. Slices of convolutions may start anywhere: for them there is a second algorithm, if cublasLt has one. */
enum { ALIGNED, UNALIGNED, ALGORITHMS };
enum { WHOLE = 16 };

/* The workspace that NVIDIA advises for its largest GPUs. Only what the chosen algorithm needs is allocated. */
enum { MOST_WORKSPACE = 32 << 20, CANDIDATES = 8 };

struct tdm_cuda_matmul {
    tdm_cuda_device *device;
    tdm_cuda_matmul_shape shape;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, c; /* row-major; cublasLt gets b as its first factor */
    cublasLtMatmulAlgo_t algorithm[ALGORITHMS];
    bool has[ALGORITHMS];
    size_t workspace_bytes;
    cublasStatus_t refusal;   /* status of the last algorithm that did not run */
    bool bias, clamp;         /* done in cublasLt's epilogue */
    bool own_bias, own_clamp; /* done by a pass of tandem's */
};

/* Describes a row-major matrix of rows x columns. */
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
    TDM_MODULE_TRY(
        open_layout(mm, &mm->a, s->factors, s->transpose_a ? s->k : s->m, s->transpose_a ? s->m : s->k, s->stride_a));
    TDM_MODULE_TRY(
        open_layout(mm, &mm->b, s->factors, s->transpose_b ? s->n : s->k, s->transpose_b ? s->k : s->n, s->stride_b));
    return open_layout(mm, &mm->c, s->result, s->m, s->n, s->stride_c);
}

/* Sets the address of the bias. Its type is that of the result: cublasLt's default and, for floats and bf16, its only
 * choice. */
static tdm_status set_bias(tdm_cuda_matmul *mm, const void *bias) {
    TDM_CUBLAS(mm->device->libraries,
               cublasLtMatmulDescSetAttribute(mm->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    return TDM_OK;
}

static tdm_status set_epilogue(tdm_cuda_matmul *mm, bool bias, bool clamp) {
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    if (clamp) epilogue = bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    if (bias && !clamp) epilogue = CUBLASLT_EPILOGUE_BIAS;
    mm->bias = bias;
    mm->clamp = clamp;
    mm->own_bias = mm->shape.bias && !bias;
    mm->own_clamp = mm->shape.clamp && !clamp;
    TDM_CUBLAS(mm->device->libraries, cublasLtMatmulDescSetAttribute(mm->operation, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                                     &epilogue, sizeof epilogue));
    return set_bias(mm, NULL);
}

/* ---- the choice of algorithms ---- */

/* Sets the workspace, the alignment and the reduction scheme. If a sum is split among blocks, the deterministic scheme
 * adds the parts in the workspace, in order, in a pass of its own. The other schemes add into the result in the order
 * in which blocks finish. */
static tdm_status set_preference(tdm_cuda_matmul *mm, cublasLtMatmulPreference_t preference, int index) {
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
    TDM_CUBLAS(l, cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                                       sizeof most));
    TDM_CUBLAS(l, cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                                       sizeof schemes));
    for (size_t i = 0; i < sizeof operand / sizeof operand[0]; i++)
        TDM_CUBLAS(l, cublasLtMatmulPreferenceSetAttribute(preference, operand[i].attribute, &operand[i].bytes,
                                                           sizeof operand[i].bytes));
    return TDM_OK;
}

static cublasStatus_t start(const tdm_cuda_matmul *mm, const cublasLtMatmulAlgo_t *algorithm, const void *a,
                            const void *b, void *c, size_t workspace_bytes) {
    static const float one = 1.0f, zero = 0.0f;
    return mm->device->libraries->blas.cublasLtMatmul((cublasLtHandle_t)mm->device->blas, mm->operation, &one, b, mm->b,
                                                      a, mm->a, &zero, c, mm->c, c, mm->c, algorithm,
                                                      mm->device->workspace, workspace_bytes, mm->device->stream);
}

/* Runs a candidate once. It serves if cublasLt accepts it and its relu lets NaN through, which NVIDIA does not
 * document: a run that has diverged must not look healthy. */
static tdm_status try_candidate(tdm_cuda_matmul *mm, const tdm_cuda_trial *trial, int index,
                                const cublasLtMatmulHeuristicResult_t *candidate, bool *serves) {
    const size_t odd_in = index == ALIGNED ? 0 : tdm__cuda_size(mm->shape.factors);
    const size_t odd_out = index == ALIGNED ? 0 : tdm__cuda_size(mm->shape.result);
    const char *in = trial->in + odd_in;
    char *out = trial->out + odd_out;
    bool passes_nan = false;
    *serves = trial->in == NULL && !mm->clamp; /* no memory for a trial: take it unless it has a relu */
    if (trial->in == NULL) return TDM_OK;
    TDM_MODULE_TRY(tdm__cuda_workspace(mm->device, candidate->workspaceSize));
    TDM_MODULE_TRY(tdm__cuda_trial_begin(trial));
    if (mm->bias) TDM_MODULE_TRY(set_bias(mm, trial->in + odd_out));
    const cublasStatus_t status = start(mm, &candidate->algo, in, in, out, candidate->workspaceSize);
    if (status != CUBLAS_STATUS_SUCCESS) mm->refusal = status;
    TDM_MODULE_TRY(tdm__cuda_trial_end(trial, status != CUBLAS_STATUS_SUCCESS, out, mm->shape.result,
                                       (size_t)(mm->shape.m * mm->shape.n), &passes_nan));
    *serves = status == CUBLAS_STATUS_SUCCESS && (passes_nan || !mm->clamp);
    return TDM_OK;
}

/* Asks for candidates and chooses the first that serves. Unaligned operands may never occur, so having no algorithm for
 * them is no error here, whichever of its several status codes cublasLt returns. */
static tdm_status ask(tdm_cuda_matmul *mm, cublasLtMatmulPreference_t preference, const tdm_cuda_trial *trial,
                      int index) {
    const tdm_cuda_libraries *l = mm->device->libraries;
    cublasLtMatmulHeuristicResult_t candidate[CANDIDATES];
    int count = 0;
    TDM_MODULE_TRY(set_preference(mm, preference, index));
    /* cublasLt offers no algorithm for a bias without an address, and the address says how the bias is aligned. This
     * one is a stand-in; run sets the real one. */
    if (mm->bias)
        TDM_MODULE_TRY(set_bias(mm, tdm__cuda_at(mm->device->workspace, index == ALIGNED ? 0 : 1, mm->shape.result)));
    const cublasStatus_t status =
        l->blas.cublasLtMatmulAlgoGetHeuristic((cublasLtHandle_t)mm->device->blas, mm->operation, mm->b, mm->a, mm->c,
                                               mm->c, preference, CANDIDATES, candidate, &count);
    mm->has[index] = false;
    if (index == ALIGNED && status != CUBLAS_STATUS_SUCCESS && status != CUBLAS_STATUS_NOT_SUPPORTED)
        return tdm__cublas_error(l, status, "cublasLtMatmulAlgoGetHeuristic", __FILE__, __LINE__);
    for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count && !mm->has[index]; i++) {
        if (candidate[i].state != CUBLAS_STATUS_SUCCESS) continue;
        TDM_MODULE_TRY(try_candidate(mm, trial, index, &candidate[i], &mm->has[index]));
        if (!mm->has[index]) continue;
        mm->algorithm[index] = candidate[i].algo;
        if (candidate[i].workspaceSize > mm->workspace_bytes) mm->workspace_bytes = candidate[i].workspaceSize;
    }
    return TDM_OK;
}

/* *found: there is an algorithm for aligned operands. If there is none for others, run reports it when they occur. */
static tdm_status ask_all(tdm_cuda_matmul *mm, const tdm_cuda_trial *trial, bool *found) {
    const tdm_cuda_libraries *l = mm->device->libraries;
    cublasLtMatmulPreference_t preference = NULL;
    tdm_status status = TDM_OK;
    mm->workspace_bytes = 0;
    TDM_CUBLAS(l, cublasLtMatmulPreferenceCreate(&preference));
    for (int i = 0; i < ALGORITHMS && status == TDM_OK; i++) status = ask(mm, preference, trial, i);
    (void)l->blas.cublasLtMatmulPreferenceDestroy(preference);
    TDM_MODULE_TRY(status);
    *found = mm->has[ALIGNED];
    return *found ? tdm__cuda_workspace(mm->device, mm->workspace_bytes) : TDM_OK;
}

/* `which`: "", or what is special about the operands. */
static tdm_status no_algorithm(const tdm_cuda_matmul *mm, const char *which) {
    const tdm_cublaslt *blas = &mm->device->libraries->blas;
    const bool refused = mm->refusal != CUBLAS_STATUS_SUCCESS;
    TDM_MODULE_FAIL(TDM_E_UNSUPPORTED,
                    "%s: cublasLt %s has no algorithm for a product of %lld x %lld x %lld (batch %lld, %s)%s%s%s%s",
                    mm->device->base.name, tdm__cuda_version_text(blas->version).of, (long long)mm->shape.m,
                    (long long)mm->shape.n, (long long)mm->shape.k, (long long)mm->shape.batch,
                    mm->shape.factors == TDM_CUDA_BF16 ? "bf16" : "f32", which,
                    refused ? "; it refuses the algorithms that it offers: " : "",
                    refused ? blas->cublasLtGetStatusName(mm->refusal) : "",
                    refused ? "; parallel.device=cpu works without cublasLt" : "");
}

/* Chooses an algorithm with bias and relu if one does them correctly, else with the bias alone, else with neither. */
static tdm_status choose_with(tdm_cuda_matmul *mm, const tdm_cuda_trial *trial) {
    const tdm_cuda_matmul_shape *s = &mm->shape;
    bool found = false;
    TDM_MODULE_TRY(set_epilogue(mm, s->bias, s->clamp));
    TDM_MODULE_TRY(ask_all(mm, trial, &found));
    if (!found && s->bias && s->clamp) {
        TDM_MODULE_TRY(set_epilogue(mm, true, false));
        TDM_MODULE_TRY(ask_all(mm, trial, &found));
    }
    if (!found && (s->bias || s->clamp)) {
        TDM_MODULE_TRY(set_epilogue(mm, false, false));
        TDM_MODULE_TRY(ask_all(mm, trial, &found));
    }
    return found ? TDM_OK : no_algorithm(mm, "");
}

static size_t extent(int64_t numbers, int64_t batch, int64_t stride, tdm_cuda_number number) {
    return (size_t)(numbers + (batch - 1) * stride) * tdm__cuda_size(number) + WHOLE;
}

static tdm_status choose(tdm_cuda_matmul *mm) {
    const tdm_cuda_matmul_shape *s = &mm->shape;
    const size_t a = extent(s->m * s->k, s->batch, s->stride_a, s->factors);
    const size_t b = extent(s->k * s->n, s->batch, s->stride_b, s->factors);
    const size_t bias = extent(s->n, 1, 0, s->result);
    tdm_cuda_trial trial;
    tdm__cuda_trial_open(&trial, mm->device, tdm__larger(tdm__larger(a, b), bias),
                         extent(s->m * s->n, s->batch, s->stride_c, s->result));
    const tdm_status status = choose_with(mm, &trial);
    tdm__cuda_trial_close(&trial);
    return status;
}

/* ---- open, run, close ---- */

static tdm_status prepare(tdm_cuda_matmul *mm) {
    TDM_CUDA_ENTER(&mm->device->base);
    TDM_MODULE_TRY(open_operation(mm));
    return choose(mm);
}

tdm_status tdm__cuda_matmul_open(tdm_cuda_matmul **out, tdm_cuda_device *device, const tdm_cuda_matmul_shape *shape) {
    *out = NULL;
    tdm_cuda_matmul *mm = tdm__module_new(device->base.host, sizeof *mm);
    if (mm == NULL)
        TDM_MODULE_FAIL(TDM_E_MEMORY, "out of memory for %zu bytes, the state of a matrix product", sizeof *mm);
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
    if (!mm->has[index]) return no_algorithm(mm, " whose matrices do not start at multiples of 16 bytes");
    if (mm->bias) TDM_MODULE_TRY(set_bias(mm, bias));
    const cublasStatus_t status = start(mm, &mm->algorithm[index], a, b, c, mm->workspace_bytes);
    if (status != CUBLAS_STATUS_SUCCESS)
        return tdm__cublas_error(mm->device->libraries, status, "cublasLtMatmul", __FILE__, __LINE__);
    if (!mm->own_bias && !mm->own_clamp) return TDM_OK;
    return tdm__cuda_bias(mm->device, mm->shape.result, c, mm->own_bias ? bias : NULL, mm->shape.m * mm->shape.batch,
                          mm->shape.n, 1, mm->own_clamp);
}

size_t tdm__cuda_matmul_workspace(const tdm_cuda_matmul *matmul) {
    return matmul != NULL ? matmul->workspace_bytes : 0;
}

/* Returns a setting of the algorithm: cublasLt's algorithms have numbers instead of names. -1 if cublasLt does not say.
 */
static int setting(const tdm_cuda_matmul *mm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
    int32_t value = -1; /* all settings used here have 4 bytes */
    size_t written = 0;
    const cublasStatus_t status = mm->device->libraries->blas.cublasLtMatmulAlgoConfigGetAttribute(
        &mm->algorithm[ALIGNED], attribute, &value, sizeof value, &written);
    return status == CUBLAS_STATUS_SUCCESS ? value : -1;
}

const char *tdm__cuda_math(const tdm_cuda_device *device, tdm_cuda_number number) {
    if (number == TDM_CUDA_BF16) return "bf16";
    return device->precision == TDM_TF32 ? "tf32" : "f32";
}

void tdm__cuda_matmul_algorithm(const tdm_cuda_matmul *mm, const char *pass, const char *const fused[4],
                                tdm_algorithms *out) {
    if (mm == NULL) return;
    tdm_algorithm *chosen = &out->of[out->count++];
    *chosen = (tdm_algorithm){
        .pass = pass, .math = tdm__cuda_math(mm->device, mm->shape.factors), .workspace_bytes = mm->workspace_bytes};
    if (mm->shape.bias || mm->shape.clamp) chosen->fused = fused[mm->bias + 2 * mm->clamp];
    snprintf(chosen->name, sizeof chosen->name, "cublasLt %d, tile %d, stages %d, split %d, reduction %d",
             setting(mm, CUBLASLT_ALGO_CONFIG_ID), setting(mm, CUBLASLT_ALGO_CONFIG_TILE_ID),
             setting(mm, CUBLASLT_ALGO_CONFIG_STAGES_ID), setting(mm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
             setting(mm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME));
}

void tdm__cuda_matmul_close(tdm_cuda_matmul *mm) {
    if (mm == NULL) return;
    const tdm_cublaslt *blas = &mm->device->libraries->blas;
    if (mm->c != NULL) (void)blas->cublasLtMatrixLayoutDestroy(mm->c);
    if (mm->b != NULL) (void)blas->cublasLtMatrixLayoutDestroy(mm->b);
    if (mm->a != NULL) (void)blas->cublasLtMatrixLayoutDestroy(mm->a);
    if (mm->operation != NULL) (void)blas->cublasLtMatmulDescDestroy(mm->operation);
    tdm__module_delete(mm);
}
