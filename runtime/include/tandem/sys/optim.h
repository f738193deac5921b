/* tandem/sys/optim.h - what an optimizer is, and how its step runs somewhere. For writers of optimizers and of modules.
 *
 * A step of an optimizer has two halves. `prepare` works out its scalars on the host, in double, and narrows each to
 * float where ATen does; they go to the device with the other values of the step. The kernel is one pass over flat
 * arenas: the parameters, their gradients and the optimizer's state, float for float, all in the device's memory. */
#ifndef TANDEM_SYS_OPTIM_H
#define TANDEM_SYS_OPTIM_H

#include <tandem/job.h>
#include <tandem/sys/op.h>

TDM_BEGIN_DECLS

enum { TDM_MAX_STATES = 4 }; /* arenas of state */

/* The inputs of `prepare` for one step. */
typedef struct tdm_optim_settings {
    const tdm_optimizer_section *section; /* of the job; what stands below is taken instead of its own */
    double lr, momentum;                  /* of this step: schedules change both; momentum may be betas[0], see below */
    double weight_decay;                  /* a number: the definition's where the job has none */
    int64_t t;                            /* 1 in the first step */
} tdm_optim_settings;

/* One step over `count` numbers. The struct is borrowed for the call; the memory that it points to, until the work is
 * done. The arenas do not overlap; they are as well aligned as the device allocates, or as floats are. */
typedef struct tdm_optim_args {
    tdm_device *device;            /* whose memory the pointers below are in, and on whose queue the work goes */
    const tdm_step_values *values; /* its `optim` is what prepare wrote */
    float *p;                      /* parameters; changed */
    const float *g;                /* gradients of the step's mean loss, clipped if the job clips */
    float *state[TDM_MAX_STATES];  /* updated; zeros before the first step; NULL where the job does not need it */
    void *p_bf16; /* receives p in bf16, to the nearest, ties to even; NULL: not needed, as always on the CPU, where the
                     executor rounds all of them afterwards */
    /* Of a parameter for which takes_norms is true, whose numbers alone these then are: the 2-norms of all its numbers
     * and of all its gradients, a number each, before the step. Else NULL. */
    const float *p_norm, *g_norm;
    size_t count;
} tdm_optim_args;

/* A kernel. It puts work on the device's own queue and returns: no waiting, no allocation. Only args->values changes
 * from step to step, and it is read by the work itself: that may be captured, and run again with other values. It is
 * called by the thread that uses the device, which has entered it; for different devices by several threads at once.
 * On the CPU the work is done when it returns, it cannot fail, and several threads may do parts of one step at once. */
typedef tdm_status tdm_optim_run(const tdm_optim_args *args);

/* Two settings that contradict each other in this optimizer. */
typedef struct tdm_optim_conflict {
    const char *key, *other; /* "optimizer.nesterov"; NULL behind the last */
    const char *message;
    bool (*is_met)(const tdm_optimizer_section *section);
} tdm_optim_conflict;

enum { TDM_MAX_OPTIM_KEYS = 8, TDM_MAX_OPTIM_CONFLICTS = 4 };

typedef struct tdm_optim_def {
    const char *name, *doc; /* "adam"; and the class of torch.optim whose bits it has */
    /* The keys of section `optimizer` that are its own, beside those that every optimizer has; NULL behind the last. */
    const char *keys[TDM_MAX_OPTIM_KEYS + 1];
    tdm_optim_conflict conflict[TDM_MAX_OPTIM_CONFLICTS + 1];
    const char *state[TDM_MAX_STATES];   /* the arenas of state, by PyTorch's keys; NULL behind the last */
    bool never_negative[TDM_MAX_STATES]; /* of each: such as sums of squares. A checkpoint with a negative is refused */
    /* Which arenas a job needs: bit i is state[i]. `cycles`: the job's schedule moves the momentum. NULL: all of them,
     * always. */
    unsigned (*states)(const tdm_optimizer_section *section, bool cycles);
    /* The setting that does without state[i]: "optimizer.momentum: 0"; NULL where every job needs it. */
    const char *without[TDM_MAX_STATES];
    double weight_decay; /* where the job names none: PyTorch's default */
    /* For optimizers whose step depends on norms: whether that of a parameter with so many dimensions does. Then a call
     * of the kernel is over one parameter, not over all whose settings are the same. NULL: no step does. */
    bool (*takes_norms)(const tdm_optimizer_section *section, int dimensions);
    bool moves_beta1; /* a schedule's momentum is betas[0], which is below 1; else it is `momentum` */
    /* Writes the optimizer's own struct, at most TDM_OPTIM_BYTES. Any thread; keeps nothing, cannot fail. */
    void (*prepare)(const tdm_optim_settings *settings, void *values);
    /* The CPU's kernel for each instruction set, all with the same bits. NULL where the build has none; never the
     * first. */
    tdm_optim_run *cpu[TDM_ISA_COUNT];
} tdm_optim_def;

/* An optimizer on a device other than the CPU. */
typedef struct tdm_optim_kernel {
    const char *optim, *variant; /* "adam", "cuda" */
    tdm_optim_run *run;
} tdm_optim_kernel;

TDM_END_DECLS
#endif
