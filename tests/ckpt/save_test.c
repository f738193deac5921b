/* Checkpoint directories: saving, opening by any path, what is kept and what is cleared away. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/status.h"
#include "tests/ckpt/ckpt_support.h"
#include "tests/ckpt/fault_ops.h"

static char run[256], dir[300];

static void begin(void) {
    test_folder_make(run);
    snprintf(dir, sizeof(dir), "%s/checkpoints", run);
}

/* Without waiting for the disk. */
static tdm_status save_parts(const tdm_host *host, const tdm_ckpt_parts *parts, int64_t keep_last) {
    fault_ops f;
    fault_ops_init(&f, 0, 0);
    return tdm__ckpt_save(host, &f.ops, NULL, dir, parts, keep_last);
}

static void save(int64_t step, int64_t keep_last) {
    support_parts p;
    support_parts_init(&p, step);
    CHECK_OK(save_parts(tdm_host_default(), &p.parts, keep_last));
}

static const char *in_dir(const char *name) {
    static char path[4][400];
    static int next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof(path[0]), "%s/%s", dir, name);
    return out;
}

static int64_t step_at(const char *path) {
    tdm_ckpt *ckpt;
    if (tdm__ckpt_open_any(&ckpt, tdm_host_default(), path) != TDM_OK) return -1;
    int64_t step = tdm__ckpt_state(ckpt) == NULL ? -3 : tdm__ckpt_state(ckpt)->step;
    if (step >= 0 && !support_holds(ckpt, step)) step = -2;
    tdm__ckpt_close(ckpt);
    return step;
}

static void flip_byte(const char *path, long at) {
    FILE *file = fopen(path, "r+b");
    if (file == NULL || fseek(file, at, at < 0 ? SEEK_END : SEEK_SET) != 0) abort();
    int c = fgetc(file);
    fseek(file, -1, SEEK_CUR);
    fputc(c ^ 0x10, file);
    fclose(file);
}

TEST(saved_and_found) {
    char path[400];
    begin();
    support_parts p;
    support_parts_init(&p, 7);
    REQUIRE_OK(tdm__ckpt_save(tdm_host_default(), &tdm__file_system, NULL, dir, &p.parts, 0)); /* the real calls */
    size_t size;
    char *latest = support_read(in_dir("latest"), &size);
    CHECK_TEXT(latest, "step-00000007\n");
    free(latest);
    CHECK_INT(support_entries(dir, ""), 2);
    CHECK_INT(support_entries(in_dir("step-00000007"), ""), 5);
    CHECK_INT(step_at(in_dir("step-00000007")), 7);
    CHECK_INT(step_at(in_dir("step-00000007/")), 7);
    CHECK_INT(step_at(dir), 7);
    CHECK_INT(step_at(run), 7);
    snprintf(path, sizeof(path), "%s/", run);
    CHECK_INT(step_at(path), 7);
    CHECK_INT(step_at(in_dir("step-00000007/model.safetensors")), -3);
    CHECK_OK(tdm__ckpt_verify(tdm_host_default(), NULL, in_dir("step-00000007")));
    /* Under another name it is the same checkpoint. */
    CHECK(rename(in_dir("step-00000007"), in_dir("best")) == 0);
    CHECK_INT(step_at(in_dir("best")), 7);
    CHECK_INT(step_at(dir), -1);
    test_folder_remove(run);
}

TEST(nothing_there) {
    tdm_ckpt *ckpt;
    begin();
    CHECK_OK(tdm__ckpt_open_newest(&ckpt, tdm_host_default(), NULL, dir));
    CHECK(ckpt == NULL);
    REQUIRE(mkdir(dir, 0777) == 0);
    CHECK_OK(tdm__ckpt_open_newest(&ckpt, tdm_host_default(), NULL, dir));
    CHECK(ckpt == NULL);
    CHECK_STATUS(tdm__ckpt_open_any(&ckpt, tdm_host_default(), run), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(),
              "expected a step directory, a checkpoints or run directory, or a .safetensors, .pt or .onnx file");
    CHECK_STATUS(tdm__ckpt_open_any(&ckpt, tdm_host_default(), in_dir("x")), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "there is no such file");
    test_folder_remove(run);
}

TEST(without_optimizer_tensors_or_config) {
    support_parts p;
    tdm_ckpt *ckpt;
    begin();
    support_parts_init(&p, 123456789012);
    p.parts.optimizer_count = 0;
    p.parts.optimizer = NULL;
    p.parts.config_yaml = NULL;
    REQUIRE_OK(save_parts(tdm_host_default(), &p.parts, 1));
    REQUIRE_OK(tdm__ckpt_open_any(&ckpt, tdm_host_default(), run));
    CHECK_INT(tdm__ckpt_state(ckpt)->step, 123456789012);
    CHECK_INT(tdm__tensor_file_count(tdm__ckpt_optimizer(ckpt)), 0);
    CHECK_TEXT(tdm__ckpt_path(ckpt), in_dir("step-123456789012"));
    tdm__ckpt_close(ckpt);
    test_folder_remove(run);
}

TEST(keeps_the_newest) {
    begin();
    for (int64_t step = 1; step <= 5; step++) save(step, 2);
    CHECK_INT(support_entries(dir, "step-"), 2);
    CHECK(support_exists(dir, "step-00000004") && support_exists(dir, "step-00000005"));
    save(6, 0);
    CHECK_INT(support_entries(dir, "step-"), 3);

    /* Damaged ones do not count: 6 is cut short, so 5 and 7 are the newest two complete ones. */
    CHECK(truncate(in_dir("step-00000006/model.safetensors"), 10) == 0);
    save(7, 2);
    CHECK(support_exists(dir, "step-00000005") && support_exists(dir, "step-00000007"));
    CHECK(!support_exists(dir, "step-00000004"));
    CHECK_INT(step_at(dir), 7);

    /* A run that went back to an older step: what it saves now is kept beside the newer ones. */
    save(3, 1);
    CHECK(support_exists(dir, "step-00000003"));
    CHECK_INT(step_at(dir), 7);
    CHECK_INT(support_entries(dir, ".step-"), 0);
    test_folder_remove(run);
}

TEST(same_step_again) {
    struct stat before, after;
    support_parts p;
    begin();
    save(1, 0);
    save(2, 0);
    REQUIRE(stat(in_dir("step-00000002"), &before) == 0);
    save(2, 0);
    REQUIRE(stat(in_dir("step-00000002"), &after) == 0);
    CHECK_INT(after.st_ino, before.st_ino); /* the same: left as it is */
    CHECK_INT(support_entries(dir, ".step-"), 0);

    flip_byte(in_dir("step-00000002/model.safetensors"), -1);
    CHECK_INT(step_at(dir), 1);
    save(2, 0); /* the manifests agree, the bytes do not: replaced */
    CHECK_INT(step_at(dir), 2);
    CHECK_INT(support_entries(dir, ".step-"), 0);

    support_parts_init(&p, 2);
    p.scalar = 99;
    REQUIRE_OK(save_parts(tdm_host_default(), &p.parts, 0));
    CHECK_INT(step_at(dir), -2); /* whole, with the new value */
    CHECK_OK(tdm__ckpt_verify(tdm_host_default(), NULL, in_dir("step-00000002")));
    CHECK_INT(support_entries(dir, ".step-"), 0);
    test_folder_remove(run);
}

TEST(clears_what_dead_processes_left) {
    char name[128], held[128];
    support_host host;
    support_parts p;
    begin();
    save(1, 0);
    pid_t child = fork();
    if (child == 0) _exit(0);
    REQUIRE(child > 0 && waitpid(child, NULL, 0) == child); /* its number is free now */

    snprintf(name, sizeof(name), ".step-00000002.tmp-%ld-0", (long)child);
    REQUIRE(mkdir(in_dir(name), 0777) == 0);
    support_write(in_dir(strcat(name, "/model.safetensors")), "half", 4);
    snprintf(name, sizeof(name), ".step-00000003.tmp-%ld-1", (long)getpid()); /* our number, an earlier life */
    REQUIRE(mkdir(in_dir(name), 0777) == 0);
    snprintf(name, sizeof(name), "latest.tmp-%ld", (long)child);
    support_write(in_dir(name), "step", 4);

    /* To be left alone: of a process that lives, locked ones, and names of other patterns. */
    snprintf(name, sizeof(name), ".step-00000004.tmp-%ld-0", (long)getppid());
    REQUIRE(mkdir(in_dir(name), 0777) == 0);
    snprintf(held, sizeof(held), ".step-00000005.tmp-%ld-7", (long)getpid());
    REQUIRE(mkdir(in_dir(held), 0777) == 0);
    int fd = open(in_dir(held), O_RDONLY | O_DIRECTORY);
    REQUIRE(fd >= 0 && flock(fd, LOCK_EX) == 0);
    REQUIRE(mkdir(in_dir(".step-2.tmp-1-0"), 0777) == 0);
    REQUIRE(mkdir(in_dir("notes.tmp-1"), 0777) == 0);
    REQUIRE(mkdir(in_dir(".step-00000002.tmp-00099999999-0"), 0777) == 0);

    support_host_init(&host);
    support_parts_init(&p, 6);
    REQUIRE_OK(save_parts(&host.host, &p.parts, 0));
    CHECK_INT(support_entries(dir, "latest.tmp"), 0);
    CHECK_INT(support_entries(dir, ".step-00000002.tmp"), 1);
    CHECK_INT(support_entries(dir, ".step-00000003.tmp"), 0);
    CHECK(support_exists(dir, name) && support_exists(dir, held));
    CHECK(support_exists(dir, ".step-2.tmp-1-0") && support_exists(dir, "notes.tmp-1"));
    CHECK_HAS(host.log, "removed .step-00000002.tmp-");
    CHECK_INT(host.live, 0);
    close(fd);
    test_folder_remove(run);
}

/* In a container whose first process waits for nobody, the dead stay as zombies. */
TEST(a_zombie_is_dead) {
    char name[128];
    siginfo_t info;
    begin();
    save(1, 0);
    pid_t child = fork();
    if (child == 0) _exit(0);
    REQUIRE(child > 0 && waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) == 0);
    snprintf(name, sizeof(name), ".step-00000002.tmp-%ld-0", (long)child);
    REQUIRE(mkdir(in_dir(name), 0777) == 0);
    REQUIRE_OK(tdm__ckpt_remove_leftovers(tdm_host_default(), NULL, dir));
    CHECK(!support_exists(dir, name));
    CHECK(waitpid(child, NULL, 0) == child);
    test_folder_remove(run);
}

/* Links and other things under our names: nothing outside the folder is touched, nothing is waited for. */
TEST(planted_names) {
    char outside[256], victim[300], name[64];
    support_parts p;
    tdm_ckpt *ckpt;
    begin();
    test_folder_make(outside);
    snprintf(victim, sizeof(victim), "%s/victim", outside);
    support_write(victim, "precious", 8);
    save(1, 0);
    snprintf(name, sizeof(name), ".step-00000002.tmp-%ld-0", (long)getppid());
    REQUIRE(symlink(outside, in_dir(name)) == 0);
    snprintf(name, sizeof(name), ".step-00000002.tmp-%ld-0", (long)getpid());
    REQUIRE(symlink(outside, in_dir(name)) == 0); /* cleared as a link, not followed */
    save(2, 0);
    CHECK_INT(step_at(dir), 2);

    REQUIRE(symlink(outside, in_dir("step-00000003")) == 0);
    support_parts_init(&p, 3);
    CHECK_STATUS(save_parts(tdm_host_default(), &p.parts, 0), TDM_E_IO);
    CHECK_HAS(tdm_error_message(), "step-00000003: expected a folder or nothing");
    CHECK_INT(step_at(dir), 2);

    /* A link as `latest` is replaced, not written through. */
    unlink(in_dir("step-00000003"));
    unlink(in_dir("latest"));
    REQUIRE(symlink(victim, in_dir("latest")) == 0);
    save(3, 1);
    size_t size;
    char *bytes = support_read(victim, &size);
    CHECK_TEXT(bytes, "precious");
    free(bytes);
    CHECK_INT(support_entries(outside, ""), 1);
    CHECK_INT(step_at(dir), 3);

    /* A FIFO in a checkpoint, a file in place of one: passed over at once. */
    REQUIRE(mkdir(in_dir("step-00000004"), 0777) == 0 && mkfifo(in_dir("step-00000004/MANIFEST.json"), 0666) == 0);
    support_write(in_dir("step-00000005"), "x", 1);
    CHECK_INT(step_at(dir), 3);
    CHECK_STATUS(tdm__ckpt_open(&ckpt, tdm_host_default(), NULL, in_dir("step-00000004")), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "found a FIFO");
    test_folder_remove(run);
    test_folder_remove(outside);
}

TEST(no_place_for_folders) {
    support_parts p;
    begin();
    support_write(dir, "a file", 6);
    support_parts_init(&p, 1);
    CHECK_STATUS(tdm__ckpt_save(tdm_host_default(), &tdm__file_system, NULL, dir, &p.parts, 0), TDM_E_IO);
    CHECK_HAS(tdm_error_message(), "the checkpoint of step 1 is not saved: ");
    CHECK_HAS(tdm_error_message(), "expected a folder, found a file");
    REQUIRE(unlink(dir) == 0 && symlink("/nowhere/at/all", dir) == 0);
    CHECK_STATUS(tdm__ckpt_save(tdm_host_default(), &tdm__file_system, NULL, dir, &p.parts, 0), TDM_E_IO);
    CHECK_HAS(tdm_error_message(), "expected a folder, found a symbolic link to nothing");
    p.parts.state.lr = (double)NAN;
    CHECK_STATUS(tdm__ckpt_save(tdm_host_default(), &tdm__file_system, NULL, run, &p.parts, 0), TDM_E_INTERNAL);
    test_folder_remove(run);
}

/* Runs that begin anew, several within one second: each finds the ones before set aside, and nothing is lost. */
TEST(set_aside_within_a_second) {
    enum { RUNS = 3 };
    begin();
    for (int i = 0; i < RUNS; i++) {
        save(1, 0);
        save(2, 0);
        REQUIRE_OK(tdm__ckpt_set_aside(tdm_host_default(), NULL, dir, -1));
        CHECK_INT(support_entries(dir, "step-"), 0);
        CHECK_INT(support_entries(dir, "before-"), i + 1);
    }
    test_folder_remove(run);
}

/* What holds a number that is infinite or NaN is never written, and what was there stays. */
TEST(numbers_that_are_not_finite) {
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    static const char *const names[] = {"fc.weight", "fc.bias", "scale", "exp_avg.fc.weight", "exp_avg_sq.fc.weight"};
    char want[128];
    support_parts p;
    begin();
    save(2, 0);
    for (int i = 0; i < 15; i++) {
        support_parts_init(&p, 2);
        float *const numbers[] = {&p.weight[5], &p.bias[1], &p.scalar, &p.moment[0], &p.moment_sq[5]};
        *numbers[i / 3] = bad[i % 3];
        CHECK_STATUS(save_parts(tdm_host_default(), &p.parts, 1), TDM_E_NUMERIC);
        snprintf(want, sizeof(want), "the checkpoint of step 2 is not saved: tensor '%s' is not finite (element %d ",
                 names[i / 3], (const int[]){5, 1, 0, 0, 5}[i / 3]);
        CHECK_HAS(tdm_error_message(), want);
        CHECK_INT(support_entries(dir, ""), 2); /* step 2 and `latest` */
        CHECK_INT(step_at(dir), 2);
    }
    test_folder_remove(run);
}

/* The same in a checkpoint that others made: with every hash as it should be it is damaged all the same. */
TEST(found_numbers_that_are_not_finite) {
    static const float inf = INFINITY;
    support_host host;
    tdm_ckpt *ckpt;
    begin();
    for (int64_t step = 1; step <= 3; step++) save(step, 0);
    support_patch(in_dir("step-00000002/optimizer.safetensors"), "exp_avg_sq.fc.weight", &inf, sizeof(inf));
    support_patch(in_dir("step-00000003/model.safetensors"), "scale", &inf, sizeof(inf));
    support_reseal(in_dir("step-00000001"));
    support_reseal(in_dir("step-00000002"));
    support_reseal(in_dir("step-00000003"));
    CHECK_OK(tdm__ckpt_verify(tdm_host_default(), NULL, in_dir("step-00000001")));
    CHECK_STATUS(tdm__ckpt_verify(tdm_host_default(), NULL, in_dir("step-00000002")), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "optimizer.safetensors: tensor 'exp_avg_sq.fc.weight' is not finite (element 0 ");
    CHECK_STATUS(tdm__ckpt_verify(tdm_host_default(), NULL, in_dir("step-00000003")), TDM_E_CHECKPOINT);

    support_host_init(&host);
    REQUIRE_OK(tdm__ckpt_open_newest(&ckpt, &host.host, NULL, dir));
    CHECK_INT(tdm__ckpt_state(ckpt)->step, 1);
    CHECK_HAS(host.log, "step-00000003 is skipped: ");
    CHECK_HAS(host.log, "model.safetensors: tensor 'scale' is not finite (element 0 is infinite or NaN)");
    tdm__ckpt_close(ckpt);
    CHECK_INT(host.live, 0);

    save(3, 0); /* what is not good is replaced */
    CHECK_INT(step_at(dir), 3);
    test_folder_remove(run);
}

/* Nor may a running average of squares be negative: the next step would take its square root. */
TEST(found_numbers_that_are_negative) {
    static const float squares[] = {4.0f, -0.0f, -1e-30f};
    support_host host;
    tdm_ckpt *ckpt;
    begin();
    save(1, 0);
    save(2, 0);
    support_patch(in_dir("step-00000002/optimizer.safetensors"), "exp_avg.fc.weight", squares, sizeof(squares));
    support_patch(in_dir("step-00000002/optimizer.safetensors"), "exp_avg_sq.fc.weight", squares, 2 * sizeof(float));
    support_reseal(in_dir("step-00000002"));
    CHECK_OK(tdm__ckpt_verify(tdm_host_default(), NULL, in_dir("step-00000002")));
    support_patch(in_dir("step-00000002/optimizer.safetensors"), "exp_avg_sq.fc.weight", squares, sizeof(squares));
    support_reseal(in_dir("step-00000002"));
    CHECK_STATUS(tdm__ckpt_verify(tdm_host_default(), NULL, in_dir("step-00000002")), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "tensor 'exp_avg_sq.fc.weight' must not be negative (element 2 is below 0)");
    CHECK_STATUS(tdm__ckpt_open_any(&ckpt, tdm_host_default(), in_dir("step-00000002")), TDM_E_CHECKPOINT);
    support_host_init(&host);
    REQUIRE_OK(tdm__ckpt_open_newest(&ckpt, &host.host, NULL, dir));
    CHECK_INT(tdm__ckpt_state(ckpt)->step, 1);
    CHECK_HAS(host.log, "step-00000002 is skipped: ");
    tdm__ckpt_close(ckpt);
    CHECK_INT(host.live, 0);
    test_folder_remove(run);
}

TEST(a_folder_under_another_steps_name) {
    tdm_ckpt *ckpt;
    begin();
    save(1, 0);
    save(2, 0);
    REQUIRE(rename(in_dir("step-00000002"), in_dir("step-00000007")) == 0);
    CHECK_STATUS(tdm__ckpt_verify(tdm_host_default(), NULL, in_dir("step-00000007")), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "the folder's name is not that of the checkpoint in it, step-00000002");
    CHECK_STATUS(tdm__ckpt_open_any(&ckpt, tdm_host_default(), in_dir("step-00000007//")), TDM_E_CHECKPOINT);
    CHECK_INT(step_at(dir), 1);
    static const char *const names[] = {"step-7", "step-2", "step-0000000002", "step-99999999999999999999",
                                        "step-2-best"};
    const char *last = "step-00000007";
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++, last = names[i - 1]) {
        REQUIRE(rename(in_dir(last), in_dir(names[i])) == 0);
        CHECK_STATUS(tdm__ckpt_verify(tdm_host_default(), NULL, in_dir(names[i])), TDM_E_CHECKPOINT);
        CHECK_HAS(tdm_error_message(), "checkpoint in it, step-00000002");
    }
    REQUIRE(rename(in_dir(last), in_dir("best")) == 0); /* says nothing of a step */
    CHECK_INT(step_at(in_dir("best")), 2);
    test_folder_remove(run);
}

/* Success leaves the thread's error record alone, also where failures were met and dealt with on the way. */
TEST(record_is_left_alone) {
    begin();
    save(1, 0);
    save(2, 0);
    flip_byte(in_dir("step-00000002/state.json"), 5);
    tdm__error_restore(&(tdm_error){.status = TDM_E_DATA, .message = "an earlier one"}, NULL);
    CHECK_INT(step_at(dir), 1);
    CHECK_TEXT(tdm_error_message(), "an earlier one");
    save(3, 1);
    CHECK_TEXT(tdm_error_message(), "an earlier one");
    test_folder_remove(run);
}

TEST_MAIN(RUN(saved_and_found); RUN(nothing_there); RUN(without_optimizer_tensors_or_config); RUN(keeps_the_newest);
          RUN(same_step_again); RUN(clears_what_dead_processes_left); RUN(a_zombie_is_dead); RUN(planted_names);
          RUN(set_aside_within_a_second); RUN(no_place_for_folders); RUN(numbers_that_are_not_finite);
          RUN(found_numbers_that_are_not_finite); RUN(found_numbers_that_are_negative);
          RUN(a_folder_under_another_steps_name); RUN(record_is_left_alone);)
