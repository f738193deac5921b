/* What ops ask about an ONNX file. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/base/text/text.h"
#include "runtime/onnx/fields.h"
#include "runtime/onnx/import.h"

static tdm_onnx_draft *draft_of(tdm_onnx_reader *from) {
    return (tdm_onnx_draft *)(void *)from;
}

static const tdm_onnx_file_node *file_node(const tdm_onnx_node *node) {
    return (const tdm_onnx_file_node *)(const void *)node;
}

/* ---- values ---- */

static const tdm_onnx_node *producer(tdm_onnx_reader *from, const char *value) {
    const tdm_onnx_file *file = draft_of(from)->file;
    const int index = tdm__names_find(&file->makers, value);
    return index >= 0 ? &file->node[index].base : NULL;
}

const tdm_onnx_value *tdm__onnx_value_of(const tdm_onnx_draft *draft, const char *name) {
    const int index = tdm__names_find(&draft->values, name);
    return index >= 0 ? &draft->value[index] : NULL;
}

static const tdm_onnx_node *maker(tdm_onnx_reader *from, const char *value) {
    const tdm_onnx_value *found = tdm__onnx_value_of(draft_of(from), value);
    return found != NULL ? found->maker : NULL;
}

static bool view(tdm_onnx_reader *from, const char *value, tdm_onnx_view *out) {
    const tdm_onnx_value *found = tdm__onnx_value_of(draft_of(from), value);
    if (found != NULL) *out = found->view;
    return found != NULL;
}

bool tdm__onnx_view_is_plain(const tdm_onnx_view *v) {
    bool plain = v->ndim == v->shape.ndim + 1;
    for (int i = 0; plain && i < v->ndim; i++) plain = v->axis[i] == i + TDM_ONNX_BATCH;
    return plain;
}

static bool plain(tdm_onnx_reader *from, const char *value, tdm_shape *out) {
    const tdm_onnx_value *found = tdm__onnx_value_of(draft_of(from), value);
    if (found == NULL || !tdm__onnx_view_is_plain(&found->view)) return false;
    *out = found->view.shape;
    return true;
}

static int64_t batch(tdm_onnx_reader *from) {
    return draft_of(from)->batch;
}

static int opset(tdm_onnx_reader *from) {
    return (int)draft_of(from)->file->opset;
}

static bool is_output(tdm_onnx_reader *from, const char *value) {
    const tdm_onnx_file *file = draft_of(from)->file;
    bool is = false;
    for (size_t i = 0; i < file->output_count; i++) is = is || strcmp(file->output[i].name, value) == 0;
    return is;
}

/* ---- constants ---- */

tdm_onnx_tensor *tdm__onnx_constant_of(const tdm_onnx_draft *draft, const char *name) {
    enum { MOST_PASSED = 8 };
    const tdm_onnx_file *file = draft->file;
    for (int i = 0; i < MOST_PASSED; i++) {
        const int tensor = tdm__names_find(&file->tensors, name), node = tdm__names_find(&file->makers, name);
        if (tensor >= 0) return &file->tensor[tensor];
        if (node < 0) return NULL;
        if (draft->constant[node] != NULL) return draft->constant[node];
        const tdm_onnx_node *passes = &file->node[node].base;
        if (strcmp(passes->op, "Identity") != 0 || passes->input_count != 1) return NULL;
        name = passes->input[0];
    }
    return NULL;
}

static bool constant(tdm_onnx_reader *from, const char *value, tdm_onnx_constant *out) {
    const tdm_onnx_tensor *tensor = tdm__onnx_constant_of(draft_of(from), value);
    if (tensor == NULL || tensor->ndim > TDM_MAX_DIMS) return false;
    *out = (tdm_onnx_constant){.type = tensor->type, .shape = {.ndim = tensor->ndim}, .count = tensor->count};
    memcpy(out->shape.dim, tensor->dim, (size_t)tensor->ndim * sizeof(*tensor->dim));
    return true;
}

/* A constant of few numbers. */
static const tdm_onnx_tensor *few(tdm_onnx_reader *from, const char *value, int most) {
    const tdm_onnx_draft *draft = draft_of(from);
    const tdm_onnx_tensor *tensor = tdm__onnx_constant_of(draft, value);
    if (draft->status != TDM_OK || tensor == NULL || tensor->count > most || tensor->count > TDM_ONNX_FEW) return NULL;
    return tdm__onnx_bytes_of(tensor->type) > 0 ? tensor : NULL;
}

static int integers(tdm_onnx_reader *from, const char *value, int most, int64_t *out) {
    const tdm_onnx_tensor *tensor = few(from, value, most);
    if (tensor == NULL || (tensor->type != TDM_ONNX_INT64 && tensor->type != TDM_ONNX_INT32)) return -1;
    draft_of(from)->status = tdm__onnx_integers(tensor, tensor->count, out);
    return draft_of(from)->status == TDM_OK ? (int)tensor->count : -1;
}

static int numbers(tdm_onnx_reader *from, const char *value, int most, double *out) {
    const tdm_onnx_tensor *tensor = few(from, value, most);
    if (tensor == NULL) return -1;
    draft_of(from)->status = tdm__onnx_numbers(tensor, tensor->count, out);
    return draft_of(from)->status == TDM_OK ? (int)tensor->count : -1;
}

static tdm_status look_at(tdm_onnx_tensor *tensor) {
    const int64_t most = 1 << 20; /* a longer one is no constant that a node needs beside its parameters */
    double block[TDM_ONNX_FEW];
    tdm_onnx_tensor part = *tensor;
    tensor->look = TDM_ONNX_MIXED;
    if (tensor->count < 1 || tensor->count > most || tdm__onnx_bytes_of(tensor->type) == 0 || tensor->is_varints ||
        (tensor->items != NULL && tensor->count > TDM_ONNX_FEW))
        return TDM_OK;
    for (int64_t left = tensor->count; left > 0; left -= TDM_ONNX_FEW) {
        const int64_t count = left < TDM_ONNX_FEW ? left : TDM_ONNX_FEW;
        TDM_TRY(tdm__onnx_numbers(&part, count, block));
        if (left == tensor->count) tensor->same = block[0];
        for (int64_t i = 0; i < count; i++)
            if (!(block[i] == tensor->same)) return TDM_OK;
        part.span.at += (uint64_t)count * (uint64_t)tdm__onnx_bytes_of(part.type);
        if (part.items != NULL) part.items += count;
    }
    tensor->look = TDM_ONNX_SAME;
    return TDM_OK;
}

static bool all(tdm_onnx_reader *from, const char *value, double number) {
    tdm_onnx_draft *draft = draft_of(from);
    tdm_onnx_tensor *tensor = tdm__onnx_constant_of(draft, value);
    if (tensor == NULL || draft->status != TDM_OK) return false;
    if (tensor->look == TDM_ONNX_UNSEEN) draft->status = look_at(tensor);
    return draft->status == TDM_OK && tensor->look == TDM_ONNX_SAME && tensor->same == number;
}

/* ---- attributes of nodes ---- */

static const tdm_onnx_attribute *find(const tdm_onnx_node *node, const char *name, int type) {
    const tdm_onnx_file_node *of = file_node(node);
    for (int i = 0; i < of->attribute_count; i++)
        if (of->attribute[i].type == type && strcmp(of->attribute[i].name, name) == 0) return &of->attribute[i];
    return NULL;
}

static int64_t integer(tdm_onnx_reader *from, const tdm_onnx_node *node, const char *name, int64_t initial) {
    (void)from;
    const tdm_onnx_attribute *found = find(node, name, TYPE_INT);
    return found != NULL ? found->i : initial;
}

static int list(tdm_onnx_reader *from, const tdm_onnx_node *node, const char *name, int most, int64_t *out) {
    (void)from;
    const tdm_onnx_attribute *found = find(node, name, TYPE_INTS);
    if (found == NULL || found->count > most) return -1;
    if (found->count > 0) memcpy(out, found->ints, (size_t)found->count * sizeof(*out));
    return found->count;
}

/* Of a tensor of one number, too. */
static double number(tdm_onnx_reader *from, const tdm_onnx_node *node, const char *name, double initial) {
    tdm_onnx_draft *draft = draft_of(from);
    const tdm_onnx_attribute *found = find(node, name, TYPE_FLOAT), *tensor = find(node, name, TYPE_TENSOR_OF);
    double value = initial;
    if (found != NULL) return (double)found->f;
    if (tensor == NULL || tensor->t == NULL || tensor->t->count != 1 || tdm__onnx_bytes_of(tensor->t->type) == 0)
        return initial;
    if (draft->status == TDM_OK) draft->status = tdm__onnx_numbers(tensor->t, 1, &value);
    return value;
}

static const char *word(tdm_onnx_reader *from, const tdm_onnx_node *node, const char *name, const char *initial) {
    (void)from;
    const tdm_onnx_attribute *found = find(node, name, TYPE_STRING);
    return found != NULL && found->s != NULL ? found->s : initial;
}

static bool has(tdm_onnx_reader *from, const tdm_onnx_node *node, const char *name) {
    const tdm_onnx_file_node *of = file_node(node);
    (void)from;
    for (int i = 0; i < of->attribute_count; i++)
        if (strcmp(of->attribute[i].name, name) == 0) return true;
    return false;
}

static int words(tdm_onnx_reader *from, const tdm_onnx_node *node, const char *name, int most, const char **out) {
    (void)from;
    const tdm_onnx_attribute *found = find(node, name, TYPE_STRINGS);
    if (found == NULL || found->count > most) return -1;
    for (int i = 0; i < found->count; i++) out[i] = found->texts[i];
    return found->count;
}

/* ---- attributes of the layer ---- */

static void set(tdm_onnx_draft *draft, const char *key, tdm_text *text) {
    const char *kept = NULL;
    if (text->failed)
        draft->status = tdm__fail(TDM_E_MEMORY, __FILE__, __LINE__, NULL, "out of memory for an ONNX file");
    if (draft->status == TDM_OK) draft->status = tdm__zone_text(&draft->file->zone, &kept, text->data);
    tdm__text_deinit(text);
    if (draft->status == TDM_OK && draft->attr_count < TDM_ONNX_ATTRS)
        draft->attr[draft->attr_count++] = (tdm_attr){.key = key, .text = kept};
}

static void set_integers(tdm_onnx_reader *from, const char *key, int count, const int64_t *values) {
    tdm_text text;
    tdm__text_init(&text, draft_of(from)->file->host);
    if (count != 1) tdm__text_puts(&text, "[");
    for (int i = 0; i < count; i++) tdm__text_printf(&text, "%s%lld", i > 0 ? ", " : "", (long long)values[i]);
    if (count != 1) tdm__text_puts(&text, "]");
    set(draft_of(from), key, &text);
}

static void set_integer(tdm_onnx_reader *from, const char *key, int64_t value) {
    set_integers(from, key, 1, &value);
}

static void set_number(tdm_onnx_reader *from, const char *key, double value) {
    tdm_text text;
    double back = 0;
    tdm__text_init(&text, draft_of(from)->file->host);
    for (int digits = 1; digits <= 9; digits++) {
        text.length = 0;
        tdm__text_printf(&text, "%.*g", digits, value);
        if (text.failed || (tdm__parse_float(text.data, &back) && (float)back == (float)value)) break;
    }
    set(draft_of(from), key, &text);
}

static void set_word(tdm_onnx_reader *from, const char *key, const char *value) {
    tdm_text text;
    tdm__text_init(&text, draft_of(from)->file->host);
    tdm__text_puts(&text, value);
    set(draft_of(from), key, &text);
}

const tdm_onnx_reader_calls tdm__onnx_reader_calls = {
    .producer = producer,
    .maker = maker,
    .view = view,
    .plain = plain,
    .batch = batch,
    .opset = opset,
    .constant = constant,
    .integers = integers,
    .numbers = numbers,
    .all = all,
    .integer = integer,
    .list = list,
    .number = number,
    .word = word,
    .set_integer = set_integer,
    .set_integers = set_integers,
    .set_number = set_number,
    .set_word = set_word,
    .has = has,
    .words = words,
    .is_output = is_output,
};
