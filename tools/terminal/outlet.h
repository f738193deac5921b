/* outlet.h - writes to standard output and standard error that wait for no reader for long. Training, and whoever asks
 * it to stop, come before those who read about it. */
#ifndef OUTLET_H
#define OUTLET_H

#include <stdbool.h>
#include <stddef.h>

/* At the start of the program: what follows writes through descriptors of its own where it can. */
void outlet_open(void);
/* How much of it was written to STDOUT_FILENO or STDERR_FILENO. A reader that stops reading is waited for once, for a
 * second; from then on only what there is room for is written, until there is room for something. */
size_t outlet_put(int fd, const char *text, size_t bytes);
/* As much as there is room for now; for signal handlers, too. */
void outlet_try(int fd, const char *text);

/* From now on results, which printf and the like write to stdout, wait in memory for outlet_flush. Only the first 64
 * KiB of them. */
void outlet_hold(void);
/* Writes what is left in stdout. Of results that are held: as outlet_put if they are in files, too; else they wait for
 * their reader until a signal asks for an end. False: not all is written, with errno set, ETIMEDOUT where nobody read.
 */
bool outlet_flush(bool is_kept);

#endif
