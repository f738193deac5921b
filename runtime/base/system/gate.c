#include "runtime/base/system/gate.h"

#include <pthread.h>
#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/thread.h"

struct tdm_gate {
    const tdm_host *host;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    bool broken;
    int counters;
    int64_t at[];
};

tdm_status tdm__gate_open(tdm_gate **out, const tdm_host *host, int counters) {
    tdm_gate *gate = NULL;
    *out = NULL;
    TDM_TRY(tdm__new(host, &gate, 1, sizeof(*gate) + (size_t)counters * sizeof(gate->at[0]), "gate"));
    gate->host = host;
    gate->counters = counters;
    int error = pthread_mutex_init(&gate->mutex, NULL);
    if (error == 0) {
        error = tdm__condition_init(&gate->changed);
        if (error != 0) pthread_mutex_destroy(&gate->mutex);
    }
    if (error != 0) {
        tdm__delete(host, gate);
        TDM_FAIL(TDM_E_MEMORY, "gate: cannot be made: %s", strerrordesc_np(error));
    }
    *out = gate;
    return TDM_OK;
}

void tdm__gate_close(tdm_gate *gate) {
    if (gate == NULL) return;
    pthread_cond_destroy(&gate->changed);
    pthread_mutex_destroy(&gate->mutex);
    tdm__delete(gate->host, gate);
}

void tdm__gate_reset(tdm_gate *gate) {
    pthread_mutex_lock(&gate->mutex);
    memset(gate->at, 0, (size_t)gate->counters * sizeof(gate->at[0]));
    gate->broken = false;
    pthread_mutex_unlock(&gate->mutex);
}

void tdm__gate_raise(tdm_gate *gate, int counter, int64_t value) {
    pthread_mutex_lock(&gate->mutex);
    gate->at[counter] = value;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}

bool tdm__gate_wait(tdm_gate *gate, int counter, int64_t value) {
    pthread_mutex_lock(&gate->mutex);
    while (gate->at[counter] < value && !gate->broken) pthread_cond_wait(&gate->changed, &gate->mutex);
    const bool whole = !gate->broken;
    pthread_mutex_unlock(&gate->mutex);
    return whole;
}

void tdm__gate_break(tdm_gate *gate) {
    pthread_mutex_lock(&gate->mutex);
    gate->broken = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}
