/* The machine that follows a pickle: its values, its stack and its memo. For the files of this folder. */
#ifndef TDM_CKPT_TORCH_PICKLE_H
#define TDM_CKPT_TORCH_PICKLE_H

#include "runtime/ckpt/torch/torch_file.h"

typedef enum tdm_pickle_kind {
    TDM_PICKLE_NONE,
    TDM_PICKLE_NUMBER, /* integers, booleans; the value of a float is not kept */
    TDM_PICKLE_TEXT,
    TDM_PICKLE_TUPLE,
    TDM_PICKLE_LIST,
    TDM_PICKLE_DICT,    /* items: a key, its value, the next key, ... */
    TDM_PICKLE_GLOBAL,  /* number: its row in the list of names */
    TDM_PICKLE_STORAGE, /* type, text: its key, number: its elements */
    TDM_PICKLE_TENSOR   /* number: its offset; items: storage, shape, stride */
} tdm_pickle_kind;

typedef struct tdm_pickle_value {
    tdm_pickle_kind kind;
    int64_t number;
    const char *text;
    int type; /* in tdm__torch_types */
    int *item;
    size_t count, room;
} tdm_pickle_value;

typedef struct tdm_pickle {
    const tdm_host *host;
    tdm_zone zone; /* texts and items */
    const uint8_t *at, *end;
    tdm_pickle_value *value;
    int *stack, *memo; /* indices in `value`; memo: -1 where nothing is kept */
    size_t value_count, value_room, depth, stack_room, memo_count, memo_room, marks, mark_room;
    size_t *mark; /* depths of the stack */
    char *why;    /* set once something is wrong */
    bool failed;
} tdm_pickle;

/* Both return false, so that a failure can be passed on in one line. */
bool tdm__pickle_fail(tdm_pickle *p, const char *format, ...) TDM_PRINTF(2, 3);
bool tdm__pickle_no_memory(tdm_pickle *p);
bool tdm__pickle_push_index(tdm_pickle *p, int index); /* of a value that is there */
/* Pushes a new value; NULL after a failure. The pointer is valid until the next is pushed. */
tdm_pickle_value *tdm__pickle_push(tdm_pickle *p, tdm_pickle_kind kind);
/* Adds an item to a list or dictionary. */
bool tdm__pickle_add(tdm_pickle *p, int to, int item);
/* The instructions that call and that name what is called: GLOBAL, STACK_GLOBAL, REDUCE, BUILD, BINPERSID. */
bool tdm__pickle_global(tdm_pickle *p, const char *module, const char *name);
bool tdm__pickle_reduce(tdm_pickle *p);
bool tdm__pickle_build(tdm_pickle *p);
bool tdm__pickle_storage(tdm_pickle *p);
/* Runs all instructions; *root is the value that is left. */
bool tdm__pickle_run(tdm_pickle *p, int *root);

#endif
