/* Every optimizer of the list: what its definition promises, and its kernels for all instruction sets against each
 * other, to the bit. What they compute is held against PyTorch by flat_golden_test and flat_trace_test. */
#include <stdbool.h>

#include "runtime/ckpt/ckpt.h"
#include "tests/ops/optim_case.h"
#include "tests/support/tdm_test.h"
#include "runtime/base/isa.h"

TEST(every_optimizer_has_cases) {
    for (const tdm_optim_def *const *optim = tdm_builtin_optims; *optim != NULL; optim++) {
        int cases = 0;
        for (int i = 0; i < OPTIM_CASES; i++) cases += strcmp(optim_cases[i].optim, (*optim)->name) == 0;
        if (cases > 0) continue;
        tdm_test_failures++;
        fprintf(stderr, "%s has no case: write ops/optim/%s/%s_cases.def\n", (*optim)->name, (*optim)->name,
                (*optim)->name);
    }
    for (int i = 0; i < OPTIM_CASES; i++) CHECK(optim_of(&optim_cases[i]) != NULL);
}

static int names_of(const tdm_optim_def *optim) {
    int count = 0;
    while (count < TDM_MAX_STATES && optim->state[count] != NULL) count++;
    return count;
}

TEST(definitions) {
    for (const tdm_optim_def *const *optim = tdm_builtin_optims; *optim != NULL; optim++) {
        const tdm_optim_def *o = *optim;
        CHECK(o->name[0] != '\0' && o->doc[0] != '\0');
        CHECK(strlen(o->name) < sizeof(((tdm_ckpt_state *)NULL)->optimizer)); /* where checkpoints keep it */
        CHECK(o->prepare != NULL && o->cpu[TDM_ISA_REF] != NULL && o->weight_decay >= 0);
        for (const tdm_optim_def *const *other = tdm_builtin_optims; other != optim; other++)
            CHECK(strcmp(o->name, (*other)->name) != 0);
        const int names = names_of(o);
        for (int i = 0; i < TDM_MAX_STATES; i++) {
            CHECK((o->state[i] != NULL) == (i < names));
            CHECK((!o->never_negative[i] && o->without[i] == NULL) || i < names);
            for (int k = 0; k < i && i < names; k++) CHECK(strcmp(o->state[i], o->state[k]) != 0);
        }
    }
}

TEST(a_job_keeps_states_that_have_names) {
    tdm_job job = {.schedule = {.type = TDM_SCHEDULE_CONSTANT}};
    for (int i = 0; i < OPTIM_CASES; i++) {
        const tdm_optim_def *optim = optim_of(&optim_cases[i]);
        job.optimizer = optim_cases[i].section;
        for (job.optimizer.type = 0; tdm_builtin_optims[job.optimizer.type] != optim;) job.optimizer.type++;
        CHECK(tdm__optim_states(&job) >> names_of(optim) == 0);
    }
}

TEST(without_momentum_sgd_keeps_nothing) {
    tdm_job job = {.optimizer = {.type = TDM_SGD}};
    CHECK_INT(tdm__optim_state_count(&job), 0);
    job.schedule.type = TDM_SCHEDULE_ONECYCLE;
    CHECK_INT(tdm__optim_state_count(&job), 0);
    job.schedule.cycle_momentum = true;
    CHECK_INT(tdm__optim_state_count(&job), 1);
    job = (tdm_job){.optimizer = {.type = TDM_SGD, .momentum = 0.9}};
    CHECK_INT(tdm__optim_state_count(&job), 1);
    job = (tdm_job){.optimizer = {.type = TDM_ADAM}};
    CHECK_INT(tdm__optim_state_count(&job), 2);
}

TEST(a_job_keeps_the_states_that_it_needs) {
    tdm_job job = {.optimizer = {.type = TDM_RMSPROP}};
    CHECK_INT(tdm__optim_states(&job), 1);
    job.optimizer.centered = true;
    CHECK_INT(tdm__optim_states(&job), 5);
    job.optimizer.momentum = 0.9;
    CHECK_INT(tdm__optim_states(&job), 7);
    job.optimizer.centered = false;
    CHECK_INT(tdm__optim_states(&job), 3);
    job = (tdm_job){.optimizer = {.type = TDM_RMSPROP}, .schedule = {.type = TDM_SCHEDULE_ONECYCLE}};
    job.schedule.cycle_momentum = true;
    CHECK_INT(tdm__optim_states(&job), 3);
    job = (tdm_job){.optimizer = {.type = TDM_ADAMW, .amsgrad = true}};
    CHECK_INT(tdm__optim_states(&job), 7);
}

/* Programs in C name optimizers by these. */
TEST(places_are_those_of_the_enum) {
    CHECK_TEXT(tdm_builtin_optims[TDM_SGD]->name, "sgd");
    CHECK_TEXT(tdm_builtin_optims[TDM_ADAM]->name, "adam");
    CHECK_TEXT(tdm_builtin_optims[TDM_ADAMW]->name, "adamw");
    CHECK_TEXT(tdm_builtin_optims[TDM_RMSPROP]->name, "rmsprop");
    CHECK_TEXT(tdm_builtin_optims[TDM_LARS]->name, "lars");
}

/* ---- norms ---- */

static float one_step(const tdm_optimizer_section *section, float p, float g, const float *norms) {
    const tdm_optim_def *optim = tdm_builtin_optims[TDM_LARS];
    const tdm_step_values values = optim_values(optim, section, section->lr, 1);
    float state = 0;
    const tdm_optim_args args = {.values = &values,
                                 .p = &p,
                                 .g = &g,
                                 .state = {&state},
                                 .p_norm = norms,
                                 .g_norm = norms != NULL ? norms + 1 : NULL,
                                 .count = 1};
    CHECK_OK(optim->cpu[TDM_ISA_REF](&args));
    return p;
}

/* p 2, g 0.5 and powers of two: every number below is exact. */
TEST(lars_multiplies_by_a_ratio_of_norms) {
    tdm_optimizer_section lars = {.type = TDM_LARS, .lr = 1, .trust_coefficient = 0.25, .momentum = 0.5};
    CHECK_NEAR(one_step(&lars, 2, 0.5f, (const float[]){8, 4}), 2 - 0.5 * (0.25 * 8 / 4), 0);
    lars.eps = 4;
    CHECK_NEAR(one_step(&lars, 2, 0.5f, (const float[]){8, 4}), 2 - 0.5 * (0.25 * 8 / 8), 0);
    lars.weight_decay = 0.5;
    CHECK_NEAR(one_step(&lars, 2, 0.5f, (const float[]){16, 4}), 2 - 1.5 * (0.25 * 16 / 16), 0);
    /* A norm of 0: no ratio. Without norms: no ratio and no decay. */
    CHECK_NEAR(one_step(&lars, 2, 0.5f, (const float[]){0, 4}), 2 - 1.5, 0);
    CHECK_NEAR(one_step(&lars, 2, 0.5f, (const float[]){16, 0}), 2 - 1.5, 0);
    CHECK_NEAR(one_step(&lars, 2, 0.5f, NULL), 2 - 0.5, 0);
    CHECK(isnan(one_step(&lars, 2, NAN, (const float[]){16, NAN})));
}

TEST(lars_leaves_out_one_dimension) {
    const tdm_optim_def *optim = tdm_builtin_optims[TDM_LARS];
    tdm_optimizer_section lars = {.exclude_1d = true};
    CHECK(!optim->takes_norms(&lars, 1));
    CHECK(optim->takes_norms(&lars, 2));
    lars.exclude_1d = false;
    CHECK(optim->takes_norms(&lars, 1));
}

/* ---- instruction sets ---- */

enum { MOST = 1031, STEPS = 5 };

typedef struct {
    float p[MOST], g[MOST], state[TDM_MAX_STATES][MOST];
} arenas;

/* Scalars are in a block of their own, so that writing too many is seen by the sanitizers. */
static void take_steps(tdm_optim_run *run, const optim_case *c, size_t count, arenas *all) {
    const tdm_optim_def *optim = optim_of(c);
    *all = (arenas){0};
    optim_numbers(1, all->p, count, 1);
    tdm_optim_args args = {.p = all->p, .g = all->g, .count = count};
    for (int i = 0; i < names_of(optim); i++) args.state[i] = all->state[i];
    for (int t = 1; t <= STEPS; t++) {
        const tdm_step_values values = optim_values(optim, &c->section, c->section.lr / t, t);
        args.values = &values;
        optim_numbers(1000 + (uint32_t)t, all->g, count, ldexpf(1, t - 3));
        float norms[2];
        args.p_norm = optim_norms(optim, &c->section, all->p, all->g, count, norms);
        args.g_norm = args.p_norm != NULL ? &norms[1] : NULL;
        CHECK_OK(run(&args));
    }
}

static void check_case(const optim_case *c, size_t count) {
    static arenas want, got;
    const tdm_optim_def *optim = optim_of(c);
    take_steps(optim->cpu[TDM_ISA_REF], c, count, &want);
    optim_numbers(1, got.p, count, 1);
    CHECK(memcmp(got.p, want.p, count * sizeof *got.p) != 0);
    for (int i = 0; i < MOST; i++) CHECK((size_t)i < count || want.p[i] == 0);
    for (tdm_isa isa = TDM_ISA_AVX2; isa <= tdm__isa(); isa++) {
        if (optim->cpu[isa] == NULL) continue;
        take_steps(optim->cpu[isa], c, count, &got);
        if (memcmp(&got, &want, sizeof got) == 0) continue;
        tdm_test_failures++;
        fprintf(stderr, "%s, case %d, %zu numbers: instruction set %d has other bits than ref\n", optim->name,
                (int)(c - optim_cases), count, (int)isa);
    }
}

TEST(all_instruction_sets_have_the_same_bits) {
    for (int i = 0; i < OPTIM_CASES; i++) {
        for (size_t count = 1; count < 40; count++) check_case(&optim_cases[i], count);
        check_case(&optim_cases[i], MOST);
    }
}

TEST_MAIN(RUN(every_optimizer_has_cases); RUN(definitions); RUN(a_job_keeps_states_that_have_names);
          RUN(a_job_keeps_the_states_that_it_needs); RUN(without_momentum_sgd_keeps_nothing);
          RUN(places_are_those_of_the_enum); RUN(lars_multiplies_by_a_ratio_of_norms);
          RUN(lars_leaves_out_one_dimension); RUN(all_instruction_sets_have_the_same_bits);)
