/* tandem/sys/rewrite.h - a rewrite of the plan, as a row of a table. For writers of ops. */
#ifndef TANDEM_SYS_REWRITE_H
#define TANDEM_SYS_REWRITE_H

#include <tandem/sys/op.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TDM_MAX_CHAIN = 3 };
#define TDM_ANY_OP "*" /* in a chain: any that runs a kernel */

typedef enum tdm_rewrite_when {
    TDM_WHEN_ALWAYS,
    TDM_WHEN_TRAINING,
    TDM_WHEN_PREDICTING /* plans that have no backward */
} tdm_rewrite_when;

typedef enum tdm_rewrite_effect {
    /* The last two of the chain change places, if the last's kernel is then able to do the other's work in its
     * epilogue; a later row fuses them. */
    TDM_REWRITE_SWAP,
    /* The first of the chain does the others' work in its epilogue. Their further inputs become its own. */
    TDM_REWRITE_FUSE,
    /* The last of the chain adds the first's bias in its epilogue, and what followed the bias there. */
    TDM_REWRITE_MOVE_BIAS,
    /* The last of the chain sums in backward what it sends to the first: the gradient of the first's bias. */
    TDM_REWRITE_SUM_BIAS,
    /* The batch gets as many channels as the kernel asked for, the last ones zero. */
    TDM_REWRITE_PAD_CHANNELS,
    /* The weights lie in the order that the kernel asked for. */
    TDM_REWRITE_ORDER_WEIGHTS
} tdm_rewrite_effect;

typedef struct tdm_rewrite {
    const char *name, *why;           /* for people */
    const char *chain[TDM_MAX_CHAIN]; /* names of ops, each the only reader of the one before; NULL: it is shorter */
    tdm_rewrite_when when;
    tdm_rewrite_effect effect;
    unsigned epilogue; /* what the kernel that gets work must be able to do */
} tdm_rewrite;

#ifdef __cplusplus
}
#endif
#endif
