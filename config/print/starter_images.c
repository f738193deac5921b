/* Writes a configuration for a folder of pictures, from a look at it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/object.h"
#include "runtime/base/status.h"
#include "runtime/data/pictures/look.h"

/* Samples that training goes through: enough for a net of this size on some hundred to some thousand pictures. */
enum { SAMPLES = 16000, LEAST_EPOCHS = 6, MOST_EPOCHS = 50, BATCH = 32, STAGES = 4 };

typedef struct starter {
    const tdm_pictures_seen *seen;
    const char *folder;
    int64_t side, train, batch, epochs;
    bool chinese;
    tdm_text *out;
} starter;

static int64_t clamp(int64_t value, int64_t least, int64_t most) {
    return value < least ? least : value > most ? most : value;
}

static void choose(starter *s) {
    const int64_t sides[] = {32, 48, 64, 96, 128};
    const int count = sizeof(sides) / sizeof(sides[0]);
    int i = 0;
    while (i < count - 1 && sides[i + 1] <= s->seen->short_side) i++;
    s->side = sides[i];
    s->train = s->seen->pictures - s->seen->pictures / 5;
    s->batch = clamp(s->train / 8, 2, BATCH);
    s->epochs = clamp((SAMPLES + s->train - 1) / s->train, LEAST_EPOCHS, MOST_EPOCHS);
}

static void note(const starter *s, int indent, const char *en, const char *zh) {
    tdm__text_printf(s->out, "%*s# %s\n", indent, "", s->chinese ? zh : en);
}

/* Each stage halves the picture; where it is large, so does its first layer. */
static void put_layers(const starter *s) {
    tdm__text_puts(s->out, "  layers:\n");
    for (int i = 0; i < STAGES; i++) {
        const int out = 16 << i, stride = i == 0 && s->side > 64 ? 2 : 1;
        for (int k = 0; k < 2; k++)
            tdm__text_printf(
                s->out,
                "    - conv2d: {out: %d, kernel: 3, padding: 1, bias: false%s}\n    - batchnorm2d\n    - relu\n", out,
                k == 0 && stride == 2 ? ", stride: 2" : "");
        if (i < STAGES - 1) tdm__text_puts(s->out, "    - maxpool2d: 2\n");
    }
    tdm__text_printf(s->out, "    - adaptive_avgpool2d: 1\n    - flatten\n    - linear: %lld\n",
                     (long long)s->seen->classes);
}

static void put_spec(const starter *s, const char *section) {
    tdm__text_printf(s->out, "  %s: {format: image_folder, path: ", section);
    tdm__text_json_string(s->out, s->folder);
    tdm__text_puts(s->out, ", holdout: 0.2}\n");
}

static void put_data(const starter *s) {
    const double *mean = s->seen->mean, *stdev = s->seen->stdev;
    tdm__text_puts(s->out, "data:\n");
    note(s, 2, "a fifth of the pictures, drawn by chance, is held out to test the model",
         "随机留出五分之一的图片用于测试");
    put_spec(s, "train");
    put_spec(s, "eval");
    tdm__text_puts(s->out, "  drop_last: true\n  transform:\n");
    tdm__text_printf(s->out, "    - random_resized_crop: {size: %lld, scale: [0.5, 1]}\n", (long long)s->side);
    note(s, 4, "remove this where left and right matter, as in text", "左右有别时（如文字）删去下一行");
    tdm__text_printf(s->out,
                     "    - random_horizontal_flip\n    - color_jitter: {brightness: 0.2, contrast: 0.2, saturation: "
                     "0.2}\n    - to_float\n    - normalize: {mean: [%.4f, %.4f, %.4f], std: [%.4f, %.4f, %.4f]}\n",
                     mean[0], mean[1], mean[2], stdev[0], stdev[1], stdev[2]);
}

static void put_all(const starter *s) {
    tdm__text_printf(s->out,
                     s->chinese ? "# %lld 张图片，%lld 类，短边多为 %lld 像素；由 tandem init 写出。\n"
                                : "# %lld pictures of %lld classes, most with a short side of %lld pixels; "
                                  "written by tandem init.\n",
                     (long long)s->seen->pictures, (long long)s->seen->classes, (long long)s->seen->short_side);
    tdm__text_printf(s->out, "tandem: 1\nname: images\nmodel:\n  input: [3, %lld, %lld]\n", (long long)s->side,
                     (long long)s->side);
    put_layers(s);
    put_data(s);
    tdm__text_puts(s->out, "loss: {type: cross_entropy, label_smoothing: 0.05}\n"
                           "optimizer: {type: adamw, lr: 3.0e-3, weight_decay: 0.05}\nschedule: {type: onecycle}\n");
    tdm__text_printf(s->out, "train:\n  epochs: %lld\n  batch: {global: %lld}\n", (long long)s->epochs,
                     (long long)(s->batch / 2 * 2));
    tdm__text_puts(s->out, "parallel:\n");
    note(s, 2, "ddp trains with one process for each of device_ids; the result is the same",
         "ddp 为 device_ids 中每个设备启动一个进程，结果相同");
    tdm__text_puts(s->out, "  mode: single\n  device_ids: [0, 1]\n");
    const int64_t steps =
        s->epochs * (s->train / (s->batch / 2 * 2)); /* the curves of the report get some 100 points */
    tdm__text_printf(s->out, "log: {every: %lld steps}\n", (long long)clamp(steps / 100, 1, 50));
}

/* Paths that the YAML cannot hold. */
static tdm_status check_name(const char *folder) {
    if (!tdm__text_is_utf8(folder, strlen(folder), NULL))
        TDM_FAIL(TDM_E_DATA, "'%s': the name is not UTF-8; rename the folder", folder);
    if (strstr(folder, "${") != NULL)
        TDM_FAIL(TDM_E_DATA, "'%s': ${ in a path stands for a variable; rename the folder", folder);
    return TDM_OK;
}

tdm_status tdm_config_starter_images(const tdm_host *host, const char *folder, tdm_language language, char **out) {
    tdm_pictures_seen seen;
    tdm_text text;
    if (folder == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_starter_images: folder or out is NULL");
    *out = NULL;
    TDM_TRY(tdm__host_take(&host));
    TDM_TRY(tdm__pictures_look(host, folder, &seen));
    char *whole = realpath(folder, NULL); /* the file may be written anywhere */
    if (whole == NULL) TDM_FAIL(errno == ENOMEM ? TDM_E_MEMORY : TDM_E_DATA, "'%s' cannot be found: %m", folder);
    tdm_status status = check_name(whole);
    if (status != TDM_OK) {
        free(whole);
        return status;
    }
    tdm__text_init(&text, host);
    starter s = {.seen = &seen, .folder = whole, .chinese = language == TDM_CHINESE, .out = &text};
    choose(&s);
    put_all(&s);
    free(whole);
    return tdm__text_take_public(&text, out);
}
