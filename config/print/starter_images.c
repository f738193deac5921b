/* Writes a configuration for a folder of pictures, from a look at it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_private.h"
#include "config/print/starter_net.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/data/pictures/look.h"

/* Samples that training goes through: enough for a net of this size on some hundred to some thousand pictures. */
static const tdm_starter_limits limits = {.samples = 16000, .least_epochs = 6, .most_epochs = 50, .batch = 32};
enum { LEVELS = 4 };

typedef struct starter {
    tdm_starter common;
    const tdm_pictures_seen *seen;
    const char *folder;
    int64_t height, width;
} starter;

static tdm_status choose_net(starter *s) {
    const tdm_shape *input = &s->common.net->graph->sample;
    if (input->ndim == 3) {
        s->height = input->dim[1];
        s->width = input->dim[2];
    }
    return tdm__starter_net_check(s->common.net, 3, (const int64_t[]){3, s->height, s->width}, s->seen->classes);
}

static tdm_status choose(starter *s) {
    const int64_t sides[] = {32, 48, 64, 96, 128};
    const int count = sizeof(sides) / sizeof(sides[0]);
    int i = 0;
    while (i < count - 1 && sides[i + 1] <= s->seen->short_side) i++;
    s->height = s->width = sides[i];
    tdm__starter_choose(&s->common, s->seen->pictures, &limits);
    return s->common.net != NULL ? choose_net(s) : TDM_OK;
}

/* Each level halves the picture; where it is large, so does its first layer. */
static tdm_status put_model(const starter *s) {
    if (s->common.net != NULL) return tdm__starter_put_net(&s->common, s->seen->classes);
    tdm__text_printf(s->common.out, "model:\n  input: [3, %lld, %lld]\n  layers:\n", (long long)s->height,
                     (long long)s->width);
    for (int i = 0; i < LEVELS; i++) {
        const int out = 16 << i, stride = i == 0 && s->width > 64 ? 2 : 1;
        for (int k = 0; k < 2; k++)
            tdm__text_printf(
                s->common.out,
                "    - conv2d: {out: %d, kernel: 3, padding: 1, bias: false%s}\n    - batchnorm2d\n    - relu\n", out,
                k == 0 && stride == 2 ? ", stride: 2" : "");
        if (i < LEVELS - 1) tdm__text_puts(s->common.out, "    - maxpool2d: 2\n");
    }
    tdm__text_printf(s->common.out, "    - adaptive_avgpool2d: 1\n    - flatten\n    - linear: %lld\n",
                     (long long)s->seen->classes);
    return TDM_OK;
}

static void put_spec(const starter *s, const char *section) {
    tdm__text_printf(s->common.out, "  %s: {format: image_folder, path: ", section);
    tdm__text_json_string(s->common.out, s->folder);
    tdm__text_puts(s->common.out, ", holdout: 0.2}\n");
}

static void put_data(const starter *s) {
    static const double known_mean[] = {0.485, 0.456, 0.406}, known_stdev[] = {0.229, 0.224, 0.225};
    const bool is_known = s->common.net != NULL;
    const double *mean = is_known ? known_mean : s->seen->mean, *stdev = is_known ? known_stdev : s->seen->stdev;
    tdm__text_puts(s->common.out, "data:\n");
    tdm__starter_note(&s->common, 2, "a fifth of the pictures, drawn by chance, is held out to test the model",
                      "随机留出五分之一的图片用于测试");
    put_spec(s, "train");
    put_spec(s, "eval");
    tdm__text_puts(s->common.out, "  drop_last: true\n  transform:\n");
    tdm__text_puts(s->common.out, "    - random_resized_crop: {size: ");
    tdm__text_printf(s->common.out, s->height == s->width ? "%lld" : "[%lld, %lld]", (long long)s->height,
                     (long long)s->width);
    tdm__text_puts(s->common.out, ", scale: [0.5, 1]}\n");
    tdm__starter_note(&s->common, 4, "remove this where left and right matter, as in text",
                      "左右有别时（如文字）删去下一行");
    tdm__text_puts(s->common.out,
                   "    - random_horizontal_flip\n    - color_jitter: {brightness: 0.2, contrast: 0.2, saturation: "
                   "0.2}\n    - to_float\n");
    if (is_known)
        tdm__starter_note(&s->common, 4, "those of torchvision's networks; write what this one was trained with",
                          "torchvision 网络所用的值；请改为该网络训练时的值");
    tdm__text_printf(s->common.out, "    - normalize: {mean: [%.4f, %.4f, %.4f], std: [%.4f, %.4f, %.4f]}\n", mean[0],
                     mean[1], mean[2], stdev[0], stdev[1], stdev[2]);
}

static tdm_status put_all(const starter *s) {
    tdm__text_printf(s->common.out,
                     s->common.chinese ? "# %lld 张图片，%lld 类，短边多为 %lld 像素；由 tandem init 写出。\n"
                                       : "# %lld pictures of %lld classes, most with a short side of %lld pixels; "
                                         "written by tandem init.\n",
                     (long long)s->seen->pictures, (long long)s->seen->classes, (long long)s->seen->short_side);
    tdm__text_puts(s->common.out, "tandem: 1\nname: images\n");
    TDM_TRY(put_model(s));
    put_data(s);
    if (s->common.net != NULL) {
        tdm__starter_put_learning(&s->common, true);
    } else {
        tdm__text_puts(s->common.out,
                       "loss: {type: cross_entropy, label_smoothing: 0.05}\n"
                       "optimizer: {type: adamw, lr: 3.0e-3, weight_decay: 0.05}\nschedule: {type: onecycle}\n");
        tdm__starter_put_training(&s->common);
    }
    tdm__starter_put_log(&s->common);
    return TDM_OK;
}

static tdm_status write(starter *s, tdm_text *text, char **out) {
    TDM_TRY(tdm__starter_check_path(s->folder, "folder"));
    TDM_TRY(choose(s));
    TDM_TRY(put_all(s));
    return tdm__text_take_public(text, out);
}

tdm_status tdm__starter_images(const tdm_host *host, const char *folder, const tdm_starter_net *net,
                               tdm_language language, char **out) {
    tdm_pictures_seen seen;
    tdm_text text;
    TDM_TRY(tdm__pictures_look(host, folder, &seen));
    char *whole = realpath(folder, NULL); /* the file may be written anywhere */
    if (whole == NULL) TDM_FAIL(errno == ENOMEM ? TDM_E_MEMORY : TDM_E_DATA, "'%s' cannot be found: %m", folder);
    tdm__text_init(&text, host);
    starter s = {
        .seen = &seen,
        .folder = whole,
        .common = {
            .chinese = language == TDM_CHINESE, .out = &text, .net = net, .class_loss = tdm__starter_net_loss(net)}};
    const tdm_status status = write(&s, &text, out);
    tdm__text_deinit(&text);
    free(whole);
    return status;
}

tdm_status tdm_config_starter_images(const tdm_host *host, const char *folder, tdm_language language, char **out) {
    if (folder == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_starter_images: folder or out is NULL");
    *out = NULL;
    TDM_EXTRA(TEXTS);
    TDM_TRY(tdm__host_take(&host));
    return tdm__starter_images(host, folder, NULL, language, out);
}
