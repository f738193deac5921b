#include "runtime/base/system/env.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *help;
} variable[TDM_ENV_COUNT] = {
#define X(key, name, help) [key] = {name, help},
#include "runtime/base/system/env.def"
#undef X
};

const char *tdm__env(tdm_env_key key) {
    return secure_getenv(variable[key].name);
}

const char *tdm__env_name(tdm_env_key key) {
    return variable[key].name;
}

const char *tdm__env_help(tdm_env_key key) {
    return variable[key].help;
}

const char *tdm__env_by_name(const char *name) {
    for (int i = 0; i < TDM_ENV_COUNT; i++)
        if (strcmp(variable[i].name, name) == 0) return secure_getenv(name);
    return NULL;
}

const char *tdm__env_of_user(const char *name) {
    return getenv(name);
}
