/* Reads a whole dataset and reports what is in it. */
#include <tandem/data.h>

#include <math.h>
#include <stdio.h>

#include "runtime/base/status.h"
#include "runtime/base/text/text.h"
#include "runtime/data/pictures/bad_samples.h"
#include "runtime/data/tables/features.h"
#include "runtime/data/wanted.h"

enum { LABELS_COUNTED = 1 << 16, LABELS_SHOWN = 100, EMPTY_SHOWN = 20, SAMPLES_NAMED = 10 };

/* Numbers of a sample that lie together and have one mean. */
typedef struct channel_sums {
    size_t count;
    bool has_first;
    double first, sum, squares; /* sums of differences from the first number, which are exact enough for large ones */
} channel_sums;

typedef struct survey {
    tdm_zone memory; /* of what the pointers below point to */
    tdm_dataset *dataset;
    tdm_sample_reader reader;
    size_t elements, channels;
    void *x;
    void *target;
    channel_sums *sums;   /* per channel, after to_float */
    int64_t *label_count; /* how often each label below `labels` occurs */
    int64_t labels, ignored;
    int64_t unreadable;        /* pictures that cannot be read */
    bool skips;                /* the job leaves them out */
    tdm_text messages;         /* about the first of them */
    int64_t least[2], most[2]; /* height and width of pictures */
    int64_t broken[SAMPLES_NAMED],
        broken_count; /* samples with a number that is not finite: the first ones; how many */
} survey;

/* Of a series the channels come first. A few numbers are each of a kind of its own. */
static size_t channels_of(const tdm_shape *shape) {
    const int64_t *dim = shape->dim;
    const bool is_series = shape->ndim == 2 && dim[0] <= dim[1] && dim[0] <= TDM_LIST_MAX,
               is_few = shape->ndim == 1 && dim[0] <= TDM_LIST_MAX;
    return shape->ndim >= 3 || is_series || is_few ? (size_t)dim[0] : 1;
}

static void set_channels(survey *s) {
    const tdm_data_inputs *inputs = &s->dataset->inputs;
    channel_sums *at = s->sums;
    for (size_t i = 0; inputs->count < 2 && i < s->channels; i++) s->sums[i].count = s->elements / s->channels;
    for (int k = 0; inputs->count > 1 && k < inputs->count; k++) {
        const size_t channels = channels_of(&inputs->item[k].shape);
        for (size_t i = 0; i < channels; i++, at++) at->count = inputs->item[k].count / channels;
    }
}

static tdm_status new_buffers(survey *s) {
    const tdm_dataset *dataset = s->dataset;
    if (!tdm__shape_elements(&dataset->x_shape, &s->elements))
        TDM_FAIL(TDM_E_INTERNAL, "data check: the dataset has no shape");
    const tdm_data_inputs *inputs = &dataset->inputs;
    s->channels = inputs->count > 1 ? 0 : channels_of(&dataset->x_shape);
    for (int k = 0; inputs->count > 1 && k < inputs->count; k++) s->channels += channels_of(&inputs->item[k].shape);
    s->labels = dataset->classes < LABELS_COUNTED ? dataset->classes : LABELS_COUNTED;
    bool is_class = dataset->target_kind == TDM_TARGET_CLASS;
    size_t width = is_class ? 2 : (size_t)dataset->target_width; /* an int64_t is as wide as two floats */
    TDM_TRY(tdm__zone_new(&s->memory, &s->x, s->elements, dataset->x_is_bytes ? 1 : sizeof(float)));
    TDM_TRY(tdm__zone_new(&s->memory, &s->target, width, sizeof(float)));
    TDM_TRY(tdm__zone_new(&s->memory, &s->sums, s->channels, sizeof(*s->sums)));
    set_channels(s);
    return tdm__zone_new(&s->memory, &s->label_count, (size_t)s->labels, sizeof(int64_t));
}

static bool add_x(survey *s) {
    channel_sums *channel = s->sums;
    bool finite = true;
    for (size_t i = 0, left = channel->count; i < s->elements; i++, left--) {
        if (left == 0) left = (++channel)->count;
        double value =
            s->dataset->x_is_bytes ? ((const unsigned char *)s->x)[i] / 255.0 : (double)((const float *)s->x)[i];
        finite = finite && isfinite(value);
        if (!channel->has_first) channel->first = value, channel->has_first = true;
        channel->sum += value - channel->first;
        channel->squares += (value - channel->first) * (value - channel->first);
    }
    return finite;
}

static bool add_target(survey *s) {
    bool finite = true;
    if (s->dataset->target_kind == TDM_TARGET_CLASS) {
        int64_t label = *(const int64_t *)s->target;
        if (label >= 0 && label < s->labels) {
            s->label_count[label]++;
        } else if (label < 0) {
            s->ignored++;
        }
        return true;
    }
    for (int64_t i = 0; i < s->dataset->target_width; i++) finite = finite && isfinite(((const float *)s->target)[i]);
    return finite;
}

static void print_labels(const survey *s, tdm_text *text) {
    int64_t shown = 0, more = 0;
    tdm__text_puts(text, s->dataset->class_names.count > 0 ? "classes     " : "labels      ");
    for (int64_t i = 0; i < s->labels; i++) {
        if (s->label_count[i] == 0) continue;
        if (shown == LABELS_SHOWN) {
            more++;
            continue;
        }
        tdm__text_puts(text, shown == 0 ? "" : ", ");
        if (i < s->dataset->class_names.count)
            tdm__text_shown(text, s->dataset->class_names.name[i]);
        else
            tdm__text_printf(text, "%lld", (long long)i);
        tdm__text_printf(text, ": %lld", (long long)s->label_count[i]);
        shown++;
    }
    if (more > 0) tdm__text_printf(text, ", and %lld more labels", (long long)more);
    if (s->ignored > 0) tdm__text_printf(text, "%signored: %lld", shown == 0 ? "" : ", ", (long long)s->ignored);
    tdm__text_puts(text, "\n");
}

/* Names or numbers of the classes that no sample has. */
static void print_empty(const survey *s, tdm_text *text) {
    int64_t empty = 0;
    for (int64_t i = 0; i < s->labels; i++) {
        if (s->label_count[i] > 0 || ++empty > EMPTY_SHOWN) continue;
        tdm__text_puts(text, empty == 1 ? "no samples  of " : ", ");
        if (i < s->dataset->class_names.count)
            tdm__text_shown(text, s->dataset->class_names.name[i]);
        else
            tdm__text_printf(text, "%lld", (long long)i);
    }
    if (empty > EMPTY_SHOWN) tdm__text_printf(text, ", and %lld more", (long long)(empty - EMPTY_SHOWN));
    if (empty > 0) tdm__text_puts(text, "\n");
}

/* So that it is not 0 where numbers are small. */
static void print_number(double number, bool is_first, tdm_text *text) {
    const bool is_small = fabs(number) < 0.01 && number != 0.0;
    tdm__text_printf(text, is_small ? "%s%.4g" : "%s%.4f", is_first ? "" : ", ", number);
}

/* As YAML, to be copied into data.transform. Where all numbers are equal there is nothing to divide by. */
static void print_channels(const survey *s, const channel_sums *channel, size_t channels, const char *input,
                           tdm_text *text) {
    const double samples = (double)(s->dataset->count - s->unreadable);
    tdm__text_puts(text, "{mean: [");
    for (size_t i = 0; i < channels; i++)
        print_number(channel[i].first + channel[i].sum / (samples * (double)channel[i].count), i == 0, text);
    tdm__text_puts(text, "], std: [");
    for (size_t i = 0; i < channels; i++) {
        const double count = samples * (double)channel[i].count, mean = channel[i].sum / count,
                     variance = channel[i].squares / count - mean * mean;
        print_number(variance > 0.0 ? sqrt(variance) : 1.0, i == 0, text);
    }
    tdm__text_printf(text, "]%s%s}", input != NULL ? ", inputs: " : "", input != NULL ? input : "");
}

/* The whole of data.transform for several inputs, to be copied as it stands. */
static void print_inputs(const survey *s, bool to_float, tdm_text *text) {
    const tdm_data_inputs *inputs = &s->dataset->inputs;
    const channel_sums *channel = s->sums;
    const char *comma = "";
    tdm__text_puts(text, "transform: [");
    if (to_float) tdm__text_printf(text, "%sto_float", comma), comma = ", ";
    for (int k = 0; k < inputs->count; k++) {
        const size_t channels = channels_of(&inputs->item[k].shape);
        if (!inputs->item[k].is_looked_up) {
            tdm__text_printf(text, "%s{normalize: ", comma);
            print_channels(s, channel, channels, inputs->item[k].name, text);
            tdm__text_puts(text, "}");
            comma = ", ";
        }
        channel += channels;
    }
    tdm__text_puts(text, "]\n");
}

static void print_normalize(const survey *s, bool to_float, tdm_text *text) {
    if (s->dataset->count == s->unreadable) return;
    if (s->dataset->inputs.count > 1) {
        print_inputs(s, to_float, text);
        return;
    }
    tdm__text_puts(text, "normalize   ");
    print_channels(s, s->sums, s->channels, NULL, text);
    tdm__text_puts(text, "\n");
}

static void print_shape(const survey *s, tdm_text *text) {
    const tdm_data_inputs *inputs = &s->dataset->inputs;
    char shape[TDM_DIMS_TEXT];
    for (int k = 0; inputs->count > 1 && k < inputs->count; k++)
        tdm__text_printf(text, "%s %s %s", k == 0 ? "inputs     " : ",", inputs->item[k].name,
                         tdm__dims_print(shape, &inputs->item[k].shape));
    if (inputs->count > 1) tdm__text_puts(text, "\n");
    tdm__text_printf(text, "shape       %s, %s\n", tdm__dims_print(shape, &s->dataset->x_shape),
                     s->dataset->x_is_bytes ? "bytes" : "floats");
}

static tdm_status print_report(survey *s, bool to_float, char **report) {
    tdm_text text;
    tdm__text_init(&text, s->memory.host);
    tdm__text_printf(&text, "samples     %lld\n", (long long)(s->dataset->count - s->unreadable));
    if (s->unreadable > 0)
        tdm__text_printf(&text, "unreadable  %lld more%s\n", (long long)s->unreadable,
                         s->skips ? ", which training leaves out" : "");
    print_shape(s, &text);
    if (s->most[0] > 0)
        tdm__text_printf(&text, "pictures    %lld x %lld to %lld x %lld pixels in the files\n", (long long)s->least[1],
                         (long long)s->least[0], (long long)s->most[1], (long long)s->most[0]);
    if (s->dataset->target_kind == TDM_TARGET_CLASS) {
        print_labels(s, &text);
        print_empty(s, &text);
    } else {
        tdm__text_printf(&text, "targets     %lld floats a sample\n", (long long)s->dataset->target_width);
    }
    if (s->dataset->features != NULL)
        tdm__features_report(s->dataset->features, &text);
    else
        print_normalize(s, to_float, &text);
    TDM_TRY_ELSE(tdm__unseen_report(s->dataset, &s->memory, &text), tdm__text_deinit(&text));
    return tdm__text_take_public(&text, report);
}

static int64_t left_out(const tdm_dataset *dataset) {
    return dataset->bad != NULL ? atomic_load(&dataset->bad->count) : 0;
}

/* A picture that cannot be read is noted: there may be more. */
static tdm_status read_one(survey *s, int64_t index, bool *is_read) {
    const tdm_dataset_ops *ops = s->dataset->ops;
    const int64_t before = left_out(s->dataset);
    int64_t size[2] = {0};
    tdm_status status = tdm__sample_read(&s->reader, index, s->x, s->target);
    if (status == TDM_OK && left_out(s->dataset) > before) {
        s->unreadable++;
        *is_read = false;
        return TDM_OK;
    }
    if (status == TDM_OK && ops->measure != NULL) status = ops->measure(&s->reader, index, size);
    *is_read = status == TDM_OK;
    if (status == TDM_E_DATA && ops->measure != NULL) {
        if (s->unreadable++ < SAMPLES_NAMED) tdm__text_printf(&s->messages, "; %s", tdm_error_message());
        return TDM_OK;
    }
    for (int k = 0; k < 2 && status == TDM_OK && size[0] > 0; k++) {
        if (s->least[k] == 0 || size[k] < s->least[k]) s->least[k] = size[k];
        if (size[k] > s->most[k]) s->most[k] = size[k];
    }
    return status;
}

static tdm_status read_all(survey *s) {
    TDM_TRY(new_buffers(s));
    TDM_TRY(tdm__sample_reader_open(&s->reader, s->dataset));
    for (int64_t i = 0; i < s->dataset->count; i++) {
        bool is_read;
        TDM_TRY(read_one(s, i, &is_read));
        if (!is_read) continue;
        bool x_is_finite = add_x(s), target_is_finite = add_target(s);
        if (x_is_finite && target_is_finite) continue;
        if (s->broken_count < SAMPLES_NAMED) s->broken[s->broken_count] = tdm__dataset_row(s->dataset, i);
        s->broken_count++;
    }
    return TDM_OK;
}

static tdm_status check_readable(const survey *s, const tdm_data_spec *spec) {
    if (s->unreadable == 0 || spec->on_bad_sample == TDM_BAD_SAMPLE_SKIP) return TDM_OK;
    TDM_FAIL_AT(&spec->origin, TDM_E_DATA,
                "%lld of %lld pictures cannot be used; repair or remove them, or write on_bad_sample: skip%s%s",
                (long long)s->unreadable, (long long)s->dataset->count,
                s->messages.failed || s->messages.data == NULL ? "" : s->messages.data,
                s->unreadable > SAMPLES_NAMED ? "; ..." : "");
}

static tdm_status check_finite(const survey *s, const tdm_data_spec *spec) {
    char names[SAMPLES_NAMED * 24] = "";
    size_t used = 0;
    if (s->broken_count == 0) return TDM_OK;
    for (int64_t i = 0; i < s->broken_count && i < SAMPLES_NAMED; i++)
        used +=
            (size_t)snprintf(names + used, sizeof(names) - used, "%s%lld", i > 0 ? ", " : "", (long long)s->broken[i]);
    TDM_FAIL_AT(&spec->origin, TDM_E_DATA,
                "%lld of %lld samples hold numbers that are not finite: %s%s; repair them or exclude them with `range`",
                (long long)s->broken_count, (long long)s->dataset->count, names,
                s->broken_count > SAMPLES_NAMED ? ", ..." : "");
}

/* Opens the data, and before it that trained on, if it is to be read in the same way. */
static tdm_status open_pair(const tdm_host *host, const tdm_data_spec *spec, const tdm_data_use *use,
                            tdm_data_wanted *wanted, tdm_dataset **trained_on, tdm_dataset **out) {
    if (use != NULL && use->trained_on != NULL && use->trained_on->format == spec->format &&
        spec->format == TDM_DATA_CSV) {
        tdm_data_wanted first = *wanted;
        first.evaluates = false;
        TDM_TRY(tdm__dataset_open(trained_on, host, use->trained_on, &first));
        wanted->features = (*trained_on)->features;
        wanted->class_names = &(*trained_on)->class_names;
    }
    TDM_TRY_ELSE(tdm__dataset_open(out, host, spec, wanted), tdm__dataset_close(*trained_on));
    return TDM_OK;
}

tdm_status tdm_data_check(const tdm_host *host, const tdm_data_spec *spec, const tdm_data_use *use, char **report) {
    tdm_status status = TDM_OK;
    tdm_data_wanted wanted;
    tdm_dataset *trained_on = NULL;
    survey s = {0};
    if (spec == NULL || report == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_data_check: spec or report is NULL");
    *report = NULL;
    TDM_TRY(tdm__host_take(&host));
    TDM_TRY(tdm__data_wanted_from(use, &wanted));
    TDM_TRY(open_pair(host, spec, use, &wanted, &trained_on, &s.dataset));
    tdm__zone_init(&s.memory, host);
    tdm__text_init(&s.messages, host);
    s.skips = spec->on_bad_sample == TDM_BAD_SAMPLE_SKIP;
    TDM_TRY_DONE(read_all(&s));
    TDM_TRY_DONE(print_report(&s, wanted.transform != NULL && wanted.transform->to_float, report));
    TDM_TRY_DONE(check_readable(&s, spec));
    TDM_TRY_DONE(check_finite(&s, spec));
done:
    if (status != TDM_OK && s.unreadable == 0) {
        tdm_free(*report);
        *report = NULL;
    }
    tdm__text_deinit(&s.messages);
    tdm__zone_deinit(&s.memory);
    tdm__sample_reader_close(&s.reader);
    tdm__dataset_close(s.dataset);
    tdm__dataset_close(trained_on);
    return status;
}
