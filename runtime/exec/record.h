/* Work that has run before: its capture, and the stamps between its phases. */
#ifndef TDM_EXEC_RECORD_H
#define TDM_EXEC_RECORD_H

#include "runtime/exec/replica.h"

enum { TDM_MAX_LAPS = 128 }; /* of one step; later ones are in no phase */

struct tdm_record {
    tdm_record *next;
    tdm_hash128 key;      /* of what the work is, with stamps or without */
    int place;            /* where its rows and values lie */
    tdm_capture *capture; /* NULL: seen once, or not to be captured */
    bool plain;           /* it was tried, and cannot be captured */
    int laps;
    tdm_phase phase[TDM_MAX_LAPS];
    tdm_device_event *stamp[TDM_MAX_LAPS + 1]; /* of a discrete device; [0]: the beginning */
    int stamp_count;                           /* opened */
    int64_t last_ns;                           /* otherwise: the clock at the last lap, and what each phase took */
    double ms[TDM_PHASE_COUNT];
};

/* The laps of the record's last run, which is done, become the replica's sample, or with `add` are added to it. */
tdm_status tdm__record_sample(tdm_replica *replica, const tdm_record *record, bool add);
void tdm__records_free(tdm_replica *replica);

#endif
