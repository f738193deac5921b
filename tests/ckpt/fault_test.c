/* Saving under every fault: each call that changes the file system fails in turn, or the power goes there, with what
 * was not durable torn in five ways. Whatever happens, the newest usable checkpoint is whole and is step k-1 or k. */
#include <errno.h>

#include <tandem/checkpoint.h>

#include "runtime/base/random/rng.h"
#include "tests/ckpt/ckpt_support.h"
#include "tests/ckpt/fault_ops.h"
#include "tests/support/tdm_failing_host.h"

static long count = 50; /* of drawn trials; `ckpt_fault any_call_fails 5000 SEED` makes more */
static unsigned long long seed = 1;

/* A save of `step` with everything as it should be, but without waiting for the disk. */
static void save_well(const char *dir, int64_t step, int64_t keep_last) {
    fault_ops f;
    support_parts p;
    fault_ops_init(&f, 0, 0);
    support_parts_init(&p, step);
    CHECK_OK(tdm__ckpt_save(tdm_host_default(), &f.ops, NULL, dir, &p.parts, keep_last));
    CHECK_INT(f.early, 0);
    CHECK_TEXT(f.pending, "");
}

/* The step that a run would go on from; -1 if none, -2 if it is not whole. */
static int64_t newest(const char *dir) {
    tdm_ckpt *ckpt;
    if (tdm__ckpt_open_newest(&ckpt, tdm_host_default(), NULL, dir) != TDM_OK || ckpt == NULL) return -1;
    int64_t step = tdm__ckpt_state(ckpt)->step;
    bool whole = support_holds(ckpt, step);
    tdm__ckpt_close(ckpt);
    return whole ? step : -2;
}

static int temporaries(const char *dir) {
    return support_entries(dir, ".step-") + support_entries(dir, "latest.tmp");
}

/* Calls whose failure may leave a temporary folder to the next save: the removal itself. */
static bool is_removal(const fault_ops *f) {
    return strcmp(f->failed_call, "unlink") == 0 || strcmp(f->failed_call, "rmdir") == 0;
}

/* What a test begins with: steps 1 and 2 saved; a different step 3 if it is to be replaced. */
static void prepare(char dir[256], bool replace) {
    test_folder_make(dir);
    save_well(dir, 1, 0);
    save_well(dir, 2, 0);
    if (replace) {
        support_parts p;
        fault_ops f;
        fault_ops_init(&f, 0, 0);
        support_parts_init(&p, 3);
        p.parts.config_yaml = "mode: single\n";
        CHECK_OK(tdm__ckpt_save(tdm_host_default(), &f.ops, NULL, dir, &p.parts, 0));
    }
}

static void check_message(const fault_ops *f, const char *dir) {
    CHECK_HAS(tdm_error_message(), "the checkpoint of step 3 is not saved: cannot ");
    CHECK_HAS(tdm_error_message(), dir);
    CHECK_HAS(tdm_error_message(), strerror(f->error));
}

/* Call k fails; false if there are not so many. */
static bool one_error(long k, int error, bool replace, bool no_exchange, int64_t keep_last) {
    char dir[256];
    fault_ops f;
    support_parts p;
    prepare(dir, replace);
    fault_ops_init(&f, k, error);
    f.no_exchange = no_exchange;
    support_parts_init(&p, 3);
    tdm_status status = tdm__ckpt_save(tdm_host_default(), &f.ops, NULL, dir, &p.parts, keep_last);
    int64_t step = newest(dir);
    if (status == TDM_OK) {
        CHECK_INT(step, 3);
        CHECK_TEXT(f.pending, "");
    } else {
        CHECK_INT(status, error == ENOMEM ? TDM_E_MEMORY : TDM_E_IO);
        check_message(&f, dir);
        CHECK(step == 2 || step == 3);
    }
    CHECK_INT(f.early, 0);
    /* After an exchange that may not be durable the old one is kept, too. */
    bool may_leave = !f.failed || is_removal(&f) || (replace && status != TDM_OK && step == 3);
    if (!may_leave) CHECK_INT(temporaries(dir), 0);
    save_well(dir, 4, 0);
    CHECK_INT(newest(dir), 4);
    CHECK_INT(temporaries(dir), 0);
    test_folder_remove(dir);
    return f.failed;
}

/* Every call in turn; returns how many there were. */
static long sweep_errors(int error, bool replace, bool no_exchange, int64_t keep_last) {
    long k = 1;
    while (one_error(k, error, replace, no_exchange, keep_last)) k++;
    return k - 1;
}

static long sweep_crashes(int tear, bool replace, bool no_exchange, int64_t keep_last) {
    for (long k = 1;; k++) {
        char dir[256];
        fault_ops f;
        support_parts p;
        prepare(dir, replace);
        fault_ops_init(&f, k, 0);
        f.tear = tear;
        f.no_exchange = no_exchange;
        support_parts_init(&p, 3);
        tdm_status status = tdm__ckpt_save(tdm_host_default(), &f.ops, NULL, dir, &p.parts, keep_last);
        int64_t step = newest(dir);
        if (status == TDM_OK)
            CHECK_INT(step, 3);
        else
            CHECK(step == 2 || step == 3);
        CHECK_INT(f.early, 0);
        /* The next process finds its way, and cleans up. */
        save_well(dir, 4, keep_last);
        CHECK_INT(newest(dir), 4);
        CHECK_INT(temporaries(dir), 0);
        if (keep_last > 0) CHECK_INT(support_entries(dir, "step-"), keep_last);
        test_folder_remove(dir);
        if (!f.failed) return k - 1;
    }
}

/* ---- the best checkpoint ---- */

static tdm_status save_best(const char *dir, const tdm_file_ops *ops, int64_t step) {
    support_parts p;
    support_parts_init(&p, step);
    snprintf(p.parts.state.best_metric, sizeof(p.parts.state.best_metric), "loss");
    p.parts.state.best_step = step;
    p.parts.state.best_score = 1.0 / (double)step;
    return tdm__ckpt_save(tdm_host_default(), ops, NULL, dir, &p.parts, 1);
}

/* The step that `best` leads to; -1: to none. */
static int64_t best_of(const char *dir) {
    char path[300];
    tdm_ckpt *ckpt;
    snprintf(path, sizeof(path), "%s/best", dir);
    if (tdm__ckpt_open_any(&ckpt, tdm_host_default(), path) != TDM_OK) return -1;
    int64_t step = tdm__ckpt_state(ckpt)->step;
    tdm__ckpt_close(ckpt);
    return step;
}

/* Wherever the save of a better step 3 ends, `best` leads to a whole checkpoint: to step 1 or to step 3. Between them
 * lies step 2, which was the newest and not the best. */
static bool one_better(long k, int error, int tear) {
    char dir[256];
    fault_ops f;
    support_parts p;
    test_folder_make(dir);
    CHECK_OK(save_best(dir, &tdm__file_system, 1));
    support_parts_init(&p, 2);
    snprintf(p.parts.state.best_metric, sizeof(p.parts.state.best_metric), "loss");
    p.parts.state.best_step = 1;
    CHECK_OK(tdm__ckpt_save(tdm_host_default(), &tdm__file_system, NULL, dir, &p.parts, 1));
    CHECK_INT(best_of(dir), 1); /* keep_last is 1, and it is still there */
    fault_ops_init(&f, k, error);
    f.tear = tear;
    tdm_status status = save_best(dir, &f.ops, 3);
    int64_t best = best_of(dir);
    CHECK(best == 1 || best == 3);
    if (status != TDM_OK && error != 0) CHECK(best == 1);
    CHECK_OK(save_best(dir, &tdm__file_system, 4));
    CHECK_INT(best_of(dir), 4);
    CHECK_INT(temporaries(dir) + support_entries(dir, "best.tmp"), 0);
    test_folder_remove(dir);
    return f.failed;
}

TEST(best_always_leads_to_a_checkpoint) {
    for (int tear = 0; tear < TEAR_COUNT; tear++) {
        for (long k = 1; one_better(k, 0, tear);) k++;
    }
    for (long k = 1; one_better(k, ENOSPC, TEAR_NONE);) k++;
}

TEST(every_call_fails) {
    long calls = sweep_errors(ENOSPC, false, false, 0);
    CHECK(calls > 40);
    CHECK_INT(sweep_errors(EIO, false, false, 0), calls);
    CHECK_INT(sweep_errors(ENOMEM, false, false, 0), calls);
    CHECK(sweep_errors(EIO, false, false, 1) > calls);
    CHECK(sweep_errors(EIO, true, false, 0) > calls);
    CHECK(sweep_errors(EIO, true, true, 0) > calls);
}

/* A call, an error and a kind of save, all drawn; of calls beyond the last nothing fails. */
TEST(any_call_fails) {
    static const int errors[] = {EIO, ENOSPC, EDQUOT, EROFS, EINTR, ENOMEM};
    tdm_rng rng;
    long failed = 0, drawn = 0;
    tdm__rng_seed(&rng, seed, TDM_RNG_TORCH_AVX2);
    for (; failed < count; drawn++) {
        long k = 1 + (long)(tdm__rng_u32(&rng) % 90);
        uint32_t kind = tdm__rng_u32(&rng);
        int error = errors[kind / 8 % 6];
        int before = tdm_test_failures;
        failed += one_error(k, error, (kind & 1) != 0, (kind & 2) != 0, (kind & 4) != 0);
        if (tdm_test_failures != before) fprintf(stderr, "call %ld, %s, kind %u\n", k, strerror(error), kind & 7);
    }
    printf("failing calls: %ld in %ld saves, seed %llu\n", failed, drawn, (unsigned long long)seed);
}

TEST(power_goes_at_every_call) {
    for (int tear = 0; tear < TEAR_COUNT; tear++) CHECK(sweep_crashes(tear, false, false, 2) > 40);
}

TEST(power_goes_while_pruning) {
    sweep_crashes(TEAR_ZEROES, false, false, 1);
    sweep_crashes(TEAR_GONE, false, false, 1);
}

TEST(power_goes_while_replacing) {
    for (int tear = 0; tear < TEAR_COUNT; tear++) sweep_crashes(tear, true, false, 0);
    sweep_crashes(TEAR_ZEROES, true, true, 0);
}

TEST(file_systems_without_reservation) {
    /* fallocate is not everywhere: the save goes on without it. */
    char dir[256];
    prepare(dir, false);
    for (long k = 1;; k++) {
        fault_ops f;
        support_parts p;
        fault_ops_init(&f, k, EOPNOTSUPP);
        support_parts_init(&p, 3 + k);
        tdm_status status = tdm__ckpt_save(tdm_host_default(), &f.ops, NULL, dir, &p.parts, 0);
        if (!f.failed) break;
        if (strcmp(f.failed_call, "allocate") == 0) CHECK_OK(status);
    }
    test_folder_remove(dir);
}

/* Every allocation fails in turn, of saving and of opening again. */
TEST(memory_fails) {
    char dir[256];
    prepare(dir, false);
    for (long k = 1;; k++) {
        tdm_failing_host failing;
        fault_ops f;
        support_parts p;
        tdm_failing_host_init(&failing, k);
        fault_ops_init(&f, 0, 0);
        support_parts_init(&p, 3);
        tdm_status status = tdm__ckpt_save(&failing.host, &f.ops, NULL, dir, &p.parts, 1);
        CHECK_INT(failing.live, 0);
        CHECK_INT(newest(dir), status == TDM_OK ? 3 : 2);
        if (status == TDM_OK) break; /* behind the commit memory may fail: that is only a warning */
        CHECK_INT(status, TDM_E_MEMORY);
        CHECK_INT(temporaries(dir), 0);
    }
    for (long k = 1;; k++) {
        tdm_failing_host failing;
        tdm_ckpt *ckpt;
        char *shown = NULL, *list = NULL;
        tdm_failing_host_init(&failing, k);
        tdm_status status = tdm__ckpt_open_newest(&ckpt, &failing.host, NULL, dir);
        if (status == TDM_OK) {
            tdm__ckpt_close(ckpt);
            status = tdm_checkpoint_show(&failing.host, dir, false, &shown);
        } else {
            CHECK(ckpt == NULL);
        }
        if (status == TDM_OK) status = tdm_checkpoint_list(&failing.host, dir, true, &list);
        tdm_free(shown);
        tdm_free(list);
        CHECK_INT(failing.live, 0);
        if (!failing.failed) {
            CHECK_OK(status);
            break;
        }
        CHECK_INT(status, TDM_E_MEMORY);
    }
    test_folder_remove(dir);
}

typedef struct listening_host {
    tdm_failing_host failing; /* first: the host's user */
    int lines;
} listening_host;

static void count_line(void *user, tdm_log_level level, const char *subsystem, const char *line) {
    (void)level, (void)subsystem;
    ((listening_host *)user)->lines += strstr(line, "old checkpoints cannot be removed") != NULL;
}

/* A checkpoint that cannot be looked at for want of memory may be a good one: nothing is removed, and that is told. */
TEST(memory_fails_while_pruning) {
    listening_host w;
    int told = 0;
    for (long k = 1;; k++) {
        char dir[256];
        fault_ops f;
        support_parts p;
        prepare(dir, false);
        tdm_failing_host_init(&w.failing, k);
        w.failing.host.log = count_line;
        w.failing.host.log_level = TDM_LOG_WARNING;
        w.lines = 0;
        fault_ops_init(&f, 0, 0);
        support_parts_init(&p, 3);
        tdm_status status = tdm__ckpt_save(&w.failing.host, &f.ops, NULL, dir, &p.parts, 2);
        if (status == TDM_OK) CHECK_INT(support_exists(dir, "step-00000001"), w.lines == 1);
        told += w.lines;
        test_folder_remove(dir);
        if (!w.failing.failed) break;
    }
    CHECK(told > 0);
}

TEST_MAIN(if (argc > 2) count = atol(argv[2]); if (argc > 3) seed = strtoull(argv[3], NULL, 10); if (argc > 2) argc = 2;
          RUN(best_always_leads_to_a_checkpoint); RUN(every_call_fails); RUN(any_call_fails);
          RUN(power_goes_at_every_call); RUN(power_goes_while_pruning); RUN(power_goes_while_replacing);
          RUN(file_systems_without_reservation); RUN(memory_fails); RUN(memory_fails_while_pruning);)
