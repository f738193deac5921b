/* One optimizer run over flat arenas: settings as a user gives them, scalars and kernels those of its definition. */
#ifndef TDM_TESTS_FLAT_CASE_H
#define TDM_TESTS_FLAT_CASE_H

#include "tests/ops/optim_case.h"
#include "tests/support/tdm_test.h"

enum { COUNT = 53, STEPS = 20 };
typedef enum {
    FLAT_SGD = TDM_SGD,
    FLAT_ADAM = TDM_ADAM,
    FLAT_ADAMW = TDM_ADAMW,
    FLAT_RMSPROP = TDM_RMSPROP,
    FLAT_LARS = TDM_LARS
} flat_kind;
typedef struct {
    const char *name;
    flat_kind kind;
    double lr, a, b, eps, weight_decay; /* a: momentum or beta1; b: dampening, beta2 or alpha */
    bool flag, lerp;                    /* flag: nesterov, amsgrad or centered */
    uint32_t first[COUNT], last[COUNT]; /* the parameters after step 1 and step 20 */
} flat_case;

/* Everything that one optimizer keeps, as the flat arenas of a plan. */
typedef struct {
    flat_case setting;
    int step;
    float *p, *g, *state[3];
    size_t count;
} flat_run;

static inline tdm_optimizer_section section_of(const flat_case *c) {
    return (tdm_optimizer_section){.type = (int)c->kind,
                                   .lr = c->lr,
                                   .momentum = c->a,
                                   .dampening = c->b,
                                   .nesterov = c->flag,
                                   .betas = {2, {c->a, c->b}},
                                   .eps = c->eps,
                                   .weight_decay = c->weight_decay,
                                   .form = c->lerp ? TDM_ADAM_LERP : TDM_ADAM_MULADD,
                                   .amsgrad = c->flag,
                                   .alpha = c->b,
                                   .centered = c->flag,
                                   .trust_coefficient = 0.01};
}

/* The next step, by the definition's scalars and its kernel for `isa`. */
static inline void optimize(tdm_isa isa, flat_run *run) {
    const tdm_optimizer_section section = section_of(&run->setting);
    const tdm_optim_def *optim = tdm_builtin_optims[section.type];
    const tdm_step_values values = optim_values(optim, &section, section.lr, ++run->step);
    tdm_optim_args args = {.values = &values, .p = run->p, .g = run->g, .count = run->count};
    float norms[2];
    args.p_norm = optim_norms(optim, &section, run->p, run->g, run->count, norms);
    args.g_norm = args.p_norm != NULL ? &norms[1] : NULL;
    memcpy(args.state, run->state, sizeof run->state);
    CHECK_OK(optim->cpu[isa](&args));
}

#endif
