/* tandem/sys/rewrite.h - a rewrite of the plan, as one row of a table. For writers of ops. */
#ifndef TANDEM_SYS_REWRITE_H
#define TANDEM_SYS_REWRITE_H

#include <tandem/sys/op.h>

TDM_BEGIN_DECLS

enum { TDM_MAX_CHAIN = 3 };
#define TDM_ANY_OP "*" /* in a chain: any op that runs a kernel */

typedef enum tdm_rewrite_when {
    TDM_WHEN_ALWAYS,
    TDM_WHEN_TRAINING,
    TDM_WHEN_PREDICTING /* plans without a backward pass */
} tdm_rewrite_when;

typedef enum tdm_rewrite_effect {
    /* Swaps the last two ops of the chain, if the last op's kernel can then do the other's work in its epilogue. A
     * later row fuses them. */
    TDM_REWRITE_SWAP,
    /* The first op of the chain does the work of the others in its epilogue. Their additional inputs become its own. */
    TDM_REWRITE_FUSE,
    /* The last op of the chain adds the first op's bias in its epilogue, and does there what followed the bias. */
    TDM_REWRITE_MOVE_BIAS,
    /* In backward the last op of the chain sums what it sends to the first op: this is the gradient of the first op's
     * bias. */
    TDM_REWRITE_SUM_BIAS,
    /* The batch gets as many channels as the kernel asked for; the additional ones are zero. */
    TDM_REWRITE_PAD_CHANNELS,
    /* The weights are stored in the order that the kernel asked for. */
    TDM_REWRITE_ORDER_WEIGHTS
} tdm_rewrite_effect;

typedef struct tdm_rewrite {
    const char *name, *why; /* for the plan's printed form */
    const char
        *chain[TDM_MAX_CHAIN]; /* op names; each op is the only reader of the one before; NULL ends a shorter chain */
    tdm_rewrite_when when;
    tdm_rewrite_effect effect;
    unsigned epilogue; /* TDM_EPILOGUE_... that the kernel which gets the work must offer */
} tdm_rewrite;

TDM_END_DECLS
#endif
