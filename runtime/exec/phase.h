/* The phases of a step, and the time each took. */
#ifndef TDM_EXEC_PHASE_H
#define TDM_EXEC_PHASE_H

typedef enum tdm_phase {
    TDM_PHASE_DATA,
    TDM_PHASE_SCATTER,
    TDM_PHASE_REPLICATE,
    TDM_PHASE_FORWARD,
    TDM_PHASE_GATHER,
    TDM_PHASE_LOSS,
    TDM_PHASE_BACKWARD,
    TDM_PHASE_COMM,         /* time that collectives took, hidden behind other work or exposed */
    TDM_PHASE_COMM_EXPOSED, /* the part of it that the step waited for */
    TDM_PHASE_OPTIMIZER,
    TDM_PHASE_STEP,
    TDM_PHASE_COUNT
} tdm_phase;
extern const char *const tdm__phase_names[TDM_PHASE_COUNT];

typedef struct tdm_times {
    double ms[TDM_PHASE_COUNT]; /* NaN: this mode has no such phase */
} tdm_times;

/* The phases in the set (bits 1 << phase) are 0, all others NaN. */
void tdm__times_init(tdm_times *times, unsigned phases);

#endif
