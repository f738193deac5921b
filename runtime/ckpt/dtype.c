/* Element types of safetensors, and descriptions of tensors. */
#include <string.h>

#include "runtime/ckpt/tensor_file.h"

/* First those that tandem reads, by TDM_ST_*; last the answer for an unknown name. */
static const tdm_dtype_row dtypes[] = {
    {"F32", TDM_ST_F32, 32, TDM_F32_BITS},
    {"F64", TDM_ST_F64, 64, TDM_F64_BITS},
    {"I64", TDM_ST_I64, 64, TDM_NOT_FLOAT},
    {"I32", TDM_ST_I32, 32, TDM_NOT_FLOAT},
    {"U8", TDM_ST_U8, 8, TDM_NOT_FLOAT},
    {"BOOL", TDM_ST_OTHER, 8, TDM_NOT_FLOAT},
    {"I8", TDM_ST_OTHER, 8, TDM_NOT_FLOAT},
    {"I16", TDM_ST_OTHER, 16, TDM_NOT_FLOAT},
    {"U16", TDM_ST_OTHER, 16, TDM_NOT_FLOAT},
    {"U32", TDM_ST_OTHER, 32, TDM_NOT_FLOAT},
    {"U64", TDM_ST_OTHER, 64, TDM_NOT_FLOAT},
    {"F16", TDM_ST_OTHER, 16, TDM_F16_BITS},
    {"BF16", TDM_ST_OTHER, 16, TDM_BF16_BITS},
    {"C64", TDM_ST_OTHER, 64, TDM_F32_BITS}, /* pairs of F32 */
    {"F4", TDM_ST_OTHER, 4, TDM_NOT_FLOAT},
    {"F6_E2M3", TDM_ST_OTHER, 6, TDM_NOT_FLOAT},
    {"F6_E3M2", TDM_ST_OTHER, 6, TDM_NOT_FLOAT},
    {"F8_E5M2", TDM_ST_OTHER, 8, TDM_NOT_FLOAT},
    {"F8_E4M3", TDM_ST_OTHER, 8, TDM_NOT_FLOAT},
    {"F8_E8M0", TDM_ST_OTHER, 8, TDM_NOT_FLOAT},
    {"F8_E4M3FNUZ", TDM_ST_OTHER, 8, TDM_NOT_FLOAT},
    {"F8_E5M2FNUZ", TDM_ST_OTHER, 8, TDM_NOT_FLOAT},
    {"", TDM_ST_OTHER, 0, TDM_NOT_FLOAT},
};

const tdm_dtype_row *tdm__dtype_find(const char *name) {
    const tdm_dtype_row *row = dtypes;
    while (row->bits != 0 && strcmp(row->name, name) != 0) row++;
    return row;
}

const tdm_dtype_row *tdm__dtype_of(const tdm_tensor *tensor) {
    return tensor->dtype < TDM_ST_OTHER ? &dtypes[tensor->dtype] : tdm__dtype_find(tensor->dtype_name);
}

void tdm__tensor_describe(const tdm_tensor *tensor, tdm_text *out) {
    tdm__text_printf(out, "%s [", tensor->dtype_name);
    for (int i = 0; i < tensor->ndim; i++)
        tdm__text_printf(out, "%s%lld", i > 0 ? ", " : "", (long long)tensor->dim[i]);
    tdm__text_puts(out, "]");
}

const char *tdm__printable(char out[TDM_ST_PRINTABLE], const char *name) {
    if (tdm_text_printable(out, TDM_ST_PRINTABLE, name, 0) >= TDM_ST_PRINTABLE) {
        (void)tdm_text_printable(out, TDM_ST_PRINTABLE - 3, name, 0);
        strcat(out, "...");
    }
    return out;
}
