/* What the files of the `shm` backend share: the file behind a job, and the processes around it. */
#ifndef TDM_COMM_SHM_SHM_H
#define TDM_COMM_SHM_SHM_H

#include "runtime/comm/group.h"

/* ---- shm_region.c: an anonymous file that only grows ---- */

/* The layout of the start of the file: control, processes, seats of all ranks with their boxes. */
typedef struct tdm_shm_layout {
    size_t process, seats, total; /* offsets; total in whole pages */
} tdm_shm_layout;
tdm_shm_layout tdm__shm_layout(int world);

size_t tdm__shm_page(void);
/* A file of `bytes` zeroed bytes that nobody can shrink. */
tdm_status tdm__shm_file(int *fd, size_t bytes);
/* Give [offset, offset + bytes) real memory, so that no later access can fail. */
tdm_status tdm__shm_reserve(int fd, uint64_t offset, size_t bytes);
tdm_status tdm__shm_map(int fd, uint64_t offset, size_t bytes, void **out);
/* The control page of a file from tdm__shm_create; TDM_E_USAGE for any other. Unmap sizeof(tdm_control) bytes. */
tdm_status tdm__shm_map_control(int fd, tdm_control **out);

/* ---- shm_process.c: is somebody still there? ---- */

void tdm__process_note(tdm_process *process);       /* the calling process; `state` is left alone */
int tdm__process_watch(const tdm_process *process); /* a descriptor for `gone`, or -1 */
bool tdm__process_gone(const tdm_process *process, int watch);

/* ---- shm_watch.c: the thread that says "alive" and looks after the others ---- */

/* `rank` has joined, or meets the others. A rank without a sign of life for heartbeat_ms (0: for ever; else at least
 * 1000) ends the job, and so does one that is gone. */
tdm_status tdm__watch_open(tdm_watch **out, tdm_site *site, int rank, const tdm_seat *seat, int64_t heartbeat_ms);
/* Somebody has joined: look now. */
void tdm__watch_look(tdm_watch *watch);
/* This rank leaves: says so, unless it has only met the others, and ends the thread. A child of fork, which has none,
 * only frees. NULL is fine. */
void tdm__watch_close(tdm_watch *watch);

/* ---- shm_comm.c ---- */

/* watched: the ranks fail when the calling process ends. */
tdm_status tdm__shm_create_file(int *fd, int world, bool watched);
/* Rank 0 until the others have come: those who have joined know that it is there, and it looks after them. */
tdm_status tdm__shm_host_open(tdm_site **out, int fd, int world, const tdm_host *host);
void tdm__shm_host_close(tdm_site *site); /* NULL is fine */

#endif
