/* What a pickle may name and call: storages, tensors and ordered dictionaries. No name is looked up anywhere else, and
 * nothing is called but the functions here. */
#include <stdio.h>
#include <string.h>

#include "runtime/ckpt/torch/pickle.h"

const tdm_torch_type tdm__torch_types[] = {
    {"FloatStorage", "F32", 4},
    {"DoubleStorage", "F64", 8},
    {"HalfStorage", "F16", 2},
    {"BFloat16Storage", "BF16", 2},
    {"LongStorage", "I64", 8},
    {"IntStorage", "I32", 4},
    {"ShortStorage", "I16", 2},
    {"CharStorage", "I8", 1},
    {"ByteStorage", "U8", 1},
    {"BoolStorage", "BOOL", 1},
    {NULL, NULL, 0},
};

/* The closed list of names, beside the storages of module torch. */
enum { REBUILD_TENSOR, REBUILD_PARAMETER, ORDERED_DICT, SIZE, NAMES };
static const struct {
    const char *module, *name;
} names[NAMES] = {[REBUILD_TENSOR] = {"torch._utils", "_rebuild_tensor_v2"},
                  [REBUILD_PARAMETER] = {"torch._utils", "_rebuild_parameter"},
                  [ORDERED_DICT] = {"collections", "OrderedDict"},
                  [SIZE] = {"torch", "Size"}};

bool tdm__pickle_global(tdm_pickle *p, const char *module, const char *name) {
    int index = 0, type = 0;
    while (index < NAMES && (strcmp(names[index].module, module) != 0 || strcmp(names[index].name, name) != 0)) index++;
    while (tdm__torch_types[type].storage != NULL && strcmp(tdm__torch_types[type].storage, name) != 0) type++;
    const bool is_storage = strcmp(module, "torch") == 0 && tdm__torch_types[type].storage != NULL;
    if (index == NAMES && !is_storage) {
        char shown[2][TDM_ST_PRINTABLE];
        const bool is_model = strncmp(module, "torch.nn.", 9) == 0;
        return tdm__pickle_fail(p, "its pickle names %s.%s, which is no tensor; nothing of it was run%s",
                                tdm__printable(shown[0], module), tdm__printable(shown[1], name),
                                is_model ? "; it is a whole model: save model.state_dict()" : "");
    }
    tdm_pickle_value *value = tdm__pickle_push(p, TDM_PICKLE_GLOBAL);
    if (value == NULL) return false;
    value->number = is_storage ? NAMES : index;
    value->type = type;
    return true;
}

static const tdm_pickle_value *item_of(const tdm_pickle *p, const tdm_pickle_value *of, size_t i,
                                       tdm_pickle_kind kind) {
    const tdm_pickle_value *item = i < of->count ? &p->value[of->item[i]] : NULL;
    return item != NULL && item->kind == kind ? item : NULL;
}

/* BINPERSID: ("storage", torch.FloatStorage, "0", "cpu", 12). */
bool tdm__pickle_storage(tdm_pickle *p) {
    if (p->depth == 0) return tdm__pickle_fail(p, "its pickle takes from an empty stack");
    const tdm_pickle_value *id = &p->value[p->stack[p->depth - 1]];
    const tdm_pickle_value *word = NULL, *type = NULL, *key = NULL, *count = NULL;
    if (id->kind == TDM_PICKLE_TUPLE && id->count == 5) {
        word = item_of(p, id, 0, TDM_PICKLE_TEXT);
        type = item_of(p, id, 1, TDM_PICKLE_GLOBAL);
        key = item_of(p, id, 2, TDM_PICKLE_TEXT);
        count = item_of(p, id, 4, TDM_PICKLE_NUMBER);
    }
    if (word == NULL || type == NULL || key == NULL || count == NULL || strcmp(word->text, "storage") != 0 ||
        type->number != NAMES || count->number < 0 || strlen(key->text) >= sizeof((tdm_torch_tensor){0}.key))
        return tdm__pickle_fail(p, "its pickle describes a storage in another way than torch.save");
    const tdm_pickle_value made = {
        .kind = TDM_PICKLE_STORAGE, .text = key->text, .number = count->number, .type = type->type};
    p->depth--;
    tdm_pickle_value *value = tdm__pickle_push(p, TDM_PICKLE_STORAGE);
    if (value != NULL) *value = made;
    return value != NULL;
}

static bool are_numbers(const tdm_pickle *p, const tdm_pickle_value *tuple) {
    for (size_t i = 0; i < tuple->count; i++)
        if (p->value[tuple->item[i]].kind != TDM_PICKLE_NUMBER || p->value[tuple->item[i]].number < 0) return false;
    return true;
}

/* _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks) */
static bool make_tensor(tdm_pickle *p, const tdm_pickle_value *arguments) {
    const tdm_pickle_value *storage = item_of(p, arguments, 0, TDM_PICKLE_STORAGE),
                           *offset = item_of(p, arguments, 1, TDM_PICKLE_NUMBER),
                           *size = item_of(p, arguments, 2, TDM_PICKLE_TUPLE),
                           *stride = item_of(p, arguments, 3, TDM_PICKLE_TUPLE);
    if (storage == NULL || offset == NULL || size == NULL || stride == NULL || offset->number < 0 ||
        size->count != stride->count || size->count > TDM_ST_MAX_RANK || !are_numbers(p, size) ||
        !are_numbers(p, stride))
        return tdm__pickle_fail(p, "its pickle describes a tensor in another way than torch.save");
    const int64_t first = offset->number;
    const int items[3] = {arguments->item[0], arguments->item[2], arguments->item[3]};
    p->depth -= 2;
    tdm_pickle_value *tensor = tdm__pickle_push(p, TDM_PICKLE_TENSOR);
    if (tensor == NULL) return false;
    tensor->number = first;
    const int made = (int)p->value_count - 1;
    return tdm__pickle_add(p, made, items[0]) && tdm__pickle_add(p, made, items[1]) &&
           tdm__pickle_add(p, made, items[2]);
}

/* OrderedDict() or OrderedDict([(key, value), ...]) */
static bool make_dict(tdm_pickle *p, const tdm_pickle_value *arguments) {
    const tdm_pickle_value pairs = arguments->count > 0 ? p->value[arguments->item[0]] : (tdm_pickle_value){.count = 0};
    if (arguments->count > 1 || (arguments->count == 1 && pairs.kind != TDM_PICKLE_LIST))
        return tdm__pickle_fail(p, "its pickle makes a dictionary in another way than torch.save");
    p->depth -= 2;
    if (tdm__pickle_push(p, TDM_PICKLE_DICT) == NULL) return false;
    const int made = (int)p->value_count - 1;
    for (size_t i = 0; i < pairs.count; i++) {
        const tdm_pickle_value *pair = &p->value[pairs.item[i]];
        if ((pair->kind != TDM_PICKLE_TUPLE && pair->kind != TDM_PICKLE_LIST) || pair->count != 2)
            return tdm__pickle_fail(p, "its pickle makes a dictionary of what are no pairs");
        const int key = pair->item[0], value = pair->item[1];
        if (!tdm__pickle_add(p, made, key) || !tdm__pickle_add(p, made, value)) return false;
    }
    return true;
}

bool tdm__pickle_reduce(tdm_pickle *p) {
    if (p->depth < 2) return tdm__pickle_fail(p, "its pickle takes from an empty stack");
    const tdm_pickle_value *function = &p->value[p->stack[p->depth - 2]];
    const tdm_pickle_value *arguments = &p->value[p->stack[p->depth - 1]];
    if (function->kind != TDM_PICKLE_GLOBAL || function->number == NAMES || arguments->kind != TDM_PICKLE_TUPLE)
        return tdm__pickle_fail(p,
                                "its pickle calls something other than a function that makes tensors; nothing was run");
    if (function->number == REBUILD_TENSOR) return make_tensor(p, arguments);
    if (function->number == ORDERED_DICT) return make_dict(p, arguments);
    /* torch.Size(tuple) and _rebuild_parameter(tensor, ...) are their first argument. */
    const tdm_pickle_kind kind = function->number == SIZE ? TDM_PICKLE_TUPLE : TDM_PICKLE_TENSOR;
    if (item_of(p, arguments, 0, kind) == NULL)
        return tdm__pickle_fail(p, "its pickle describes a parameter in another way than torch.save");
    p->stack[p->depth - 2] = arguments->item[0];
    p->depth--;
    return true;
}

/* The attributes of an ordered dictionary, such as _metadata, are not needed. */
bool tdm__pickle_build(tdm_pickle *p) {
    if (p->depth < 2 || p->value[p->stack[p->depth - 2]].kind != TDM_PICKLE_DICT)
        return tdm__pickle_fail(p, "its pickle builds an object that is no dictionary; nothing of it was run");
    p->depth--;
    return true;
}
