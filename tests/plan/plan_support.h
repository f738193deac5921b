/* Graphs as text, kernels that only answer, and plans as text. */
#ifndef TDM_TESTS_PLAN_SUPPORT_H
#define TDM_TESTS_PLAN_SUPPORT_H

#include "runtime/plan/build.h"
#include "tests/support/tdm_test.h"

/* ---- graphs ---- */

/* One statement a layer, with ';' between. The first is the batch, "x 3x8x8"; the others are "name op inputs
 * attributes": "c conv2d x out=4 kernel=3; r relu c". The last is the output. NULL and a failed check if that is no
 * graph. */
tdm_graph *plan_graph(const char *text);

/* ---- kernels ---- */

/* One kernel for each op. What they answer is said by `offers`, "conv2d: relu c8; maxpool2d: keep relu bias":
 *   keep            images stay in the layout that the first producer offers; else they are PLAIN
 *   nhwc c8 c16     images are wanted and made in this layout
 *   turns           with an epilogue it would read and make NHWC
 *   turns_x turns_y with an epilogue it would read NHWC; make NHWC
 *   relu bias sum add   epilogues
 *   refuses         does not fit once it is asked for an epilogue
 *   lacks poor      never fits; has no memory to find out
 *   gives           the bias is added last
 *   fill=8          channels wanted of a batch that may be filled
 *   weights=8       channels of the weights
 *   saved=N scratch=N   bytes
 *   again           has a recompute
 *   floats          does not take bf16
 * An op that is not named is PLAIN and offers nothing. The list is valid until the next call; offers as long as plans
 * are built with it. */
const tdm_kernel *const *plan_kernels(const char *offers);
/* The same that offer no epilogue. */
const tdm_kernel *const *plan_kernels_without_epilogues(void);

/* ---- plans ---- */

/* Two rows, training, a bucket of 25 MiB, the loss mse. */
tdm_plan_options plan_options(const tdm_kernel *const *kernels);

/* A line for each node in order: "conv2d+relu(wb) v0 -> v1 c8 in place; sums c.bias", without what does not apply. In
 * brackets the first letters of the parameters; v0[8] is a batch of 8 channels; "weights 4x9x8" is how they lie. */
void plan_print_nodes(const tdm_plan *plan, tdm_text *out);
/* A line for each node that runs in backward, the last first: "add dv3 -> dv1@ dv2+ ; d:c.weight". '@': lies on dy.
 * '+': added, by way of a temp; '&': added without one. */
void plan_print_gradients(const tdm_plan *plan, tdm_text *out);
/* "F conv2d", "L", "A conv2d" (recompute), "S conv2d" (statistics), "B conv2d", "R 0", with blanks between; then the
 * buckets, "| 0: d.weight d.bias (16+16) after 3". */
void plan_print_steps(const tdm_plan *plan, tdm_text *out);
/* "v1 0-3" for each value that owns bytes, with commas between. */
void plan_print_lives(const tdm_plan *plan, tdm_text *out);

/* ---- tables of graphs and their plans ---- */

typedef struct plan_case {
    const char *title, *graph, *offers;
    bool predicts, ingests, accumulates;
    bool bf16;         /* on a device that widens for kernels of floats */
    int replicas;      /* that exchange statistics; 0: 1 */
    double bucket_mb;  /* 0: that of plan_options */
    double first_mb;   /* of the first bucket; 0: bucket_mb */
    bool unused;       /* layers that the output does not depend on are allowed */
    tdm_texts freeze;  /* patterns of frozen parameters */
    const char *after; /* a pass; NULL: that of the table */
    const char *want;
} plan_case;

/* Builds each plan up to that pass and compares what `print` says of it. */
void plan_check_cases(const plan_case *cases, size_t count, const char *after,
                      void (*print)(const tdm_plan *plan, tdm_text *out));

#endif
