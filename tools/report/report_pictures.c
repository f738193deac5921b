/* report_pictures.c - the pictures of the samples with the highest losses, inside the page: small PNG files as data:
 * addresses, with what they are and what the model took them for. */
#include "tools/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/report_words.h"

enum { MOST = 32, SIDE = 96, SMALL = 64, BYTES_MOST = 1 << 20 };

typedef struct shots {
    FILE *to;
    const json_t *evaluation, *worst;
    bool chinese, is_open;
    int at;       /* the sample that comes next */
    size_t bytes; /* of all pictures so far */
} shots;

static void base64(FILE *to, const unsigned char *bytes, size_t count) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < count; i += 3) {
        size_t left = count - i;
        unsigned group = (unsigned)bytes[i] << 16 | (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0) |
                         (left > 2 ? (unsigned)bytes[i + 2] : 0);
        fputc(digits[group >> 18], to);
        fputc(digits[group >> 12 & 63], to);
        fputc(left > 1 ? digits[group >> 6 & 63] : '=', to);
        fputc(left > 2 ? digits[group & 63] : '=', to);
    }
}

/* A side of a PNG's first chunk, which begins with width and height, big-endian. */
static unsigned side_of(const unsigned char *png, size_t count, size_t at) {
    if (count < at + 4) return 0;
    return (unsigned)png[at] << 24 | (unsigned)png[at + 1] << 16 | (unsigned)png[at + 2] << 8 | png[at + 3];
}

static void caption(const shots *s, const json_t *item) {
    const json_t *loss = json_object_get(item, "loss");
    FREED char *label = report_class(s->evaluation, json_integer_value(json_object_get(item, "label")));
    FREED char *predicted = report_class(s->evaluation, json_integer_value(json_object_get(item, "predicted")));
    char number[32];
    fputs("<figcaption><b>", s->to);
    html_text(s->to, label);
    fprintf(s->to, "</b> \xe2\x86\x92 <span%s>", strcmp(label, predicted) != 0 ? " class=\"bad\"" : "");
    html_text(s->to, predicted);
    fprintf(s->to, "</span><br><span class=\"dim\">%s %s</span></figcaption></figure>\n",
            report_words[WORD_LOSS_SHORT][s->chinese],
            text_number(number, json_is_number(loss) ? json_number_value(loss) : NAN));
}

static void open_gallery(shots *s) {
    if (s->is_open) return;
    s->is_open = true;
    fprintf(s->to, "<h3>%s</h3><p class=\"dim\">%s</p><div class=\"shots\">\n", report_words[WORD_WORST][s->chinese],
            report_words[WORD_SHOTS][s->chinese]);
}

static tdm_status show(void *user, int64_t index, const void *png, size_t bytes, const char *why) {
    shots *s = user;
    const json_t *item = json_array_get(s->worst, (size_t)s->at++);
    const bool fits = png && s->bytes + bytes <= BYTES_MOST;
    FREED char *name = report_sample(item);
    (void)index;
    open_gallery(s);
    fputs("<figure title=\"", s->to);
    html_text(s->to, name);
    fputs("\">", s->to);
    if (fits) {
        unsigned width = side_of(png, bytes, 16), height = side_of(png, bytes, 20);
        fprintf(s->to, "<img%s alt=\"\" src=\"data:image/png;base64,",
                (width > height ? width : height) < SMALL ? " class=\"tiny\"" : "");
        base64(s->to, png, bytes);
        fputs("\">", s->to);
        s->bytes += bytes;
    } else {
        fputs("<span class=\"none\">", s->to);
        html_text(s->to, png ? report_words[WORD_TOO_LARGE][s->chinese] : why);
        fputs("</span>", s->to);
    }
    caption(s, item);
    return TDM_OK;
}

static bool has_pictures(const tdm_job *job) {
    const int format = job->data.eval.format;
    return tdm_job_has_labels(job) && (format == TDM_DATA_IMAGE_FOLDER || format == TDM_DATA_IDX ||
                                       format == TDM_DATA_CIFAR10 || format == TDM_DATA_GLYPHS);
}

static tdm_status show_all(shots *s, const tdm_config *config) {
    const tdm_job *job = tdm_config_job(config);
    int64_t index[MOST];
    int count = 0;
    const json_t *item;
    size_t i;
    if (!has_pictures(job)) return TDM_OK;
    json_array_foreach(s->worst, i, item) {
        if (count < MOST) index[count++] = json_integer_value(json_object_get(item, "index"));
    }
    tdm_input_info inputs[TDM_SHAPES_MAX];
    tdm_data_use use = job_data_use(config, inputs);
    use.evaluates = true;
    if (use.ndim != 3) use.ndim = 0; /* as the files have them */
    return tdm_data_thumbnails(NULL, &job->data.eval, &use, index, count, SIDE, show, s);
}

void report_pictures(FILE *to, const report_run *run, const json_t *evaluation, bool chinese) {
    shots s = {.to = to, .evaluation = evaluation, .worst = json_object_get(evaluation, "worst"), .chinese = chinese};
    FREED char *path = text_format("%s/config.resolved.yaml", run->dir);
    FREED_BY(job_freed) tdm_config *config = NULL;
    if (json_array_size(s.worst) == 0 || run->config[0] == 0) return;
    tdm_status status = tdm_config_open(&config, NULL, path);
    if (status == TDM_OK) status = tdm_config_check(config);
    if (status == TDM_OK) status = show_all(&s, config);
    if (status == TDM_E_MEMORY) memory_missing();
    if (s.is_open) fputs("</div>\n", to);
    if (status == TDM_OK) return;
    FREED char *text = text_format("%s: %s", report_words[WORD_NO_SHOTS][chinese], tdm_error_message());
    html_element(to, "p", text);
}
