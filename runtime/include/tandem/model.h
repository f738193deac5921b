/* tandem/model.h - a trained model that only predicts.
 *
 * One file is the model: a safetensors file whose metadata holds the architecture, the transforms of its data, the
 * names of its classes and where it comes from (runtime/docs/models.md). `tandem export` and tdm_model_export write
 * one, and the model.safetensors of every checkpoint is one.
 *
 * A handle needs no job, no data and no optimizer. It computes on the CPU, and the file's weights are read where the
 * file is mapped: the file must not change while the model is open; replace it by renaming another.
 *
 * Threads: any number of threads may call the functions that predict, at once, on one handle. Each call computes on the
 * calling thread; tdm_model_options.threads adds others. Opening and closing is one thread's.
 *
 * Samples: they are given as the data trained on had them, and data.transform of the file is applied as in evaluation,
 * by the rule of tdm_input (tandem/source.h), which is that of tdm_run_predict and of samples to train on, too. Steps
 * for pictures are applied to encoded pictures alone. */
#ifndef TANDEM_MODEL_H
#define TANDEM_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include <tandem/graph.h>
#include <tandem/host.h>
#include <tandem/source.h>
#include <tandem/writer.h>

TDM_BEGIN_DECLS

typedef struct tdm_model tdm_model;
struct tdm_run; /* tandem/tandem.h */

/* What a model computes in. */
typedef enum tdm_model_precision {
    TDM_MODEL_OF_FILE, /* train.precision of the file; f32 for tf32, and for bf16 where this processor has no fast bf16 */
    TDM_MODEL_F32,
    TDM_MODEL_BF16 /* whatever the file says; TDM_E_UNSUPPORTED where this processor has no fast bf16 */
} tdm_model_precision;

typedef struct tdm_model_options {
    uint32_t size;
    const tdm_host *host;    /* NULL: tdm_host_default(); called by any thread that predicts */
    const char *module_path; /* NULL: TANDEM_MODULE_PATH and the folders next to the library */
    int threads;             /* that one call computes on, the calling one among them; they change no bit. At least 1 */
    int unused;              /* was padding, which programs compiled earlier leave as it is: not read */
    tdm_model_precision precision;
} tdm_model_options;
#define TDM_MODEL_OPTIONS_INIT \
    { sizeof(tdm_model_options), NULL, NULL, 1, 0, TDM_MODEL_OF_FILE }

/* Opens a model in *out; end it with tdm_model_close. options NULL: TDM_MODEL_OPTIONS_INIT. A file that is no model, or
 * is damaged, is TDM_E_CHECKPOINT: its header is checked before anything is allocated by it, its numbers are not looked
 * at (`tandem ckpt verify` does). A model that cannot predict one sample by itself, because a layer takes the
 * statistics of the batch, is TDM_E_UNSUPPORTED. */
TDM_API tdm_status tdm_model_open(tdm_model **out, const char *path, const tdm_model_options *options);
/* The same from memory, which is borrowed until tdm_model_close. Weights are used where they lie if `bytes` begins at a
 * multiple of 64, and else copied. */
TDM_API tdm_status tdm_model_open_memory(tdm_model **out, const void *bytes, size_t count,
                                         const tdm_model_options *options);
/* No call may be in progress. NULL is allowed. */
TDM_API void tdm_model_close(tdm_model *model);

/* What a model is. Set `size` with TDM_MODEL_INFO_INIT. Texts are owned by the model. */
typedef struct tdm_model_info {
    uint32_t size;
    int input_ndim;
    /* Shape of a sample: channels, height, width, or a number of features; of several inputs the width of their row. */
    int64_t input[6];
    int64_t input_width, output_width; /* numbers of a sample, and of its outputs */
    int64_t parameters;                /* numbers that were learned */
    int64_t classes;                   /* that have names; 0: none */
    int has_labels;                    /* non-zero: an output is the score of a class: the logit, before softmax */
    int has_logits;                    /* non-zero: an output is the logit of a target of 0 to 1 */
    const char *name;                  /* of the job */
    const char *origin;                /* of an exported file: run, step, hash of the parameters; NULL: not said */
    const char *text;                  /* the model as YAML */
    size_t used_bytes, copied_bytes;   /* of the weights: used where they lie in the file (in bf16: none), copied when
                                          it was opened */
    size_t packed_bytes;               /* of weights in the layouts of kernels, so far: see runtime/docs/models.md */
} tdm_model_info;
#define TDM_MODEL_INFO_INIT \
    { sizeof(tdm_model_info), 0, {0, 0, 0, 0, 0, 0}, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, 0, 0, 0 }
TDM_API tdm_status tdm_model_get_info(const tdm_model *model, tdm_model_info *out);
/* Returns how many inputs the model has, and fills *out for one of them: its name, its shape, and where its numbers are
 * in the row of a sample. TDM_E_USAGE if there is no such input. Any thread. */
TDM_API int tdm_model_input_count(const tdm_model *model);
TDM_API tdm_status tdm_model_get_input(const tdm_model *model, int index, tdm_input_info *out);
/* Returns the name of a class; NULL if it has none. Owned by the model. */
TDM_API const char *tdm_model_class_name(const tdm_model *model, int64_t index);
/* Returns the text of one of the file's properties (tandem/checkpoint.h), NULL if it has none; and the key of the
 * index-th, NULL if there are fewer. Owned by the model. */
TDM_API const char *tdm_model_property(const tdm_model *model, const char *key);
TDM_API const char *tdm_model_property_key(const tdm_model *model, int index);

/* Computes y[rows][output_width] from `rows` samples of kind `input`, in evaluation mode. Rows go through
 * the model in pieces of 32, 16, 8, 4, 2 and 1: one sample costs what one sample costs. Any thread. */
TDM_API tdm_status tdm_model_predict(tdm_model *model, tdm_input input, const void *x, int64_t rows, float *y);
/* The same of a model whose inputs have names, from an array for each: inputs[count], in the order of the inputs, each
 * of `rows` samples. Any thread. */
TDM_API tdm_status tdm_model_predict_inputs(tdm_model *model, const tdm_input_array *inputs, int count, int64_t rows,
                                            float *y);
/* Reads a picture, JPEG or PNG, from a file or from memory, and makes of it a sample of kind TDM_INPUT_READY:
 * x[input_width]. TDM_E_DATA says what is wrong with the picture; TDM_E_UNSUPPORTED, if there is no module `image`. Any
 * thread. */
TDM_API tdm_status tdm_model_read_picture(tdm_model *model, const char *path, float *x);
TDM_API tdm_status tdm_model_decode_picture(tdm_model *model, const void *bytes, size_t count, float *x);

/* What a float target of a table is, in the data trained on. Set `size` with TDM_TARGET_INIT. */
typedef struct tdm_target {
    uint32_t size;
    const char *name;     /* of its column; NULL: unknown. Owned by the model, or the run */
    double mean, stdev;   /* an output times stdev plus mean is in the column's unit */
    const char *value[2]; /* of a target that is two names: what 0 and 1 stand for; else NULL. Owned likewise */
} tdm_target;
#define TDM_TARGET_INIT                \
    {                                  \
        sizeof(tdm_target), 0, 0, 1, { \
            0, 0                       \
        }                              \
    }
/* Fills *out; a model that was not trained on a table has mean 0 and stdev 1. */
TDM_API tdm_status tdm_model_target(const tdm_model *model, tdm_target *out);
/* Returns the name of the column that is number `index` of a sample; NULL if there is none, the table had no names, or
 * the model was not trained on a table. Owned by the model. */
TDM_API const char *tdm_model_column(const tdm_model *model, int64_t index);
/* Makes of a row of a table a sample of kind TDM_INPUT_FLOATS, x[input_width]. cell[input_width]: the text of each column
 * of a sample, in its order, as the table would have it, without blanks around it; NULL or "" is a gap. Numbers are
 * standardized, categories become their numbers and gaps are filled as in data.train of the model. TDM_E_DATA names the
 * column with a cell that cannot be read; TDM_E_USAGE if the model was not trained on a table. Any thread. */
TDM_API tdm_status tdm_model_read_row(const tdm_model *model, const char *const *cell, float *x);

/* Writes the model of a checkpoint (a step directory, a run directory, or its model.safetensors) into the file `to`,
 * which must not exist yet. Of a run with train.ema and eval.weights: ema, that is the average. *report becomes one
 * line about what was written, free it with tdm_free; it may be NULL. TDM_E_CHECKPOINT if the checkpoint does not carry
 * its model, as those of earlier versions do not. */
TDM_API tdm_status tdm_model_export(const tdm_host *host, const char *from, const char *to, char **report);
/* The same bytes, to a writer, such as one of a tdm_buffer. */
TDM_API tdm_status tdm_model_export_to(const tdm_host *host, const char *from, const tdm_writer *to, char **report);
/* The same of an open run as it is now, between steps; nothing is written to a disk. Needs memory for a checkpoint
 * meanwhile. Collective in ddp: only rank 0's `to` is written to, and only rank 0 gets a report, or the
 * status of a writer that refuses. Besides, TDM_E_CHECK if the replicas differ. */
TDM_API tdm_status tdm_run_export_to(struct tdm_run *run, const tdm_writer *to, char **report);
/* The same as an ONNX file of opset 17, for evaluation: its input `input`, float[batch][shape of a sample], or its
 * inputs by their names, are what the model takes after data.transform, its output `output` is that of
 * tdm_model_predict, and its properties are the texts of an exported file. TDM_E_UNSUPPORTED names a layer that ONNX
 * does not have with these attributes. */
TDM_API tdm_status tdm_model_export_onnx(const tdm_host *host, const char *from, const char *to, char **report);
TDM_API tdm_status tdm_model_export_onnx_to(const tdm_host *host, const char *from, const tdm_writer *to,
                                            char **report);
/* The same of an open run as it is now, under the rules of tdm_run_export_to. */
TDM_API tdm_status tdm_run_export_onnx_to(struct tdm_run *run, const tdm_writer *to, char **report);
/* Reads the model's text, YAML, from a path as above, into *out; free it with tdm_free. tdm_config_parse takes it: to
 * predict, after tdm_config_predicts; to train on, with train.steps or epochs, train.batch and run.dir as overrides. */
TDM_API tdm_status tdm_model_text(const tdm_host *host, const char *path, char **out);

TDM_END_DECLS
#endif
