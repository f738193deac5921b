/* The anonymous file of a job; shm.h has its layout. It has no name and lives as long as a process has it open or
 * mapped, so nothing can be left behind. It is sealed against shrinking, and its memory is reserved before it is
 * mapped, so no access can fault. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/round.h"
#include "runtime/base/status.h"
#include "runtime/comm/shm/shm.h"

static const char magic[8] = "tandem\x1a\n";
/* Tells builds apart. RULES counts up when the same structs mean something else. */
enum {
    RULES = 3,
    LAYOUT = RULES << 24 | (sizeof(tdm_control) + sizeof(tdm_seat) + sizeof(tdm_offer) + sizeof(tdm_process))
};

size_t tdm__shm_page(void) {
    long page = sysconf(_SC_PAGESIZE);
    return page > 0 ? (size_t)page : 4096;
}

tdm_shm_layout tdm__shm_layout(int world) {
    tdm_shm_layout layout;
    layout.process = tdm__round_up(sizeof(tdm_control), TDM_LINE);
    layout.seats = tdm__round_up(layout.process + (size_t)world * sizeof(tdm_process), TDM_LINE);
    layout.total = tdm__round_up(layout.seats + tdm__seats_bytes(world, true), tdm__shm_page());
    return layout;
}

tdm_status tdm__shm_reserve(int fd, uint64_t offset, size_t bytes) {
    struct rlimit limit;
    uint64_t end;
    if (__builtin_add_overflow(offset, (uint64_t)bytes, &end) || end > INT64_MAX)
        TDM_FAIL(TDM_E_MEMORY, "shared memory: %zu bytes are more than a file can hold", bytes);
    /* Beyond this limit the kernel sends SIGXFSZ. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && end > limit.rlim_cur)
        TDM_FAIL(TDM_E_MEMORY,
                 "shared memory: needs a file of %llu bytes, but the limit on file sizes (ulimit -f) is %llu; raise it",
                 (unsigned long long)end, (unsigned long long)limit.rlim_cur);
    int result;
    do {
        result = fallocate(fd, 0, (off_t)offset, (off_t)bytes);
    } while (result != 0 && errno == EINTR);
    if (result != 0)
        TDM_FAIL(TDM_E_MEMORY, "shared memory: cannot reserve %zu bytes: %s", bytes, strerrordesc_np(errno));
    return TDM_OK;
}

tdm_status tdm__shm_file(int *fd, size_t bytes) {
    int made = memfd_create("tandem", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    *fd = -1;
    if (made < 0)
        TDM_FAIL(errno == EMFILE || errno == ENFILE ? TDM_E_MEMORY : TDM_E_COMM,
                 "shared memory: cannot make a file for it: %s", strerrordesc_np(errno));
    TDM_TRY_ELSE(tdm__shm_reserve(made, 0, bytes), close(made));
    (void)fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK);
    *fd = made;
    return TDM_OK;
}

tdm_status tdm__shm_map(int fd, uint64_t offset, size_t bytes, void **out) {
    /* Without MAP_POPULATE: it takes as long as the faults it saves, and a rank uses only one segment of its peers'
     * parts. */
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
    *out = NULL;
    if (base == MAP_FAILED)
        TDM_FAIL(TDM_E_MEMORY, "shared memory: cannot map %zu bytes: %s", bytes, strerrordesc_np(errno));
    *out = base;
    return TDM_OK;
}

tdm_status tdm__shm_map_control(int fd, tdm_control **out) {
    struct stat info;
    void *base;
    *out = NULL;
    if (fstat(fd, &info) != 0)
        TDM_FAIL(TDM_E_USAGE, "descriptor %d of the job's shared memory: %s; start the ranks through the launcher", fd,
                 strerrordesc_np(errno));
    if (!S_ISREG(info.st_mode) || (size_t)info.st_size < sizeof(tdm_control))
        TDM_FAIL(TDM_E_USAGE, "descriptor %d is not the shared memory of a tandem job", fd);
    TDM_TRY(tdm__shm_map(fd, 0, sizeof(tdm_control), &base));
    tdm_control *control = base;
    bool ours = memcmp(control->magic, magic, sizeof(magic)) == 0;
    bool same = control->layout == LAYOUT;
    if (!ours || !same) {
        munmap(base, sizeof(tdm_control));
        if (ours)
            TDM_FAIL(TDM_E_USAGE, "descriptor %d is of another build of tandem; start all ranks with the same build",
                     fd);
        TDM_FAIL(TDM_E_USAGE, "descriptor %d is not the shared memory of a tandem job", fd);
    }
    *out = control;
    return TDM_OK;
}

tdm_status tdm__shm_create_file(int *fd, int world, bool watched) {
    tdm_shm_layout layout = tdm__shm_layout(world);
    int made;
    void *base;
    *fd = -1;
    TDM_TRY(tdm__shm_file(&made, layout.total));
    TDM_TRY_ELSE(tdm__shm_map(made, 0, sizeof(tdm_control), &base), close(made));
    tdm_control *control = base;
    memcpy(control->magic, magic, sizeof(magic));
    control->layout = LAYOUT;
    control->world = (uint32_t)world;
    if (watched) tdm__process_note(&control->parent);
    atomic_store(&control->file_end, layout.total);
    munmap(base, sizeof(tdm_control));
    *fd = made;
    return TDM_OK;
}
