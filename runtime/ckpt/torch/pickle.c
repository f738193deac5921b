/* The instructions of a pickle that torch.save writes, in the protocols 2 to 5. All others are refused. Those that call
 * something are in pickle_calls.c. */
#include "runtime/ckpt/torch/pickle.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/memory.h"

/* ---- reading operands ---- */

static const uint8_t *take(tdm_pickle *p, size_t count) {
    if ((size_t)(p->end - p->at) < count) {
        (void)tdm__pickle_fail(p, "its pickle ends within an instruction");
        return NULL;
    }
    p->at += count;
    return p->at - count;
}

static bool take_number(tdm_pickle *p, size_t bytes, int64_t *out) {
    const uint8_t *at = take(p, bytes);
    uint64_t value = 0;
    if (at == NULL) return false;
    for (size_t i = 0; i < bytes; i++) value |= (uint64_t)at[i] << (8 * i);
    *out = (int64_t)value;
    return true;
}

static bool push_number(tdm_pickle *p, int64_t number) {
    tdm_pickle_value *value = tdm__pickle_push(p, TDM_PICKLE_NUMBER);
    if (value != NULL) value->number = number;
    return value != NULL;
}

/* LONG1: little-endian, two's complement. */
static bool push_long(tdm_pickle *p) {
    int64_t bytes, number;
    if (!take_number(p, 1, &bytes)) return false;
    if (bytes > 8) return tdm__pickle_fail(p, "its pickle has an integer of more than 64 bits");
    if (!take_number(p, (size_t)bytes, &number)) return false;
    const int unused = 64 - 8 * (int)bytes;
    if (bytes > 0 && bytes < 8) number = (int64_t)((uint64_t)number << unused) >> unused;
    return push_number(p, number);
}

static bool push_text(tdm_pickle *p, size_t length_bytes) {
    int64_t count;
    char *text;
    if (!take_number(p, length_bytes, &count)) return false;
    const uint8_t *bytes = count < 0 ? NULL : take(p, (size_t)count);
    if (bytes == NULL) return tdm__pickle_fail(p, "its pickle ends within a text");
    if (memchr(bytes, 0, (size_t)count) != NULL) return tdm__pickle_fail(p, "its pickle has a text with a zero byte");
    tdm_pickle_value *value = tdm__pickle_push(p, TDM_PICKLE_TEXT);
    if (value == NULL) return false;
    if (tdm__zone_new(&p->zone, &text, (size_t)count + 1, 1) != TDM_OK) return tdm__pickle_no_memory(p);
    memcpy(text, bytes, (size_t)count);
    value->text = text;
    return true;
}

/* GLOBAL: two lines. */
static bool push_global(tdm_pickle *p) {
    char line[2][128];
    for (int i = 0; i < 2; i++) {
        const uint8_t *end = memchr(p->at, '\n', (size_t)(p->end - p->at));
        if (end == NULL || (size_t)(end - p->at) >= sizeof(line[i]))
            return tdm__pickle_fail(p, "its pickle has a name without an end");
        snprintf(line[i], sizeof(line[i]), "%.*s", (int)(end - p->at), (const char *)p->at);
        p->at = end + 1;
    }
    return tdm__pickle_global(p, line[0], line[1]);
}

static bool push_stack_global(tdm_pickle *p) {
    if (p->depth < 2) return tdm__pickle_fail(p, "its pickle takes from an empty stack");
    const tdm_pickle_value *module = &p->value[p->stack[p->depth - 2]], *name = &p->value[p->stack[p->depth - 1]];
    if (module->kind != TDM_PICKLE_TEXT || name->kind != TDM_PICKLE_TEXT)
        return tdm__pickle_fail(p, "its pickle has a name that is not text");
    p->depth -= 2;
    return tdm__pickle_global(p, module->text, name->text);
}

/* ---- containers ---- */

/* The values behind the last mark become the items of a tuple. */
static bool make_tuple(tdm_pickle *p, size_t count) {
    int *items = NULL;
    if (count > p->depth) return tdm__pickle_fail(p, "its pickle takes from an empty stack");
    if (tdm__zone_new(&p->zone, &items, count, sizeof(*items)) != TDM_OK) return tdm__pickle_no_memory(p);
    p->depth -= count;
    if (count > 0) memcpy(items, p->stack + p->depth, count * sizeof(*items));
    tdm_pickle_value *tuple = tdm__pickle_push(p, TDM_PICKLE_TUPLE);
    if (tuple == NULL) return false;
    tuple->item = items;
    tuple->count = tuple->room = count;
    return true;
}

static bool pop_mark(tdm_pickle *p, size_t *count) {
    if (p->marks == 0 || p->mark[p->marks - 1] > p->depth) return tdm__pickle_fail(p, "its pickle lacks a mark");
    *count = p->depth - p->mark[--p->marks];
    return true;
}

static bool push_mark(tdm_pickle *p) {
    if (tdm__grow(p->host, &p->mark, &p->mark_room, p->marks + 1, sizeof(*p->mark), "marks") != TDM_OK)
        return tdm__pickle_no_memory(p);
    p->mark[p->marks++] = p->depth;
    return true;
}

/* APPEND, APPENDS, SETITEM, SETITEMS. */
static bool add_items(tdm_pickle *p, tdm_pickle_kind kind, size_t count) {
    if (count >= p->depth) return tdm__pickle_fail(p, "its pickle takes from an empty stack");
    const int to = p->stack[p->depth - count - 1];
    if (p->value[to].kind != kind || (kind == TDM_PICKLE_DICT && count % 2 != 0))
        return tdm__pickle_fail(p, "its pickle adds items to what is no list or dictionary");
    for (size_t i = 0; i < count; i++)
        if (!tdm__pickle_add(p, to, p->stack[p->depth - count + i])) return false;
    p->depth -= count;
    return true;
}

static bool add_marked(tdm_pickle *p, tdm_pickle_kind kind) {
    size_t count = 0;
    return pop_mark(p, &count) && add_items(p, kind, count);
}

/* ---- memo ---- */

static bool memoize(tdm_pickle *p, int64_t at) {
    if (p->depth == 0 || at < 0 || at >= TDM_TORCH_VALUES)
        return tdm__pickle_fail(p, "its pickle stores a value that is not there");
    const size_t needed = (size_t)at + 1;
    if (tdm__grow(p->host, &p->memo, &p->memo_room, needed, sizeof(*p->memo), "memo") != TDM_OK)
        return tdm__pickle_no_memory(p);
    for (; p->memo_count < needed; p->memo_count++) p->memo[p->memo_count] = -1;
    p->memo[at] = p->stack[p->depth - 1];
    return true;
}

static bool recall(tdm_pickle *p, int64_t at) {
    if (at < 0 || (size_t)at >= p->memo_count || p->memo[at] < 0)
        return tdm__pickle_fail(p, "its pickle recalls a value that it has not kept");
    return tdm__pickle_push_index(p, p->memo[at]);
}

/* ---- instructions ---- */

static bool run_number(tdm_pickle *p, uint8_t code, bool *known) {
    static const struct { uint8_t code, bytes; } numbers[] = {{'J', 4}, {'K', 1}, {'M', 2}};
    int64_t number = 0;
    *known = true;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (numbers[i].code != code) continue;
        return take_number(p, numbers[i].bytes, &number) && push_number(p, code == 'J' ? (int32_t)number : number);
    }
    switch (code) {
    case 'N':
        return tdm__pickle_push(p, TDM_PICKLE_NONE) != NULL;
    case 0x88: /* NEWTRUE */
    case 0x89: /* NEWFALSE */
        return push_number(p, code == 0x88);
    case 0x8a:
        return push_long(p);
    case 'G':
        return take(p, 8) != NULL && tdm__pickle_push(p, TDM_PICKLE_NUMBER) != NULL;
    case 'X':
    case 'T':
        return push_text(p, 4);
    case 0x8c:
    case 'U':
        return push_text(p, 1);
    default:
        *known = false;
        return true;
    }
}

static bool run_container(tdm_pickle *p, uint8_t code, bool *known) {
    size_t count = 0;
    *known = true;
    switch (code) {
    case '}':
        return tdm__pickle_push(p, TDM_PICKLE_DICT) != NULL;
    case ']':
        return tdm__pickle_push(p, TDM_PICKLE_LIST) != NULL;
    case ')':
        return make_tuple(p, 0);
    case '(':
        return push_mark(p);
    case 't':
        return pop_mark(p, &count) && make_tuple(p, count);
    case 0x85:
    case 0x86:
    case 0x87:
        return make_tuple(p, (size_t)code - 0x84);
    case 's':
        return add_items(p, TDM_PICKLE_DICT, 2);
    case 'u':
        return add_marked(p, TDM_PICKLE_DICT);
    case 'a':
        return add_items(p, TDM_PICKLE_LIST, 1);
    case 'e':
        return add_marked(p, TDM_PICKLE_LIST);
    default:
        *known = false;
        return true;
    }
}

static bool run_other(tdm_pickle *p, uint8_t code) {
    int64_t at = 0;
    switch (code) {
    case 0x80: /* PROTO */
        return take_number(p, 1, &at) &&
               ((at >= 2 && at <= 5) || tdm__pickle_fail(p, "its pickle has protocol %d", (int)at));
    case 0x95: /* FRAME */
        return take(p, 8) != NULL;
    case 0x94: /* MEMOIZE */
        return memoize(p, (int64_t)p->memo_count);
    case 'q':
        return take_number(p, 1, &at) && memoize(p, at);
    case 'r':
        return take_number(p, 4, &at) && memoize(p, at);
    case 'h':
        return take_number(p, 1, &at) && recall(p, at);
    case 'j':
        return take_number(p, 4, &at) && recall(p, at);
    case 'c':
        return push_global(p);
    case 0x93:
        return push_stack_global(p);
    case 'Q':
        return tdm__pickle_storage(p);
    case 'R':
        return tdm__pickle_reduce(p);
    case 'b':
        return tdm__pickle_build(p);
    default:
        return tdm__pickle_fail(
            p, "its pickle has the instruction 0x%02x, which no file of tensors needs; nothing of it was run", code);
    }
}

bool tdm__pickle_run(tdm_pickle *p, int *root) {
    for (;;) {
        bool known = false;
        const uint8_t *code = take(p, 1);
        if (code == NULL) return false;
        if (*code == '.') break;
        if (!run_number(p, *code, &known)) return false;
        if (!known && !run_container(p, *code, &known)) return false;
        if (!known && !run_other(p, *code)) return false;
    }
    if (p->depth != 1) return tdm__pickle_fail(p, "its pickle leaves %zu values", p->depth);
    *root = p->stack[0];
    return true;
}
