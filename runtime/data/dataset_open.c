/* Opens a dataset by its format. */
#include "runtime/base/status.h"
#include "runtime/data/formats.h"
#include "runtime/data/transforms/transforms.h"

#define TDM_FORMAT(key, name) [TDM_DATA_##key] = {#name, &tdm__##name##_data},
static const struct {
    const char *name;
    const tdm_dataset_ops *ops;
} formats[] = {
#include <tandem/sys/formats.def>
};
#undef TDM_FORMAT
enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };

static const tdm_dataset_ops *find(int format) {
    return format >= 0 && format < FORMATS ? formats[format].ops : NULL;
}

bool tdm__data_is_made(int format) {
    const tdm_dataset_ops *ops = find(format);
    return ops != NULL && ops->is_made;
}

/* Steps change bytes. What they draw cannot be kept on a device. */
static tdm_status check_steps(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    if (tdm__transform_picture_steps(wanted->transform) == 0) return TDM_OK;
    dataset->resident_bytes = 0;
    if (dataset->steps != NULL && dataset->x_is_bytes) return TDM_OK;
    TDM_FAIL_AT(&spec->inputs_at, TDM_E_DATA, "%s: data.transform has steps for pictures, and these samples are floats",
                dataset->ops->name);
}

tdm_status tdm__dataset_open(tdm_dataset **out, const tdm_host *host, const tdm_data_spec *spec,
                             const tdm_data_wanted *wanted) {
    const tdm_dataset_ops *ops = find(spec->format);
    *out = NULL;
    if (ops == NULL && spec->format > TDM_DATA_NONE && (int)spec->format < FORMATS)
        TDM_FAIL_AT(&spec->origin, TDM_E_UNSUPPORTED, "data: this build cannot read %s; convert it to npy",
                    formats[spec->format].name);
    if (ops == NULL) TDM_FAIL_AT(&spec->origin, TDM_E_USAGE, "data: unknown format %d", spec->format);
    if (ops->only_labels && wanted->target_kind != TDM_TARGET_CLASS)
        TDM_FAIL_AT(&spec->origin, TDM_E_DATA,
                    "%s: the loss needs %lld float targets per sample, found class labels; use a loss over labels, or "
                    "npy or synthetic data",
                    ops->name, (long long)wanted->target_width);
    tdm_dataset *dataset;
    TDM_TRY(tdm__dataset_new(&dataset, host, ops));
    dataset->inputs = wanted->inputs;
    TDM_TRY_ELSE(tdm__error_at(ops->open(dataset, spec, wanted), &spec->origin), tdm__dataset_close(dataset));
    TDM_TRY_ELSE(check_steps(dataset, spec, wanted), tdm__dataset_close(dataset));
    *out = dataset;
    return TDM_OK;
}
