/* The model's inputs, where they have names. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/data/formats.h"
#include "runtime/data/transform.h"

int tdm__data_input_find(const tdm_data_inputs *inputs, const char *name) {
    int k = inputs->count - 1;
    while (k >= 0 && strcmp(inputs->item[k].name, name) != 0) k--;
    return k;
}

const char *tdm__data_inputs_print(char out[TDM_INPUTS_TEXT], const tdm_data_inputs *inputs) {
    size_t at = 0;
    out[0] = '\0';
    for (int k = 0; k < inputs->count && at < TDM_INPUTS_TEXT; k++) {
        const int n = snprintf(out + at, TDM_INPUTS_TEXT - at, "%s%s", k > 0 ? ", " : "", inputs->item[k].name);
        at += n > 0 ? (size_t)n : 0;
    }
    return out;
}

tdm_status tdm__data_arrays_check(const char *what, const tdm_input_array *arrays, int count,
                                  const tdm_data_inputs *inputs) {
    char names[TDM_INPUTS_TEXT];
    if (inputs->count == 0)
        TDM_FAIL(TDM_E_USAGE, "%s: the model's input has no name, so that its samples are one array", what);
    if (count != inputs->count)
        TDM_FAIL(TDM_E_USAGE, "%s: the model has %d inputs (%s), got %d arrays", what, inputs->count,
                 tdm__data_inputs_print(names, inputs), count);
    for (int k = 0; k < count; k++) {
        const char *const name = inputs->item[k].name;
        if (arrays[k].x == NULL) TDM_FAIL(TDM_E_USAGE, "%s: the array of the input '%s' is NULL", what, name);
        if (!tdm__is_input(arrays[k].input))
            TDM_FAIL(TDM_E_USAGE, "%s: the kind of the input '%s' must be one of tdm_input, got %d", what, name,
                     arrays[k].input);
    }
    return TDM_OK;
}
