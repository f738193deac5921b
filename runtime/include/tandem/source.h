/* tandem/source.h - samples that the embedding program provides itself. */
#ifndef TANDEM_SOURCE_H
#define TANDEM_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include <tandem/status.h>

TDM_BEGIN_DECLS

/* What a program's samples are, and with that what data.transform does to them. It is one rule, for the samples of a
 * tdm_source in training and in evaluation, for tdm_run_predict and tdm_run_predict_as, and for tdm_model_predict:
 *
 *                       to_float (/ 255)   normalize
 *   TDM_INPUT_FLOATS    no                 yes
 *   TDM_INPUT_BYTES     yes                yes
 *   TDM_INPUT_READY     no                 no
 *
 * Steps for pictures (resize, random_crop, ...) apply to none of them: they belong to pictures that tandem itself reads
 * or decodes. mixup and cutmix mix samples of all kinds, in training only. */
typedef enum tdm_input {
    TDM_INPUT_FLOATS, /* float[rows][width], before data.transform */
    TDM_INPUT_BYTES,  /* unsigned char[rows][width], before data.transform; of pictures: [channels][height][width] */
    TDM_INPUT_READY   /* float[rows][width] that the model takes, as after data.transform */
} tdm_input;

/* Samples of one of a model's inputs (tdm_graph_add_input), where each comes in an array of its own. Never grows. */
typedef struct tdm_input_array {
    const void *x;   /* [rows][numbers of the input], of the type that `input` says */
    tdm_input input; /* what data.transform does to these numbers */
} tdm_input_array;

/* The samples that one call of tdm_source.read_rows reads: those of one device in one step. Everything but `failed` is
 * for reading; the pointers are valid during the call. */
typedef struct tdm_source_rows {
    uint32_t size;        /* of this struct in the library that calls; members are only ever added at its end */
    int64_t rows;         /* at least 1 */
    int64_t width;        /* numbers of a sample */
    int64_t target_width; /* floats of a target; with labels 1 */
    const int64_t *index; /* [rows]: which samples, each in [0, count), in the order of the rows */
    void *x;              /* to be written: [rows][width], of the type that tdm_source.input says */
    void *targets;        /* to be written: int64_t[rows], or float[rows][target_width] */
    int64_t failed;       /* -1; read_rows may set it to the index that it could not read, for the message */
} tdm_source_rows;

/* Samples in one of three ways, of which the first that is not NULL counts: arrays, read_rows, read. A sample of a
 * model with several inputs is a row of the numbers of all, in their order; or there is an array for each (`inputs`).
 *
 * Errors: `read` and `read_rows` return 0, or any other number. The step then ends with TDM_E_DATA and a message that
 * names the sample. A run of one process goes on from there: the next tdm_run_step, tdm_run_train or tdm_run_evaluate
 * asks for the same samples again. A job of several processes has ended. Labels must be those of the model's outputs or
 * loss.ignore_index; others are TDM_E_DATA.
 *
 * Threads: with data.workers above 0 several threads call at the same time, with any index in [0, count), in any order,
 * and ahead of the steps that need the samples; with 0 the thread that trains or evaluates calls. The same index must
 * always give the same sample.
 *
 * Lifetime: tdm_run_open copies this struct. What it points to (`user`, the arrays) is used from then on until
 * tdm_run_close returns, between calls of the run too, and not after it, also if tdm_run_open fails. Arrays must not
 * change in that time. */
typedef struct tdm_source {
    uint32_t size;  /* sizeof(tdm_source) */
    int64_t count;  /* samples */
    int has_labels; /* 1: the target is an int64_t label; 0: floats, as many as the model has outputs */
    /* Writes sample `index` into x, tdm_run_input_width numbers of the type that `input` says (behind a cast, if these
     * are bytes), and its target. */
    int (*read)(void *user, int64_t index, float *x, void *target);
    void *user; /* passed to `read` and `read_rows` */
    /* The members from here on came after 0.1.0; all zero is what it did. */
    tdm_input input; /* what the samples are */
    int64_t width;   /* numbers of a sample: tdm_run_open compares it with the model. 0: not compared; not for arrays */
    const void *x;   /* [count][width], of the type that `input` says; NULL: no arrays */
    const void *targets;                                 /* int64_t[count], or float[count][outputs] */
    int (*read_rows)(void *user, tdm_source_rows *rows); /* several samples in one call; may be NULL */
    /* Instead of `x`: [input_count], an array for each of the model's inputs, in their order; `input` does not count.
     * They are all TDM_INPUT_READY, or none of them is. tdm_run_open copies this array, not the numbers. */
    const tdm_input_array *inputs;
    int input_count;
    /* What the program calls these samples: 1 to 63 bytes of printable text, such as "scans of March" or a hash;
     * copied. Checkpoints keep that of the samples trained on, and a run that resumes with samples of another identity
     * is TDM_E_CHECKPOINT. Give other samples another text. NULL: a run that resumes warns if their number has changed,
     * or, of arrays, a hash of some of them. */
    const char *identity;
} tdm_source;
#define TDM_SOURCE_INIT \
    { sizeof(tdm_source), 0, 0, NULL, NULL, TDM_INPUT_FLOATS, 0, NULL, NULL, NULL, NULL, 0, NULL }

TDM_END_DECLS
#endif
