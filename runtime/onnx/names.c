/* Names of layers: those that their parameters have in PyTorch, where the file tells them. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/base/text/text.h"
#include "runtime/onnx/import.h"

enum { MOST_NAME = 180, MOST_PARTS = 32 };

/* ---- where a name may come from ---- */

/* The constant of a parameter is called by its name in PyTorch: "layer1.0.conv1.weight". */
static bool from_param(const tdm_onnx_draft *draft, int index, tdm_text *out) {
    const tdm_graph_node *node = &draft->graph->nodes[index];
    for (int i = 0; i < node->param_count; i++) {
        const char *value = draft->made[index].found.param[i].value;
        const char *suffix = draft->graph->params[node->first_param + i].def.suffix;
        const size_t length = value != NULL ? strlen(value) : 0, end = strlen(suffix) + 1;
        if (length <= end || value[length - end] != '.' || strcmp(value + length - end + 1, suffix) != 0) continue;
        tdm__text_add(out, value, length - end);
        return true;
    }
    return false;
}

/* "/features/features.1/conv/conv.0/Conv": the modules around the node, of which those in a Sequential have the name of
 * that in front; then the node's own. The name is "features.1.conv.0". */
static bool from_path(const char *path, tdm_text *out) {
    const char *part[MOST_PARTS];
    size_t length[MOST_PARTS];
    int count = 0;
    for (const char *at = path; *at == '/' && strchr(at + 1, '/') != NULL && count < MOST_PARTS;
         at += 1 + length[count++]) {
        part[count] = at + 1;
        length[count] = strcspn(at + 1, "/");
        const bool goes_on = count > 0 && length[count] > length[count - 1] && part[count][length[count - 1]] == '.' &&
                             strncmp(part[count], part[count - 1], length[count - 1]) == 0;
        if (goes_on) part[count - 1] = NULL;
    }
    for (int i = 0; i < count; i++) {
        if (part[i] == NULL) continue;
        if (out->length > 0) tdm__text_puts(out, ".");
        tdm__text_add(out, part[i], length[i]);
    }
    return count > 0;
}

/* "['', 'layer1', 'layer1.0', 'layer1.0.conv1', 'conv2d']": the last but one. */
static bool from_scope(const char *scope, tdm_text *out) {
    const char *last = strrchr(scope, ','), *end = last, *begin;
    if (last == NULL || last == scope || end[-1] != '\'') return false;
    for (begin = end - 1; begin > scope && begin[-1] != '\''; begin--) continue;
    if (begin <= scope || begin >= end - 1) return false;
    tdm__text_add(out, begin, (size_t)(end - 1 - begin));
    return true;
}

static bool from_node(const tdm_onnx_draft *draft, const tdm_onnx_node *named, tdm_text *out) {
    const char *scope = ((const tdm_onnx_file_node *)(const void *)named)->scope;
    if (scope != NULL) return from_scope(scope, out);
    if (named->name[0] == '/') return from_path(named->name, out);
    if (strcmp(draft->file->producer, "tandem") != 0) return false;
    tdm__text_add(out, named->name,
                  strcspn(named->name, "/")); /* of several nodes all but the last have a number behind it */
    return true;
}

/* ---- names that tandem takes ---- */

/* Those that a YAML file may have, too; without signs that need quotes there. */
static bool is_name(const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", digits[] = "0123456789";
    const size_t length = strlen(name), number = strspn(name, digits);
    size_t good = 0;
    while (good < length && (strchr(letters, name[good]) != NULL || strchr(digits, name[good]) != NULL ||
                             strchr("_.-", name[good]) != NULL))
        good++;
    return length > 0 && length <= MOST_NAME && good == length && name[length - 1] != '.' && name[0] != '.' &&
           name[0] != '-' && strstr(name, "..") == NULL && (number == 0 || number == length || name[number] == '.');
}

/* A number is the name of the layer with that index alone; another layer gets a word in front of it. A name that is
 * taken gets a number behind it: after a few tries multiples of the layer's index, so that of many layers with one name
 * each does not try those of all others. */
static void settle(const tdm_graph *graph, int index, tdm_text *name) {
    enum { TRIES = 8 };
    char number[24], whole[MOST_NAME + 32];
    snprintf(number, sizeof(number), "%d", index);
    if (strspn(name->data, "0123456789") == name->length && strcmp(name->data, number) != 0)
        snprintf(whole, sizeof(whole), "layer%s", name->data);
    else
        snprintf(whole, sizeof(whole), "%s", name->data);
    const size_t length = strlen(whole);
    for (int i = 2; tdm__names_find(&graph->names, whole) >= 0 || tdm__graph_find_input(graph, whole) >= 0; i++)
        snprintf(whole + length, sizeof(whole) - length, "_%lld",
                 i <= TRIES ? (long long)i : (long long)(i - TRIES) * (index + TRIES));
    name->length = 0;
    tdm__text_puts(name, whole);
}

static bool is_good(const tdm_text *name) {
    return !name->failed && name->data != NULL && is_name(name->data);
}

/* The name of a constant, but that of the node if another layer has it: several layers may share a constant. */
static bool find_name(const tdm_onnx_draft *draft, int index, const tdm_graph *graph, tdm_text *out) {
    tdm_text other;
    const bool found = from_param(draft, index, out) && is_good(out);
    if (found && tdm__names_find(&graph->names, out->data) < 0) return true;
    tdm__text_init(&other, draft->file->host);
    const bool better = from_node(draft, draft->made[index].named, &other) && is_good(&other);
    if (better) {
        out->length = 0;
        tdm__text_puts(out, other.data);
    }
    out->failed = out->failed || other.failed;
    tdm__text_deinit(&other);
    return found || better;
}

tdm_status tdm__onnx_layer_name(const tdm_onnx_draft *draft, int index, const tdm_graph *graph, const char **out) {
    tdm_text name;
    tdm_status status = TDM_OK;
    *out = NULL;
    if (draft->graph->nodes[index].param_count == 0) return TDM_OK;
    tdm__text_init(&name, draft->file->host);
    const bool found = find_name(draft, index, graph, &name);
    if (found && !name.failed) settle(graph, (int)graph->node_count, &name);
    if (name.failed)
        status = tdm__fail(TDM_E_MEMORY, __FILE__, __LINE__, NULL, "out of memory for an ONNX file");
    else if (found)
        status = tdm__zone_text(&draft->file->zone, out, name.data);
    tdm__text_deinit(&name);
    return status;
}
