/* The loss of rows on the CPU. */
#ifndef TDM_EXEC_LOSS_H
#define TDM_EXEC_LOSS_H

#include <tandem/sys/device.h>
#include <tandem/sys/op.h>

/* Adds to *args->loss_sum and *args->correct, and writes args->dy. Threads (NULL: none) share the rows; their losses
 * are added in row order, so the bits depend on no number of threads. */
tdm_status tdm__loss_of_rows(const tdm_loss_def *loss, tdm_threads *threads, const tdm_loss_args *args);

#endif
