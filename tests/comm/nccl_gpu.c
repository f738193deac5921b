/* See nccl_gpu.h. */
#include "tests/comm/nccl_gpu.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void gpu_nap(int ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

tdm_status gpu_open(gpu_rank *g, rank_context *c, int index, int64_t timeout_ms) {
    const tdm_device_ops *device;
    const tdm_comm_ops *comm;
    *g = (gpu_rank){0};
    tdm_status status = nccl_find(&device, &comm);
    if (status == TDM_OK) status = device->open(&g->device, tdm_host_default(), &(tdm_device_options){.index = index});
    if (status == TDM_OK)
        status = g->device->ops->allocate(g->device, (void **)&g->data, GPU_COUNT * sizeof(float), "data");
    if (status == TDM_OK) status = comm->open(&g->nccl, g->device, c->comm, timeout_ms);
    return status;
}

void gpu_close(gpu_rank *g) {
    if (g->nccl != NULL) g->nccl->ops->close(g->nccl);
    if (g->device == NULL) return;
    g->device->ops->release(g->device, g->data);
    g->device->ops->close(g->device);
}

void gpu_put(gpu_rank *g, float value) {
    float host[GPU_COUNT];
    for (int i = 0; i < GPU_COUNT; i++) host[i] = value;
    CHECK_OK(g->device->ops->queues->copy(g->device, NULL, g->data, host, sizeof(host)));
}

void gpu_check(gpu_rank *g, float want) {
    float host[GPU_COUNT];
    CHECK_OK(g->device->ops->queues->copy(g->device, NULL, host, g->data, sizeof(host)));
    CHECK_OK(g->device->ops->queues->finish(g->device, NULL));
    int wrong = 0;
    for (int i = 0; i < GPU_COUNT; i++) wrong += host[i] != want;
    CHECK_INT(wrong, 0);
}

tdm_status gpu_reduce(gpu_rank *g) {
    return tdm_comm_all_reduce(g->nccl, (tdm_span){g->data, GPU_COUNT, TDM_DTYPE_F32}, TDM_REDUCE_SUM);
}

tdm_status gpu_reduce_and_wait(gpu_rank *g) {
    tdm_status status = gpu_reduce(g);
    return status == TDM_OK ? g->nccl->ops->wait(g->nccl, NULL) : status;
}

tdm_capture *gpu_capture(gpu_rank *g, int runs) {
    tdm_capture *capture = NULL;
    CHECK_OK(g->device->ops->captures->begin(g->device));
    for (int i = 0; i < runs; i++) CHECK_OK(gpu_reduce(g));
    CHECK_OK(g->nccl->ops->join(g->nccl));
    CHECK_OK(g->device->ops->captures->end(g->device, &capture));
    CHECK(capture != NULL);
    return capture;
}

static bool is_keeper(const char *thread) {
    char path[300], name[32] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%s/comm", thread);
    FILE *file = fopen(path, "r");
    if (file == NULL) return false; /* it has ended meanwhile */
    bool read = fgets(name, sizeof(name), file) != NULL;
    fclose(file);
    return read && strcmp(name, "tandem-nccl\n") == 0;
}

static int count_keepers(void) {
    int count = 0;
    DIR *threads = opendir("/proc/self/task");
    if (threads == NULL) return -1;
    for (struct dirent *entry; (entry = readdir(threads)) != NULL;) count += is_keeper(entry->d_name);
    closedir(threads);
    return count;
}

int gpu_keepers(int wanted) {
    int count = count_keepers();
    for (int tries = 0; count != wanted && tries < 20000; tries++) {
        gpu_nap(1);
        count = count_keepers();
    }
    return count;
}
