/* outlet.h - writes to stdout and stderr that never wait long for a reader, so that a stalled reader cannot stop
 * training or delay a stop signal. */
#ifndef OUTLET_H
#define OUTLET_H

#include <stdbool.h>
#include <stddef.h>

/* Call at the start of the program. Opens non-blocking descriptors of its own if it can. */
void outlet_open(void);
/* Writes to STDOUT_FILENO or STDERR_FILENO and returns the bytes written. Waits once, for a second, for a reader that
 * has stopped reading. After that it writes only what fits without waiting, until something fits again. */
size_t outlet_put(int fd, const char *text, size_t bytes);
/* Writes what fits now. Safe in signal handlers. */
void outlet_try(int fd, const char *text);

/* From now on output to stdout waits in memory for outlet_flush, up to 64 KiB. `asked_to_stop` is not 0 once a stop
 * signal has come. */
void outlet_hold(int (*asked_to_stop)(void));
/* Writes the rest of stdout. Held output: like outlet_put if `is_kept` (it is also in files), else waits for the reader
 * until a stop signal comes. False with errno set if not all was written: ETIMEDOUT if nobody read it. */
bool outlet_flush(bool is_kept);

#endif
