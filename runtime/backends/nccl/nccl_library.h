/* libnccl.so.2, opened at run time: nothing in tandem links it. */
#ifndef TDM_BACKENDS_NCCL_LIBRARY_H
#define TDM_BACKENDS_NCCL_LIBRARY_H

#include <nccl.h>

#include <stddef.h>

#include "runtime/backends/kit/module_host.h"

/* 2.19 is the first version in which a thread other than the owner may abort a communicator (NVIDIA/nccl#992). Without
 * that a job could not survive a lost peer. */
enum { TDM_NCCL_VERSION_LEAST = 21900, TDM_NCCL_VERSION_MANY_RANKS = 23003, TDM_NCCL_VERSION_REVOKE = 22809 };
enum { TDM_NCCL_VERSION_TEXT = 24 };

typedef struct tdm_nccl_library {
    int version; /* as NCCL_VERSION_CODE */
#define TDM_NCCL_SYMBOL(name) __typeof__(nccl##name) *name;
#define TDM_NCCL_OPTIONAL(name, type) type;
#include "runtime/backends/nccl/nccl_symbols.def"
#undef TDM_NCCL_SYMBOL
#undef TDM_NCCL_OPTIONAL
} tdm_nccl_library;

/* Returns the library. The first call that finds a usable one opens it, and it is never closed. It is searched in the
 * folders of TANDEM_CUDA_LIBRARIES, then by the system's loader. NULL: `why` gets the reason as a sentence. Any thread.
 */
const tdm_nccl_library *tdm__nccl_library(char *why, size_t bytes);

void tdm__nccl_version_print(char out[TDM_NCCL_VERSION_TEXT], int version); /* prints "2.32.3" */
/* Returns, as a sentence, the known problem of this version after a failure; NULL: none. */
const char *tdm__nccl_version_trouble(int version);

#endif
