/* metrics.jsonl: what a resume takes out of it, whatever fails on the way; and lines that wait for a full disk. */
#include <errno.h>
#include <unistd.h>

#include "runtime/base/status.h"
#include "runtime/train/log/metrics.h"
#include "tests/ckpt/ckpt_support.h"
#include "tests/ckpt/fault_ops.h"

static char dir[256], path[300], cut_path[300];
static support_host host;

/* ---- what the tests begin with, and look at ---- */

static void begin(void) {
    test_folder_make(dir);
    snprintf(path, sizeof(path), "%s/%s", dir, TDM_METRICS);
    snprintf(cut_path, sizeof(cut_path), "%s/%s", dir, TDM_METRICS_CUT);
    support_host_init(&host);
}

static void check_file(const char *file, const char *wanted) {
    size_t size;
    char *text = support_read(file, &size);
    CHECK_TEXT(text != NULL ? text : "", wanted);
    free(text);
}

static tdm_status rewind_at(const tdm_file_ops *ops, int64_t step, bool eval_due) {
    tdm_zone zone;
    tdm_folder folder;
    tdm_metrics metrics = {.fd = -1};
    tdm__zone_init(&zone, &host.host);
    tdm_status status = tdm__folder_open(&folder, &zone, NULL, dir, TDM_E_IO);
    if (status == TDM_OK) status = tdm__metrics_open(&metrics, &host.host, ops, &folder, TDM_METRICS);
    if (status == TDM_OK) status = tdm__metrics_rewind(&metrics, step, eval_due);
    tdm__metrics_close(&metrics);
    tdm__folder_close(&folder);
    tdm__zone_deinit(&zone);
    return status;
}

/* ---- what a resume takes out ---- */

#define L1 "{\"kind\":\"train\",\"step\":1,\"loss\":2.5,\"ms\":{\"data\":0.1,\"step\":3}}\n"
#define L2 "{\"kind\":\"train\",\"step\":2,\"loss\":null}\n"
#define L3 "{\"kind\":\"train\",\"step\":3,\"loss\":2.0e-5}\n"
#define L4 "{\"kind\":\"train\",\"step\":4,\"loss\":1}\n"
#define E2 "{\"kind\":\"eval\",\"step\":2,\"loss\":1,\"accuracy\":null}\n"
#define L2_LACKS_END "{\"kind\":\"train\",\"step\":2,\"loss\":null}"
#define TORN "{\"kind\":\"train\",\"st"
#define ALTERED "{\"kind\":\"train\",\"step\":2,\"loss\":2.x}\n"
#define NO_STEP "{\"kind\":\"train\",\"stfp\":2,\"loss\":2.5}\n"
#define BINARY "\x80\x01{\"step\":1}\n"

static const struct {
    const char *before;
    int64_t step;
    bool eval_due;
    const char *stays, *cut;
} cases[] = {
    {"", 0, false, "", ""},
    {L1 L2 E2 L3, 3, false, L1 L2 E2 L3, ""},
    {L1 L2 E2 L3, 3, true, L1 L2 E2 L3, ""},
    {L1 L2 E2 L3 L4, 2, false, L1 L2 E2, L3 L4},
    {L1 L2 E2 L3 L4, 2, true, L1 L2, E2 L3 L4},
    {L1 L2, 0, false, "", L1 L2},
    {L1 L2 TORN, 2, false, L1 L2, TORN "\n"},
    {TORN, 2, false, "", TORN "\n"},
    {L1 ALTERED L3 L4, 4, false, L1 L3 L4, ALTERED},
    {ALTERED L3 NO_STEP L4 BINARY, 3, false, L3, ALTERED NO_STEP L4 BINARY},
    {L1 L2_LACKS_END, 2, false, L1 L2, ""},
    {L1 L2_LACKS_END, 1, false, L1, L2},
    {ALTERED L1 L4 L2_LACKS_END, 2, false, L1 L2, ALTERED L4},
    {L1 "\n" L2 "x\n" L4 L3 TORN, 3, false, L1 L2 L3, "\nx\n" L4 TORN "\n"},
};

TEST(takes_out_what_comes_again) {
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin();
        support_write(path, cases[i].before, strlen(cases[i].before));
        REQUIRE_OK(rewind_at(&tdm__file_system, cases[i].step, cases[i].eval_due));
        check_file(path, cases[i].stays);
        check_file(cut_path, cases[i].cut);
        CHECK_INT(strstr(host.log, "moved from metrics.jsonl to ") != NULL, cases[i].cut[0] != '\0');
        CHECK_INT(host.live, 0);
        test_folder_remove(dir);
    }
}

TEST(says_how_many) {
    begin();
    support_write(path, L1 ALTERED L3 L4, strlen(L1 ALTERED L3 L4));
    REQUIRE_OK(rewind_at(&tdm__file_system, 2, false));
    CHECK_HAS(host.log,
              "2 lines of what comes after step 2 and 1 line that cannot be read moved from metrics.jsonl to ");
    CHECK_HAS(host.log, cut_path);
    /* The second time there is more in the other file, and one that a crash cut off there. */
    support_write(path, L1 L2, strlen(L1 L2));
    support_write(cut_path, L3 TORN, strlen(L3 TORN));
    REQUIRE_OK(rewind_at(&tdm__file_system, 1, false));
    check_file(cut_path, L3 TORN "\n" L2);
    test_folder_remove(dir);
}

/* A line longer than a window is none of ours, wherever it ends; the memory that is taken does not grow. */
TEST(long_lines_and_large_files) {
    enum { LINES = 40000, LONG = 3 * TDM_METRICS_LINE + 17 };
    begin();
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    for (int i = 1; i <= LINES; i++) {
        fprintf(file, "{\"kind\":\"train\",\"step\":%d,\"loss\":0.125,\"name\":\"%0*d\"}\n", i, i % 300, i);
        if (i == 20000) fprintf(file, "%*s\n", LONG, "{\"step\":1}");
    }
    REQUIRE(fclose(file) == 0);
    REQUIRE_OK(rewind_at(&tdm__file_system, 30000, false));
    CHECK_HAS(host.log, "10000 lines of what comes after step 30000 and 1 line that cannot be read moved");
    CHECK(host.peak < 3 * TDM_METRICS_LINE);
    size_t size, lines = 0;
    char *text = support_read(path, &size);
    for (char *c = text; (c = strchr(c, '\n')) != NULL; c++) lines++;
    CHECK_INT(lines, 30000);
    CHECK_HAS(text, "\"step\":30000,");
    free(text);
    text = support_read(cut_path, &size);
    for (char *c = text; (c = strchr(c, '\n')) != NULL; c++) lines++;
    CHECK_INT(lines, 40001);
    free(text);
    test_folder_remove(dir);
}

/* Every line of a text that `have` does not hold. */
static int missing(const char *lines, const char *have) {
    int count = 0;
    for (const char *at = lines; *at != '\0';) {
        size_t bytes = strcspn(at, "\n");
        char line[256];
        snprintf(line, sizeof(line), "%.*s", (int)bytes, at);
        count += strstr(have, line) == NULL;
        at += bytes + (at[bytes] == '\n');
    }
    return count;
}

/* Where the power went a file may have zeroes. */
static int missing_in_files(const char *lines) {
    size_t size;
    char both[8192] = "", *end = both;
    for (int i = 0; i < 2; i++) {
        char *text = support_read(i == 0 ? path : cut_path, &size);
        for (size_t k = 0; text != NULL && k < size; k++) *end++ = text[k] == '\0' ? '?' : text[k];
        *end++ = '\n';
        free(text);
    }
    return missing(lines, both);
}

/* Call k fails, or the process is killed there, or the power goes; then comes the next process. No line is in neither
 * file at any time, and in the end the right ones are in the first. */
static void sweep(const char *before, const char *stays, int error, int tear) {
    for (long k = 1;; k++) {
        fault_ops f;
        begin();
        support_write(path, before, strlen(before));
        support_write(cut_path, E2, strlen(E2));
        fault_ops_init(&f, k, error);
        f.tear = tear;
        tdm_status status = rewind_at(&f.ops, 2, false);
        if (f.failed) CHECK(status == TDM_OK || status == TDM_E_IO);
        CHECK_INT(missing_in_files(before), 0);
        CHECK_INT(missing_in_files(E2), 0);
        REQUIRE_OK(rewind_at(&tdm__file_system, 2, false));
        check_file(path, stays);
        CHECK_INT(missing_in_files(before), 0);
        test_folder_remove(dir);
        if (!f.failed) break;
    }
}

TEST(nothing_is_lost_whatever_fails) {
    static const char end[] = L1 L2 L3 L4 TORN, middle[] = L1 ALTERED L2 L3 L4, lacking[] = L1 ALTERED L3 L2_LACKS_END;
    static const int errors[] = {ENOSPC, EIO};
    for (size_t i = 0; i < 2; i++) {
        sweep(end, L1 L2, errors[i], TEAR_NONE);
        sweep(middle, L1 L2, errors[i], TEAR_NONE);
        sweep(lacking, L1 L2, errors[i], TEAR_NONE);
    }
    for (int tear = 0; tear < TEAR_COUNT; tear++) {
        sweep(end, L1 L2, 0, tear);
        sweep(middle, L1 L2, 0, tear);
        sweep(lacking, L1 L2, 0, tear);
    }
}

/* ---- a full disk ---- */

typedef struct small_disk {
    tdm_file_ops ops;
    size_t room; /* bytes */
    int refused;
} small_disk;

static ssize_t small_pwrite(void *user, int fd, const void *bytes, size_t count, off_t offset) {
    small_disk *disk = user;
    if (disk->room == 0) {
        disk->refused++;
        errno = ENOSPC;
        return -1;
    }
    size_t some = count < disk->room ? count : disk->room;
    disk->room -= some;
    return tdm__file_system.pwrite(NULL, fd, bytes, some, offset);
}

static void open_on(tdm_metrics *metrics, tdm_zone *zone, tdm_folder *folder, small_disk *disk) {
    disk->ops = tdm__file_system;
    disk->ops.pwrite = small_pwrite;
    disk->ops.user = disk;
    tdm__zone_init(zone, &host.host);
    REQUIRE_OK(tdm__folder_open(folder, zone, NULL, dir, TDM_E_IO));
    REQUIRE_OK(tdm__metrics_open(metrics, &host.host, &disk->ops, folder, TDM_METRICS));
}

static void add(tdm_metrics *metrics, int i) {
    tdm_text line;
    tdm__text_init(&line, &host.host);
    tdm__text_printf(&line, "{\"kind\":\"train\",\"step\":%d,\"loss\":%d.5}\n", i, i % 7);
    CHECK_OK(tdm__metrics_add(metrics, &line));
}

static int count_of(const char *text, const char *part) {
    int count = 0;
    for (; (text = strstr(text, part)) != NULL; text++) count++;
    return count;
}

/* Room comes and goes in any amounts: every line is there in the end, whole and in order; each outage is told once. */
TEST(waits_for_room) {
    enum { LINES = 400 };
    tdm_zone zone;
    tdm_folder folder;
    tdm_metrics metrics;
    small_disk disk = {.room = 100};
    tdm_text wanted;
    begin();
    tdm__text_init(&wanted, tdm_host_default());
    open_on(&metrics, &zone, &folder, &disk);
    tdm__error_restore(&(tdm_error){.status = TDM_E_DATA, .message = "an earlier one"}, NULL);
    for (int i = 1; i <= LINES; i++) {
        tdm__text_printf(&wanted, "{\"kind\":\"train\",\"step\":%d,\"loss\":%d.5}\n", i, i % 7);
        if (i % 3 == 0) disk.room += (size_t)(i % 60);
        if (i == LINES / 2) CHECK_INT(count_of(host.log, "No space left on device"), 1);
        add(&metrics, i);
    }
    CHECK(disk.refused > LINES / 2);
    CHECK_TEXT(tdm_error_message(), "an earlier one");
    disk.room = (size_t)-1;
    tdm__metrics_close(&metrics);
    check_file(path, wanted.data);
    CHECK_HAS(host.log, "is written again; no line is lost");
    CHECK_INT(count_of(host.log, "are lost"), 0);
    tdm__folder_close(&folder);
    tdm__zone_deinit(&zone);
    tdm__text_deinit(&wanted);
    CHECK_INT(host.live, 0);
    test_folder_remove(dir);
}

/* What waits is bounded, and what found no room there is counted; so is what never could be written. */
TEST(waits_within_bounds) {
    enum { LINES = 120000 }; /* 4 MiB and some more */
    tdm_zone zone;
    tdm_folder folder;
    tdm_metrics metrics;
    small_disk disk = {.room = 10};
    begin();
    open_on(&metrics, &zone, &folder, &disk);
    for (int i = 1; i <= LINES; i++) add(&metrics, i);
    CHECK(host.peak < 3 * TDM_METRICS_KEPT);
    CHECK_INT(count_of(host.log, "No space left on device"), 1);
    disk.room = 1 << 30;
    add(&metrics, LINES + 1);
    CHECK_HAS(host.log, "lines are lost: more than 4 MiB of them waited");
    disk.room = 0;
    add(&metrics, LINES + 2);
    add(&metrics, LINES + 3);
    tdm__metrics_close(&metrics);
    CHECK_HAS(host.log, "could not be written to the end: up to 2 lines are lost");
    tdm__folder_close(&folder);
    tdm__zone_deinit(&zone);
    CHECK_INT(host.live, 0);
    test_folder_remove(dir);
}

TEST_MAIN(RUN(takes_out_what_comes_again); RUN(says_how_many); RUN(long_lines_and_large_files);
          RUN(nothing_is_lost_whatever_fails); RUN(waits_for_room); RUN(waits_within_bounds);)
