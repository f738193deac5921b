/* The default host, log lines, clocks and the environment. */
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tandem/tandem.h>

#include "runtime/base/system/clock.h"
#include "runtime/base/system/env.h"
#include "runtime/base/log.h"
#include "tests/support/tdm_test.h"

TEST(default_host) {
    const tdm_host *host = tdm_host_default();
    CHECK_INT(host->size, offsetof(tdm_host, thread_start)); /* programs of 0.1.0 copy it */
    for (size_t align = 1; align <= 4096; align *= 2) {
        void *pointer = host->allocate(host->user, 100, align < sizeof(void *) ? sizeof(void *) : align);
        REQUIRE(pointer != NULL);
        CHECK_INT((uintptr_t)pointer % align, 0);
        memset(pointer, 1, 100);
        host->release(host->user, pointer);
    }
    CHECK(host->allocate(host->user, SIZE_MAX - 3, 64) == NULL);
    host->release(host->user, NULL);
    CHECK_TEXT(tdm_version(), TDM_VERSION);
}

typedef struct seen {
    int count;
    tdm_log_level level;
    char subsystem[32], line[4096];
} seen;

static void keep_line(void *user, tdm_log_level level, const char *subsystem, const char *line) {
    seen *last = user;
    last->count++;
    last->level = level;
    snprintf(last->subsystem, sizeof(last->subsystem), "%s", subsystem);
    snprintf(last->line, sizeof(last->line), "%s", line);
}

TEST(log_lines) {
    seen last = {0};
    tdm_host host = *tdm_host_default();
    TDM_WARN(&host, "data", "nobody %s", "listens");
    host.log = keep_line;
    host.user = &last;
    host.log_level = TDM_LOG_INFO;
    TDM_INFO(&host, "data", "%d samples\nfound", 8);
    CHECK_INT(last.count, 1);
    CHECK_INT(last.level, TDM_LOG_INFO);
    CHECK_TEXT(last.subsystem, "data");
    CHECK_TEXT(last.line, "8 samples found");
    TDM_DEBUG(&host, "data", "not shown");
    CHECK_INT(last.count, 1);
    TDM_WARN(&host, "comm", "%05000d", 1);
    CHECK_INT(last.count, 2);
    CHECK_INT(strlen(last.line), 2047);
}

TEST(clocks) {
    int64_t start = tdm__now_ns();
    struct timespec pause = {0, 2000000};
    nanosleep(&pause, NULL);
    double ms = tdm__ms_since(start);
    CHECK(ms >= 2.0 && ms < 60000.0);
    CHECK(tdm__now_ns() >= start + 2000000);
    char stamp[24];
    tdm__utc_stamp(tdm_host_default(), stamp);
    CHECK_INT(strlen(stamp), 16);
    CHECK(stamp[8] == 'T' && stamp[15] == 'Z' && stamp[0] == '2');
}

TEST(environment) {
    setenv("TANDEM_RANK", "3", 1);
    unsetenv("TANDEM_WORLD");
    CHECK_TEXT(tdm__env(TDM_ENV_RANK), "3");
    CHECK(tdm__env(TDM_ENV_WORLD) == NULL);
    CHECK_TEXT(tdm__env_of_user("TANDEM_RANK"), "3");
    for (int key = 0; key < TDM_ENV_COUNT; key++) {
        CHECK(strlen(tdm__env_name((tdm_env_key)key)) > 3);
        CHECK(strlen(tdm__env_help((tdm_env_key)key)) > 10);
    }
}

/* This program again, with other rights than its caller's: variables that name code are not believed. Its result; the
 * leak check at exit would want to trace it, which such a program does not allow. */
static int with_rights(void) {
    if (getauxval(AT_SECURE) == 0) return 77;
    CHECK(tdm__env(TDM_ENV_MODULE_PATH) == NULL);
    CHECK(tdm__env(TDM_ENV_CUDA_LIBRARIES) == NULL);
    CHECK(tdm__env_by_name("TANDEM_CUDA_LIBRARIES") == NULL);
    return tdm_test_failures != 0;
}

/* A copy that belongs to nobody and has the set-user-ID bit; false if it could not be made. */
static bool make_copy(const char *path) {
    char command[300];
    snprintf(command, sizeof(command), "cp /proc/%d/exe '%s'", (int)getpid(), path);
    return system(command) == 0 && chown(path, 65534, 65534) == 0 && chmod(path, 04755) == 0;
}

TEST(environment_of_programs_with_rights) {
    char folder[] = "/tmp/tandem-env-XXXXXX", path[64];
    if (geteuid() != 0) {
        fprintf(stderr, "only root can make a program with other rights: not tried\n");
        return;
    }
    REQUIRE(mkdtemp(folder) != NULL && chmod(folder, 0755) == 0);
    snprintf(path, sizeof(path), "%s/copy", folder);
    REQUIRE(make_copy(path));
    setenv("TANDEM_MODULE_PATH", "/planted", 1);
    setenv("TANDEM_CUDA_LIBRARIES", "/planted", 1);
    pid_t child = fork();
    if (child == 0) {
        execl(path, path, "with-rights", (char *)NULL);
        _exit(1);
    }
    int end = -1;
    CHECK(child > 0 && waitpid(child, &end, 0) == child && WIFEXITED(end));
    if (WEXITSTATUS(end) == 77)
        fprintf(stderr, "%s ignores set-user-ID bits: not tried\n", folder);
    else
        CHECK_INT(WEXITSTATUS(end), 0);
    unlink(path);
    rmdir(folder);
}

TEST_MAIN({
    if (argc > 1 && strcmp(argv[1], "with-rights") == 0) _exit(with_rights());
    RUN(default_host);
    RUN(log_lines);
    RUN(clocks);
    RUN(environment);
    RUN(environment_of_programs_with_rights);
})
