/* All cases of all optimizers, and steps of one. A case is a name and settings as a job has them; lists of them:
 * ops/optim/<optim>/<optim>_cases.def. Scalars are made as a run makes them: by the definition, behind tdm_update. */
#ifndef TDM_TESTS_OPTIM_CASE_H
#define TDM_TESTS_OPTIM_CASE_H

#include <math.h>
#include <string.h>

#include "ops/flat/flat.h"
#include "runtime/optim/optim.h"

typedef struct {
    const char *optim;
    tdm_optimizer_section section;
} optim_case;

static const optim_case optim_cases[] = {
#include "ops/optim_cases.def" /* generated from optims.def */
};
enum { OPTIM_CASES = sizeof optim_cases / sizeof *optim_cases };

static inline const tdm_optim_def *optim_of(const optim_case *c) {
    const tdm_optim_def *const *optim = tdm_builtin_optims;
    while (*optim != NULL && strcmp((*optim)->name, c->optim) != 0) optim++;
    return *optim;
}

/* What step t reads, with a learning rate that changes as under a schedule where `lr` says so. */
static inline tdm_step_values optim_values(const tdm_optim_def *optim, const tdm_optimizer_section *section, double lr,
                                           int t) {
    const tdm_update update = {.optim = optim,
                               .optimizer = section,
                               .lr = lr,
                               .momentum = optim->moves_beta1 ? section->betas.item[0] : section->momentum,
                               .t = t,
                               .updates = t,
                               .clip_norm = NAN,
                               .clip_value = NAN};
    return tdm__optim_values(&update, 1);
}

/* Writes the norms of p and g to `norms` and returns it; NULL if the optimizer takes none for one dimension. */
static inline const float *optim_norms(const tdm_optim_def *optim, const tdm_optimizer_section *section, const float *p,
                                       const float *g, size_t count, float norms[2]) {
    if (optim->takes_norms == NULL || !optim->takes_norms(section, 1)) return NULL;
    norms[0] = (float)sqrt(tdm_builtin_flat_ref()->sum_squares(p, count));
    norms[1] = (float)sqrt(tdm_builtin_flat_ref()->sum_squares(g, count));
    return norms;
}

/* A generator whose numbers Python has, too: multiples of 2^-16 in [-1, 1) times `factor`. */
static inline void optim_numbers(uint32_t seed, float *out, size_t count, float factor) {
    uint32_t x = seed;
    for (size_t i = 0; i < count; i++) {
        x = x * 1664525u + 1013904223u;
        out[i] = (float)((int32_t)(x >> 15) - 65536) / 65536.0f * factor;
    }
}

#endif
