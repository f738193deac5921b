/* A look at series, see look.h. */
#include "runtime/data/series/look.h"

#include <math.h>

#include "runtime/base/status.h"
#include "runtime/data/formats/npy.h"

/* Labels above CLASSES_MOST are taken for numbers that should have been floats. */
enum { CLASSES_MOST = 1000 };

typedef struct sums {
    double sum, squares;
} sums;

typedef struct looking {
    const char *x_path, *y_path;
    tdm_dataset *dataset;
    tdm_series_seen *seen;
    size_t elements;
    float *x;     /* one sample; bytes are widened */
    void *target; /* its label or its numbers */
    sums of_x[TDM_LIST_MAX], of_targets;
    int64_t least, most; /* labels */
} looking;

/* ---- NaN and infinity ---- */

/* Whether all numbers of the sample from point `from` of the longer dimension on are NaN. */
static bool ends_before(const looking *l, int64_t from) {
    const int64_t rows = l->seen->dim[0], columns = l->seen->dim[1];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            if ((rows > columns ? i : k) >= from && !isnan(l->x[i * columns + k])) return false;
    return true;
}

static tdm_status fail_at(const looking *l, int64_t sample, int64_t at) {
    const int64_t rows = l->seen->dim[0], columns = l->seen->dim[1], row = at / columns, column = at % columns;
    const int64_t point = rows > columns ? row : column;
    if (point > 0 && ends_before(l, point))
        TDM_FAIL(
            TDM_E_DATA,
            "x '%s': sample %lld ends after %lld of %lld points, the rest is NaN: series must have one length; cut "
            "them, or fill them up with numbers",
            l->x_path, (long long)sample, (long long)point, (long long)(rows > columns ? rows : columns));
    TDM_FAIL(TDM_E_DATA, "x '%s': sample %lld holds %s at [%lld, %lld]; repair it or leave it out", l->x_path,
             (long long)sample, isnan(l->x[at]) ? "NaN" : "an infinite number", (long long)row, (long long)column);
}

/* ---- one sample ---- */

static void add(sums *to, double value) {
    to->sum += value;
    to->squares += value * value;
}

static tdm_status look_at_x(looking *l, int64_t sample) {
    const size_t plane = l->elements / (size_t)l->seen->count;
    if (l->dataset->x_is_bytes)
        for (size_t i = l->elements; i-- > 0;) l->x[i] = ((const unsigned char *)l->x)[i];
    for (size_t i = 0; i < l->elements; i++) {
        if (!isfinite(l->x[i])) return fail_at(l, sample, (int64_t)i);
        add(&l->of_x[i / plane], (double)l->x[i]);
    }
    return TDM_OK;
}

static tdm_status look_at_target(looking *l, int64_t sample) {
    if (l->dataset->target_kind == TDM_TARGET_CLASS) {
        const int64_t label = *(const int64_t *)l->target;
        if (sample == 0 || label < l->least) l->least = label;
        if (sample == 0 || label > l->most) l->most = label;
        return TDM_OK;
    }
    for (int64_t i = 0; i < l->dataset->target_width; i++) {
        const float value = ((const float *)l->target)[i];
        if (!isfinite(value))
            TDM_FAIL(TDM_E_DATA, "y '%s': the target of sample %lld is not a finite number; repair it or leave it out",
                     l->y_path, (long long)sample);
        add(&l->of_targets, (double)value);
    }
    return TDM_OK;
}

/* ---- all of them ---- */

static void finish(const sums *of, double count, double *mean, double *stdev) {
    const double variance = of->squares / count - of->sum / count * (of->sum / count);
    *mean = of->sum / count;
    *stdev = variance > 0.0 ? sqrt(variance) : 1.0;
}

static tdm_status take_shape(looking *l) {
    const tdm_shape *shape = &l->dataset->x_shape;
    tdm_series_seen *seen = l->seen;
    char dims[TDM_DIMS_TEXT];
    if (shape->ndim > 2 || l->elements < 2)
        TDM_FAIL(TDM_E_DATA,
                 "x '%s': a file of series is [samples, channels, points] or [samples, points, features], "
                 "each sample is %s",
                 l->x_path, tdm__dims_print(dims, shape));
    seen->samples = l->dataset->count;
    seen->dim[0] = shape->ndim == 2 ? shape->dim[0] : 1;
    seen->dim[1] = shape->dim[shape->ndim - 1];
    seen->count = seen->dim[0] <= seen->dim[1] && seen->dim[0] <= TDM_LIST_MAX ? (int)seen->dim[0] : 1;
    if (seen->samples < TDM_LOOK_LEAST)
        TDM_FAIL(TDM_E_DATA, "x '%s': %lld sample%s; to train and to test there must be at least %d", l->x_path,
                 (long long)seen->samples, seen->samples == 1 ? "" : "s", TDM_LOOK_LEAST);
    return TDM_OK;
}

/* Refuses targets that a network would be slow to learn: far from 0, or of a very large or small spread. */
static tdm_status take_numbers(looking *l) {
    double mean, stdev;
    l->seen->width = l->dataset->target_width;
    finish(&l->of_targets, (double)l->seen->samples * (double)l->seen->width, &mean, &stdev);
    if (fabs(mean) > 10.0 || stdev > 10.0 || stdev < 0.01)
        TDM_FAIL(
            TDM_E_DATA,
            "y '%s': targets have mean %.4g and deviation %.4g, which takes a network long to reach; save (y - %.4g) / "
            "%.4g instead",
            l->y_path, mean, stdev, mean, stdev);
    return TDM_OK;
}

static tdm_status take_labels(looking *l) {
    tdm_series_seen *seen = l->seen;
    if (l->dataset->target_kind != TDM_TARGET_CLASS) return take_numbers(l);
    if (l->least == l->most)
        TDM_FAIL(TDM_E_DATA, "y '%s': all labels are %lld; there must be two classes or more", l->y_path,
                 (long long)l->least);
    if (l->most >= CLASSES_MOST || l->most >= seen->samples)
        TDM_FAIL(
            TDM_E_DATA,
            "y '%s': %lld samples have labels up to %lld; number the classes from 0, or save numbers to predict as "
            "floats",
            l->y_path, (long long)seen->samples, (long long)l->most);
    seen->classes = l->most + 1;
    seen->width = 1;
    return TDM_OK;
}

static tdm_status look_at_all(looking *l) {
    tdm_series_seen *seen = l->seen;
    TDM_TRY(take_shape(l));
    for (int64_t i = 0; i < seen->samples; i++) {
        TDM_TRY(tdm__dataset_read(l->dataset, i, l->x, l->target));
        TDM_TRY(look_at_x(l, i));
        TDM_TRY(look_at_target(l, i));
    }
    for (int i = 0; i < seen->count; i++)
        finish(&l->of_x[i], (double)seen->samples * (double)(l->elements / (size_t)seen->count), &seen->mean[i],
               &seen->stdev[i]);
    return take_labels(l);
}

static tdm_status take_buffers(looking *l, tdm_zone *zone) {
    const size_t target = l->dataset->target_kind == TDM_TARGET_CLASS
                              ? sizeof(int64_t)
                              : (size_t)l->dataset->target_width * sizeof(float);
    if (!tdm__shape_elements(&l->dataset->x_shape, &l->elements))
        TDM_FAIL(TDM_E_INTERNAL, "series: the dataset has no shape");
    TDM_TRY(tdm__zone_new(zone, &l->x, l->elements, sizeof(*l->x)));
    return tdm__zone_new(zone, &l->target, target, 1);
}

tdm_status tdm__series_look(const tdm_host *host, const char *x, const char *y, tdm_series_seen *out) {
    const tdm_data_spec spec = {.format = TDM_DATA_NPY, .x = x, .y = y, .seed = TDM_INT_NULL};
    tdm_data_wanted wanted = {.ignore_index = INT64_MIN};
    tdm_array labels;
    *out = (tdm_series_seen){.samples = 0};
    TDM_TRY(tdm__npy_peek(&labels, host, "y", y));
    wanted.target_kind = labels.type.kind == 'f' ? TDM_TARGET_VALUES : TDM_TARGET_CLASS;
    looking l = {.x_path = x, .y_path = y, .seen = out};
    TDM_TRY(tdm__dataset_open(&l.dataset, host, &spec, &wanted));
    tdm_zone zone;
    tdm__zone_init(&zone, host);
    tdm_status status = take_buffers(&l, &zone);
    if (status == TDM_OK) status = look_at_all(&l);
    tdm__zone_deinit(&zone);
    tdm__dataset_close(l.dataset);
    return status;
}
