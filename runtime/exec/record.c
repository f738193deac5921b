/* Runs a step's work; record.h says what a recorder is. */
#include "runtime/exec/record.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include <tandem/tandem.h>

#include "runtime/base/system/env.h"
#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/exec/slots.h"

/* Enough for whole batches and the last batch of an epoch, with stamps and without. */
enum { MOST_RECORDS = 6 * TDM_SLOTS };

const char *const tdm__phase_names[TDM_PHASE_COUNT] = {
    "data",     "scatter", "replicate",    "forward",   "gather", "loss",
    "backward", "comm",    "comm_exposed", "optimizer", "step",
};

/* Programs get the times as a struct. */
#define IS_AT(member, phase) (offsetof(tdm_phase_ms, member) == (phase) * sizeof(double))
_Static_assert(sizeof(tdm_phase_ms) == TDM_PHASE_COUNT * sizeof(double), "a member for each phase");
_Static_assert(IS_AT(data, TDM_PHASE_DATA) && IS_AT(scatter, TDM_PHASE_SCATTER) &&
                   IS_AT(replicate, TDM_PHASE_REPLICATE) && IS_AT(forward, TDM_PHASE_FORWARD) &&
                   IS_AT(gather, TDM_PHASE_GATHER) && IS_AT(loss, TDM_PHASE_LOSS) &&
                   IS_AT(backward, TDM_PHASE_BACKWARD) && IS_AT(comm, TDM_PHASE_COMM) &&
                   IS_AT(comm_exposed, TDM_PHASE_COMM_EXPOSED) && IS_AT(optimizer, TDM_PHASE_OPTIMIZER) &&
                   IS_AT(step, TDM_PHASE_STEP),
               "the members are in the order of the phases");

void tdm__times_init(tdm_times *times, unsigned phases) {
    for (int i = 0; i < TDM_PHASE_COUNT; i++) times->ms[i] = (phases >> i & 1) != 0 ? 0 : NAN;
}

/* ---- the list ---- */

static void free_record(tdm_replica *replica, tdm_record *record) {
    tdm_device *device = replica->device;
    if (record->capture != NULL) device->ops->captures->free(device, record->capture);
    for (int i = 0; i < record->stamp_count; i++) device->ops->events->close(device, record->stamp[i]);
    tdm__delete(replica->host, record->stamp);
    tdm__delete(replica->host, record->phase);
    tdm__delete(replica->host, record);
}

static void free_records(tdm_replica *replica) {
    tdm_recorder *r = replica->recorder;
    while (r->records != NULL) {
        tdm_record *next = r->records->next;
        free_record(replica, r->records);
        r->records = next;
    }
    r->record = NULL;
}

static void drop_oldest(tdm_replica *replica) {
    int count = 0;
    tdm_record **last = &replica->recorder->records;
    for (tdm_record *r = *last; r != NULL; r = r->next) {
        count++;
        if (r->next != NULL) last = &r->next;
    }
    if (count < MOST_RECORDS) return;
    tdm_record *oldest = *last;
    *last = NULL;
    free_record(replica, oldest);
}

/* The record becomes the first of the list. */
static tdm_record *find(tdm_recorder *recorder, tdm_hash128 key, int slot) {
    tdm_record **link = &recorder->records;
    for (tdm_record *r = *link; r != NULL; link = &r->next, r = r->next) {
        if (r->key.low != key.low || r->key.high != key.high || r->slot != slot) continue;
        *link = r->next;
        r->next = recorder->records;
        recorder->records = r;
        return r;
    }
    return NULL;
}

/* A record of the same work in another slot; NULL: there is none. */
static const tdm_record *find_like(const tdm_recorder *recorder, tdm_hash128 key) {
    for (const tdm_record *r = recorder->records; r != NULL; r = r->next)
        if (r->key.low == key.low && r->key.high == key.high) return r;
    return NULL;
}

void tdm__replica_forget(tdm_replica *replica) {
    (void)replica->device->ops->queues->finish(replica->device, NULL); /* it may be running */
    free_records(replica);
}

/* ---- the recorder ---- */

tdm_status tdm__recorder_open(tdm_replica *replica, bool untimed) {
    const char *graphs = tdm__env(TDM_ENV_CUDA_GRAPHS);
    const bool able = replica->device->ops->captures != NULL && (graphs == NULL || strcmp(graphs, "0") != 0);
    TDM_TRY(tdm__new(replica->host, &replica->recorder, 1, sizeof(*replica->recorder), "recorder"));
    replica->recorder->captures = able ? TDM_CAPTURES_ALONE : TDM_CAPTURES_NEVER;
    replica->recorder->untimed = untimed;
    return TDM_OK;
}

void tdm__recorder_close(tdm_replica *replica) {
    if (replica->recorder == NULL) return;
    free_records(replica);
    tdm__delete(replica->host, replica->recorder);
    replica->recorder = NULL;
}

void tdm__replica_set_captures(tdm_replica *replica, tdm_captures captures) {
    if (replica->recorder->captures != TDM_CAPTURES_NEVER) replica->recorder->captures = captures;
}

bool tdm__replica_is_capturing(const tdm_replica *replica) {
    return replica->recorder->capturing;
}

/* Stamps between phases add nodes to captured work, so on devices that capture only some steps have them. The step's
 * number alone decides which, because all ranks must capture the same. Steps that are timed never follow each other:
 * the stamps of one are read when the next is in flight. */
enum { TIMED_EVERY = 8 };

void tdm__recorder_begin(tdm_replica *replica, uint64_t step) {
    tdm_recorder *r = replica->recorder;
    r->record = NULL;
    if (step < r->timed_at) r->timed_at = 0; /* an earlier checkpoint was loaded */
    r->timed = !r->untimed && (replica->device->ops->captures == NULL || r->timed_at == 0 ||
                               (step % TIMED_EVERY == 1 && step > r->timed_at + 1));
    if (r->timed) r->timed_at = step;
}

tdm_record *tdm__recorder_timed(const tdm_replica *replica) {
    return replica->recorder->timed ? replica->recorder->record : NULL;
}

/* ---- laps ---- */

static tdm_status open_stamps(tdm_replica *replica, int count) {
    tdm_record *record = replica->recorder->record;
    TDM_TRY(
        tdm__grow(replica->host, &record->stamp, &record->stamp_room, (size_t)count, sizeof(*record->stamp), "stamps"));
    for (; record->stamp_count < count; record->stamp_count++)
        TDM_TRY(replica->device->ops->events->open(replica->device, TDM_STAMPS, &record->stamp[record->stamp_count]));
    return TDM_OK;
}

static tdm_status stamp(tdm_replica *replica, int index) {
    tdm_device *device = replica->device;
    tdm_record *record = replica->recorder->record;
    if (index >= record->stamp_count) TDM_TRY(open_stamps(replica, index + 1));
    return device->ops->events->stamp(device, record->stamp[index], NULL);
}

static tdm_status begin_laps(tdm_replica *replica) {
    replica->recorder->record->laps = 0;
    return replica->recorder->timed ? stamp(replica, 0) : TDM_OK;
}

tdm_status tdm__replica_lap(tdm_replica *replica, tdm_phase phase) {
    tdm_record *record = tdm__recorder_timed(replica);
    if (record == NULL) return TDM_OK;
    if ((size_t)record->laps == record->phase_room)
        TDM_TRY(tdm__grow(replica->host, &record->phase, &record->phase_room, (size_t)record->laps + 1,
                          sizeof(*record->phase), "stamps"));
    record->phase[record->laps++] = phase;
    return stamp(replica, record->laps);
}

tdm_status tdm__recorder_sample(tdm_replica *replica, const tdm_record *record, bool add) {
    tdm_device *device = replica->device;
    double *ms = replica->recorder->sample.ms;
    if (!add) memset(ms, 0, sizeof(replica->recorder->sample.ms));
    for (int i = 0; i < record->laps; i++) {
        double lap = 0;
        TDM_TRY(device->ops->events->ms(device, record->stamp[i], record->stamp[i + 1], &lap));
        ms[record->phase[i]] += lap;
    }
    return TDM_OK;
}

void tdm__recorder_add_sample(const tdm_replica *replica, tdm_times *times) {
    for (int i = 0; i < TDM_PHASE_COUNT; i++) times->ms[i] += replica->recorder->sample.ms[i]; /* NaN stays NaN */
}

/* ---- running ---- */

static tdm_status run_plainly(tdm_replica *replica, tdm_work work, void *user) {
    TDM_TRY(begin_laps(replica));
    return work(user);
}

static tdm_status capture(tdm_replica *replica, tdm_work work, void *user) {
    tdm_device *device = replica->device;
    TDM_TRY(device->ops->captures->begin(device));
    replica->recorder->capturing = true;
    tdm_status status = run_plainly(replica, work, user);
    replica->recorder->capturing = false;
    tdm_error error;
    if (status != TDM_OK) tdm__error_save(&error);
    tdm_status ended = device->ops->captures->end(device, &replica->recorder->record->capture);
    return status != TDM_OK ? tdm__error_restore(&error, NULL) : ended;
}

/* Removes the record in use, so that its work counts as never run. */
static tdm_status drop(tdm_replica *replica, tdm_status status) {
    tdm_recorder *r = replica->recorder;
    tdm_error error;
    tdm__error_save(&error);
    error.status = status;
    r->records = r->record->next; /* the one in use is the first */
    free_record(replica, r->record);
    r->record = NULL;
    return tdm__error_restore(&error, NULL);
}

/* Work that cannot be captured is run call by call, unless other ranks capture the same work and count on it. */
static tdm_status try_capture(tdm_replica *replica, tdm_work work, void *user) {
    tdm_error before;
    tdm__error_save(&before);
    tdm_status status = capture(replica, work, user);
    if ((status != TDM_E_DEVICE && status != TDM_E_MEMORY) || replica->recorder->captures == TDM_CAPTURES_TOGETHER)
        return status;
    TDM_WARN(replica->host, "device", "%s: this step cannot be one graph and is started call by call: %s",
             replica->device->name, tdm_error_message());
    (void)tdm__error_restore(&before, NULL);
    replica->recorder->record->plain = true;
    return TDM_OK;
}

/* *has_run: the same work has run in another slot. */
static tdm_status add_record(tdm_replica *replica, tdm_hash128 key, int slot, bool *has_run) {
    tdm_recorder *r = replica->recorder;
    const tdm_record *like = find_like(r, key);
    const bool plain = like != NULL && like->plain;
    const int stamp_count = like != NULL ? like->stamp_count : 0;
    *has_run = like != NULL;
    drop_oldest(replica);
    TDM_TRY(tdm__new(replica->host, &r->record, 1, sizeof(*r->record), "record of a step"));
    r->record->key = key;
    r->record->slot = slot;
    r->record->next = r->records;
    r->records = r->record;
    r->record->plain = plain;
    tdm_status status = open_stamps(replica, stamp_count);
    return status == TDM_OK ? TDM_OK : drop(replica, status);
}

/* Work that has run in another slot is captured when it first comes here: all that it needs is prepared. */
static tdm_status run_recorded(tdm_replica *replica, bool has_run, tdm_work work, void *user) {
    const tdm_recorder *r = replica->recorder;
    const tdm_record *record = r->record;
    if (has_run && r->captures != TDM_CAPTURES_NEVER && record->capture == NULL && !record->plain)
        TDM_TRY(try_capture(replica, work, user));
    if (record->capture == NULL) return run_plainly(replica, work, user);
    return replica->device->ops->captures->run(replica->device, record->capture);
}

tdm_status tdm__replica_run(tdm_replica *replica, tdm_hash128 key, tdm_work work, void *user) {
    tdm_recorder *r = replica->recorder;
    const int slot = r->captures != TDM_CAPTURES_NEVER ? replica->slots->current : 0;
    bool has_run = true;
    if (r->timed) key.high = ~key.high; /* with stamps it is other work */
    r->record = find(r, key, slot);
    if (r->record == NULL) TDM_TRY(add_record(replica, key, slot, &has_run));
    tdm_status status = run_recorded(replica, has_run, work, user);
    return status == TDM_OK ? TDM_OK : drop(replica, status);
}
