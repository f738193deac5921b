/* Every allocation may fail: the call says so, and nothing is lost or left behind. */
#include <dirent.h>
#include <unistd.h>

#include "runtime/comm/comm.h"
#include "tests/support/tdm_test.h"

/* Lends memory until the counter is used up. */
typedef struct meter {
    int left, live;
} meter;

static void *lend(void *user, size_t bytes, size_t align) {
    meter *m = user;
    if (m->left == 0) return NULL;
    m->left--;
    void *pointer = aligned_alloc(align, (bytes + align - 1) / align * align);
    m->live += pointer != NULL;
    return pointer;
}

static void take_back(void *user, void *pointer) {
    meter *m = user;
    m->live -= pointer != NULL;
    free(pointer);
}

static int descriptors(void) {
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir != NULL && readdir(dir) != NULL) count++;
    if (dir != NULL) closedir(dir);
    return count;
}

/* What a rank does, on as little memory as the host lends. Alone, so that failures do not depend on peers. */
static tdm_status use(tdm_comm *comm) {
    static float data[5000];
    const int self[] = {0};
    void *memory;
    tdm_comm *group = NULL;
    tdm_comm_request *request = NULL;
    tdm_status status = tdm_comm_allocate(comm, 100000, &memory);
    if (status == TDM_OK) status = tdm_comm_split(comm, self, 1, &group);
    if (status == TDM_OK) status = tdm_comm_all_reduce(group, (tdm_span){data, 5000, TDM_DTYPE_F32}, TDM_REDUCE_SUM);
    if (status == TDM_OK) status = tdm_comm_start_barrier(group, &request);
    if (request != NULL) status = tdm_comm_wait(request, NULL);
    tdm_comm_close(group);
    return status;
}

typedef tdm_status (*open_fn)(tdm_comm **out, const tdm_host *host);

static tdm_status open_threads(tdm_comm **out, const tdm_host *host) {
    return tdm_comm_open_threads(out, 1, host, 10000);
}

static tdm_status open_process(tdm_comm **out, const tdm_host *host) {
    int fd;
    tdm_status status = tdm_launch_create(&fd, 1);
    *out = NULL;
    if (status == TDM_OK) status = tdm__comm_open_shm(out, fd, 0, 1, host, 10000, TDM_HEARTBEAT_MS);
    if (fd >= 0) close(fd);
    return status;
}

static void sweep(open_fn open) {
    enum { MANY = 200 };
    int n = 0, before = descriptors();
    tdm_status status = TDM_E_MEMORY;
    for (; n < MANY && status != TDM_OK; n++) {
        meter m = {.left = n};
        tdm_host host = {.size = sizeof(host), .allocate = lend, .release = take_back, .user = &m};
        tdm_comm *comm = NULL;
        status = open(&comm, &host);
        if (status == TDM_OK) status = use(comm);
        if (status != TDM_OK) {
            CHECK_INT(status, TDM_E_MEMORY);
            CHECK_HAS(tdm_error_message(), "out of memory");
        }
        tdm_comm_close(comm);
        CHECK_INT(m.live, 0);
    }
    CHECK_INT(descriptors(), before);
    CHECK(n > 8 && n < MANY);
}

TEST(threads_without_memory) {
    sweep(open_threads);
}

TEST(processes_without_memory) {
    sweep(open_process);
}

TEST_MAIN({
    RUN(threads_without_memory);
    RUN(processes_without_memory);
})
