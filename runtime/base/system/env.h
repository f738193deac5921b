/* The environment, in one place: the only getenv of tandem, and the table behind `tandem help env`. */
#ifndef TDM_BASE_ENV_H
#define TDM_BASE_ENV_H

typedef enum tdm_env_key {
#define X(key, name, help) key,
#include "runtime/base/system/env.def"
#undef X
    TDM_ENV_COUNT
} tdm_env_key;

/* NULL if unset; borrowed from the environment. Some variables name code to load, so a program with more rights than
 * its caller (set-user-ID) finds all of them unset. */
const char *tdm__env(tdm_env_key key);
const char *tdm__env_name(tdm_env_key key);
const char *tdm__env_help(tdm_env_key key);
/* For modules, which know variables by name. NULL also if the name is not in the table. */
const char *tdm__env_by_name(const char *name);
/* A variable that the user has named: ${env:NAME} in the YAML file. */
const char *tdm__env_of_user(const char *name);

#endif
