/* Writes a configuration for the network of an ONNX file, on data that are given or on numbers drawn by chance. */
#include <string.h>

#include "config/print/starter_net.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"

static tdm_status starter_alone(const tdm_starter_net *net, const tdm_host *host, tdm_language language, char **out) {
    tdm_text text;
    const int64_t outputs = tdm__starter_net_outputs(net);
    const bool has_classes = outputs > 1 && net->graph->values[net->graph->output].shape.ndim == 1;
    tdm__text_init(&text, host);
    tdm_starter s = {.out = &text,
                     .chinese = language == TDM_CHINESE,
                     .net = net,
                     .class_loss = tdm__starter_net_loss(net),
                     .batch = 16,
                     .epochs = 2};
    tdm__starter_note(&s, 0, "the network of an ONNX file, on numbers drawn by chance; written by tandem init.",
                      "ONNX 文件中的网络，数据为随机数；由 tandem init 写出。");
    tdm__text_puts(&text, "tandem: 1\nname: onnx\n");
    tdm_status status = tdm__starter_put_net(&s, outputs);
    tdm__text_puts(&text, "data:\n");
    tdm__starter_note(&s, 2, "for data of your own: tandem init --onnx FILE --task images|series|table --data PATH",
                      "使用自己的数据：tandem init --onnx 文件 --task images|series|table --data 路径");
    for (int i = 0; i < 2; i++) {
        tdm__text_printf(&text, "  %s: {format: synthetic, samples: 64", i == 0 ? "train" : "eval");
        if (has_classes) tdm__text_printf(&text, ", classes: %lld", (long long)outputs);
        tdm__text_puts(&text, "}\n");
    }
    tdm__starter_put_learning(&s, has_classes);
    if (status == TDM_OK) return tdm__text_take_public(&text, out);
    tdm__text_deinit(&text);
    return status;
}

tdm_status tdm_config_starter_onnx(const tdm_host *host, const char *path, const char *task, const char *data,
                                   const char *target, tdm_language language, char **out) {
    tdm_starter_net net;
    if (path == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_starter_onnx: path or out is NULL");
    *out = NULL;
    TDM_EXTRA(TEXTS);
    TDM_EXTRA(ONNX);
    if ((task != NULL) != (data != NULL)) TDM_FAIL(TDM_E_USAGE, "tdm_config_starter_onnx: task and data go together");
    TDM_TRY(tdm__host_take(&host));
    const bool images = task != NULL && strcmp(task, "images") == 0, table = task != NULL && strcmp(task, "table") == 0;
    if (task != NULL && !images && !table && strcmp(task, "series") != 0)
        TDM_FAIL(TDM_E_USAGE, "with an ONNX file the task is images, table or series, got '%s'", task);
    TDM_TRY(tdm__starter_net_open(&net, host, path));
    const tdm_status status = task == NULL ? starter_alone(&net, host, language, out)
                              : images     ? tdm__starter_images(host, data, &net, language, out)
                              : table      ? tdm__starter_table(host, data, target, &net, language, out)
                                           : tdm__starter_series(host, data, target, &net, language, out);
    tdm__starter_net_close(&net);
    return status;
}
