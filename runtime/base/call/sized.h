/* Structs of programs that begin with their size, `uint32_t size`, so that they can grow. A program that was built with
 * an older header has a shorter one, and its size is 4 or a multiple of 8. A longer one is refused: this library would
 * do nothing of what its further members ask for, and cannot know that its size is not garbage. */
#ifndef TDM_BASE_CALL_SIZED_H
#define TDM_BASE_CALL_SIZED_H

#include <tandem/status.h>

/* The oldest size of a struct of which any part may be missing: that of the member `size`. */
enum { TDM_SIZED_ANY = 4 };

/* TDM_E_USAGE if the object's size is not `oldest` to `known`. `what` is "tdm_run_open: tdm_run_options". */
tdm_status tdm__sized_check(const char *what, const void *object, size_t oldest, size_t known);
/* Copies what `from` has into `to`, whose other members, and whose size, stay. `from` NULL: all stay. */
tdm_status tdm__sized_take(const char *what, void *to, size_t known, const void *from, size_t oldest);
/* Copies as much of `full` into `to`, which was checked, as it has space for. The size of `to` stays. */
void tdm__sized_give(void *to, const void *full);

#endif
