/* Files in a folder of their own below the current one, removed at exit; and a host that watches memory. */
#ifndef TDM_TEST_DATA_SUPPORT_H
#define TDM_TEST_DATA_SUPPORT_H

#include <stdatomic.h>

#include "runtime/data/data.h"
#include "tests/support/tdm_test.h"

typedef struct tdm_bytes {
    unsigned char *data;
    size_t count;
} tdm_bytes;

/* The path of `name` in this program's own folder. Static storage, four at a time. */
const char *scratch_path(const char *name);
void write_file(const char *path, const void *bytes, size_t count);
/* One gzip member; to be freed. */
tdm_bytes gzip(const void *bytes, size_t count);

/* Counts what is allocated; fails beyond `limit`. */
typedef struct watched_host {
    tdm_host host;
    atomic_size_t bytes, peak, blocks;
    size_t limit;
} watched_host;
void watch(watched_host *watched, size_t limit);

tdm_data_wanted wanted_classes(int ndim, const int64_t *input, int64_t classes);
/* Opens and closes. */
tdm_status try_open(const tdm_data_spec *spec, const tdm_data_wanted *wanted);

#endif
