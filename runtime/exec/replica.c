/* Binding the plan to memory, and preparing kernels for a number of rows. */
#include "runtime/exec/replica.h"

#include "runtime/base/status.h"
#include "runtime/base/sync.h"
#include "runtime/exec/prepared.h"

static tdm_status prepare_first(void *argument);

static tdm_status allocate_all(tdm_replica *replica, const tdm_replica_options *options) {
    const tdm_plan *plan = replica->plan;
    tdm_device *device = replica->device;
    const tdm_device_ops *ops = device->ops;
    size_t arena = plan->param_floats * sizeof(float);
    void *param = NULL, *grad = options->grad, *state = NULL, *activation = NULL, *buffer = NULL;
    TDM_TRY(ops->allocate(device, &param, arena, "parameters"));
    replica->param = param;
    if (plan->options.training && grad == NULL) {
        TDM_TRY(ops->allocate(device, &grad, arena, "gradients"));
        replica->owns_grad = true;
    }
    replica->grad = grad;
    if (options->state_count > 0)
        TDM_TRY(ops->allocate(device, &state, arena * (size_t)options->state_count, "optimizer state"));
    replica->state = state;
    replica->state_count = options->state_count;
    TDM_TRY(ops->allocate(device, &activation, plan->activation_bytes, "activations"));
    replica->activation = activation;
    TDM_TRY(ops->allocate(device, &buffer, plan->buffer_bytes, "buffers"));
    replica->buffer = buffer;
    replica->memory_bytes =
        arena * (size_t)(1 + (grad != NULL) + options->state_count) + plan->activation_bytes + plan->buffer_bytes;
    return TDM_OK;
}

tdm_status tdm__replica_open(tdm_replica **out, const tdm_host *host, const tdm_plan *plan, tdm_device *device,
                             const tdm_replica_options *options) {
    *out = NULL;
    tdm_replica *replica = NULL;
    TDM_TRY(tdm__new(host, &replica, 1, sizeof(*replica), "replica"));
    replica->plan = plan;
    replica->host = host;
    replica->device = device;
    replica->index = options->index;
    replica->seed = options->seed;
    /* Preparing kernels is mostly making machine code: it goes on beside opening the data and the folder. */
    tdm_status status = tdm__worker_open(&replica->preparation, host, "prepare");
    if (status == TDM_OK) status = tdm__worker_start(replica->preparation, prepare_first, replica);
    if (status == TDM_OK) status = allocate_all(replica, options);
    if (status != TDM_OK) {
        tdm__replica_close(replica);
        return status;
    }
    *out = replica;
    return TDM_OK;
}

void tdm__replica_close(tdm_replica *replica) {
    if (replica == NULL) return;
    tdm__worker_close(replica->preparation);
    while (replica->prepared != NULL) {
        tdm_prepared *next = replica->prepared->next;
        tdm__prepared_free(replica, replica->prepared);
        replica->prepared = next;
    }
    const tdm_device_ops *ops = replica->device->ops;
    ops->release(replica->device, replica->param);
    if (replica->owns_grad) ops->release(replica->device, replica->grad);
    ops->release(replica->device, replica->state);
    ops->release(replica->device, replica->activation);
    ops->release(replica->device, replica->buffer);
    tdm__delete(replica->host, replica);
}

/* ---- kernels prepared for a number of rows ---- */

void tdm__prepared_free(tdm_replica *replica, tdm_prepared *prepared) {
    const tdm_plan *plan = replica->plan;
    for (int i = 0; i < plan->node_count; i++) {
        const tdm_kernel *kernel = plan->nodes[i].kernel;
        if (prepared->state[i] != NULL && kernel != NULL && kernel->close != NULL) kernel->close(prepared->state[i]);
    }
    tdm__delete(replica->host, prepared->state);
    tdm__delete(replica->host, prepared);
}

static tdm_status open_states(tdm_replica *replica, tdm_prepared *prepared) {
    const tdm_plan *plan = replica->plan;
    for (int i = 0; i < plan->node_count; i++) {
        const tdm_kernel *kernel = plan->nodes[i].kernel;
        if (kernel == NULL || kernel->open == NULL) continue;
        TDM_TRY(kernel->open(&plan->nodes[i].desc, prepared->rows, prepared->training, &prepared->state[i]));
    }
    return TDM_OK;
}

static tdm_status add_prepared(tdm_replica *replica, int64_t rows, bool training) {
    tdm_prepared *prepared = NULL;
    TDM_TRY(tdm__new(replica->host, &prepared, 1, sizeof(*prepared), "prepared kernels"));
    prepared->rows = rows;
    prepared->training = training;
    tdm_status status = tdm__new(replica->host, &prepared->state, (size_t)replica->plan->node_count, sizeof(void *),
                                 "prepared kernels");
    if (status == TDM_OK) status = open_states(replica, prepared);
    if (status != TDM_OK) {
        if (prepared->state != NULL)
            tdm__prepared_free(replica, prepared);
        else
            tdm__delete(replica->host, prepared);
        return tdm__frame(status, __FILE__, __LINE__);
    }
    prepared->next = replica->prepared;
    replica->prepared = prepared;
    return TDM_OK;
}

static tdm_status prepare_first(void *argument) {
    tdm_replica *replica = argument;
    return add_prepared(replica, replica->plan->options.rows, replica->plan->options.training);
}

/* From here on the list belongs to the calling thread. */
static tdm_status wait_for_first(tdm_replica *replica) {
    if (replica->preparation == NULL) return TDM_OK;
    tdm_status status = tdm__worker_wait(replica->preparation, -1);
    tdm__worker_close(replica->preparation);
    replica->preparation = NULL;
    return status;
}

tdm_status tdm__prepared_find(tdm_replica *replica, int64_t rows, bool training, tdm_prepared **out) {
    TDM_TRY(wait_for_first(replica));
    tdm_prepared **link = &replica->prepared;
    for (tdm_prepared *p = *link; p != NULL; link = &p->next, p = p->next) {
        if (p->rows != rows || p->training != training) continue;
        *link = p->next; /* the last used comes first, so that the usual case is found at once */
        p->next = replica->prepared;
        replica->prepared = p;
        *out = p;
        return TDM_OK;
    }
    TDM_TRY(add_prepared(replica, rows, training));
    *out = replica->prepared;
    return TDM_OK;
}
