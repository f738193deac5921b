/* Finding ops: tandem's, and those of modules that a graph uses beside them. */
#include "runtime/graph/graph.h"

#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/text/text.h"

enum { MODULES_MAX = 64 };

const tdm_op_def *tdm__op_find(const char *name) {
    for (int i = 0; tdm_builtin_ops[i] != NULL; i++) {
        if (tdm__text_same(tdm_builtin_ops[i]->name, name)) return tdm_builtin_ops[i];
    }
    return NULL;
}

const tdm_op_def *tdm__graph_op(const tdm_graph *graph, const char *name) {
    const tdm_op_def *op = tdm__op_find(name);
    for (size_t i = 0; op == NULL && i < graph->module_count; i++) op = tdm__module_op(graph->modules[i].module, name);
    return op;
}

const tdm_op_def *tdm__module_op(const tdm_module *module, const char *name) {
    const tdm_op_def *const *op = module->ops;
    while (*op != NULL && !tdm__text_same((*op)->name, name)) op++;
    return *op;
}

const tdm_graph_module *tdm__graph_module_of(const tdm_graph *graph, const tdm_op_def *op) {
    for (size_t i = 0; i < graph->module_count; i++)
        for (const tdm_op_def *const *own = graph->modules[i].module->ops; *own != NULL; own++)
            if (*own == op) return &graph->modules[i];
    return NULL;
}

/* ---- what is a usable op ---- */

static bool is_name(const char *name) {
    if (name == NULL || name[0] < 'a' || name[0] > 'z') return false;
    const size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return name[length] == '\0' && length <= 40;
}

/* It is written into YAML without quotes. */
bool tdm__graph_is_file_name(const char *name) {
    static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";
    const size_t length = strspn(name, all);
    return length > 0 && name[length] == '\0' && name[0] != '-' && name[0] != '.';
}

static const tdm_kernel *kernel_of(const tdm_module *module, const char *op) {
    const tdm_kernel *const *kernel = module->kernels;
    while (kernel != NULL && *kernel != NULL && strcmp((*kernel)->op, op) != 0) kernel++;
    return kernel != NULL ? *kernel : NULL;
}

/* Keys that every layer has, and those of `custom` in a file. */
static bool is_taken(const char *key) {
    static const char *const taken[] = {"name", "id", "input", "stage", "module", "op", NULL};
    int i = 0;
    while (taken[i] != NULL && strcmp(taken[i], key) != 0) i++;
    return taken[i] != NULL;
}

static tdm_status check_op(const tdm_graph *graph, const tdm_module *module, const tdm_op_def *op) {
    if (!is_name(op->name))
        TDM_FAIL(TDM_E_USAGE, "module %s: the name of an op is to be of a-z, 0-9 and '_', at most 40, from a letter on",
                 module->name);
    if (strcmp(op->name, "custom") == 0 || strcmp(op->name, "block") == 0 || tdm__graph_op(graph, op->name) != NULL)
        TDM_FAIL(TDM_E_USAGE, "module %s: there is a layer kind '%s' already; give its op another name", module->name,
                 op->name);
    if (tdm__module_op(module, op->name) != op)
        TDM_FAIL(TDM_E_USAGE, "module %s has two ops '%s'", module->name, op->name);
    if (op->infer == NULL || op->min_inputs < 1 || op->max_inputs < op->min_inputs || op->max_inputs > TDM_MAX_INPUTS)
        TDM_FAIL(TDM_E_USAGE, "module %s: op '%s' lacks `infer`, or its numbers of inputs are not 1 to %d",
                 module->name, op->name, TDM_MAX_INPUTS);
    for (const tdm_field *row = op->attrs; row != NULL && row->key != NULL; row++)
        if (is_taken(row->key))
            TDM_FAIL(TDM_E_USAGE, "module %s: op '%s' cannot have an attribute '%s', a key of every layer",
                     module->name, op->name, row->key);
    const tdm_kernel *kernel = kernel_of(module, op->name);
    if ((op->flags & TDM_OP_ALIAS) == 0 &&
        (kernel == NULL || kernel->variant == NULL || kernel->forward == NULL || kernel->backward == NULL))
        TDM_FAIL(TDM_E_USAGE, "module %s: op '%s' has no kernel with a variant, forward and backward", module->name,
                 op->name);
    return TDM_OK;
}

tdm_status tdm__graph_add_module(tdm_graph *graph, const tdm_module *module, const char *file) {
    for (size_t i = 0; i < graph->module_count; i++)
        if (graph->modules[i].module == module) return TDM_OK;
    if (graph->finished) TDM_FAIL(TDM_E_USAGE, "tdm_graph_use: the graph is finished");
    if (file != NULL && !tdm__graph_is_file_name(file))
        TDM_FAIL(TDM_E_USAGE, "the name of a library with layers is to be of letters, digits, '.', '_', '+' and '-'");
    if (graph->module_count == MODULES_MAX) TDM_FAIL(TDM_E_USAGE, "a graph uses at most %d modules", MODULES_MAX);
    if (module->ops == NULL) TDM_FAIL(TDM_E_USAGE, "module %s has no ops", module->name);
    for (const tdm_op_def *const *op = module->ops; *op != NULL; op++) TDM_TRY(check_op(graph, module, *op));
    TDM_TRY(tdm__grow(graph->host, &graph->modules, &graph->module_room, graph->module_count + 1,
                      sizeof(*graph->modules), "modules of a graph"));
    tdm_graph_module added = {.module = module};
    if (file != NULL) TDM_TRY(tdm__zone_text(&graph->zone, &added.file, file));
    graph->modules[graph->module_count++] = added;
    return TDM_OK;
}

tdm_status tdm__graph_own_kernels(const tdm_graph *graph, tdm_zone *zone, const tdm_kernel *const *others,
                                  const tdm_kernel *const **out) {
    size_t count = 0, at = 0;
    const tdm_kernel **list = NULL;
    for (const tdm_kernel *const *k = others; *k != NULL; k++) count++;
    for (size_t i = 0; i < graph->module_count; i++)
        for (const tdm_kernel *const *k = graph->modules[i].module->kernels; k != NULL && *k != NULL; k++) count++;
    TDM_TRY(tdm__zone_new(zone, &list, count + 1, sizeof(*list)));
    for (size_t i = 0; i < graph->module_count; i++)
        for (const tdm_kernel *const *k = graph->modules[i].module->kernels; k != NULL && *k != NULL; k++)
            if (tdm__module_op(graph->modules[i].module, (*k)->op) != NULL) list[at++] = *k;
    for (const tdm_kernel *const *k = others; *k != NULL; k++) list[at++] = *k;
    *out = list;
    return TDM_OK;
}
