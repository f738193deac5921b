/* Running a step's work: plainly the first time, captured when it comes again, once for each place, from then on in one
 * call. */
#include "runtime/exec/record.h"

#include <math.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/exec/stage.h"

/* Usually for a whole batch and the last of an epoch, with stamps and without. */
enum { MOST_RECORDS = 6 * TDM_PLACES };

const char *const tdm__phase_names[TDM_PHASE_COUNT] = {
    "data",     "scatter", "replicate",    "forward",   "gather", "loss",
    "backward", "comm",    "comm_exposed", "optimizer", "step",
};

void tdm__times_init(tdm_times *times, const tdm_phase *phases, int count) {
    for (int i = 0; i < TDM_PHASE_COUNT; i++) times->ms[i] = NAN;
    for (int i = 0; i < count; i++) times->ms[phases[i]] = 0;
}

/* ---- the list ---- */

static void free_record(tdm_replica *replica, tdm_record *record) {
    tdm_device *device = replica->device;
    if (record->capture != NULL) device->ops->capture_free(device, record->capture);
    for (int i = 0; i < record->stamp_count; i++) device->ops->event_close(device, record->stamp[i]);
    tdm__delete(replica->host, record);
}

void tdm__records_free(tdm_replica *replica) {
    while (replica->records != NULL) {
        tdm_record *next = replica->records->next;
        free_record(replica, replica->records);
        replica->records = next;
    }
    replica->record = NULL;
}

static void drop_oldest(tdm_replica *replica) {
    int count = 0;
    tdm_record **last = &replica->records;
    for (tdm_record *r = replica->records; r != NULL; r = r->next) {
        count++;
        if (r->next != NULL) last = &r->next;
    }
    if (count < MOST_RECORDS) return;
    tdm_record *oldest = *last;
    *last = NULL;
    free_record(replica, oldest);
}

/* The record becomes the first of the list. */
static tdm_record *find(tdm_replica *replica, tdm_hash128 key, int place) {
    tdm_record **link = &replica->records;
    for (tdm_record *r = *link; r != NULL; link = &r->next, r = r->next) {
        if (r->key.low != key.low || r->key.high != key.high || r->place != place) continue;
        *link = r->next;
        r->next = replica->records;
        replica->records = r;
        return r;
    }
    return NULL;
}

/* The same work in another place, which has run. */
static const tdm_record *find_like(const tdm_replica *replica, tdm_hash128 key) {
    for (const tdm_record *r = replica->records; r != NULL; r = r->next)
        if (r->key.low == key.low && r->key.high == key.high) return r;
    return NULL;
}

void tdm__replica_forget(tdm_replica *replica) {
    (void)replica->device->ops->finish(replica->device, NULL); /* it may be running; a failure was told before */
    tdm__records_free(replica);
}

/* ---- laps ---- */

static tdm_status open_stamps(tdm_replica *replica, int count) {
    tdm_record *record = replica->record;
    for (; record->stamp_count < count; record->stamp_count++)
        TDM_TRY(replica->device->ops->event_open(replica->device, TDM_STAMPS, &record->stamp[record->stamp_count]));
    return TDM_OK;
}

static tdm_status stamp(tdm_replica *replica, int index) {
    tdm_device *device = replica->device;
    TDM_TRY(open_stamps(replica, index + 1));
    return device->ops->event_stamp(device, replica->record->stamp[index], NULL);
}

static tdm_status begin_laps(tdm_replica *replica) {
    replica->record->laps = 0;
    if (!replica->timed) return TDM_OK;
    if (replica->device->ops->discrete) return stamp(replica, 0);
    memset(replica->record->ms, 0, sizeof(replica->record->ms));
    replica->record->last_ns = tdm__now_ns();
    return TDM_OK;
}

tdm_status tdm__replica_lap(tdm_replica *replica, tdm_phase phase) {
    tdm_record *record = replica->record;
    if (!replica->timed) return TDM_OK;
    if (!replica->device->ops->discrete) {
        int64_t now = tdm__now_ns();
        record->ms[phase] += (double)(now - record->last_ns) * 1e-6;
        record->last_ns = now;
        return TDM_OK;
    }
    if (record->laps == TDM_MAX_LAPS) return TDM_OK;
    record->phase[record->laps++] = phase;
    return stamp(replica, record->laps);
}

tdm_status tdm__record_sample(tdm_replica *replica, const tdm_record *record, bool add) {
    tdm_device *device = replica->device;
    double ms[TDM_PHASE_COUNT];
    memcpy(ms, record->ms, sizeof(ms));
    for (int i = 0; device->ops->discrete && i < record->laps; i++) {
        double lap = 0;
        TDM_TRY(device->ops->event_ms(device, record->stamp[i], record->stamp[i + 1], &lap));
        ms[record->phase[i]] += lap;
    }
    for (int i = 0; i < TDM_PHASE_COUNT; i++) replica->sample.ms[i] = add ? replica->sample.ms[i] + ms[i] : ms[i];
    return TDM_OK;
}

/* ---- running ---- */

static tdm_status run_plainly(tdm_replica *replica, tdm_work work, void *user) {
    TDM_TRY(begin_laps(replica));
    return work(user);
}

static tdm_status capture(tdm_replica *replica, tdm_work work, void *user) {
    tdm_device *device = replica->device;
    TDM_TRY(device->ops->capture_begin(device));
    replica->capturing = true;
    tdm_status status = run_plainly(replica, work, user);
    replica->capturing = false;
    tdm_error error;
    if (status != TDM_OK) tdm__error_save(&error);
    tdm_status ended = device->ops->capture_end(device, &replica->record->capture);
    return status != TDM_OK ? tdm__error_restore(&error, NULL) : ended;
}

static tdm_status drop(tdm_replica *replica, tdm_status status) {
    tdm_error error;
    tdm__error_save(&error);
    error.status = status;
    replica->records = replica->record->next; /* the one in use is the first */
    free_record(replica, replica->record);
    replica->record = NULL;
    return tdm__error_restore(&error, NULL);
}

/* What cannot be captured can be run all the same. */
static tdm_status try_capture(tdm_replica *replica, tdm_work work, void *user) {
    tdm_error before;
    tdm__error_save(&before);
    tdm_status status = capture(replica, work, user);
    if ((status != TDM_E_DEVICE && status != TDM_E_MEMORY) || replica->captures_together) return status;
    TDM_WARN(replica->host, "device", "%s: this step cannot be one graph and is started call by call: %s",
             replica->device->name, tdm_error_message());
    (void)tdm__error_restore(&before, NULL);
    replica->record->plain = true;
    return TDM_OK;
}

/* *has_run: the same work has, in another place. */
static tdm_status add_record(tdm_replica *replica, tdm_hash128 key, int place, bool *has_run) {
    const tdm_record *like = find_like(replica, key);
    const bool plain = like != NULL && like->plain;
    const int stamp_count = like != NULL ? like->stamp_count : 0;
    *has_run = like != NULL;
    drop_oldest(replica);
    TDM_TRY(tdm__new(replica->host, &replica->record, 1, sizeof(*replica->record), "record of a step"));
    replica->record->key = key;
    replica->record->place = place;
    replica->record->next = replica->records;
    replica->records = replica->record;
    replica->record->plain = plain;
    tdm_status status = open_stamps(replica, stamp_count);
    return status == TDM_OK ? TDM_OK : drop(replica, status);
}

/* Work that has run in another place is captured at once: all that had to be prepared for it is. */
static tdm_status run_recorded(tdm_replica *replica, bool has_run, tdm_work work, void *user) {
    tdm_record *record = replica->record;
    if (has_run && replica->captures && record->capture == NULL && !record->plain)
        TDM_TRY(try_capture(replica, work, user));
    if (record->capture == NULL) return run_plainly(replica, work, user);
    return replica->device->ops->capture_run(replica->device, record->capture);
}

tdm_status tdm__replica_run(tdm_replica *replica, tdm_hash128 key, tdm_work work, void *user) {
    int place = replica->stage != NULL ? tdm__stage_place(replica->stage) : 0;
    bool has_run = true;
    if (replica->timed) key.high = ~key.high; /* with stamps it is other work */
    replica->record = find(replica, key, place);
    if (replica->record == NULL) TDM_TRY(add_record(replica, key, place, &has_run));
    tdm_status status = run_recorded(replica, has_run, work, user);
    return status == TDM_OK ? TDM_OK : drop(replica, status); /* so that it counts as never run */
}
