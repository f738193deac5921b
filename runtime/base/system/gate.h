/* Counters that threads raise and wait for. */
#ifndef TDM_BASE_GATE_H
#define TDM_BASE_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/host.h>

typedef struct tdm_gate tdm_gate;

tdm_status tdm__gate_open(tdm_gate **out, const tdm_host *host, int counters);
void tdm__gate_close(tdm_gate *gate); /* NULL is fine; no thread waits */
/* All counters are 0, and the gate is not broken. No thread waits. */
void tdm__gate_reset(tdm_gate *gate);
/* What the thread wrote before is seen by those that wait for this. */
void tdm__gate_raise(tdm_gate *gate, int counter, int64_t value);
/* Waits until the counter is `value` or more. False: the gate was broken. It has no deadline: whoever raises the
 * counter raises it in the end, or breaks the gate. */
bool tdm__gate_wait(tdm_gate *gate, int counter, int64_t value);
/* From now on, until the reset, nobody waits. */
void tdm__gate_break(tdm_gate *gate);

#endif
