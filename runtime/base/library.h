/* Shared libraries that are opened when they are wanted. */
#ifndef TDM_BASE_LIBRARY_H
#define TDM_BASE_LIBRARY_H

#include <stddef.h>

#include <tandem/status.h>

/* dlopen(path, RTLD_NOW | RTLD_LOCAL) into *out. NULL where it cannot be opened, with the loader's sentence in `why`.
 * TDM_E_MEMORY where that is for lack of memory: what is not opened today would be tomorrow, so nothing else may be
 * taken in its place. `room`: bytes of addresses that the library and what it links want. */
tdm_status tdm__library_open(void **out, const char *path, size_t room, char *why, size_t bytes);
/* The path of the file that the code or data at `address` is mapped from, as the system knows it: whatever the program
 * was called by, wherever it was started and wherever it is now. "" where the system does not say (no /proc, the file
 * has been removed, `bytes` are too few). TDM_E_MEMORY where it cannot be asked for lack of memory or descriptors. */
tdm_status tdm__library_file(const void *address, char *path, size_t bytes);

#endif
