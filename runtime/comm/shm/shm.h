/* What the files of the `shm` backend share: the file behind a job, and the processes that use it. */
#ifndef TDM_COMM_SHM_SHM_H
#define TDM_COMM_SHM_SHM_H

#include "runtime/comm/group.h"

/* ---- shm_region.c: an anonymous file that only grows ---- */

/* The layout of the file, from its start:
 *
 *   0          tdm_control
 *   process    tdm_process of each rank
 *   seats      tdm_seat of each rank of the job, then their mailboxes
 *   total      regions, appended by tdm__group_share: staging memory, `allocate`, seats of sub-groups
 *
 * `total` is a multiple of the page size. */
typedef struct tdm_shm_layout {
    size_t process, seats, total;
} tdm_shm_layout;
tdm_shm_layout tdm__shm_layout(int world);

size_t tdm__shm_page(void);
/* Makes a file of `bytes` zeroed bytes that no process can shrink. */
tdm_status tdm__shm_file(int *fd, size_t bytes);
/* Reserves memory for [offset, offset + bytes), so that no later access can fail. */
tdm_status tdm__shm_reserve(int fd, uint64_t offset, size_t bytes);
tdm_status tdm__shm_map(int fd, uint64_t offset, size_t bytes, void **out);
/* Maps the control page of a file from tdm_launch_create; TDM_E_USAGE for any other file. The caller unmaps
 * sizeof(tdm_control) bytes. */
tdm_status tdm__shm_map_control(int fd, tdm_control **out);

/* ---- shm_process.c: does a process still run? ---- */

void tdm__process_note(tdm_process *process);       /* fills in the calling process; does not change `state` */
int tdm__process_watch(const tdm_process *process); /* a process descriptor for `watch` below, or -1 */
bool tdm__process_gone(const tdm_process *process, int watch);

/* ---- shm_watch.c: the thread that sends heartbeats and watches the other ranks ---- */

/* Starts the thread for `rank`, which has joined or is at the rendezvous. A rank that is gone, or that sends no
 * heartbeat for heartbeat_ms (0: no limit; else at least 1000), ends the job. */
tdm_status tdm__watch_open(tdm_watch **out, tdm_site *site, int rank, const tdm_seat *seat, int64_t heartbeat_ms);
/* A rank has joined: check all ranks now. */
void tdm__watch_look(tdm_watch *watch);
/* This rank leaves: marks it as left, if it had joined, and ends the thread. In a child of fork, which has no such
 * thread, only frees the memory. NULL is fine. */
void tdm__watch_close(tdm_watch *watch);

/* ---- shm_comm.c ---- */

/* watched: the ranks fail when the calling process ends. */
tdm_status tdm__shm_create_file(int *fd, int world, bool watched);
/* For rank 0 during the rendezvous: ranks that have already joined see that it is alive, and it watches them. */
tdm_status tdm__shm_host_open(tdm_site **out, int fd, int world, const tdm_host *host);
void tdm__shm_host_close(tdm_site *site); /* NULL is fine */

#endif
