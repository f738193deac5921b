/* The names of calls, for messages. */
#include <stdio.h>

#include "runtime/comm/group.h"

const char *tdm__call_name(tdm_call_kind kind) {
    static const char *const names[] = {
        [TDM_CALL_JOIN] = "join",           [TDM_CALL_ALL_REDUCE] = "all_reduce",
        [TDM_CALL_BROADCAST] = "broadcast", [TDM_CALL_REDUCE] = "reduce",
        [TDM_CALL_GATHER] = "gather",       [TDM_CALL_ALL_GATHER] = "all_gather",
        [TDM_CALL_SCATTER] = "scatter",     [TDM_CALL_BARRIER] = "barrier",
        [TDM_CALL_ALLOCATE] = "allocate",   [TDM_CALL_SPLIT] = "split",
        [TDM_CALL_SEND] = "send",           [TDM_CALL_RECEIVE] = "receive",
    };
    size_t index = (size_t)kind;
    return index < sizeof(names) / sizeof(names[0]) ? names[index] : "an unknown call";
}

void tdm__call_print(char out[TDM_CALL_TEXT], const tdm_call *call) {
    const char *name = tdm__call_name((tdm_call_kind)call->kind);
    const char *type = tdm_dtype_name((tdm_dtype)call->dtype);
    unsigned long long number = call->sequence, count = call->count;
    switch (call->kind) {
    case TDM_CALL_JOIN:
        snprintf(out, TDM_CALL_TEXT, "%s", name);
        break;
    case TDM_CALL_BARRIER:
        snprintf(out, TDM_CALL_TEXT, "%s (call %llu)", name, number);
        break;
    case TDM_CALL_SPLIT:
        snprintf(out, TDM_CALL_TEXT, "%s (call %llu, %llu ranks)", name, number, count);
        break;
    case TDM_CALL_ALLOCATE:
        snprintf(out, TDM_CALL_TEXT, "%s (call %llu, %llu bytes)", name, number, count);
        break;
    case TDM_CALL_SEND:
        snprintf(out, TDM_CALL_TEXT, "%s (to %d, %llu %s)", name, call->root, count, type);
        break;
    case TDM_CALL_RECEIVE:
        snprintf(out, TDM_CALL_TEXT, "%s (from %d, %llu %s)", name, call->root, count, type);
        break;
    case TDM_CALL_ALL_REDUCE:
        snprintf(out, TDM_CALL_TEXT, "%s (call %llu, %llu %s, %s)", name, number, count, type,
                 tdm__reduce_op_name((tdm_reduce_op)call->op));
        break;
    case TDM_CALL_REDUCE:
        snprintf(out, TDM_CALL_TEXT, "%s (call %llu, %llu %s, %s, root %d)", name, number, count, type,
                 tdm__reduce_op_name((tdm_reduce_op)call->op), call->root);
        break;
    default:
        if (call->root < 0)
            snprintf(out, TDM_CALL_TEXT, "%s (call %llu, %llu %s)", name, number, count, type);
        else
            snprintf(out, TDM_CALL_TEXT, "%s (call %llu, %llu %s, root %d)", name, number, count, type, call->root);
    }
}
