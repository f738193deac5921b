/* A disk that is really full: a small tmpfs of its own, in a mount namespace that goes away with the program. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "tests/ckpt/ckpt_support.h"

static char folder[256], dir[300];

static bool mount_small(void) {
    test_folder_make(folder);
    snprintf(dir, sizeof(dir), "%s/checkpoints", folder);
    if (unshare(CLONE_NEWNS) != 0) return false;
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return false;
    return mount("tdm-test", folder, "tmpfs", 0, "size=1m,nr_inodes=64") == 0;
}

static tdm_status save(int64_t step, size_t count, float *big) {
    support_parts p;
    support_parts_init(&p, step);
    tdm_tensor model[5];
    memcpy(model, p.model, sizeof(p.model));
    model[4] = (tdm_tensor){.name = "big", .dtype = TDM_ST_F32, .ndim = 1, .dim = {(int64_t)count}, .data = big};
    model[4].bytes = count * sizeof(*big);
    p.parts.model = model;
    p.parts.model_count = 5;
    return tdm__ckpt_save(tdm_host_default(), &tdm__file_system, NULL, dir, &p.parts, 0);
}

static int64_t newest(void) {
    tdm_ckpt *ckpt;
    if (tdm__ckpt_open_newest(&ckpt, tdm_host_default(), NULL, dir) != TDM_OK || ckpt == NULL) return -1;
    int64_t step = tdm__ckpt_state(ckpt)->step;
    tdm__ckpt_close(ckpt);
    return step;
}

/* The disk is filled up to `left` bytes; the save fails cleanly, and works again once there is room. */
TEST(full_disk) {
    static float big[65536];
    static const char zeroes[4096];
    int64_t step = 1;
    int refused = 0;
    char filler[300];
    snprintf(filler, sizeof(filler), "%s/filler", folder);
    REQUIRE_OK(save(step, 16, big));
    for (int pages = 0; pages <= 80; pages += 4) {
        int fd = open(filler, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        REQUIRE(fd >= 0);
        while (write(fd, zeroes, sizeof(zeroes)) == (ssize_t)sizeof(zeroes)) continue;
        off_t end = lseek(fd, 0, SEEK_END);
        REQUIRE(ftruncate(fd, end - 4096 * pages) == 0);
        close(fd);
        tdm_status status = save(step + 1, 65536, big); /* takes 64 pages and a few */
        if (status == TDM_OK) {
            step++;
            CHECK(support_exists(dir, "latest"));
        } else {
            refused++;
            CHECK_INT(status, TDM_E_IO);
            CHECK_HAS(tdm_error_message(), "No space left on device; free some space there or choose another place");
            CHECK_HAS(tdm_error_message(), dir);
        }
        CHECK_INT(support_entries(dir, ".step-"), 0);
        CHECK_INT(newest(), step);
        unlink(filler);
        char path[400];
        snprintf(path, sizeof(path), "%s/step-00000002", dir);
        test_folder_remove(path);
        step = 1;
    }
    CHECK(refused > 10 && refused < 21);
    CHECK_OK(save(2, 65536, big));
    CHECK_INT(newest(), 2);
}

/* No inode left, at each number of inodes that are. */
TEST(no_inode_left) {
    static float small[4];
    char path[400];
    int fillers = 0, refused = 0;
    test_folder_remove(dir);
    REQUIRE_OK(save(1, 4, small));
    for (;; fillers++) {
        snprintf(path, sizeof(path), "%s/filler-%d", folder, fillers);
        int fd = open(path, O_WRONLY | O_CREAT, 0600);
        if (fd < 0) break;
        close(fd);
    }
    for (int step = 2; fillers > 0 && refused < 64; step++) {
        tdm_status status = save(step, 4, small);
        CHECK_INT(support_entries(dir, ".step-"), 0);
        CHECK_INT(newest(), status == TDM_OK ? step : 1);
        if (status == TDM_OK) break;
        CHECK_HAS(tdm_error_message(), "No space left on device");
        refused++;
        snprintf(path, sizeof(path), "%s/filler-%d", folder, --fillers);
        unlink(path);
    }
    CHECK(refused >= 5);
}

TEST_MAIN(if (!mount_small()) {
    rmdir(folder);
    SKIP_PROGRAM("no tmpfs can be mounted here");
} RUN(full_disk);
          RUN(no_inode_left); umount2(folder, MNT_DETACH); rmdir(folder);)
