/* tandem/checkpoint.h - looking at checkpoints without a run.
 *
 * `path` is what people have at hand: a step directory, a checkpoints directory, a run directory (its newest usable
 * checkpoint), or a .safetensors file. host NULL: tdm_host_default(). Texts are released with tdm_free. */
#ifndef TANDEM_CHECKPOINT_H
#define TANDEM_CHECKPOINT_H

#include <stdint.h>

#include <tandem/host.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The checkpoints of a run directory or checkpoints directory, oldest first. */
TDM_API tdm_status tdm_checkpoint_list(const tdm_host *host, const char *path, int json, char **out);
/* Step, epoch, tensors with shapes. */
TDM_API tdm_status tdm_checkpoint_show(const tdm_host *host, const char *path, int json, char **out);
/* Reads every byte against the manifest; TDM_E_CHECKPOINT names the file and the tensor that are damaged. *checked is
 * the step directory or file that was read; may be NULL. */
TDM_API tdm_status tdm_checkpoint_verify(const tdm_host *host, const char *path, char **checked);

/* How two checkpoints differ: parameters and buffers, and the optimizer's tensors where both have them. */
typedef struct tdm_checkpoint_difference {
    uint32_t size;     /* sizeof(tdm_checkpoint_difference), set by the caller */
    int equal_bits;    /* same names, shapes, dtypes and bytes, everywhere */
    int within;        /* every number within atol + rtol * |b|, no tensor in one only */
    int64_t tensors;   /* compared */
    int64_t differing; /* of those, beyond the tolerance */
    int64_t only_in_a, only_in_b;
    char first[160]; /* the first in name order that differs or is in one only, the model's before the optimizer's; ""
                        if none */
    double largest;  /* |a - b|, over all floats; infinite where one is not a number */
    char largest_name[160]; /* "" when every float is equal */
    int64_t largest_index;  /* in row-major order */
    double a, b;            /* the two numbers there */
    double largest_model;   /* the same over parameters and buffers alone */
    char largest_model_name[160];
} tdm_checkpoint_difference;
TDM_API tdm_status tdm_checkpoint_compare(const tdm_host *host, const char *a, const char *b, double rtol, double atol,
                                          tdm_checkpoint_difference *out);

#ifdef __cplusplus
}
#endif
#endif
