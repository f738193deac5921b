/* One optimizer run over flat arenas: settings as a user gives them, scalars and kernels those of its definition. */
#ifndef TDM_TESTS_FLAT_CASE_H
#define TDM_TESTS_FLAT_CASE_H

#include "tests/ops/optim_case.h"
#include "tests/support/tdm_test.h"

enum { COUNT = 53, STEPS = 20 };
typedef struct {
    const char *name;
    tdm_optimizer_section section;
    uint32_t first[COUNT], last[COUNT]; /* the parameters after step 1 and step 20 */
} flat_case;

/* Everything that one optimizer keeps, as the flat arenas of a plan. */
typedef struct {
    const tdm_optimizer_section *section;
    int step;
    float *p, *g, *state[3];
    size_t count;
} flat_run;

/* The next step, by the definition's scalars and its kernel for `isa`. */
static inline void optimize(tdm_isa isa, flat_run *run) {
    const tdm_optim_def *optim = tdm_builtin_optims[run->section->type];
    const tdm_step_values values = optim_values(optim, run->section, run->section->lr, ++run->step);
    tdm_optim_args args = {.values = &values, .p = run->p, .g = run->g, .count = run->count};
    float norms[2];
    args.p_norm = optim_norms(optim, run->section, run->p, run->g, run->count, norms);
    args.g_norm = args.p_norm != NULL ? &norms[1] : NULL;
    memcpy(args.state, run->state, sizeof run->state);
    CHECK_OK(optim->cpu[isa](&args));
}

#endif
