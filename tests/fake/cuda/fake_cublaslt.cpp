/* libcublasLt.so.13, played: column-major products of floats and of bf16 with batches and epilogues, computed in
 * double.
 *
 * Where the real one is free to choose, this one takes turns: algorithms are offered per alignment and reduction
 * scheme, those that add in place are not steady, and whether a relu passes NaN on depends on the shape and the
 * algorithm. */
#include "fake_library.h"

#include <atomic>
#include <vector>

#include <cublasLt.h>

struct cublasLtContext {
    int device;
};

struct cublasLtMatmulDescOpaque {
    int32_t compute, scale, pointer_mode = 0;
    int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N, transpose_c = CUBLAS_OP_N;
    uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const void *bias = nullptr;
    int64_t bias_stride = 0;
};

struct cublasLtMatrixLayoutOpaque {
    uint32_t type;
    uint64_t rows, columns;
    int64_t leading;
    int32_t order = CUBLASLT_ORDER_COL, batch = 1;
    int64_t stride = 0;
};

struct cublasLtMatmulPreferenceOpaque {
    uint32_t search_mode = 0, schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
    uint64_t workspace = 0;
    uint32_t alignment[4] = {256, 256, 256, 256};
};

namespace {

using fake::alive;

/* What is in the opaque words of an algorithm. */
enum { word_magic, word_alignment, word_workspace, word_scheme, word_number, magic = 0x7a61746d };

/* op(matrix): of a and b as they enter the product */
struct shape {
    uint64_t rows, columns;
};

shape operand(const cublasLtMatrixLayoutOpaque &m, int32_t transpose) {
    return transpose == CUBLAS_OP_N ? shape{m.rows, m.columns} : shape{m.columns, m.rows};
}

fake::kind kind_of(const cublasLtMatrixLayoutOpaque &m) {
    return m.type == CUDA_R_16BF ? fake::kind::bf16 : fake::kind::floats;
}

/* The rows of the table of types under cublasLtMatmul in NVIDIA's documentation that are played: float x float -> float
 * in f32 and with faster factors, and with COMPUTE_32F bf16 x bf16 -> bf16 or float. The bias is of D's type, by that
 * table and by cublasLt.h at CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE. */
bool types_serve(int32_t compute, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    if (a != b || c != d) return false;
    if (a == CUDA_R_16BF) {
        return (d == CUDA_R_16BF || d == CUDA_R_32F) &&
               (compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC);
    }
    return a == CUDA_R_32F && d == CUDA_R_32F;
}

bool is_plain(const cublasLtMatrixLayoutOpaque &m) {
    return m.order == CUBLASLT_ORDER_COL && m.batch >= 1 && m.rows > 0 && m.columns > 0 &&
           m.leading >= static_cast<int64_t>(m.rows);
}

bool has(uint32_t epilogue, uint32_t part) {
    return (epilogue & part) != 0;
}

cublasStatus_t check(const cublasLtMatmulDescOpaque &desc, const cublasLtMatrixLayoutOpaque &a,
                     const cublasLtMatrixLayoutOpaque &b, const cublasLtMatrixLayoutOpaque &c,
                     const cublasLtMatrixLayoutOpaque &d) {
    const shape left = operand(a, desc.transpose_a), right = operand(b, desc.transpose_b);
    if (!is_plain(a) || !is_plain(b) || !is_plain(c) || !is_plain(d)) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!types_serve(desc.compute, a.type, b.type, c.type, d.type)) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (desc.scale != CUDA_R_32F || desc.pointer_mode != 0 || desc.transpose_c != CUBLAS_OP_N) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (left.columns != right.rows || left.rows != d.rows || right.columns != d.columns) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (c.rows != d.rows || c.columns != d.columns) return CUBLAS_STATUS_INVALID_VALUE;
    if (a.batch != b.batch || a.batch != c.batch || a.batch != d.batch) return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- the product ---- */

struct product {
    cublasLtMatmulDescOpaque desc;
    cublasLtMatrixLayoutOpaque a_layout, b_layout, c_layout, d_layout;
    const void *a, *b, *c;
    void *d;
    float alpha, beta;
    void *workspace;
    size_t workspace_bytes;
    bool steady, drops_nan;
    unsigned run;
    int device;
};

int fraction_bits(int32_t compute) {
    if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) return 10;
    return compute == CUBLAS_COMPUTE_32F_FAST_16BF ? 7 : 23;
}

/* op(matrix) as rows x columns, the rows one after the other, rounded as the multiplier takes it. */
std::vector<float> gather(const void *from, const cublasLtMatrixLayoutOpaque &layout, int64_t batch, int32_t transpose,
                          int bits) {
    const shape s = operand(layout, transpose);
    const uint64_t leading = static_cast<uint64_t>(layout.leading);
    const int64_t first = batch * layout.stride;
    std::vector<float> to(s.rows * s.columns);
    for (uint64_t i = 0; i < s.rows; i++) {
        for (uint64_t j = 0; j < s.columns; j++) {
            const uint64_t at = transpose == CUBLAS_OP_N ? i + j * leading : j + i * leading;
            const float value = fake::number_at(from, kind_of(layout), first + static_cast<int64_t>(at));
            to[i * s.columns + j] = fake::rounded(value, bits);
        }
    }
    return to;
}

float relu(float value, bool drops_nan) {
    if (std::isnan(value)) return drops_nan ? 0.0f : value;
    return value > 0 ? value : 0.0f;
}

/* alpha sum + beta C + bias, at column-major place (row, column) of this batch's result. */
void finish(const product &p, double sum, int64_t batch, uint64_t row, uint64_t column) {
    const auto at = [&](const cublasLtMatrixLayoutOpaque &m) {
        return batch * m.stride + static_cast<int64_t>(row + column * static_cast<uint64_t>(m.leading));
    };
    const fake::kind kind = kind_of(p.d_layout);
    double value = static_cast<double>(p.alpha) * sum;
    if (p.beta != 0) {
        value += static_cast<double>(p.beta) *
                 static_cast<double>(fake::number_at(p.c, kind_of(p.c_layout), at(p.c_layout)));
    }
    if (has(p.desc.epilogue, CUBLASLT_EPILOGUE_BIAS)) {
        const int64_t which = batch * p.desc.bias_stride + static_cast<int64_t>(row);
        value += static_cast<double>(fake::number_at(p.desc.bias, kind, which));
    }
    float out = static_cast<float>(value);
    if (!p.steady) out = fake::unsteady(out, kind, p.run);
    if (has(p.desc.epilogue, CUBLASLT_EPILOGUE_RELU)) out = relu(out, p.drops_nan);
    fake::set_number(p.d, kind, at(p.d_layout), out);
}

void run_one(const product &p, int64_t batch) {
    const int bits = fraction_bits(p.desc.compute);
    const auto a = gather(p.a, p.a_layout, batch, p.desc.transpose_a, bits);
    const auto b = gather(p.b, p.b_layout, batch, p.desc.transpose_b, bits);
    const uint64_t rows = p.d_layout.rows, columns = p.d_layout.columns, depth = a.size() / rows;
    std::vector<double> sums(columns);
    for (uint64_t i = 0; i < rows; i++) {
        sums.assign(columns, 0.0);
        for (uint64_t k = 0; k < depth; k++) {
            const double left = static_cast<double>(a[i * depth + k]);
            const float *right = b.data() + k * columns;
            for (uint64_t j = 0; j < columns; j++) sums[j] += left * static_cast<double>(right[j]);
        }
        for (uint64_t j = 0; j < columns; j++) finish(p, sums[j], batch, i, j);
    }
}

/* A device whose arithmetic is bad: of every so many of its products one number is wrong. */
void disturb(const product &p) {
    static std::atomic<int> products;
    if (fake::number_in("CUBLASLT_EMULATED_DISTURBS", -1) != p.device) return;
    if (++products % fake::number_in("CUBLASLT_EMULATED_DISTURBS_EVERY", 1) != 0) return;
    const fake::kind kind = kind_of(p.d_layout);
    fake::set_number(p.d, kind, 0, fake::number_at(p.d, kind, 0) * 1.5f + 1.0f);
}

void run_all(const product &p) {
    fake::use_workspace(p.workspace, p.workspace_bytes);
    for (int64_t batch = 0; batch < p.d_layout.batch; batch++) run_one(p, batch);
    disturb(p);
}

/* ---- what is checked before it is queued ---- */

size_t extent(const cublasLtMatrixLayoutOpaque &m) {
    const int64_t numbers = static_cast<int64_t>(m.rows) + (static_cast<int64_t>(m.columns) - 1) * m.leading;
    return static_cast<size_t>(numbers + (m.batch - 1) * m.stride) * fake::size_of(kind_of(m));
}

bool is_aligned(const void *pointer, uint64_t alignment) {
    return reinterpret_cast<uintptr_t>(pointer) % alignment == 0;
}

bool operands_serve(const product &p, uint64_t alignment) {
    if (!is_aligned(p.a, alignment) || !is_aligned(p.b, alignment) || !is_aligned(p.d, alignment)) return false;
    if (!cuda_emulated_reachable(p.a, extent(p.a_layout)) || !cuda_emulated_reachable(p.b, extent(p.b_layout)) ||
        !cuda_emulated_reachable(p.d, extent(p.d_layout))) {
        return false;
    }
    if (p.beta != 0 && !(is_aligned(p.c, alignment) && cuda_emulated_reachable(p.c, extent(p.c_layout)))) return false;
    if (!has(p.desc.epilogue, CUBLASLT_EPILOGUE_BIAS)) return true;
    return p.desc.bias != nullptr &&
           cuda_emulated_reachable(p.desc.bias, p.d_layout.rows * fake::size_of(kind_of(p.d_layout)));
}

template <class Value> cublasStatus_t set(Value *to, const void *from, size_t bytes) {
    if (from == nullptr || bytes != sizeof *to) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(to, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

template <class Made> cublasStatus_t make(Made **out, const Made &from) {
    if (out == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    *out = nullptr;
    if (cuda_emulated_fails_now()) return CUBLAS_STATUS_ALLOC_FAILED;
    *out = new Made(from);
    alive().add(*out);
    return CUBLAS_STATUS_SUCCESS;
}

template <class Made> cublasStatus_t destroy(Made *one) {
    if (!alive().remove(one)) return CUBLAS_STATUS_INVALID_VALUE;
    delete one;
    return cuda_emulated_fails_now() ? CUBLAS_STATUS_INTERNAL_ERROR : CUBLAS_STATUS_SUCCESS;
}

} // namespace

/* ---- the interface ---- */

size_t cublasLtGetVersion() {
    return 130000;
}

const char *cublasLtGetStatusName(cublasStatus_t status) {
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH:
        return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR:
        return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
        return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_LICENSE_ERROR:
        return "CUBLAS_STATUS_LICENSE_ERROR";
    }
    return "unknown";
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "success";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_INTERNAL_ERROR:
        return "an internal operation failed";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "the functionality requested is not supported";
    default:
        return "another error";
    }
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    cublasLtContext context = {0};
    const cudaError_t error = cudaGetDevice(&context.device);
    const cublasStatus_t status = make(handle, context);
    return error != cudaSuccess && status == CUBLAS_STATUS_SUCCESS ? CUBLAS_STATUS_NOT_INITIALIZED : status;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    return destroy(handle);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType scale) {
    cublasLtMatmulDescOpaque made;
    made.compute = compute;
    made.scale = scale;
    return make(desc, made);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes) {
    if (!alive().has(desc)) return CUBLAS_STATUS_INVALID_VALUE;
    if (cuda_emulated_fails_now()) return CUBLAS_STATUS_INTERNAL_ERROR;
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
        return set(&desc->compute, value, bytes);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
        return set(&desc->scale, value, bytes);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
        return set(&desc->pointer_mode, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return set(&desc->transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return set(&desc->transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSC:
        return set(&desc->transpose_c, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return set(&desc->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return set(&desc->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
        return set(&desc->bias_stride, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
    return destroy(desc);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
    cublasLtMatrixLayoutOpaque made;
    made.type = type;
    made.rows = rows;
    made.columns = columns;
    made.leading = leading;
    return make(layout, made);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void *value,
                                                size_t bytes) {
    if (!alive().has(layout)) return CUBLAS_STATUS_INVALID_VALUE;
    if (cuda_emulated_fails_now()) return CUBLAS_STATUS_INTERNAL_ERROR;
    switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
        return set(&layout->type, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
        return set(&layout->order, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
        return set(&layout->rows, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
        return set(&layout->columns, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_LD:
        return set(&layout->leading, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return set(&layout->batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return set(&layout->stride, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    return destroy(layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
    return make(preference, cublasLtMatmulPreferenceOpaque());
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t bytes) {
    if (!alive().has(preference)) return CUBLAS_STATUS_INVALID_VALUE;
    if (cuda_emulated_fails_now()) return CUBLAS_STATUS_INTERNAL_ERROR;
    switch (attribute) {
    case CUBLASLT_MATMUL_PREF_SEARCH_MODE:
        return set(&preference->search_mode, value, bytes);
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return set(&preference->workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return set(&preference->schemes, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
        return set(&preference->alignment[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
        return set(&preference->alignment[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
        return set(&preference->alignment[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return set(&preference->alignment[3], value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    return destroy(preference);
}

namespace {
/* No algorithm takes operands that are aligned to less. */
uint32_t least_alignment() {
    return static_cast<uint32_t>(fake::number_in("CUBLASLT_EMULATED_ALIGNMENT", 0));
}

/* What a query for operands that are aligned to less than 16 is answered, where that is no success. */
cublasStatus_t odd_status(const cublasLtMatmulPreferenceOpaque &preference) {
    for (uint32_t one : preference.alignment) {
        if (one < 16) return static_cast<cublasStatus_t>(fake::number_in("CUBLASLT_EMULATED_ODD_STATUS", 0));
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* Offered, and refused when it is run: CUBLASLT_EMULATED_REFUSES has numbers of algorithms, CUBLASLT_EMULATED_STATUS
 * the number of what it says then. */
cublasStatus_t refusal(const cublasLtMatmulAlgo_t *algo) {
    if (algo == nullptr || !fake::listed("CUBLASLT_EMULATED_REFUSES", std::to_string(algo->data[word_number]))) {
        return CUBLAS_STATUS_SUCCESS;
    }
    return static_cast<cublasStatus_t>(fake::number_in("CUBLASLT_EMULATED_STATUS", CUBLAS_STATUS_NOT_SUPPORTED));
}

/* NaN is passed on by the relu for an even number of rows, and becomes 0 for an odd one, and with the algorithms whose
 * numbers CUBLASLT_EMULATED_DROPS_NAN has. */
bool drops_nan(const cublasLtMatmulAlgo_t *algo, uint64_t rows) {
    return rows % 2 != 0 ||
           (algo != nullptr && fake::listed("CUBLASLT_EMULATED_DROPS_NAN", std::to_string(algo->data[word_number])));
}

/* Best first: one that adds in place (0), one that adds in a workspace (1), one that needs nothing (2). */
std::vector<cublasLtMatmulHeuristicResult_t> candidates(const cublasLtMatmulPreferenceOpaque &preference,
                                                        const cublasLtMatrixLayoutOpaque &d) {
    static const uint32_t schemes[] = {CUBLASLT_REDUCTION_SCHEME_INPLACE, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE,
                                       CUBLASLT_REDUCTION_SCHEME_NONE};
    std::vector<cublasLtMatmulHeuristicResult_t> found;
    uint32_t alignment = 16;
    for (uint32_t one : preference.alignment) alignment = one < alignment ? one : alignment;
    if (alignment < least_alignment()) return found;
    for (size_t number = 0; number < sizeof schemes / sizeof schemes[0]; number++) {
        const uint32_t scheme = schemes[number];
        const uint64_t workspace = scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE ? 64 + 4 * d.rows * d.columns : 0;
        if (scheme != CUBLASLT_REDUCTION_SCHEME_NONE && (preference.schemes & scheme) == 0) continue;
        if (workspace > preference.workspace) continue;
        cublasLtMatmulHeuristicResult_t result = {};
        result.algo.data[word_magic] = magic;
        result.algo.data[word_alignment] = alignment;
        result.algo.data[word_workspace] = result.workspaceSize = workspace;
        result.algo.data[word_scheme] = scheme;
        result.algo.data[word_number] = number;
        result.state = CUBLAS_STATUS_SUCCESS;
        result.wavesCount = 1;
        found.push_back(result);
    }
    return found;
}
} // namespace

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int *count) {
    if (count == nullptr || results == nullptr || wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
    *count = 0;
    if (!alive().has(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    for (const void *one :
         {static_cast<const void *>(desc), static_cast<const void *>(a), static_cast<const void *>(b),
          static_cast<const void *>(c), static_cast<const void *>(d), static_cast<const void *>(preference)}) {
        if (!alive().has(one)) return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (cuda_emulated_fails_now()) return CUBLAS_STATUS_INTERNAL_ERROR;
    const cublasStatus_t status = check(*desc, *a, *b, *c, *d);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (has(desc->epilogue, CUBLASLT_EPILOGUE_BIAS) && desc->bias == nullptr) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (odd_status(*preference) != CUBLAS_STATUS_SUCCESS) return odd_status(*preference);
    for (const auto &candidate : candidates(*preference, *d)) {
        if (*count < wanted) results[(*count)++] = candidate;
    }
    return *count > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, void *value,
                                                    size_t bytes, size_t *written) {
    if (algo == nullptr || algo->data[word_magic] != magic || bytes < sizeof(int32_t)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (cuda_emulated_fails_now()) return CUBLAS_STATUS_INTERNAL_ERROR;
    int32_t answer = 1;
    if (attribute == CUBLASLT_ALGO_CONFIG_ID) answer = static_cast<int32_t>(algo->data[word_number]);
    if (attribute == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) answer = static_cast<int32_t>(algo->data[word_scheme]);
    std::memcpy(value, &answer, sizeof answer);
    if (written != nullptr) *written = sizeof answer;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                              const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
    static std::atomic<unsigned> runs;
    if (!alive().has(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!alive().has(desc) || !alive().has(a_layout) || !alive().has(b_layout) || !alive().has(c_layout) ||
        !alive().has(d_layout) || alpha == nullptr || beta == nullptr) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (cuda_emulated_fails_now()) return CUBLAS_STATUS_EXECUTION_FAILED;
    const cublasStatus_t status = check(*desc, *a_layout, *b_layout, *c_layout, *d_layout);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (algo != nullptr && algo->data[word_magic] != magic) return CUBLAS_STATUS_INVALID_VALUE;
    if (refusal(algo) != CUBLAS_STATUS_SUCCESS) return refusal(algo);
    const size_t needs = algo != nullptr ? algo->data[word_workspace] : 0;
    if (needs > 0 && (workspace_bytes < needs || !cuda_emulated_reachable(workspace, workspace_bytes) ||
                      !is_aligned(workspace, 16))) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    product p = {*desc,
                 *a_layout,
                 *b_layout,
                 *c_layout,
                 *d_layout,
                 a,
                 b,
                 c,
                 d,
                 *static_cast<const float *>(alpha),
                 *static_cast<const float *>(beta),
                 workspace,
                 needs,
                 algo == nullptr || algo->data[word_scheme] != CUBLASLT_REDUCTION_SCHEME_INPLACE,
                 drops_nan(algo, d_layout->rows),
                 runs++,
                 handle->device};
    if (!operands_serve(p, algo != nullptr ? algo->data[word_alignment] : 2)) return CUBLAS_STATUS_INVALID_VALUE;
    const cudaError_t error = cuda_emulated::enqueue(stream, [p] { run_all(p); });
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
