/* What a program wants of data: from the public struct. */
#include "runtime/data/wanted.h"

#include <stddef.h>
#include <string.h>

#include "runtime/base/call/sized.h"
#include "runtime/base/status.h"

static tdm_status take_inputs(const tdm_data_use *use, tdm_data_inputs *inputs) {
    if (use->input_count < 0 || use->input_count > TDM_SHAPES_MAX || (use->input_count > 0 && use->inputs == NULL))
        TDM_FAIL(TDM_E_USAGE, "tdm_data_use.input_count must be 0 to %d, and inputs not NULL, got %d", TDM_SHAPES_MAX,
                 use->input_count);
    for (int k = 0; k < use->input_count; k++) {
        const tdm_input_info *from = &use->inputs[k];
        tdm_data_input *to = &inputs->item[k];
        if (from->size != sizeof(*from) || from->name == NULL || from->ndim < 1 || from->ndim > TDM_MAX_DIMS)
            TDM_FAIL(TDM_E_USAGE, "tdm_data_use.inputs[%d] is not as tdm_graph_get_input fills it", k);
        *to = (tdm_data_input){.name = from->name,
                               .first = (size_t)from->first,
                               .count = (size_t)from->count,
                               .is_looked_up = from->is_looked_up};
        to->shape.ndim = from->ndim;
        memcpy(to->shape.dim, from->dim, (size_t)from->ndim * sizeof(*from->dim));
    }
    inputs->count = use->input_count;
    return TDM_OK;
}

tdm_status tdm__data_wanted_from(const tdm_data_use *use, tdm_data_wanted *wanted) {
    *wanted = (tdm_data_wanted){.ignore_index = INT64_MIN};
    if (use == NULL) return TDM_OK;
    tdm_data_use taken = {.size = sizeof(taken)};
    TDM_TRY(tdm__sized_take("tdm_data_use", &taken, sizeof(taken), use, offsetof(tdm_data_use, inputs)));
    use = &taken;
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
    TDM_TRY(take_inputs(use, &wanted->inputs));
    if (use->has_ignore_index) wanted->ignore_index = use->ignore_index;
    return TDM_OK;
}
