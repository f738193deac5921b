/* See support.h. */
#include "tests/data/support.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static char folder[64];

static void give_up(const char *what) {
    fprintf(stderr, "the test cannot work: %s: %s\n", what, strerror(errno));
    exit(99);
}

static int remove_entry(const char *path, const struct stat *found, int type, struct FTW *at) {
    (void)found, (void)type, (void)at;
    return remove(path);
}

static void remove_folder(void) {
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *scratch_path(const char *name) {
    static char path[4][256];
    static int next;
    if (folder[0] == '\0') {
        strcpy(folder, "/tmp/tandem-data-XXXXXX");
        if (mkdtemp(folder) == NULL) give_up("mkdtemp");
        atexit(remove_folder);
    }
    next = (next + 1) % 4;
    snprintf(path[next], sizeof(path[next]), "%s/%s", folder, name);
    return path[next];
}

/* Without truncating to nothing first: some file systems flush a file that is replaced so, and tests do it by the
 * thousand. */
void write_file(const char *path, const void *bytes, size_t count) {
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, count) != (ssize_t)count || ftruncate(fd, (off_t)count) != 0 || close(fd) != 0)
        give_up(path);
}

tdm_bytes gzip(const void *bytes, size_t count) {
    z_stream stream = {0};
    if (deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) give_up("deflateInit2");
    size_t room = deflateBound(&stream, count);
    tdm_bytes result = {malloc(room), 0};
    memcpy(&stream.next_in, &bytes, sizeof(bytes));
    stream.avail_in = (uInt)count;
    stream.next_out = result.data;
    stream.avail_out = (uInt)room;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END) give_up("deflate");
    result.count = room - stream.avail_out;
    deflateEnd(&stream);
    return result;
}

enum { FRONT = TDM_ALIGN }; /* in front of each block, for its size */

static void *watched_allocate(void *user, size_t bytes, size_t align) {
    watched_host *watched = user;
    if (align > FRONT) return NULL;
    size_t now = atomic_fetch_add(&watched->bytes, bytes) + bytes;
    char *block = now > watched->limit ? NULL : aligned_alloc(FRONT, (FRONT + bytes + FRONT - 1) / FRONT * FRONT);
    if (block == NULL) {
        atomic_fetch_sub(&watched->bytes, bytes);
        return NULL;
    }
    for (size_t peak = atomic_load(&watched->peak); now > peak;) {
        if (atomic_compare_exchange_weak(&watched->peak, &peak, now)) break;
    }
    atomic_fetch_add(&watched->blocks, 1);
    memcpy(block, &bytes, sizeof(bytes));
    return block + FRONT;
}

static void watched_release(void *user, void *pointer) {
    watched_host *watched = user;
    if (pointer == NULL) return;
    size_t bytes;
    memcpy(&bytes, (char *)pointer - FRONT, sizeof(bytes));
    atomic_fetch_sub(&watched->bytes, bytes);
    atomic_fetch_sub(&watched->blocks, 1);
    free((char *)pointer - FRONT);
}

void watch(watched_host *watched, size_t limit) {
    memset(watched, 0, sizeof(*watched));
    watched->limit = limit;
    watched->host =
        (tdm_host){.size = sizeof(tdm_host), .allocate = watched_allocate, .release = watched_release, .user = watched};
}

tdm_data_wanted wanted_classes(int ndim, const int64_t *input, int64_t classes) {
    tdm_data_wanted wanted = {.target_kind = TDM_TARGET_CLASS, .classes = classes, .seed = 42, .ignore_index = -100};
    wanted.input.ndim = ndim;
    for (int i = 0; i < ndim; i++) wanted.input.dim[i] = input[i];
    return wanted;
}

tdm_status try_open(const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    tdm_dataset *dataset = NULL;
    tdm_status status = tdm__dataset_open(&dataset, tdm_host_default(), spec, wanted);
    tdm__dataset_close(dataset);
    return status;
}
