#include "runtime/base/system/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* /proc/PID/stat from after the process's name, which may hold any character: " S 1 ..."; "" if it cannot be read. */
static void read_process(long pid, char out[512]) {
    char path[40], text[512];
    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0) close(fd);
    text[length > 0 ? length : 0] = '\0';
    const char *name_end = strrchr(text, ')');
    snprintf(out, 512, "%s", name_end != NULL ? name_end + 1 : "");
}

static bool has_ended(const char text[512]) {
    return text[0] == ' ' && (text[1] == 'Z' || text[1] == 'X');
}

bool tdm__process_lives(long pid) {
    char text[512];
    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH) return false;
    read_process(pid, text);
    return !has_ended(text);
}

bool tdm__process_dies(long pid) {
    enum { FLAGS = 9, SIGNALS = 31, PF_EXITING = 4 }; /* numbers of fields in proc(5); the text begins with field 3 */
    char text[512], *rest;
    read_process(pid, text);
    if (has_ended(text)) return true;
    unsigned long flags = 0, signals = 0;
    char *word = strtok_r(text, " ", &rest);
    for (int field = 3; word != NULL; field++, word = strtok_r(NULL, " ", &rest)) {
        if (field == FLAGS) flags = strtoul(word, NULL, 10);
        if (field == SIGNALS) signals = strtoul(word, NULL, 10);
    }
    return (flags & PF_EXITING) != 0 || (signals >> (SIGKILL - 1) & 1) != 0;
}

size_t tdm__process_resident(void) {
    char text[64] = "";
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0) close(fd);
    const char *second = length > 0 ? strchr(text, ' ') : NULL;
    return second != NULL ? (size_t)strtoull(second, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

const char *tdm__machine_print(char out[TDM_MACHINE_TEXT]) {
    char boot[64], name[72] = "";
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = fd >= 0 ? read(fd, boot, sizeof(boot)) : 0;
    if (fd >= 0) close(fd);
    (void)gethostname(name, sizeof(name) - 1);
    snprintf(out, TDM_MACHINE_TEXT, "%.*s %s", (int)(bytes > 0 ? bytes : 0), boot, name);
    return out;
}
