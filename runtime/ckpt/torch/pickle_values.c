/* The values of a pickle and the stack that they come on. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/ckpt/torch/pickle.h"

bool tdm__pickle_fail(tdm_pickle *p, const char *format, ...) {
    va_list arguments;
    if (p->failed) return false;
    p->failed = true;
    va_start(arguments, format);
    (void)tdm__format(p->why, TDM_TORCH_WHY, format, arguments);
    va_end(arguments);
    return false;
}

bool tdm__pickle_no_memory(tdm_pickle *p) {
    return tdm__pickle_fail(p, "out of memory while reading its pickle");
}

bool tdm__pickle_push_index(tdm_pickle *p, int index) {
    if (tdm__grow(p->host, &p->stack, &p->stack_room, p->depth + 1, sizeof(*p->stack), "stack") != TDM_OK)
        return tdm__pickle_no_memory(p);
    p->stack[p->depth++] = index;
    return true;
}

tdm_pickle_value *tdm__pickle_push(tdm_pickle *p, tdm_pickle_kind kind) {
    if (p->value_count == TDM_TORCH_VALUES) {
        (void)tdm__pickle_fail(p, "its pickle makes more than %d values", TDM_TORCH_VALUES);
        return NULL;
    }
    if (tdm__grow(p->host, &p->value, &p->value_room, p->value_count + 1, sizeof(*p->value), "values") != TDM_OK) {
        (void)tdm__pickle_no_memory(p);
        return NULL;
    }
    if (!tdm__pickle_push_index(p, (int)p->value_count)) return NULL;
    p->value[p->value_count] = (tdm_pickle_value){.kind = kind};
    return &p->value[p->value_count++];
}

bool tdm__pickle_add(tdm_pickle *p, int to, int item) {
    tdm_pickle_value *value = &p->value[to];
    if (value->count == value->room) {
        const size_t room = value->room > 0 ? 2 * value->room : 8;
        int *items;
        if (tdm__zone_new(&p->zone, &items, room, sizeof(*items)) != TDM_OK) return tdm__pickle_no_memory(p);
        if (value->count > 0) memcpy(items, value->item, value->count * sizeof(*items));
        value->item = items;
        value->room = room;
    }
    value->item[value->count++] = item;
    return true;
}
