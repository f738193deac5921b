/* Time: a monotonic clock for everything that waits or measures, and the wall clock for display only. */
#ifndef TDM_BASE_CLOCK_H
#define TDM_BASE_CLOCK_H

#include <stdint.h>

int64_t tdm__now_ns(void);              /* CLOCK_MONOTONIC */
double tdm__ms_since(int64_t start_ns); /* milliseconds from start_ns until now */
void tdm__utc_stamp(char out[24]);      /* "20261120T143000Z", wall clock */

#endif
