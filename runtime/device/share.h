/* Loops over arrays that the threads of a device share. */
#ifndef TDM_DEVICE_SHARE_H
#define TDM_DEVICE_SHARE_H

#include <stddef.h>

#include <tandem/sys/device.h>

/* Calls work(user, begin, end) for parts of [0, count), which begin at multiples of 16, and returns when all are done.
 * Small counts run on the calling thread. Each number must be computed alone, so that its bits do not depend on the
 * parts. TDM_E_MEMORY if threads cannot be started. */
tdm_status tdm__share_loop(const tdm_device_threads *threads, size_t count,
                           void (*work)(void *user, size_t begin, size_t end), void *user);

#endif
