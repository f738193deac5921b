/* What is in a batch, and where it lies in memory. Both depend only on the batch's epoch and step: when it is made, and
 * by which thread, is the loader's business (loader.c). */
#ifndef TDM_DATA_BATCHES_H
#define TDM_DATA_BATCHES_H

#include "runtime/data/transform.h"
#include "runtime/data/transforms/mixing.h"

/* Memory for some batches, and what is needed to fill them. */
typedef struct tdm_batches {
    const tdm_host *host;
    const tdm_dataset *dataset;
    tdm_loader_options options;
    tdm_transform transform;
    tdm_mixing mixing;
    size_t elements;     /* of a sample */
    size_t sample_bytes; /* of the buffer that tdm__batch_fetch needs for samples before their transform; 0: none */
    size_t other_bytes;  /* of the buffer for the sample that is mixed in; 0: none */
    size_t most_rows;    /* the largest number of rows of a shard */
    tdm_packing packing;
    int64_t per_replica; /* samples of each replica per epoch */
    int64_t steps_per_epoch;
    tdm_batch *batch;
    int count;
    tdm_shard *shards;   /* of all batches, consecutively */
    int64_t *indices;    /* of all shards, most_rows for each; NULL if they are in the blocks */
    int64_t *order;      /* the order of order_epoch */
    int64_t order_epoch; /* -1: none yet */
} tdm_batches;

/* `batches` is all zero before. After a failure, too, it is to be closed. */
tdm_status tdm__batches_open(tdm_batches *batches, const tdm_host *host, const tdm_dataset *dataset,
                             const tdm_loader_options *options, int count);
void tdm__batches_close(tdm_batches *batches);
/* Fills in the indices and positions of step `step` of `epoch`. By one thread at a time. */
void tdm__batch_plan(tdm_batches *batches, tdm_batch *batch, int64_t epoch, int64_t step);
/* What a thread needs to read samples. */
typedef struct tdm_batch_reader {
    tdm_sample_reader reader;
    unsigned char *sample; /* samples of bytes, before the transform makes floats; `sample_bytes` */
    float *other;          /* a sample that is mixed in; `other_bytes` */
} tdm_batch_reader;
/* Reads the samples of a planned batch. By several threads at once, for different batches, each with its reader. */
tdm_status tdm__batch_fetch(const tdm_batches *batches, const tdm_batch *batch, tdm_batch_reader *reader);

#endif
