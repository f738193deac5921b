/* From the value of a pickle to the list of its tensors. */
#include <stdio.h>
#include <string.h>

#include "runtime/ckpt/torch/pickle.h"

typedef struct walk {
    tdm_pickle *p;
    tdm_torch_list *out;
    size_t visits; /* a dictionary may contain itself */
} walk;

static bool add_tensor(walk *w, const char *name, const tdm_pickle_value *value) {
    tdm_torch_list *out = w->out;
    const tdm_pickle_value *storage = &w->p->value[value->item[0]], *size = &w->p->value[value->item[1]],
                           *stride = &w->p->value[value->item[2]];
    if (out->count == TDM_ST_MAX_TENSORS)
        return tdm__pickle_fail(w->p, "it has more than %d tensors", TDM_ST_MAX_TENSORS);
    if (tdm__grow(out->host, &out->tensor, &out->room, out->count + 1, sizeof(*out->tensor), "tensors") != TDM_OK)
        return tdm__pickle_fail(w->p, "out of memory for its tensors");
    tdm_torch_tensor *tensor = &out->tensor[out->count++];
    memset(tensor, 0, sizeof(*tensor));
    snprintf(tensor->name, sizeof(tensor->name), "%s", name);
    snprintf(tensor->key, sizeof(tensor->key), "%s", storage->text);
    snprintf(tensor->dtype, sizeof(tensor->dtype), "%s", tdm__torch_types[storage->type].dtype);
    tensor->numel = storage->number;
    tensor->offset = value->number;
    tensor->ndim = (int)size->count;
    for (int i = 0; i < tensor->ndim; i++) {
        tensor->dim[i] = w->p->value[size->item[i]].number;
        tensor->stride[i] = w->p->value[stride->item[i]].number;
    }
    return true;
}

/* Tensors of dictionaries within have names with dots. */
static bool add_dict(walk *w, const char *prefix, const tdm_pickle_value *dict, int depth) {
    char name[TDM_ST_MAX_NAME + 1];
    if (depth > TDM_TORCH_DEPTH)
        return tdm__pickle_fail(w->p, "its dictionaries are nested deeper than %d", TDM_TORCH_DEPTH);
    for (size_t i = 0; i + 1 < dict->count; i += 2) {
        const tdm_pickle_value *key = &w->p->value[dict->item[i]], *value = &w->p->value[dict->item[i + 1]];
        if (++w->visits > TDM_TORCH_VALUES) return tdm__pickle_fail(w->p, "its dictionaries contain themselves");
        if (key->kind != TDM_PICKLE_TEXT || (value->kind != TDM_PICKLE_TENSOR && value->kind != TDM_PICKLE_DICT)) {
            w->out->left_out++;
            continue;
        }
        const int length = snprintf(name, sizeof(name), "%s%s%s", prefix, prefix[0] != '\0' ? "." : "", key->text);
        if (length < 1 || length > TDM_ST_MAX_NAME)
            return tdm__pickle_fail(w->p, "a name in it has more than %d bytes", TDM_ST_MAX_NAME);
        if (!(value->kind == TDM_PICKLE_TENSOR ? add_tensor(w, name, value) : add_dict(w, name, value, depth + 1)))
            return false;
    }
    return true;
}

/* ---- which dictionary ---- */

static const tdm_pickle_value *entry(const tdm_pickle *p, const tdm_pickle_value *dict, const char *key) {
    for (size_t i = 0; i + 1 < dict->count; i += 2) {
        const tdm_pickle_value *name = &p->value[dict->item[i]], *value = &p->value[dict->item[i + 1]];
        if (name->kind == TDM_PICKLE_TEXT && value->kind == TDM_PICKLE_DICT && strcmp(name->text, key) == 0)
            return value;
    }
    return NULL;
}

static bool has_tensors(const tdm_pickle *p, const tdm_pickle_value *dict) {
    for (size_t i = 1; i < dict->count; i += 2)
        if (p->value[dict->item[i]].kind == TDM_PICKLE_TENSOR) return true;
    return false;
}

static bool refuse_parts(tdm_pickle *p, const tdm_pickle_value *root) {
    char parts[160] = "", shown[TDM_ST_PRINTABLE];
    for (size_t i = 0; i + 1 < root->count && strlen(parts) < 60; i += 2) {
        const tdm_pickle_value *name = &p->value[root->item[i]];
        if (name->kind != TDM_PICKLE_TEXT || p->value[root->item[i + 1]].kind != TDM_PICKLE_DICT) continue;
        snprintf(parts + strlen(parts), sizeof(parts) - strlen(parts), "%s'%s'", parts[0] != '\0' ? ", " : "",
                 tdm__printable(shown, name->text));
    }
    if (parts[0] == '\0') return tdm__pickle_fail(p, "it has no dictionary of tensors");
    return tdm__pickle_fail(
        p, "it has no dictionary 'state_dict' or 'model' of tensors; say which with `tandem ckpt convert --key`: %s",
        parts);
}

static bool choose(tdm_pickle *p, const tdm_pickle_value *root, const char *key, const tdm_pickle_value **out) {
    char shown[TDM_ST_PRINTABLE];
    if (root->kind != TDM_PICKLE_DICT) return tdm__pickle_fail(p, "it holds no dictionary of tensors");
    *out = root;
    if (key != NULL) {
        *out = entry(p, root, key);
        return *out != NULL || tdm__pickle_fail(p, "it has no dictionary '%s'", tdm__printable(shown, key));
    }
    if (has_tensors(p, root)) return true;
    *out = entry(p, root, "state_dict");
    if (*out == NULL) *out = entry(p, root, "model");
    return *out != NULL || refuse_parts(p, root);
}

static bool read_all(tdm_pickle *p, const char *key, tdm_torch_list *out) {
    const tdm_pickle_value *dict = NULL;
    int root = -1;
    walk w = {.p = p, .out = out};
    return tdm__pickle_run(p, &root) && choose(p, &p->value[root], key, &dict) && add_dict(&w, "", dict, 0);
}

bool tdm__pickle_read(tdm_torch_list *out, const uint8_t *bytes, size_t count, const char *key,
                      char why[TDM_TORCH_WHY]) {
    tdm_pickle p = {.host = out->host, .at = bytes, .end = bytes + count, .why = why};
    tdm__zone_init(&p.zone, out->host);
    const bool good = read_all(&p, key, out);
    tdm__zone_deinit(&p.zone);
    tdm__delete(out->host, p.value);
    tdm__delete(out->host, p.stack);
    tdm__delete(out->host, p.memo);
    tdm__delete(out->host, p.mark);
    return good;
}
