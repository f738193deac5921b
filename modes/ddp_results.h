/* What the ranks of ddp tell each other before and after a step. */
#ifndef TDM_MODES_DDP_RESULTS_H
#define TDM_MODES_DDP_RESULTS_H

#include "modes/common.h"

/* The divisor of this rank's losses. */
tdm_status tdm__ddp_denominator(const tdm_mode_params *params, const tdm_batch *batch, tdm_times *times, double *out);
/* Sets the result's loss and hits, and what depends on them, from the outcomes of all ranks. The denominator is this
 * rank's before. */
tdm_status tdm__ddp_add_results(const tdm_mode_params *params, const tdm_outcome *outcome, tdm_step_result *result);

#endif
