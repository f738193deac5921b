/* Reading samples of a dataset, and hashing some. */
#include <string.h>

#include "runtime/base/round.h"
#include "runtime/base/status.h"
#include "runtime/data/transform.h"

tdm_status tdm__sample_reader_open(tdm_sample_reader *reader, const tdm_dataset *dataset) {
    *reader = (tdm_sample_reader){.dataset = dataset};
    return dataset->ops->new_scratch != NULL ? dataset->ops->new_scratch(dataset, &reader->scratch) : TDM_OK;
}

void tdm__sample_reader_close(tdm_sample_reader *reader) {
    if (reader->scratch != NULL) reader->dataset->ops->delete_scratch(reader->dataset, reader->scratch);
    *reader = (tdm_sample_reader){.dataset = NULL};
}

tdm_status tdm__dataset_read(const tdm_dataset *dataset, int64_t index, void *x, void *target) {
    tdm_sample_reader reader;
    TDM_TRY(tdm__sample_reader_open(&reader, dataset));
    const tdm_status status = tdm__sample_read(&reader, index, x, target);
    tdm__sample_reader_close(&reader);
    return status;
}

tdm_status tdm__dataset_fill(const tdm_dataset *dataset, const tdm_transform *transform, int64_t first, int64_t count,
                             void *x, void *targets) {
    const size_t x_bytes = tdm__dataset_x_bytes(dataset), target_bytes = tdm__dataset_target_bytes(dataset);
    tdm_status status = TDM_OK;
    tdm_sample_reader reader;
    TDM_TRY(tdm__sample_reader_open(&reader, dataset));
    for (int64_t i = 0; i < count; i++) {
        char *sample = (char *)x + (size_t)i * x_bytes;
        TDM_TRY_DONE(tdm__sample_read(&reader, first + i, sample, (char *)targets + (size_t)i * target_bytes));
        if (!dataset->x_is_bytes) tdm__transform_floats(transform, (float *)sample);
    }
done:
    tdm__sample_reader_close(&reader);
    return status;
}

enum { SAMPLES_HASHED = 16 }; /* beside the first sample */

tdm_status tdm__dataset_hash(const tdm_dataset *dataset, char out[TDM_HASH_TEXT]) {
    size_t x_bytes = tdm__dataset_x_bytes(dataset), target_bytes = tdm__dataset_target_bytes(dataset);
    int64_t last = dataset->count - 1;
    tdm_hash128 hash[SAMPLES_HASHED + 1] = {{0}};
    char *sample = NULL;
    tdm_sample_reader reader;
    TDM_TRY(tdm__sample_reader_open(&reader, dataset));
    tdm_status status = tdm__new(dataset->host, &sample, x_bytes + TDM_ALIGN + target_bytes, 1, "sample");
    char *target = sample + tdm__round_up(x_bytes, TDM_ALIGN);
    for (int i = 0; i <= SAMPLES_HASHED && status == TDM_OK; i++) {
        int64_t index = last / SAMPLES_HASHED * i + last % SAMPLES_HASHED * i / SAMPLES_HASHED;
        status = tdm__sample_read(&reader, index, sample, target);
        hash[i] = tdm__hash(sample, x_bytes);
        hash[i].low ^= tdm__hash64(target, target_bytes, (uint64_t)i);
    }
    tdm__delete(dataset->host, sample);
    tdm__sample_reader_close(&reader);
    for (int64_t i = 0; i < dataset->class_names.count; i++) {
        const char *name = dataset->class_names.name[i];
        hash[0].high ^= tdm__hash64(name, strlen(name), (uint64_t)i);
    }
    tdm__hash_print(out, tdm__hash(hash, sizeof(hash)));
    return status;
}
