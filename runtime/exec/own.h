/* Calls of the parts that a program brings itself (tandem/parts.h). */
#ifndef TDM_EXEC_OWN_H
#define TDM_EXEC_OWN_H

#include <tandem/parts.h>
#include <tandem/sys/op.h>

/* The loss of these rows, as a kernel of losses on the CPU computes it. */
tdm_status tdm__own_loss(const tdm_own_loss *own, tdm_target_kind target, const tdm_loss_args *args);
tdm_status tdm__own_metric(const tdm_own_metric *own, const tdm_loss_args *args, double *sum, double *weight);
tdm_status tdm__own_update(const tdm_own_optimizer *own, const tdm_own_update *update);

#endif
