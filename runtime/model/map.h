/* A file as memory. */
#ifndef TDM_MODEL_MAP_H
#define TDM_MODEL_MAP_H

#include <stddef.h>
#include <stdint.h>

#include <tandem/status.h>

typedef struct tdm_map {
    const void *bytes; /* NULL: nothing is mapped */
    size_t count;
} tdm_map;

/* Maps a whole regular file for reading; its pages are read when they are used, and shared by all processes that map
 * it. If the file is cut short meanwhile, reading the missing part raises SIGBUS. Fails with `missing` if there is no
 * such file, or it is empty. */
tdm_status tdm__map_open(tdm_map *out, const char *path, tdm_status missing);
/* The same of `count` bytes of an open file, which may be closed then; `path` is for messages. */
tdm_status tdm__map_descriptor(tdm_map *out, int fd, uint64_t count, const char *path);
/* These bytes of it, or of other memory, will not be read soon: the process gives back pages that hold nothing else. If
 * they are read again they come from the file again. */
void tdm__map_release(const tdm_map *map, const void *bytes, size_t count);
void tdm__map_close(tdm_map *map);

#endif
