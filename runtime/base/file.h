/* Files: writing that survives a crash, through a table of calls that tests can make fail; and careful reading. */
#ifndef TDM_BASE_FILE_H
#define TDM_BASE_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "runtime/base/hash.h"

/* The calls that change a file system. Each behaves as the system's of that name: -1 (or a short count) and errno.
 * Tests pass tables that fail, or stop doing anything, at the k-th call. */
typedef struct tdm_file_ops {
    int (*open)(void *user, const char *path, int flags, mode_t mode);
    ssize_t (*pwrite)(void *user, int fd, const void *bytes, size_t count, off_t offset);
    int (*allocate)(void *user, int fd, off_t bytes); /* reserve space and set the size: no ENOSPC half-way */
    int (*fsync)(void *user, int fd);
    int (*close)(void *user, int fd);
    int (*mkdir)(void *user, const char *path, mode_t mode);
    int (*rename)(void *user, const char *from, const char *to);
    int (*exchange)(void *user, const char *a, const char *b); /* two names in one atomic step */
    int (*unlink)(void *user, const char *path);
    int (*rmdir)(void *user, const char *path);
    void *user;
} tdm_file_ops;

extern const tdm_file_ops tdm__file_system; /* the real one */

/* TDM_E_IO from errno: "cannot write runs/a/x: No space left on device; free some space there or choose another place".
 */
tdm_status tdm__file_fail(const char *doing, const char *path, int error);

/* ---- writing ---- */

/* A new file that must not exist yet, written from front to end. */
typedef struct tdm_out_file {
    const tdm_file_ops *ops;
    const char *path; /* borrowed */
    int fd;           /* -1: not open */
    off_t at;
    tdm_hasher *hasher; /* NULL: none; else sees every byte */
} tdm_out_file;

/* `bytes` is the final size if known (space is reserved, so a full disk is met first), 0 if not. */
tdm_status tdm__out_open(tdm_out_file *file, const tdm_file_ops *ops, const char *path, uint64_t bytes,
                         tdm_hasher *hasher);
tdm_status tdm__out_write(tdm_out_file *file, const void *bytes, size_t count);
/* fsync and close. A failed fsync is final, for the kernel may have dropped the pages: the file is removed. */
tdm_status tdm__out_finish(tdm_out_file *file);
/* Close and remove what is there, after a failure. Nothing if the file is not open. */
void tdm__out_discard(tdm_out_file *file);

/* The whole of a small file under `path`, replacing what is there in one step: temporary sibling, fsync, rename, fsync
 * of the folder. */
tdm_status tdm__file_replace(const tdm_host *host, const tdm_file_ops *ops, const char *path, const void *bytes,
                             size_t count);

/* Does the process live that a temporary name has the number of? One that has ended, but that nobody has waited for (in
 * a container whose first process does not), is dead. */
bool tdm__process_lives(long pid);

/* mkdir -p, each new folder made durable in its parent. */
tdm_status tdm__folder_make(const tdm_host *host, const tdm_file_ops *ops, const char *path);
tdm_status tdm__folder_sync(const tdm_file_ops *ops, const char *path);
/* A folder of plain files and the folder itself; symbolic links in it are removed, not followed. */
tdm_status tdm__folder_remove(const tdm_host *host, const tdm_file_ops *ops, const char *path);

/* ---- reading ---- */

/* A regular file, opened without waiting (a FIFO or device is refused, not hung on). What is missing, or no regular
 * file, fails with the code `missing`; what the system refuses with TDM_E_IO. */
tdm_status tdm__file_open(int *fd, uint64_t *bytes, const char *path, tdm_status missing);
/* Exactly `count` bytes; fewer is `cut_short` ("... ends after byte n"). */
tdm_status tdm__file_read(int fd, const char *path, void *to, size_t count, uint64_t offset, tdm_status cut_short);
bool tdm__file_is_folder(const char *path);
bool tdm__file_is_regular(const char *path);

#endif
