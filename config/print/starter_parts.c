#include "config/print/starter_parts.h"

#include <string.h>

#include "runtime/base/status.h"

int64_t tdm__starter_clamp(int64_t value, int64_t least, int64_t most) {
    return value < least ? least : value > most ? most : value;
}

void tdm__starter_choose(tdm_starter *s, int64_t samples, const tdm_starter_limits *limits) {
    s->train = samples - samples / 5;
    s->batch = tdm__starter_clamp(s->train / 8, 2, limits->batch) / 2 * 2;
    s->epochs =
        tdm__starter_clamp((limits->samples + s->train - 1) / s->train, limits->least_epochs, limits->most_epochs);
}

void tdm__starter_note(const tdm_starter *s, int indent, const char *en, const char *zh) {
    tdm__text_printf(s->out, "%*s# %s\n", indent, "", s->chinese ? zh : en);
}

void tdm__starter_put_training(const tdm_starter *s) {
    tdm__text_printf(s->out, "train:\n  epochs: %lld\n  batch: {global: %lld}\nparallel:\n", (long long)s->epochs,
                     (long long)s->batch);
    tdm__starter_note(s, 2, "ddp trains with one process for each of device_ids; the result is the same",
                      "ddp 为 device_ids 中每个设备启动一个进程，结果相同");
    tdm__text_puts(s->out, "  mode: single\n  device_ids: [0, 1]\n");
}

void tdm__starter_put_learning(const tdm_starter *s, bool has_classes) {
    const char *loss = has_classes ? "cross_entropy" : "mse";
    tdm__text_printf(s->out,
                     "loss: %s\noptimizer: {type: adamw, lr: %s, weight_decay: 0.01}\nschedule: {type: onecycle}\n",
                     has_classes && s->class_loss != NULL ? s->class_loss : loss, s->net != NULL ? "3.0e-4" : "3.0e-3");
    tdm__starter_put_training(s);
}

void tdm__starter_put_log(const tdm_starter *s) {
    const int64_t steps = s->epochs * (s->train / s->batch);
    tdm__text_printf(s->out, "log: {every: %lld steps}\n", (long long)tdm__starter_clamp(steps / 100, 1, 50));
}

tdm_status tdm__starter_check_path(const char *path, const char *what) {
    if (!tdm__text_is_utf8(path, strlen(path), NULL))
        TDM_FAIL(TDM_E_DATA, "'%s': the name is not UTF-8; rename the %s", path, what);
    if (strstr(path, "${") != NULL)
        TDM_FAIL(TDM_E_DATA, "'%s': ${ in a path stands for a variable; rename the %s", path, what);
    return TDM_OK;
}
