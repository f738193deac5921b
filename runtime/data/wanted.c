/* What a program wants of data: from the public struct. */
#include "runtime/data/wanted.h"

#include "runtime/base/call/sized.h"
#include "runtime/base/status.h"

tdm_status tdm__data_wanted_from(const tdm_data_use *use, tdm_data_wanted *wanted) {
    *wanted = (tdm_data_wanted){.ignore_index = INT64_MIN};
    if (use == NULL) return TDM_OK;
    TDM_TRY(tdm__sized_check("tdm_data_use", use, sizeof(*use), sizeof(*use)));
    if (use->ndim < 0 || use->ndim > TDM_MAX_DIMS)
        TDM_FAIL(TDM_E_USAGE, "tdm_data_use.ndim must be 0 to %d, got %d", TDM_MAX_DIMS, use->ndim);
    wanted->input.ndim = use->ndim;
    for (int i = 0; i < use->ndim; i++) wanted->input.dim[i] = use->input[i];
    wanted->target_kind = use->float_targets ? TDM_TARGET_VALUES : TDM_TARGET_CLASS;
    wanted->classes = use->classes;
    wanted->target_width = use->target_width;
    wanted->seed = use->seed;
    wanted->rng_profile = use->rng_profile;
    wanted->transform = use->transform;
    wanted->evaluates = use->evaluates;
    if (use->has_ignore_index) wanted->ignore_index = use->ignore_index;
    return TDM_OK;
}
