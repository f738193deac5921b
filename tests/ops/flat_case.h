/* One optimizer run over flat arenas: settings as a user gives them, scalars narrowed as the library does. */
#ifndef TDM_TESTS_FLAT_CASE_H
#define TDM_TESTS_FLAT_CASE_H

#include <math.h>

#include "ops/flat/flat.h"

enum { COUNT = 53, STEPS = 20 };
typedef enum { FLAT_SGD, FLAT_ADAM, FLAT_ADAMW } flat_kind;
typedef struct {
    const char *name;
    flat_kind kind;
    double lr, a, b, eps, weight_decay; /* a: momentum or beta1, b: dampening or beta2 */
    bool nesterov, lerp;
    uint32_t first[COUNT], last[COUNT]; /* the parameters after step 1 and step 20 */
} flat_case;

/* Everything that one optimizer keeps, as the flat arenas of a plan. */
typedef struct {
    flat_case setting;
    int step;
    float *p, *g, *m, *v;
    size_t count;
} flat_run;

static inline void optimize(const tdm_flat_kernels *flat, flat_run *run) {
    const flat_case *c = &run->setting;
    run->step++;
    if (c->kind == FLAT_SGD) {
        const tdm_sgd_args args = {.lr = (float)c->lr,
                                   .momentum = (float)c->a,
                                   .one_minus_dampening = (float)(1 - c->b),
                                   .weight_decay = (float)c->weight_decay,
                                   .nesterov = c->nesterov,
                                   .first_step = run->step == 1};
        flat->sgd(&args, run->p, run->g, c->a != 0 ? run->m : NULL, run->count);
        return;
    }
    const bool decoupled = c->kind == FLAT_ADAMW;
    const tdm_adam_args args = {.beta1 = (float)c->a,
                                .one_minus_beta1 = (float)(1 - c->a),
                                .beta2 = (float)c->b,
                                .one_minus_beta2 = (float)(1 - c->b),
                                .step_size = (float)(-c->lr / (1 - pow(c->a, run->step))),
                                .sqrt_correction = (float)sqrt(1 - pow(c->b, run->step)),
                                .eps = (float)c->eps,
                                .weight_decay = decoupled ? 0.0f : (float)c->weight_decay,
                                .decay_factor = decoupled ? (float)(1 - c->lr * c->weight_decay) : 1.0f,
                                .lerp = c->lerp};
    flat->adam(&args, run->p, run->g, run->m, run->v, run->count);
}

#endif
