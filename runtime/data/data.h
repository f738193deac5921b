/* Samples: datasets, the order in which a step sees them, and the threads that fetch them ahead. */
#ifndef TDM_DATA_DATA_H
#define TDM_DATA_DATA_H

#include <tandem/job.h>
#include <tandem/sys/op.h>
#include <tandem/source.h>

#include "runtime/base/hash.h"
#include "runtime/base/memory.h"
#include "runtime/base/rng.h"

/* ---- datasets ---- */

typedef struct tdm_transform tdm_transform; /* runtime/data/transform.h */

/* Opened, header-checked and complete in size before the first step. Immutable; read from any thread. */
typedef struct tdm_dataset tdm_dataset;
typedef struct tdm_dataset_ops {
    const char *name;
    /* One sample: x as bytes or floats in the sample's shape, target as `target_kind`. Pure in `index`. x may be NULL
     * where `resident_bytes` is not 0: the target alone is wanted. */
    tdm_status (*read)(const tdm_dataset *dataset, int64_t index, void *x, void *target);
    void (*close)(tdm_dataset *dataset);
} tdm_dataset_ops;
struct tdm_dataset {
    const tdm_dataset_ops *ops;
    const tdm_host *host;
    int64_t count;
    tdm_shape x_shape; /* of one sample */
    bool x_is_bytes;   /* uint8, else float */
    tdm_target_kind target_kind;
    int64_t target_width; /* floats per sample for TDM_TARGET_VALUES */
    int64_t classes;      /* labels lie in [0, classes); 0: unknown until read */
    bool has_ignored;     /* some label may be the loss's ignore_index */
    int64_t first;        /* `range`: index 0 of this view is sample `first` of the file */
    /* What x of all samples takes, as bytes or floats, where a device may keep them all; 0: they may change, or making
     * them all at once takes too long. */
    size_t resident_bytes;
};

/* What the model and loss expect; formats that have no shape of their own make their samples so. */
typedef struct tdm_data_wanted {
    tdm_shape input;
    tdm_target_kind target_kind;
    int64_t classes;      /* TDM_TARGET_CLASS */
    int64_t target_width; /* TDM_TARGET_VALUES */
    int64_t seed;         /* the job's */
    int rng_profile;
    int64_t ignore_index;
} tdm_data_wanted;

/* Opens `spec` and checks it against what is wanted: sizes of every file, sample shape, every label's range.
 * TDM_E_DATA names the file, what was expected and what was found. */
tdm_status tdm__dataset_open(tdm_dataset **out, const tdm_host *host, const tdm_data_spec *spec,
                             const tdm_data_wanted *wanted);
/* The embedder's own. */
tdm_status tdm__dataset_open_source(tdm_dataset **out, const tdm_host *host, const tdm_source *source,
                                    const tdm_data_wanted *wanted);
void tdm__dataset_close(tdm_dataset *dataset);

/* Of one sample: x as the dataset has it, and the target, a multiple of 4. */
size_t tdm__dataset_x_bytes(const tdm_dataset *dataset);
size_t tdm__dataset_target_bytes(const tdm_dataset *dataset);
/* Of the bytes of some samples, from the first to the last. Not for a program's own source, which may draw its samples
 * anew each time. */
tdm_status tdm__dataset_hash(const tdm_dataset *dataset, char out[TDM_HASH_TEXT]);
/* Samples first to first + count - 1, one behind the other: x as bytes, untouched, or as transformed floats.
 * `targets` is aligned for what they are. Any thread, several at once. */
tdm_status tdm__dataset_fill(const tdm_dataset *dataset, const tdm_transform *transform, int64_t first, int64_t count,
                             void *x, void *targets);

/* ---- sampler: torch.utils.data.DistributedSampler ---- */

typedef struct tdm_sampler {
    int64_t count; /* of the dataset */
    int replicas;
    bool shuffle, drop_last;
    int64_t seed;
} tdm_sampler;

/* Samples of each replica per epoch, padding included; 0 when drop_last leaves none. */
int64_t tdm__sampler_per_replica(const tdm_sampler *sampler);
/* Indices that tdm__sampler_order writes: with drop_last a permutation needs room for what is dropped too. */
int64_t tdm__sampler_room(const tdm_sampler *sampler);
/* The order of epoch `epoch`: per_replica * replicas dataset indices; replica r has order[r], order[r + replicas]...
 * `order` has room for tdm__sampler_room of them. */
void tdm__sampler_order(const tdm_sampler *sampler, int64_t epoch, int64_t *order);
/* The fewest rows that a replica has in a pass of an epoch whose batches of `per_device` rows are cut into `parts`
 * micro-batches, its last, shorter batch included or not; 0: it has no batch. */
int64_t tdm__sampler_fewest_rows(const tdm_sampler *sampler, int64_t per_device, int64_t parts, bool with_tail);
/* DataParallel's cut of `rows` rows for `parts` replicas: torch.chunk. Returns the rows of `part` and its first row;
 * later parts may get none. */
int64_t tdm__chunk(int64_t rows, int parts, int part, int64_t *first);

/* ---- loader ---- */

/* What x of a row is in a block. */
typedef enum tdm_rows_form {
    TDM_ROWS_FLOATS, /* what the model sees: floats, transformed */
    TDM_ROWS_RAW,    /* bytes as the dataset has them, for whoever has the transform's table; floats: transformed */
    TDM_ROWS_INDEX,  /* its int64_t index in the dataset; x is not read. Only where `resident_bytes` is not 0 */
} tdm_rows_form;

/* Where things lie in a block: positions at 0, targets and x behind them. It is that of the most rows and holds for
 * fewer too, so that a block goes to a place of tdm_ingest in one copy. Offsets are multiples of TDM_ALIGN. */
typedef struct tdm_packing {
    size_t target_at, x_at;
    size_t target_bytes, row_bytes; /* of one row's target and x */
    size_t bytes;                   /* of a block; a multiple of TDM_ALIGN */
} tdm_packing;
/* What must be copied of a block with `rows` rows. */
static inline size_t tdm__packing_used(const tdm_packing *packing, int64_t rows) {
    return rows > 0 ? packing->x_at + (size_t)rows * packing->row_bytes : 0;
}

/* The rows of one replica in one step. */
typedef struct tdm_shard {
    int64_t rows;
    tdm_rows_form form;
    char *block;             /* as tdm__loader_packing says; the pointers point into it, `index` perhaps elsewhere */
    const int64_t *position; /* in the global batch's order: j * replicas + r for row j of replica r (strided) */
    const void *target;      /* [rows] */
    const float *x;          /* [rows, sample], transformed; NULL where the block has no floats */
    const int64_t *index;    /* in the dataset */
} tdm_shard;
typedef struct tdm_batch {
    int64_t epoch, step_in_epoch;
    int64_t global_rows;
    int shard_count; /* local replicas: all in single and dp, one in ddp */
    tdm_shard *shard;
} tdm_batch;

/* Memory for blocks, such as a device can copy from without help. Called by whoever opens and closes the loader;
 * TDM_ALIGN-aligned. */
typedef struct tdm_block_memory {
    tdm_status (*allocate)(void *user, void **out, size_t bytes, const char *what);
    void (*release)(void *user, void *block);
    void *user;
} tdm_block_memory;

typedef struct tdm_loader_options {
    tdm_sampler sampler;
    int64_t per_device;               /* rows per replica and step */
    int scatter;                      /* tdm_scatter */
    int first_replica, replicas_here; /* which replicas' rows this process needs */
    int64_t workers;                  /* threads; 0: read in the caller, as TDM_ROWS_INDEX is always */
    int ahead;                        /* batches fetched ahead, at least 1 */
    int held;                         /* batches given out that stay as they are; 0 is 1 */
    tdm_rows_form form;
    const tdm_block_memory *memory; /* NULL: the host's */
    const tdm_transform_spec *transform;
    bool drop_last_batch; /* a last, short global batch is dropped (data.drop_last) */
} tdm_loader_options;

typedef struct tdm_loader tdm_loader;
/* The number of workers never changes what comes out. The dataset is borrowed. */
tdm_status tdm__loader_open(tdm_loader **out, const tdm_host *host, const tdm_dataset *dataset,
                            const tdm_loader_options *options);
int64_t tdm__loader_steps_per_epoch(const tdm_loader *loader);
const tdm_packing *tdm__loader_packing(const tdm_loader *loader);
/* With the table that bytes are to be looked up in, and for tdm__dataset_fill. */
const tdm_transform *tdm__loader_transform(const tdm_loader *loader);
/* The next batch will be step `step_in_epoch` of `epoch`. Drops what was fetched ahead and all that was given out. */
tdm_status tdm__loader_seek(tdm_loader *loader, int64_t epoch, int64_t step_in_epoch);
/* The next batch in order, across epochs. Borrowed until the `held`th call of next from here on, or a seek or close. A
 * sample that cannot be read is TDM_E_DATA here, in the caller's thread. */
tdm_status tdm__loader_next(tdm_loader *loader, const tdm_batch **out);
/* The batch that next will give, which goes on to give it; those given out stay valid. NULL where it cannot be had:
 * next tells why. */
const tdm_batch *tdm__loader_peek(tdm_loader *loader);
/* What the caller has waited in next and peek since it last asked, or read there himself. */
double tdm__loader_waited_ms(tdm_loader *loader);
void tdm__loader_close(tdm_loader *loader);

#endif
