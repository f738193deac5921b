/* Which rank this process is, from variables that need not be the environment's. */
#ifndef TDM_COMM_LAUNCH_H
#define TDM_COMM_LAUNCH_H

#include <tandem/comm.h>

/* A variable's value, or NULL. */
typedef const char *(*tdm_variable_fn)(const char *name, void *user);

/* Like tdm_launch_from_env, but reads the variables through a function. */
tdm_status tdm__launch_from(tdm_launch_facts *out, tdm_variable_fn variable, void *user);

#endif
