/* The rows of each section. One file holds the rows of sections that belong together; sections.c has the list. A row is
 * a key with its type, default, range, unit and help in two languages. */
#ifndef TDM_CONFIG_FIELDS_H
#define TDM_CONFIG_FIELDS_H

#include "config/table.h"
#include "runtime/base/field/field_rows.h"

extern const char *const tdm__metric_names[]; /* of tdm_metric */

#define BIT(value) (1u << (value))
enum { MANY = 1 << 30 };

extern const tdm_field tdm__root_rows[];
extern const tdm_field tdm__model_rows[];
extern const tdm_field tdm__data_rows[];
extern const tdm_field tdm__spec_rows[];
extern const tdm_field tdm__transform_rows[];
extern const tdm_field tdm__normalize_rows[];
extern const tdm_field tdm__loss_rows[];
extern const tdm_field tdm__optimizer_rows[];
extern const tdm_field tdm__group_rows[];
extern const tdm_field tdm__schedule_rows[];
extern const tdm_field tdm__train_rows[];
extern const tdm_field tdm__batch_rows[];
extern const tdm_field tdm__stop_early_rows[];
extern const tdm_field tdm__ema_rows[];
extern const tdm_field tdm__parallel_rows[];
extern const tdm_field tdm__dp_rows[];
extern const tdm_field tdm__ddp_rows[];
extern const tdm_field tdm__compress_rows[];
extern const tdm_field tdm__eval_rows[];
extern const tdm_field tdm__checkpoint_rows[];
extern const tdm_field tdm__run_rows[];
extern const tdm_field tdm__burnin_rows[];
extern const tdm_field tdm__host_rows[];
extern const tdm_field tdm__log_rows[];

#endif
