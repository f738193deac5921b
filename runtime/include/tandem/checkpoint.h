/* tandem/checkpoint.h - inspect checkpoints without opening a run.
 *
 * `path` is a step directory, a checkpoints directory, a run directory (its newest usable checkpoint), or a
 * .safetensors, .pt, .pth or .onnx file. A file of PyTorch is read by a process without rights (fork, seccomp). host
 * NULL: tdm_host_default(). Free the returned texts with tdm_free. json: non-zero for JSON, 0 for text.
 *
 * Threads: nothing is kept between calls; any number of threads may call.
 *
 * Errors: a checkpoint that is missing or damaged is TDM_E_CHECKPOINT, storage that fails TDM_E_IO, a path or a pointer
 * for the result that is NULL TDM_E_USAGE. */
#ifndef TANDEM_CHECKPOINT_H
#define TANDEM_CHECKPOINT_H

#include <stdint.h>

#include <tandem/host.h>

TDM_BEGIN_DECLS

/* Properties: texts of the program's own, by key, in the metadata of a checkpoint's model (tdm_run_set_property) and of
 * a model file. A key has 1 to TDM_PROPERTY_KEY bytes of UTF-8, is not "format", and does not begin with "tandem.".
 * There are at most TDM_PROPERTIES, and their keys and texts, a byte more for each, have at most TDM_PROPERTY_BYTES. Of
 * a file with more, those that fit are read. */
enum { TDM_PROPERTIES = 64, TDM_PROPERTY_KEY = 64, TDM_PROPERTY_BYTES = 65536 };

/* Lists the checkpoints of a run directory or checkpoints directory, oldest first. */
TDM_API tdm_status tdm_checkpoint_list(const tdm_host *host, const char *path, int json, char **out);
/* Prints the step, the epoch, the properties, and the tensors with their shapes. */
TDM_API tdm_status tdm_checkpoint_show(const tdm_host *host, const char *path, int json, char **out);
/* Checks every byte against the manifest. TDM_E_CHECKPOINT names the damaged file and tensor. *checked becomes the step
 * directory or file that was read; `checked` may be NULL. */
TDM_API tdm_status tdm_checkpoint_verify(const tdm_host *host, const char *path, char **checked);

/* The parts of a checkpoint that hold tensors: parameters and buffers, the average of the parameters
 * (ema.safetensors), the optimizer's tensors. */
typedef enum tdm_checkpoint_part {
    TDM_CHECKPOINT_MODEL,
    TDM_CHECKPOINT_AVERAGE,
    TDM_CHECKPOINT_OPTIMIZER,
    TDM_CHECKPOINT_COMPRESSION /* what compressed gradients have kept back (compression.safetensors) */
} tdm_checkpoint_part;

/* How two checkpoints differ. Compared are parameters and buffers; the average, the optimizer's tensors and those of
 * compression if both have them. */
typedef struct tdm_checkpoint_difference {
    uint32_t size;     /* sizeof(tdm_checkpoint_difference), set by the caller */
    int equal_bits;    /* names, shapes, dtypes and bytes are all the same */
    int within;        /* every number is within atol + rtol * |b|, and no tensor is in one checkpoint only */
    int64_t tensors;   /* compared */
    int64_t differing; /* of these, how many are beyond the tolerance */
    int64_t only_in_a, only_in_b;
    char first[160]; /* the first tensor that differs or is in one only, in the order of the parts, then of names; "":
                        none */
    double largest;  /* the largest |a - b| over all floats; infinite if one of the two is not finite */
    char largest_name[160]; /* "" when every float is equal */
    int64_t largest_index;  /* in row-major order */
    double a, b;            /* the two numbers there */
    double largest_model;   /* `largest` over parameters and buffers alone */
    char largest_model_name[160];
    tdm_checkpoint_part first_part, largest_part; /* where `first` and `largest_name` are */
} tdm_checkpoint_difference;
/* Compares `a` with `b` and fills *out. Checkpoints that differ are no failure: read *out. */
TDM_API tdm_status tdm_checkpoint_compare(const tdm_host *host, const char *a, const char *b, double rtol, double atol,
                                          tdm_checkpoint_difference *out);

/* Converts a file of PyTorch (.pt or .pth, saved by torch 1.6 or later) or an ONNX file (.onnx; its tensors have the
 * names that tdm_graph_from_onnx gives them) into a .safetensors file, or any checkpoint path as above into a .pt file
 * that torch.load(weights_only=True) takes; the ending of `to` says which, and `to` must not exist yet. `key` (may be
 * NULL) names the dictionary of tensors in the file of PyTorch; without it that is the file's own, or "state_dict", or
 * "model". No code in the file is run, and a process without rights (fork, seccomp) reads it. *report becomes one line
 * about what was written; it may be NULL. TDM_E_CHECKPOINT if the file is damaged, or holds anything but tensors that
 * would have to be run. */
TDM_API tdm_status tdm_checkpoint_convert(const tdm_host *host, const char *from, const char *to, const char *key,
                                          char **report);

TDM_END_DECLS
#endif
