/* Runs a library's algorithm once before it is chosen: heuristics offer algorithms that then refuse to run, and no
 * library documents whether the relu inside a product lets NaN through. */
#include <math.h>

#include "runtime/base/bf16.h"
#include "runtime/backends/cuda/cuda_private.h"

void tdm__cuda_trial_open(tdm_cuda_trial *trial, tdm_cuda_device *device, size_t in_bytes, size_t out_bytes) {
    void *memory = NULL;
    out_bytes = tdm__cuda_part(out_bytes);
    *trial = (tdm_cuda_trial){.device = device, .in_bytes = in_bytes, .out_bytes = out_bytes};
    if (cudaMalloc(&memory, in_bytes + out_bytes) == cudaSuccess) {
        trial->out = memory;
        trial->in = trial->out + out_bytes;
    } else {
        (void)cudaGetLastError(); /* no memory: the trial is left out */
    }
}

void tdm__cuda_trial_close(tdm_cuda_trial *trial) {
    if (cudaFree(trial->out) != cudaSuccess) (void)cudaGetLastError();
}

tdm_status tdm__cuda_trial_begin(const tdm_cuda_trial *trial) {
    TDM_CUDA(cudaMemsetAsync(trial->in, 0xff, trial->in_bytes, trial->device->stream));
    TDM_CUDA(cudaMemsetAsync(trial->out, 0, trial->out_bytes, trial->device->stream));
    return TDM_OK;
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

tdm_status tdm__cuda_trial_end(const tdm_cuda_trial *trial, bool refused, const void *out, tdm_cuda_number number,
                               size_t count, bool *passes_nan) {
    enum { SEEN = 64 };
    float seen[SEEN];
    cudaStream_t stream = trial->device->stream;
    if (count > SEEN) count = SEEN;
    *passes_nan = false;
    if (refused) {
        (void)cudaGetLastError(); /* clears what the library leaves behind; a lost device fails in the next call as well
                                   */
        TDM_CUDA(cudaStreamSynchronize(stream));
        return TDM_OK;
    }
    TDM_CUDA(cudaMemcpyAsync(seen, out, count * tdm__cuda_size(number), cudaMemcpyDefault, stream));
    TDM_CUDA(cudaStreamSynchronize(stream));
    *passes_nan = all_nan(seen, count, number);
    return TDM_OK;
}
