/* Every optimizer of the list on CUDA against the CPU's, to the bit. Captured once and run with other values: what a
 * step needs is read in the device's memory. */
#include "runtime/base/bf16.h"
#include "tests/ops/cuda_device.h"
#include "tests/ops/op_memory.h"
#include "tests/ops/optim_case.h"

enum { MOST = 1031, STEPS = 5 };

static tdm_device *device;

static tdm_optim_run *cuda_run(const char *name) {
    const tdm_optim_kernel *const *kernel = cuda_module()->optims;
    while (*kernel != NULL && strcmp((*kernel)->optim, name) != 0) kernel++;
    return *kernel != NULL ? (*kernel)->run : NULL;
}

/* One case on both sides: `here` what the CPU makes; `there` the device's, whose memory is `arena` when fetched. */
typedef struct {
    const optim_case *c;
    const tdm_optim_def *optim;
    op_memory memory;
    tdm_step_values *values;
    float *arena[2 + TDM_MAX_STATES]; /* p, g, state; NULL: not needed */
    float *norms;                     /* of p and g, both sides' alike, or NULL */
    uint16_t *narrow;                 /* p in bf16, or NULL */
    float twin[2 + TDM_MAX_STATES][MOST];
    tdm_optim_args here, there;
} training;

static void training_open(training *t, const optim_case *c, size_t count, bool odd, bool narrow) {
    *t = (training){.c = c, .optim = optim_of(c), .memory = {.device = device, .odd = odd}};
    op_memory *m = &t->memory;
    t->values = op_memory_new(m, sizeof *t->values, "the values");
    const unsigned states = t->optim->states != NULL ? t->optim->states(&c->section, false) : ~0u;
    for (int i = 0; i < 2 + TDM_MAX_STATES; i++) {
        const bool is_there = i < 2 || (t->optim->state[i - 2] != NULL && (states >> (i - 2) & 1) != 0);
        if (!is_there) continue;
        t->arena[i] = op_memory_floats(m, (int64_t)count, "an arena");
        if (i < 2) optim_numbers((uint32_t)i + 1, t->twin[i], count, 1);
        memcpy(t->arena[i], t->twin[i], count * sizeof(float));
    }
    float norms[2];
    if (optim_norms(t->optim, &c->section, t->twin[0], t->twin[1], count, norms) != NULL)
        t->norms = op_memory_floats(m, 2, "the norms");
    if (narrow) t->narrow = op_memory_numbers(m, (int64_t)count, sizeof *t->narrow, "p in bf16");
    t->here = (tdm_optim_args){.values = t->values, .p = t->twin[0], .g = t->twin[1], .count = count};
    t->there = (tdm_optim_args){.device = device,
                                .values = op_memory_there(m, t->values),
                                .p = op_memory_there(m, t->arena[0]),
                                .g = op_memory_there(m, t->arena[1]),
                                .p_bf16 = op_memory_there(m, t->narrow),
                                .count = count};
    if (t->norms != NULL) {
        t->here.p_norm = t->norms, t->here.g_norm = t->norms + 1;
        t->there.p_norm = op_memory_there(m, t->norms), t->there.g_norm = t->there.p_norm + 1;
    }
    for (int i = 2; i < 2 + TDM_MAX_STATES; i++) {
        if (t->arena[i] == NULL) continue;
        t->here.state[i - 2] = t->twin[i];
        t->there.state[i - 2] = op_memory_there(m, t->arena[i]);
    }
}

static bool are_rounded(const uint16_t *narrow, const float *floats, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (narrow[i] != tdm__bf16_of(floats[i])) return false;
    return true;
}

static void one_step(training *t, tdm_capture *capture, int k) {
    const size_t count = t->here.count;
    *t->values = optim_values(t->optim, &t->c->section, t->c->section.lr / k, k);
    optim_numbers(1000 + (uint32_t)k, t->twin[1], count, ldexpf(1, k - 3));
    memcpy(t->arena[1], t->twin[1], count * sizeof(float));
    if (t->norms != NULL) (void)optim_norms(t->optim, &t->c->section, t->twin[0], t->twin[1], count, t->norms);
    op_memory_send(&t->memory);
    CHECK_OK(device->ops->captures->run(device, capture));
    op_memory_fetch(&t->memory);
    op_memory_check(&t->memory, t->optim->name);
    CHECK_OK(t->optim->cpu[TDM_ISA_REF](&t->here));
    for (int i = 0; i < 2 + TDM_MAX_STATES; i++)
        CHECK(t->arena[i] == NULL || memcmp(t->arena[i], t->twin[i], count * sizeof(float)) == 0);
    if (t->narrow != NULL) CHECK(are_rounded(t->narrow, t->twin[0], count));
}

/* The same steps on both sides; the device's are one captured step, run again and again. */
static void check_steps(const optim_case *c, size_t count, bool odd, bool narrow) {
    static training t;
    tdm_capture *capture = NULL;
    tdm_optim_run *run = cuda_run(c->optim);
    if (run == NULL) return; /* told by name below */
    training_open(&t, c, count, odd, narrow);
    CHECK_OK(device->ops->captures->begin(device));
    CHECK_OK(run(&t.there));
    CHECK_OK(device->ops->captures->end(device, &capture));
    for (int k = 1; k <= STEPS && capture != NULL; k++) one_step(&t, capture, k);
    device->ops->captures->free(device, capture);
    op_memory_free(&t.memory);
}

TEST(every_optimizer_has_a_kernel) {
    for (const tdm_optim_def *const *optim = tdm_builtin_optims; *optim != NULL; optim++) {
        if (cuda_run((*optim)->name) != NULL) continue;
        tdm_test_failures++;
        fprintf(stderr, "%s has no kernel on CUDA: write ops/optim/%s/%s.cu\n", (*optim)->name, (*optim)->name,
                (*optim)->name);
    }
}

TEST(steps_equal_the_cpu) {
    for (int i = 0; i < OPTIM_CASES; i++) {
        for (int variant = 0; variant < 4; variant++)
            check_steps(&optim_cases[i], MOST, (variant & 1) != 0, (variant & 2) != 0);
        for (size_t count = 1; count < 9; count++) check_steps(&optim_cases[i], count, false, true);
    }
}

TEST_MAIN({
    device = cuda_open();
    RUN(every_optimizer_has_a_kernel);
    RUN(steps_equal_the_cpu);
    device->ops->close(device);
})
