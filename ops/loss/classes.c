#include "ops/loss/classes.h"

#include "ops/ops.h"
#include "runtime/base/isa.h"

tdm_status tdm__classes_infer(const char *loss, const tdm_loss_section *section, const tdm_shape *output,
                              const tdm_origin *origin, int64_t *classes) {
    if (output->ndim != 1 || output->dim[0] < 2)
        TDM_FAIL_AT(origin, TDM_E_CONFIG,
                    "%s needs one output for each of at least 2 classes, but the model gives %s; end it "
                    "with `flatten` and `linear: <classes>`",
                    loss, tdm__shape_text(output).text);
    if (section->weight.count > 0 && section->weight.count != output->dim[0])
        TDM_FAIL_AT(origin, TDM_E_CONFIG,
                    "loss.weight has %d numbers, but the model gives %lld classes; write one for each",
                    section->weight.count, (long long)output->dim[0]);
    *classes = output->dim[0];
    return TDM_OK;
}

static double weight_of(const tdm_loss_section *section, int64_t packed) {
    const tdm_label label = tdm_label_unpack(packed);
    const int count = section->weight.count;
    if (count == 0) return 1.0;
    if (!tdm_label_fits(label, count)) return 0.0;
    const double first = (double)(float)section->weight.item[label.first];
    if (label.weight == 0.0) return first;
    return (1.0 - label.weight) * first + label.weight * (double)(float)section->weight.item[label.second];
}

double tdm__classes_denominator(const tdm_loss_section *section, int64_t rows, int64_t width, const void *target) {
    const int64_t *label = target;
    double total = 0;
    (void)width;
    if (label == NULL) return (double)rows;
    for (int64_t n = 0; n < rows; n++) {
        if (label[n] != section->ignore_index) total += weight_of(section, label[n]);
    }
    return total;
}

tdm_status tdm__classes_wrong_label(const char *loss, const tdm_loss_args *args, tdm_label label, int64_t row) {
    bool is_second = label.first >= 0 && label.first < args->width;
    TDM_FAIL(TDM_E_DATA,
             "%s expects labels from 0 to %lld (the model gives %lld classes), got %lld in row %lld of the "
             "batch",
             loss, (long long)args->width - 1, (long long)args->width,
             (long long)(is_second ? label.second : label.first), (long long)(args->first_row + row));
}

const tdm_class_lanes *tdm__class_lanes(void) {
    static const tdm_class_lanes *const lanes[] = TDM_ISA_KERNELS(&tdm__class_lanes);
    return lanes[tdm__isa()];
}
