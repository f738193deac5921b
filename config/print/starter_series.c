/* Writes a configuration for series in .npy files, from a look at them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/config_private.h"
#include "config/print/starter_net.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/data/series/look.h"

/* Samples that training goes through; levels of the network, which halve the series while it has LEAST_POINTS. The
 * first layer brings longer series down to MOST_POINTS. */
static const tdm_starter_limits limits = {.samples = 16000, .least_epochs = 10, .most_epochs = 60, .batch = 32};
enum { LEVELS = 4, LEAST_POINTS = 16, MOST_POINTS = 256, MOST_STRIDE = 1024 };

typedef struct starter {
    tdm_starter common;
    const tdm_series_seen *seen;
    char *x, *y;   /* the files, whole paths */
    bool is_steps; /* samples are [points, features]; else [channels, points] */
    int64_t channels, points;
} starter;

static int64_t outputs_of(const starter *s) {
    return s->seen->classes > 0 ? s->seen->classes : s->seen->width;
}

static tdm_status choose(starter *s) {
    const int64_t *dim = s->seen->dim;
    s->is_steps = dim[0] > dim[1];
    s->channels = dim[s->is_steps];
    s->points = dim[!s->is_steps];
    tdm__starter_choose(&s->common, s->seen->samples, &limits);
    return s->common.net != NULL ? tdm__starter_net_check(s->common.net, 2, dim, outputs_of(s)) : TDM_OK;
}

static void put_level(const starter *s, int level, int64_t stride) {
    static const int kernel[LEVELS] = {7, 5, 5, 3};
    const int64_t points = stride > kernel[level] / 2 ? 2 * stride + 1 : kernel[level];
    tdm__text_printf(s->common.out, "    - conv1d: {out: %d, kernel: %lld, padding: %lld, bias: false",
                     level > 0 ? 64 : 32, (long long)points, (long long)(points / 2));
    if (stride > 1) tdm__text_printf(s->common.out, ", stride: %lld", (long long)stride);
    tdm__text_puts(s->common.out, "}\n    - batchnorm1d\n    - relu\n");
}

static tdm_status put_model(const starter *s) {
    if (s->common.net != NULL) return tdm__starter_put_net(&s->common, outputs_of(s));
    const int64_t stride = tdm__starter_clamp((s->points + MOST_POINTS - 1) / MOST_POINTS, 1, MOST_STRIDE);
    int64_t points = s->points / stride;
    tdm__text_printf(s->common.out, "model:\n  input: [%lld, %lld]\n  layers:\n", (long long)s->seen->dim[0],
                     (long long)s->seen->dim[1]);
    if (s->is_steps) {
        tdm__starter_note(&s->common, 4,
                          "[points, features] becomes [channels, points], each of mean 0 and deviation 1",
                          "[点数, 特征] 变为 [通道, 点数]，每个通道均值为 0、标准差为 1");
        tdm__text_puts(s->common.out, "    - transpose\n    - batchnorm1d\n");
    }
    for (int i = 0; i < LEVELS; i++) {
        put_level(s, i, i == 0 ? stride : 1);
        if (points < LEAST_POINTS || i == LEVELS - 1) continue;
        tdm__text_puts(s->common.out, "    - maxpool1d: 2\n");
        points /= 2;
    }
    tdm__starter_note(&s->common, 4,
                      "where the order over long spans matters: `- transpose` and `- gru: 64` in place of the next two",
                      "若长跨度上的先后次序重要：以 `- transpose` 和 `- gru: 64` 代替下面两行");
    tdm__text_printf(s->common.out,
                     "    - adaptive_avgpool1d: 1\n    - flatten\n    - dropout: 0.1\n"
                     "    - linear: {name: output, out: %lld}\n",
                     (long long)outputs_of(s));
    return TDM_OK;
}

static void put_spec(const starter *s, const char *section) {
    tdm__text_printf(s->common.out, "  %s: {format: npy, x: ", section);
    tdm__text_json_string(s->common.out, s->x);
    tdm__text_puts(s->common.out, ", y: ");
    tdm__text_json_string(s->common.out, s->y);
    tdm__text_puts(s->common.out, ", holdout: 0.2}\n");
}

static void put_numbers(const starter *s, const char *key, const double *number) {
    tdm__text_printf(s->common.out, "%s: [", key);
    for (int i = 0; i < s->seen->count; i++) tdm__text_printf(s->common.out, "%s%.6g", i > 0 ? ", " : "", number[i]);
    tdm__text_puts(s->common.out, "]");
}

static void put_data(const starter *s) {
    tdm__text_puts(s->common.out, "data:\n");
    tdm__starter_note(&s->common, 2, "a fifth of the series, drawn by chance, is held out to test the model",
                      "随机留出五分之一的序列用于测试");
    put_spec(s, "train");
    put_spec(s, "eval");
    tdm__text_puts(s->common.out, "  drop_last: true\n  transform: [{normalize: {");
    put_numbers(s, "mean", s->seen->mean);
    put_numbers(s, ", std", s->seen->stdev);
    tdm__text_puts(s->common.out, "}}]\n");
}

static tdm_status put_all(const starter *s) {
    const tdm_series_seen *seen = s->seen;
    tdm__text_printf(s->common.out,
                     s->common.chinese
                         ? "# %lld 个序列，各 %lld 个通道、%lld 个点（较长的一维）；由 tandem init 写出。\n"
                         : "# %lld series of %lld channels and %lld points, the longer dimension; written by "
                           "tandem init.\n",
                     (long long)seen->samples, (long long)s->channels, (long long)s->points);
    tdm__text_puts(s->common.out, "tandem: 1\nname: series\n");
    TDM_TRY(put_model(s));
    put_data(s);
    tdm__starter_put_learning(&s->common, seen->classes > 0);
    tdm__starter_put_log(&s->common);
    return TDM_OK;
}

/* ---- the two files ---- */

/* The file may be written anywhere, so it gets whole paths. */
static tdm_status find(char **whole, const char *path, const char *without) {
    *whole = realpath(path, NULL);
    if (*whole == NULL)
        TDM_FAIL(errno == ENOMEM ? TDM_E_MEMORY : TDM_E_DATA, "'%s' cannot be found: %m%s", path, without);
    return tdm__starter_check_path(*whole, "file");
}

/* A folder has x.npy and y.npy. Beside a file x_train.npy is y_train.npy, beside any other y.npy. */
static tdm_status find_both(starter *s, const tdm_host *host, const char *data, const char *labels) {
    struct stat found;
    tdm_text x, y;
    tdm__text_init(&x, host);
    tdm__text_init(&y, host);
    if (stat(data, &found) == 0 && S_ISDIR(found.st_mode)) {
        tdm__text_printf(&x, "%s/x.npy", data);
        tdm__text_printf(&y, "%s/y.npy", data);
    } else {
        const char *slash = strrchr(data, '/'), *name = slash != NULL ? slash + 1 : data;
        tdm__text_puts(&x, data);
        tdm__text_printf(&y, "%.*s%s", (int)(name - data), data, "y");
        tdm__text_puts(&y, name[0] == 'x' ? name + 1 : ".npy");
    }
    tdm_status status = x.failed || y.failed ? tdm__fail(TDM_E_MEMORY, __FILE__, __LINE__, NULL, "out of memory")
                                             : find(&s->x, x.data, "");
    if (status == TDM_OK)
        status = find(&s->y, labels != NULL ? labels : y.data,
                      labels != NULL ? "" : "; series need a file of labels: name it with --target");
    tdm__text_deinit(&x);
    tdm__text_deinit(&y);
    return status;
}

static tdm_status write(starter *s, const tdm_host *host, tdm_series_seen *seen, char **out) {
    tdm_text text;
    TDM_TRY(tdm__series_look(host, s->x, s->y, seen));
    TDM_TRY(choose(s));
    tdm__text_init(&text, host);
    s->common.out = &text;
    const tdm_status status = put_all(s);
    if (status == TDM_OK) return tdm__text_take_public(&text, out);
    tdm__text_deinit(&text);
    return status;
}

tdm_status tdm__starter_series(const tdm_host *host, const char *data, const char *labels, const tdm_starter_net *net,
                               tdm_language language, char **out) {
    tdm_series_seen seen;
    starter s = {.seen = &seen,
                 .common = {.chinese = language == TDM_CHINESE, .net = net, .class_loss = tdm__starter_net_loss(net)}};
    tdm_status status = find_both(&s, host, data, labels);
    if (status == TDM_OK) status = write(&s, host, &seen, out);
    free(s.x);
    free(s.y);
    return status;
}

tdm_status tdm_config_starter_series(const tdm_host *host, const char *data, const char *labels, tdm_language language,
                                     char **out) {
    if (data == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_starter_series: data or out is NULL");
    *out = NULL;
    TDM_EXTRA(TEXTS);
    TDM_TRY(tdm__host_take(&host));
    return tdm__starter_series(host, data, labels, NULL, language, out);
}
