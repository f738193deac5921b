/* Other processes of this machine, by their numbers. */
#ifndef TDM_BASE_PROCESS_H
#define TDM_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

/* Is the process alive? A zombie counts as dead: in some containers the first process never waits for its children. */
bool tdm__process_lives(long pid);
/* Is the process certain to end: killed by SIGKILL, or already exiting? */
bool tdm__process_dies(long pid);
/* The boot of this machine and its name: the same text in all of its processes, and on no other machine. Returns `out`.
 */
enum { TDM_MACHINE_TEXT = 160 };
const char *tdm__machine_print(char out[TDM_MACHINE_TEXT]);
/* Memory of this process that is in use (its resident set), in bytes; 0 if the system does not say. */
size_t tdm__process_resident(void);

#endif
