/* A rank with a GPU of its own, emulated, and a communicator over NCCL: for tests that look at that itself. */
#ifndef TEST_COMM_NCCL_GPU_H
#define TEST_COMM_NCCL_GPU_H

#include "tests/comm/nccl_staged.h"
#include "tests/comm/ranks.h"

enum { GPU_COUNT = 1000 };

typedef struct gpu_rank {
    tdm_device *device;
    tdm_comm *nccl;
    float *data; /* GPU_COUNT floats of the device */
} gpu_rank;

tdm_status gpu_open(gpu_rank *g, rank_context *c, int index, int64_t timeout_ms);
void gpu_close(gpu_rank *g); /* also after a failed open */
void gpu_put(gpu_rank *g, float value);
void gpu_check(gpu_rank *g, float want); /* that all of the data is */
/* A sum over the ranks, in place. */
tdm_status gpu_reduce(gpu_rank *g);
tdm_status gpu_reduce_and_wait(gpu_rank *g);
/* `runs` of them in a graph; NULL where that failed, which was told. */
tdm_capture *gpu_capture(gpu_rank *g, int runs);
void gpu_nap(int ms);
/* Keepers of this process: each belongs to a site and ends with it. Counts again for up to 20 s while there are not
 * `wanted`, because a thread that has been joined stays in /proc a moment longer. */
int gpu_keepers(int wanted);

#endif
