/* launch.h - the local ranks of a ddp job: started, watched and ended together. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include "tools/tool.h"

#include <tandem/comm.h>

/* Starts `world` copies of this process with the same arguments and `extra` (may be NULL) behind them, and waits for
 * all. The first that fails ends the others within a second; its code is returned and its error is told. */
int launch_ranks(const tool *t, int world, const char *extra);

/* Runs this program with other arguments and waits; signals are passed on. Returns its exit code. */
int launch_command(char *const *argv);

/* In a rank: dies with its parent, leaves Ctrl-C to it. TDM_E_USAGE after telling which variable is wrong. */
int launch_join(const tdm_launch_facts *facts);
/* In a rank that ends with an error: word to the parent, which knows whose error came first. Returns the exit code. */
int launch_report(const tool *t, const tdm_launch_facts *facts, tdm_status status);
/* Was this process started by launch_ranks? */
bool launch_is_rank(const tdm_launch_facts *facts);

#endif
