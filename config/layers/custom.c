/* A layer of the kind `custom`: {module: libmine.so, op: swish, ...}. Its op comes from a module, which is loaded here. */
#include <string.h>

#include "config/config_private.h"
#include "runtime/base/status.h"
#include "runtime/graph/graph.h"
#include "runtime/module/module.h"

const char *const tdm__custom_help = "a layer of your own from a library: {module: libmine.so, op: swish, ...}";
const char *const tdm__custom_help_zh = "来自动态库的自定义层：{module: libmine.so, op: swish, ...}";

bool tdm__custom_has_key(const char *key) {
    return strcmp(key, "module") == 0 || strcmp(key, "op") == 0;
}

/* NULL after a fault. */
static const char *read_text(tdm_config *config, int index, const tdm_layer *layer, const tdm_yaml_node *keys,
                             const char *key) {
    const tdm_yaml_node *node = keys != NULL && keys->kind == TDM_YAML_MAP ? tdm__yaml_find(keys, key) : NULL;
    if (node != NULL && node->kind == TDM_YAML_SCALAR && !tdm__yaml_is_null(node)) return node->text;
    TDM_FAULT(config, MISSING, node != NULL ? node->at : layer->at, tdm__layer_key(config, index, key),
              "write `- custom: {module: libmine.so, op: swish}`", "a custom layer needs the key `%s`: %s", key,
              key[0] == 'm' ? "the file of its library" : "the name of its op there");
    return NULL;
}

static void unknown_op(tdm_config *config, int index, const tdm_layer *layer, const char *op) {
    const char *names[64];
    int count = 0;
    for (const tdm_op_def *const *own = layer->module->ops; *own != NULL && count < 64; own++)
        names[count++] = (*own)->name;
    const char *hint = tdm__hint_nearest(config, op, names, count);
    if (hint[0] == '\0') hint = TDM_WORDS(config, "its ops: %s", tdm__fault_list_of(&config->faults, names, count));
    TDM_FAULT(config, LAYER, layer->at, tdm__layer_key(config, index, "op"), hint, "%s has no op '%s'", layer->file,
              op);
}

bool tdm__custom_read(tdm_config *config, int index, const tdm_yaml_node *keys, tdm_layer *layer) {
    const char *file = read_text(config, index, layer, keys, "module");
    const char *op = file != NULL ? read_text(config, index, layer, keys, "op") : NULL;
    if (op == NULL) return false;
    const tdm_status status = tdm__own_ops_open(&layer->module, file);
    if (status == TDM_E_MEMORY) config->faults.status = status;
    if (status != TDM_OK) {
        TDM_FAULT(config, LAYER, layer->at, tdm__layer_key(config, index, "module"), "", "%s",
                  tdm_error_last()->message);
        return false;
    }
    layer->file = file;
    layer->op = tdm__module_op(layer->module, op);
    if (layer->op == NULL) unknown_op(config, index, layer, op);
    return layer->op != NULL;
}
