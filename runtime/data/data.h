/* Samples: datasets, the order in which steps use them, and the threads that read them ahead. */
#ifndef TDM_DATA_DATA_H
#define TDM_DATA_DATA_H

#include <tandem/job.h>
#include <tandem/sys/op.h>
#include <tandem/source.h>

#include "runtime/base/hash.h"
#include "runtime/base/memory.h"
#include "runtime/base/random/rng.h"
#include "runtime/image/canvas.h"

/* ---- datasets ---- */

enum {
    TDM_LOOK_LEAST = 5
}; /* what `tandem init` looks at has as many samples, so that it can hold a fifth of them out */

typedef struct tdm_transform tdm_transform; /* runtime/data/transform.h */
typedef struct tdm_features tdm_features;   /* runtime/data/tables/features.h */

/* The names of the classes, in the order of their numbers, which is the sorted one. Borrowed. */
typedef struct tdm_classes {
    int64_t count;
    const char *const *name;
} tdm_classes;

/* A category that the data trained on does not have, and that counts as unknown. */
typedef struct tdm_unseen_cell {
    int64_t index, item; /* the sample, and the number in it that stands for the category */
    const char *value;
} tdm_unseen_cell;

/* Numbers of a sample that must be whole, from 0 to below `below`: the layer looks something up by them. */
typedef struct tdm_data_index {
    int64_t first, count, below;
    const char *layer; /* "embedding 'city'"; borrowed */
} tdm_data_index;
enum { TDM_DATA_INDICES = 64 };

/* The model's inputs, where they have names. Of several a sample is one row, the numbers of all in this order. */
typedef struct tdm_data_input {
    const char *name; /* borrowed */
    tdm_shape shape;
    size_t first, count; /* its numbers in the row */
    bool is_looked_up;   /* of data check: see tdm_input_info */
} tdm_data_input;
typedef struct tdm_data_inputs {
    int count;
    tdm_data_input item[TDM_SHAPES_MAX];
} tdm_data_inputs;
/* The index of the input with the name; -1: none. */
int tdm__data_input_find(const tdm_data_inputs *inputs, const char *name);
/* "image, facts" */
enum { TDM_INPUTS_TEXT = 256 };
const char *tdm__data_inputs_print(char out[TDM_INPUTS_TEXT], const tdm_data_inputs *inputs);
/* Is there an array for each of them? `what` begins the message. */
tdm_status tdm__data_arrays_check(const char *what, const tdm_input_array *arrays, int count,
                                  const tdm_data_inputs *inputs);

/* What the model and the loss expect. Formats without a shape of their own make samples of this shape. */
typedef struct tdm_data_wanted {
    tdm_shape input;
    tdm_target_kind target_kind;
    const char *loss_of_values; /* the loss that takes float targets instead of labels; NULL: none */
    int64_t classes;            /* TDM_TARGET_CLASS */
    int64_t target_width;       /* TDM_TARGET_VALUES */
    int64_t seed;               /* the job's */
    tdm_rng_profile rng_profile;
    int64_t ignore_index;
    const tdm_classes *class_names;      /* of the data trained on; NULL or count 0: unknown */
    const tdm_features *features;        /* of the table trained on; NULL: none, or unknown. Borrowed by the dataset */
    const tdm_transform_spec *transform; /* NULL: none; borrowed by the dataset */
    const char *module_path;             /* where modules are, as for tdm__module_find */
    const tdm_data_index *index;         /* borrowed */
    int index_count;
    bool evaluates; /* data.eval: the samples that `holdout` keeps back; transforms draw nothing */
    bool is_told;   /* another dataset of the same files has warned of what is left out of them */
    tdm_data_inputs inputs;
} tdm_data_wanted;

/* Its headers and sizes are checked at open, before the first step. Immutable; may be read from any thread. */
typedef struct tdm_dataset tdm_dataset;
/* Reads samples of a dataset, in one thread: what reading needs besides the sample's index. */
typedef struct tdm_sample_reader {
    const tdm_dataset *dataset;
    int64_t epoch;      /* transforms that draw depend on it */
    tdm_canvas *canvas; /* for pictures; NULL: samples need none */
    struct tdm_file_bytes *file;
    unsigned char *raw; /* a sample before the steps of data.transform */
} tdm_sample_reader;
/* A format: one of tandem/sys/formats.def, or the embedder's own samples. */
typedef struct tdm_dataset_ops {
    const char *name;
    size_t bytes;     /* of its struct, which begins with a tdm_dataset */
    bool only_labels; /* it has no float targets */
    bool is_made;     /* its samples are drawn, and tdm_data_spec.samples is their number */
    /* Fills in a new dataset, all zero: checks `spec` against `wanted`, then reads or draws. It takes memory from
     * tdm__dataset_take, so it has nothing to undo when it fails. */
    tdm_status (*open)(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted);
    /* Reads one sample: x as bytes or floats in the sample's shape, the target as `target_kind`. The result depends
     * only on `index` and, if the format draws anew in each epoch, on the reader's epoch. If `resident_bytes` is not 0,
     * x may be NULL: then only the target is read. */
    tdm_status (*read)(const tdm_sample_reader *reader, int64_t index, void *x, void *target);
    /* Reads `rows` samples, those of `index`, into consecutive memory. NULL: `read` is called for each. */
    tdm_status (*read_rows)(const tdm_sample_reader *reader, const int64_t *index, int64_t rows, void *x,
                            void *targets);
    /* Instead of `read`, for files of pictures: draws one on the canvas, after the dataset's steps. */
    tdm_status (*picture)(const tdm_sample_reader *reader, int64_t index, tdm_canvas *canvas, void *target);
    tdm_status (*measure)(const tdm_sample_reader *reader, int64_t index,
                          int64_t size[2]); /* height, width in the file */
    /* The file of a sample that has one of its own, relative to the data's folder; borrowed. NULL: none has. */
    const char *(*file)(const tdm_dataset *dataset, int64_t index);
    /* Was the sample left out (on_bad_sample: skip) when it was read? NULL: none is. */
    bool (*is_left_out)(const tdm_dataset *dataset, int64_t index);
    /* Adds what tells the dataset from another one at little cost: the samples themselves if they are in memory, of
     * files that are not read yet their names, labels and sizes. Not what is in `row_files`. NULL: only samples that
     * are read can tell. */
    void (*add_content)(const tdm_dataset *dataset, tdm_hasher *hasher);
    void (*close)(tdm_dataset *dataset); /* NULL: nothing but its blocks is to be released */
} tdm_dataset_ops;
enum { TDM_DATASET_BLOCKS = 8 + TDM_SHAPES_MAX, TDM_DATA_CALLED = 64 };
struct tdm_dataset {
    const tdm_dataset_ops *ops;
    const tdm_host *host;
    int64_t count;
    tdm_shape x_shape;      /* of one sample */
    tdm_data_inputs inputs; /* of the model that it is for */
    /* If `steps` is not NULL, samples are pictures of raw_shape (channels, height, width; pictures in files have their
     * own sizes) that go through these steps. */
    const tdm_transform_spec *steps;
    tdm_shape raw_shape;
    uint64_t seed;   /* of the steps */
    bool draws;      /* training: the steps draw */
    bool x_is_bytes; /* uint8, else float */
    bool x_is_ready; /* floats to which data.transform is not applied: a program's own */
    tdm_target_kind target_kind;
    int64_t target_width;          /* floats per sample for TDM_TARGET_VALUES */
    int64_t classes;               /* labels are in [0, classes); 0: unknown until read */
    tdm_classes class_names;       /* count 0: the classes have numbers only */
    const tdm_features *features;  /* of a table; NULL: there are none */
    const tdm_unseen_cell *unseen; /* of a table that is not the one trained on: in the order of samples */
    int64_t unseen_count;
    bool has_ignored;               /* some labels may be the loss's ignore_index */
    char identity[TDM_DATA_CALLED]; /* tdm_source.identity; "": none */
    struct tdm_bad_samples *bad;    /* those left out so far, see pictures/bad_samples.h; NULL: none can be */
    /* `range` and `holdout`: index i of this view is sample rows[i] of the file; rows NULL: sample first + i. */
    int64_t first;
    int64_t range_count; /* of the range, which begins at `first` and of which `holdout` takes a part */
    const int64_t *rows;
    struct tdm_row_file *row_files; /* rows that stay on the disk (read/row_file.h); NULL: none do */
    /* Size of x of all samples, if a device may keep them all. 0: it may not, because samples may change or take too
     * long to make. */
    size_t resident_bytes;
    size_t memory_bytes;             /* that it holds in `block` */
    void *block[TDM_DATASET_BLOCKS]; /* memory of tdm__dataset_take */
};

/* Opens `spec` and checks it against `wanted`: the size of every file, the shape of samples, the range of every label.
 * TDM_E_DATA names the file, what was expected and what was found. The paths of `spec` are borrowed by the dataset. */
tdm_status tdm__dataset_open(tdm_dataset **out, const tdm_host *host, const tdm_data_spec *spec,
                             const tdm_data_wanted *wanted);
/* Samples of the embedder's own. The struct is copied. */
tdm_status tdm__dataset_open_source(tdm_dataset **out, const tdm_host *host, const tdm_source *source,
                                    const tdm_data_wanted *wanted);
void tdm__dataset_close(tdm_dataset *dataset);
/* The number of the sample in its file. */
static inline int64_t tdm__dataset_row(const tdm_dataset *dataset, int64_t index) {
    return dataset->rows != NULL ? dataset->rows[index] : dataset->first + index;
}
/* The dataset is borrowed. */
tdm_status tdm__sample_reader_open(tdm_sample_reader *reader, const tdm_dataset *dataset);
void tdm__sample_reader_close(tdm_sample_reader *reader); /* all zero is fine */
/* See `read` above. */
tdm_status tdm__sample_read(const tdm_sample_reader *reader, int64_t index, void *x, void *target);
/* The same for training. Of a picture that cannot be read it says what may be done. */
tdm_status tdm__sample_take(const tdm_sample_reader *reader, int64_t index, void *x, void *target);
/* The same for a single sample, in epoch 0. */
tdm_status tdm__dataset_read(const tdm_dataset *dataset, int64_t index, void *x, void *target);
/* Are samples of this tdm_data_format drawn, `samples` of them? */
bool tdm__data_is_made(int format);

/* Bytes of one sample: x as the dataset has it; the target, a multiple of 4. */
size_t tdm__dataset_numbers(const tdm_dataset *dataset); /* of x; 0: it has no shape yet */
size_t tdm__dataset_x_bytes(const tdm_dataset *dataset);
size_t tdm__dataset_target_bytes(const tdm_dataset *dataset);
/* Hashes some samples, evenly spread from the first to the last. Not for an embedder's source, which may draw new
 * samples each time. */
tdm_status tdm__dataset_hash(const tdm_dataset *dataset, char out[TDM_HASH_TEXT]);
/* Hashes what `add_content` adds, the names of classes and columns, and `of_files`, the sum over all parts of what
 * tdm__row_files_add adds. "": the format has none. */
tdm_status tdm__dataset_hash_content(const tdm_dataset *dataset, uint64_t of_files, char out[TDM_HASH_TEXT]);
/* Are the samples read by a function of the program, which may take its time, or notice? */
bool tdm__dataset_is_function(const tdm_dataset *dataset);
/* Reads samples first to first + count - 1 into consecutive memory: x as untransformed bytes or as transformed floats.
 * `targets` must be aligned for its type. May be called from several threads at once. */
tdm_status tdm__dataset_fill(const tdm_dataset *dataset, const tdm_transform *transform, int64_t first, int64_t count,
                             void *x, void *targets);

/* ---- sampler: torch.utils.data.DistributedSampler ---- */

typedef struct tdm_sampler {
    int64_t count; /* samples of the dataset */
    int replicas;
    bool shuffle, drop_last;
    int64_t seed;
    bool joins; /* no padding: the last batch of an epoch has the samples that are left, and replicas may get none */
} tdm_sampler;

/* Samples of each replica per epoch, padding included; 0 if drop_last leaves none. Without padding: of replica 0. */
int64_t tdm__sampler_per_replica(const tdm_sampler *sampler);
/* Samples of all replicas in a step of `per_device` each; less in the last one. */
int64_t tdm__sampler_step_rows(const tdm_sampler *sampler, int64_t per_device, int64_t step);
/* How many of a step's `rows` replica `replica` gets: every replicas-th, from its own on. */
int64_t tdm__sampler_rows_of(const tdm_sampler *sampler, int64_t rows, int replica);
/* How many indices tdm__sampler_order writes. With drop_last the permutation also has those that are dropped. */
int64_t tdm__sampler_room(const tdm_sampler *sampler);
/* Writes the order of epoch `epoch`: per_replica * replicas dataset indices. Replica r gets order[r],
 * order[r + replicas]... `order` has room for tdm__sampler_room indices. */
void tdm__sampler_order(const tdm_sampler *sampler, int64_t epoch, int64_t *order);
/* The fewest rows that a replica gets in any pass of an epoch, if it gets some; together: that all of them get in one.
 * Batches have `per_device` rows and are cut into `parts` micro-batches; with_tail: the last, shorter batch counts,
 * too. 0: the epoch has no batch. */
int64_t tdm__sampler_fewest_rows(const tdm_sampler *sampler, int64_t per_device, int64_t parts, bool with_tail,
                                 bool together);
/* How DataParallel cuts `rows` rows for `pieces` replicas (torch.chunk). Returns the number of rows of `piece`; *first
 * is its first row. Later pieces may get none. */
int64_t tdm__chunk(int64_t rows, int pieces, int piece, int64_t *first);

/* ---- loader ---- */

/* The form of x in a block. */
typedef enum tdm_rows_form {
    TDM_ROWS_FLOATS, /* transformed floats, as the model reads them */
    TDM_ROWS_RAW,    /* bytes are not transformed: the reader has the transform's table. Floats are transformed */
    TDM_ROWS_INDEX,  /* the int64_t index in the dataset; x is not read. Only if `resident_bytes` is not 0 */
} tdm_rows_form;

/* The layout of a block: positions at 0, then targets, then x. The offsets are those for the largest number of rows,
 * and fewer rows use the same ones, so that one copy moves a block where tdm_ingest reads it. They are multiples of
 * TDM_ALIGN. */
typedef struct tdm_packing {
    size_t target_at, x_at;
    size_t target_bytes, row_bytes; /* target and x of one row */
    size_t bytes;                   /* of a block; a multiple of TDM_ALIGN */
} tdm_packing;
/* How many bytes of a block with `rows` rows must be copied. */
static inline size_t tdm__packing_used(const tdm_packing *packing, int64_t rows) {
    return rows > 0 ? packing->x_at + (size_t)rows * packing->row_bytes : 0;
}

/* The rows of one replica in one step. */
typedef struct tdm_shard {
    int64_t rows;
    tdm_rows_form form;
    char *block;             /* its layout is tdm__loader_packing; the pointers point into it, except perhaps `index` */
    const int64_t *position; /* index in the global batch: j * replicas + r for row j of replica r (strided) */
    const void *target;      /* [rows]; of mixed samples, labels as in tandem/sys/label.h */
    const float *x;          /* [rows, sample], transformed; NULL if the block has no floats */
    const int64_t *index;    /* index in the dataset */
} tdm_shard;
typedef struct tdm_batch {
    int64_t epoch, step_in_epoch;
    int64_t global_rows;
    int shard_count; /* local replicas: all in single and dp, one in ddp */
    tdm_shard *shard;
} tdm_batch;

/* Memory for blocks, for example pinned memory. Called by the thread that opens or closes the loader. The blocks must
 * be aligned to TDM_ALIGN. */
typedef struct tdm_block_memory {
    tdm_status (*allocate)(void *user, void **out, size_t bytes, const char *what);
    void (*release)(void *user, void *block);
    void *user;
} tdm_block_memory;

typedef struct tdm_loader_options {
    tdm_sampler sampler;
    int64_t per_device;               /* rows per replica and step */
    int scatter;                      /* tdm_scatter */
    int first_replica, replicas_here; /* the replicas whose rows this process needs */
    int64_t workers;                  /* threads; 0: the caller reads, as it always does for TDM_ROWS_INDEX */
    int ahead;                        /* batches read ahead, at least 1 */
    int held;                         /* the last batches given out that stay unchanged; 0 means 1 */
    tdm_rows_form form;
    tdm_block_memory memory; /* `allocate` NULL: the host's */
    const tdm_transform_spec *transform;
    bool mixes;           /* training: mixup and cutmix of the transform, seeded by sampler.seed; for TDM_ROWS_FLOATS */
    int64_t ignore_index; /* if it mixes: samples with this label are not mixed */
    /* Above 0: only every stride-th step from that of the last seek on, and none after the end of its epoch. 0: all
     * steps, epoch after epoch. */
    int64_t stride;
    bool drop_last_batch; /* drops a short last global batch (data.drop_last) */
} tdm_loader_options;

typedef struct tdm_loader tdm_loader;
/* The batches do not depend on the number of workers. The dataset is borrowed. */
/* How many batches are in memory at once. */
int tdm__loader_batches(const tdm_loader_options *options);
tdm_status tdm__loader_open(tdm_loader **out, const tdm_host *host, const tdm_dataset *dataset,
                            const tdm_loader_options *options);
int64_t tdm__loader_steps_per_epoch(const tdm_loader *loader);
const tdm_packing *tdm__loader_packing(const tdm_loader *loader);
/* The transform, with its table for bytes. Also for tdm__dataset_fill. */
const tdm_transform *tdm__loader_transform(const tdm_loader *loader);
/* The next batch will be step `step_in_epoch` of `epoch`. Drops all batches read ahead and all batches given out. */
tdm_status tdm__loader_seek(tdm_loader *loader, int64_t epoch, int64_t step_in_epoch);
/* Gives the next batch, across epochs. It is borrowed until the `held`th call of next after this one, a seek or the
 * close. If a sample of it cannot be read, TDM_E_DATA, in the caller's thread. */
tdm_status tdm__loader_next(tdm_loader *loader, const tdm_batch **out);
/* The batch that the next call of tdm__loader_next will give. Batches given out stay valid. NULL if the batch has
 * failed; next then returns the error. */
const tdm_batch *tdm__loader_peek(tdm_loader *loader);
/* How long the caller has waited, or read samples itself, in next and peek since the last call of this. */
double tdm__loader_waited_ms(tdm_loader *loader);
void tdm__loader_close(tdm_loader *loader);

#endif
