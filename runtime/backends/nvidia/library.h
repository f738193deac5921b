/* NVIDIA's libraries, opened at run time. The modules do not link them, so a module opens on any machine and can say
 * what is missing. For the modules cuda and nccl, which both compile library.c. */
#ifndef TDM_NVIDIA_LIBRARY_H
#define TDM_NVIDIA_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tdm_nvidia_symbol {
    const char *name;
    size_t offset; /* of the function's pointer in the table */
    bool optional; /* its pointer is NULL if the library lacks it */
} tdm_nvidia_symbol;

typedef struct tdm_nvidia_library {
    const char *file; /* "libcudnn.so.9" */
    /* Sets *version. Returns false if the library will not do; `why` then continues a sentence that begins with its
     * path. NULL: any version will do. */
    bool (*check)(const struct tdm_nvidia_library *library, void *handle, size_t *version, char *why, size_t bytes);
    const char *get_version; /* for `check`: the function that gives the version, and the oldest that will do */
    size_t least;
    const tdm_nvidia_symbol *symbols;
    size_t symbol_count;
} tdm_nvidia_library;

/* Opens the first usable library and fills in `table`: searches `folders` (separated by ':', NULL: none), then asks the
 * loader. Returns its handle, or NULL. *version: 0 if unknown. `text` gets the path that it was opened from or, if it
 * returns NULL, every path tried and why that one cannot be used. */
void *tdm__nvidia_open(const tdm_nvidia_library *library, void *table, size_t *version, const char *folders, char *text,
                       size_t bytes);

#endif
