/* Samples from the embedder's callback. */
#include "runtime/base/status.h"
#include "runtime/data/formats.h"

typedef struct callback_dataset {
    tdm_dataset base;
    tdm_source source;
    tdm_data_wanted wanted;
} callback_dataset;

static tdm_status callback_read(const tdm_sample_reader *reader, int64_t index, void *x, void *target) {
    const callback_dataset *own = (const callback_dataset *)reader->dataset;
    int answer = own->source.read(own->source.user, index, x, target);
    if (answer != 0)
        TDM_FAIL(TDM_E_DATA, "sample %lld of the program's own source: read returned %d", (long long)index, answer);
    if (own->base.target_kind != TDM_TARGET_CLASS) return TDM_OK;
    int64_t label = *(const int64_t *)target;
    if (!tdm__label_fits(&own->wanted, label))
        TDM_FAIL(TDM_E_DATA, "sample %lld of the program's own source: label must be 0 to %lld, found %lld",
                 (long long)index, (long long)own->wanted.classes - 1, (long long)label);
    return TDM_OK;
}

static const tdm_dataset_ops callback_ops = {
    .name = "source", .bytes = sizeof(callback_dataset), .read = callback_read};

tdm_status tdm__dataset_open_source(tdm_dataset **out, const tdm_host *host, const tdm_source *source,
                                    const tdm_data_wanted *wanted) {
    size_t elements;
    *out = NULL;
    if (source->size < sizeof(tdm_source))
        TDM_FAIL(TDM_E_USAGE, "tdm_source.size must be sizeof(tdm_source), %zu, got %u", sizeof(tdm_source),
                 source->size);
    if (source->read == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_source.read must be a function, got NULL");
    if (source->count < 1)
        TDM_FAIL(TDM_E_USAGE, "tdm_source.count must be at least 1, got %lld", (long long)source->count);
    if (!tdm__shape_elements(&wanted->input, &elements)) TDM_FAIL(TDM_E_USAGE, "the model has no input shape");
    if ((source->has_labels != 0) != (wanted->target_kind == TDM_TARGET_CLASS))
        TDM_FAIL(TDM_E_USAGE, "tdm_source.has_labels is %d, but the loss needs %s%s%s", source->has_labels,
                 wanted->target_kind == TDM_TARGET_CLASS ? "class labels" : "float targets",
                 wanted->loss_of_values != NULL ? "; probabilities of the classes are for the loss " : "",
                 wanted->loss_of_values != NULL ? wanted->loss_of_values : "");
    TDM_TRY(tdm__dataset_new(out, host, &callback_ops));
    callback_dataset *own = (callback_dataset *)*out;
    own->source = *source;
    own->wanted = *wanted;
    own->base.count = source->count;
    own->base.x_shape = wanted->input;
    own->base.target_kind = wanted->target_kind;
    own->base.target_width = wanted->target_kind == TDM_TARGET_VALUES ? wanted->target_width : 0;
    own->base.classes = wanted->classes;
    own->base.has_ignored = wanted->target_kind == TDM_TARGET_CLASS;
    return TDM_OK;
}
