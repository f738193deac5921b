/* Opens a dataset by its format. */
#include "runtime/base/status.h"
#include "runtime/data/formats.h"

static tdm_status open_format(tdm_dataset **out, const tdm_host *host, const tdm_data_spec *spec,
                              const tdm_data_wanted *wanted) {
    switch (spec->format) {
    case TDM_DATA_IDX:
        return tdm__idx_open(out, host, spec, wanted);
    case TDM_DATA_CIFAR10:
        return tdm__cifar10_open(out, host, spec, wanted);
    case TDM_DATA_NPY:
        return tdm__npy_open(out, host, spec, wanted);
    case TDM_DATA_SYNTHETIC:
        return tdm__synthetic_open(out, host, spec, wanted);
    case TDM_DATA_GLYPHS:
        return tdm__glyphs_open(out, host, spec, wanted);
    case TDM_DATA_IMAGE_FOLDER:
        TDM_FAIL_AT(&spec->origin, TDM_E_UNSUPPORTED, "data: this build cannot read image_folder; convert it to npy");
    default:
        TDM_FAIL_AT(&spec->origin, TDM_E_USAGE, "data: unknown format %d", spec->format);
    }
}

tdm_status tdm__dataset_open(tdm_dataset **out, const tdm_host *host, const tdm_data_spec *spec,
                             const tdm_data_wanted *wanted) {
    *out = NULL;
    TDM_TRY(tdm__error_at(open_format(out, host, spec, wanted), &spec->origin));
    return TDM_OK;
}
