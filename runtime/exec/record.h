/* The recorder. A replica's work runs call by call the first time. When the same work comes again, it is captured, once
 * for each slot, and runs in one call from then on. The recorder also keeps the stamps between a step's phases. */
#ifndef TDM_EXEC_RECORD_H
#define TDM_EXEC_RECORD_H

#include "runtime/exec/replica.h"

/* One piece of work in one slot. */
typedef struct tdm_record {
    struct tdm_record *next;
    tdm_hash128 key;      /* of what the work is, with stamps or without */
    int slot;             /* where the rows and values lie that a capture reads; 0 without captures */
    tdm_capture *capture; /* NULL: run once so far, or never captured */
    bool plain;           /* a capture was tried, and this work cannot be captured */
    int laps;
    tdm_phase *phase;         /* [laps] */
    tdm_device_event **stamp; /* [laps + 1]; the first is the beginning */
    int stamp_count;          /* opened */
    size_t phase_room, stamp_room;
} tdm_record;

struct tdm_recorder {
    tdm_record *record;  /* in use */
    tdm_record *records; /* all, the last used first */
    tdm_captures captures;
    bool capturing;    /* work is being captured now */
    bool untimed;      /* no step is timed: another replica has the step's stamps */
    bool timed;        /* this step is */
    uint64_t timed_at; /* the last step that was timed; 0: none */
    tdm_times sample;  /* the phases of the last step whose times are known */
};

tdm_status tdm__recorder_open(tdm_replica *replica, bool untimed);
void tdm__recorder_close(tdm_replica *replica);
/* Decides whether this step is timed. */
void tdm__recorder_begin(tdm_replica *replica, uint64_t step);
/* The record of the step's last work; NULL if the step is not timed. */
tdm_record *tdm__recorder_timed(const tdm_replica *replica);
/* Makes the laps of the record's last run, which is done, the sample; with `add` adds them to it. */
tdm_status tdm__recorder_sample(tdm_replica *replica, const tdm_record *record, bool add);
/* Adds the sample's phases to those that *times has. */
void tdm__recorder_add_sample(const tdm_replica *replica, tdm_times *times);

#endif
