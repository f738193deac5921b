/* Shared libraries that are opened at run time. */
#ifndef TDM_BASE_LIBRARY_H
#define TDM_BASE_LIBRARY_H

#include <stddef.h>

#include <tandem/status.h>

/* *out = dlopen(path, RTLD_NOW | RTLD_LOCAL). If it cannot be opened, *out is NULL, `why` is the loader's message, and
 * the status is TDM_OK: the caller may use something else instead. But if there was no memory the status is
 * TDM_E_MEMORY, because the same call could succeed next time and the results would differ. `room`: bytes of address
 * space that the library and its dependencies need. */
tdm_status tdm__library_open(void **out, const char *path, size_t room, char *why, size_t bytes);
/* The path of the file from which the code or data at `address` is mapped, as /proc/self/maps has it. Unlike argv[0] it
 * does not depend on how or where the program was started. "" if it is unknown: no /proc, the file was removed, or
 * `bytes` are too few. TDM_E_MEMORY if memory or descriptors are out. */
tdm_status tdm__library_file(const void *address, char *path, size_t bytes);

#endif
