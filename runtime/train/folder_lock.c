/* The lock of a run directory: flock on .lock, a file that says who holds it. The system releases the lock when its
 * holder ends, in whatever way. But a rank whose launcher was killed, or a process with much memory, lives on for a
 * moment. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/system/clock.h"
#include "runtime/base/system/file.h"
#include "runtime/base/system/process.h"
#include "runtime/base/status.h"
#include "runtime/train/run.h"

enum { NAP_MS = 2, WAIT_MS = 2000, DYING_WAIT_MS = 30000 };

typedef struct holder {
    long pid; /* 0: not known */
    char host[65];
} holder;

static void host_name(char out[65]) {
    struct utsname about;
    bool known = uname(&about) == 0;
    snprintf(out, 65, "%s", known ? about.nodename : "?");
}

static holder read_holder(int fd) {
    holder who = {.pid = 0};
    char text[128];
    ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    if (sscanf(text, "%9ld %64s", &who.pid, who.host) != 2 || strchr(text, '\n') == NULL) who.pid = 0;
    return who;
}

/* Only messages use it, so a full disk does no harm here. */
static void write_holder(int fd) {
    char text[128], host[65];
    host_name(host);
    int length = snprintf(text, sizeof(text), "%ld %s\n", (long)getpid(), host);
    ssize_t written = ftruncate(fd, 0) == 0 ? write(fd, text, (size_t)length) : 0;
    (void)written;
}

static bool is_dying(const holder *who) {
    char host[65];
    host_name(host);
    return who->pid > 0 && strcmp(who->host, host) == 0 && tdm__process_dies(who->pid);
}

static tdm_status in_use(const tdm_folder *dir, const holder *who) {
    char by[112] = "";
    if (who->pid > 0) snprintf(by, sizeof(by), " (process %ld of %s)", who->pid, who->host);
    TDM_FAIL(TDM_E_IO,
             "run directory '%s' is in use by another job%s; wait for it, or give another run.dir (--run-dir)",
             dir->path, by);
}

tdm_status tdm__folder_lock(int *fd, const tdm_folder *dir) {
    int64_t begin = tdm__now_ns();
    TDM_TRY(tdm__file_keep(fd, &tdm__file_system, dir, ".lock"));
    while (flock(*fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) return tdm__file_fail("lock", dir, ".lock", errno);
        holder who = read_holder(*fd);
        double waited = tdm__ms_since(begin);
        if (waited > DYING_WAIT_MS || (waited > WAIT_MS && !is_dying(&who))) return in_use(dir, &who);
        nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000}, NULL);
    }
    write_holder(*fd);
    return TDM_OK;
}
