#include "runtime/model/map.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/status.h"
#include "runtime/base/system/file.h"
#include "runtime/base/system/pages.h"

tdm_status tdm__map_descriptor(tdm_map *out, int fd, uint64_t count, const char *path) {
    *out = (tdm_map){NULL, 0};
    void *bytes = count <= SIZE_MAX ? mmap(NULL, (size_t)count, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (bytes == MAP_FAILED) return tdm__file_fail("map", NULL, path, errno);
    *out = (tdm_map){bytes, (size_t)count};
    return TDM_OK;
}

tdm_status tdm__map_open(tdm_map *out, const char *path, tdm_status missing) {
    uint64_t count;
    int fd;
    *out = (tdm_map){NULL, 0};
    TDM_TRY(tdm__file_open(&fd, &count, NULL, path, missing));
    const tdm_status status = count > 0 ? tdm__map_descriptor(out, fd, count, path) : missing;
    close(fd);
    if (count == 0) TDM_FAIL(missing, "%s: the file is empty", path);
    return status;
}

void tdm__map_release(const tdm_map *map, const void *bytes, size_t count) {
    const uintptr_t base = (uintptr_t)map->bytes, at = (uintptr_t)bytes;
    if (map->bytes == NULL || at < base || count > map->count || at - base > map->count - count) return;
    tdm__give_back_pages(at, count);
}

void tdm__map_close(tdm_map *map) {
    if (map->bytes != NULL) (void)munmap((void *)(uintptr_t)map->bytes, map->count);
    *map = (tdm_map){NULL, 0};
}
