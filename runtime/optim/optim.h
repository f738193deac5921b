/* The update, as every mode puts it behind its gradients. What an optimizer is: tandem/sys/optim.h. */
#ifndef TDM_OPTIM_OPTIM_H
#define TDM_OPTIM_OPTIM_H

#include "runtime/exec/mode.h"

/* The flat arenas of state that the job needs: bit i is its optimizer's state[i]. They lie one behind another. */
unsigned tdm__optim_states(const tdm_job *job);
/* The same of an optimizer in the place of the job's. */
unsigned tdm__optim_states_of(const tdm_optim_def *optim, const tdm_job *job);
int tdm__optim_state_count(const tdm_job *job);
/* Does its step depend on norms of parameters? */
bool tdm__optim_takes_norms(const tdm_job *job);
/* What a step's kernels read: values for the loss and for clipping, and the optimizer's scalars. `denominator`: the
 * divisor of the mean loss over the whole step. */
tdm_step_values tdm__optim_values(const tdm_update *update, double denominator);
/* The same, with the scalars of each group of parameters. */
tdm_values tdm__optim_all_values(const tdm_update *update, double denominator);
/* Puts on the replica's queue: clipping by norm and by value where update says so, then one step over each run of the
 * plan, then the average of the parameters if the replica has one. The numbers come from the values that the step was
 * begun with. */
tdm_status tdm__optim_step(tdm_replica *replica, const tdm_update *update);

/* The same for a replica of several stages. First, if update->clip_norm is set: the norms of each stage's gradients,
 * which are in the host's memory when this returns. */
tdm_status tdm__optim_norms(tdm_replica *stage);
/* The norm of all stages' gradients, by the first of them. */
double tdm__optim_norm(const tdm_replica *first);
/* Then, for each stage: clipping by that norm, the steps, the average. */
tdm_status tdm__optim_stage_step(tdm_replica *stage, const tdm_update *update, double norm);

#endif
