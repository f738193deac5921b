/* Threads that share one piece of work with the thread that uses a device in the host's memory. */
#ifndef TDM_DEVICE_THREADS_H
#define TDM_DEVICE_THREADS_H

#include <stddef.h>
#include <stdint.h>

#include <tandem/sys/device.h>

/* *out: `count` threads, of which the calling one is one; NULL if count is 1, or `begin` is NULL. The others are
 * started when they first have work. device: the number of the device, for the host. begin: called first in each of the
 * others; a module's, whose kernels need it. A thread that finds them at work does its own work alone. */
tdm_status tdm__threads_open(tdm_threads **out, const tdm_host *host, int count, int device, void (*begin)(void));
void tdm__threads_close(tdm_threads *threads); /* NULL is fine */

/* Calls work(data, begin, end) over [0, count), cut into a range for each thread, and returns when all are done.
 * Threads NULL, or at work already: the calling one does all. TDM_E_MEMORY if threads cannot be started. */
tdm_status tdm__threads_share(tdm_threads *threads, int64_t count, void (*work)(void *data, int64_t begin, int64_t end),
                              void *data);

/* The same for loops over arrays: parts begin at multiples of 16, and small counts run on the calling thread. Each
 * number must be computed alone, so that its bits do not depend on the parts. */
tdm_status tdm__threads_loop(tdm_threads *threads, size_t count, void (*work)(void *user, size_t begin, size_t end),
                             void *user);

#endif
