/* Sums of 16 bits, calls of several spans, and messages, for conformance_test.c. */
#ifndef TEST_COMM_BATCHES_H
#define TEST_COMM_BATCHES_H

#include "tests/comm/ranks.h"

void coalesced_pairs_rank(rank_context *c); /* all_gather_coalesced and reduce_scatter_coalesced */
void narrow_tree_rank(rank_context *c);     /* all_reduce of bf16 */
void ring_rank(rank_context *c);            /* send and receive */
void batch_rank(rank_context *c);           /* batch_send_receive */
/* At least three ranks: messages wait for one another in a circle, unless those of a batch go at once. */
void batch_in_a_circle_rank(rank_context *c);

#endif
