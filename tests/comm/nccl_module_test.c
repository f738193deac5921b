/* What the nccl module says of itself: where it looked for NCCL, why it did not take it, what it found. Each scene is a
 * process of its own, as a library once found stays. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tandem/sys/comm.h>

#include "runtime/module/module.h"
#include "tests/support/tdm_test.h"

typedef struct scene {
    const char *folders; /* TANDEM_CUDA_LIBRARIES */
    const char *version; /* FAKE_NCCL_VERSION */
    bool usable;
    const char *sentence[4];
} scene;

static void play(const scene *s) {
    const tdm_module *module;
    tdm_module_report report;
    setenv("TANDEM_CUDA_LIBRARIES", s->folders, 1);
    if (s->version != NULL) setenv("FAKE_NCCL_VERSION", s->version, 1);
    CHECK_OK(tdm__module_find(&module, tdm_host_default(), "nccl", NULL, &report));
    CHECK((module != NULL) == s->usable);
    for (int i = 0; i < 4 && s->sentence[i] != NULL; i++) CHECK_HAS(report.text, s->sentence[i]);
    if (module == NULL) return;
    CHECK_TEXT(report.text, s->sentence[0]);
    CHECK_TEXT(module->name, "nccl");
    REQUIRE(module->comm != NULL);
    CHECK_TEXT(module->comm->name, "nccl");
    CHECK(!module->comm->deterministic);
    CHECK(module->comm->open != NULL && module->comm->join != NULL && module->comm->wait != NULL);
    CHECK(module->kernels == NULL && module->device == NULL && module->losses == NULL);
}

static void run(const scene *s) {
    int status;
    fflush(NULL);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        tdm_test_failures = 0;
        play(s);
        fflush(NULL);
        _exit(tdm_test_failures != 0);
    }
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK_INT(status, 0);
}

TEST(nccl_that_is_found) {
    run(&(scene){FAKE_LIBRARIES, NULL, true, {"NCCL 2.30.7"}});
    run(&(scene){"/nowhere:" FAKE_LIBRARIES, "21903", true, {"NCCL 2.19.3"}});
    run(&(scene){FAKE_PLAIN, "22605", true, {"NCCL 2.26.5"}});
}

TEST(nccl_with_known_troubles) {
    run(&(scene){FAKE_LIBRARIES,
                 "22501",
                 true,
                 {"NCCL 2.25.1; ncclCommAbort of this version may hang after a failure; from 2.26.2 on it does not"}});
    run(&(scene){FAKE_LIBRARIES,
                 "22803",
                 true,
                 {"NCCL 2.28.3; this version may crash or hang when a communicator is aborted; from 2.28.9 on it does "
                  "not"}});
    run(&(scene){FAKE_LIBRARIES, "22809", true, {"NCCL 2.28.9"}});
}

TEST(nccl_that_will_not_do) {
    run(&(scene){FAKE_LIBRARIES,
                 "21806",
                 false,
                 {FAKE_LIBRARIES "/libnccl.so.2 is NCCL 2.18.6, 2.19 or newer is needed", "TANDEM_CUDA_LIBRARIES"}});
    run(&(scene){FAKE_LIBRARIES, "2804", false, {"is NCCL 2.8.4, 2.19 or newer is needed"}});
    run(&(scene){FAKE_INCOMPLETE, NULL, false, {FAKE_INCOMPLETE "/libnccl.so.2 (NCCL 2.30.7) has no ncclCommSplit"}});
}

TEST(nccl_that_is_not_there) {
    if (dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL) != NULL) SKIP_TEST("this machine has NCCL");
    run(&(scene){"/nowhere:/elsewhere",
                 NULL,
                 false,
                 {"/nowhere/libnccl.so.2: cannot open", "/elsewhere/libnccl.so.2: cannot open",
                  "; libnccl.so.2: cannot open", "TANDEM_CUDA_LIBRARIES"}});
    run(&(scene){"", NULL, false, {"libnccl.so.2: cannot open", "install NCCL 2.19 or newer"}});
}

TEST_MAIN({
    RUN(nccl_that_is_found);
    RUN(nccl_with_known_troubles);
    RUN(nccl_that_will_not_do);
    RUN(nccl_that_is_not_there);
})
