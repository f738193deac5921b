/* Files: writing that survives a crash, through a table of calls that tests can make fail; and careful reading. */
#ifndef TDM_BASE_FILE_H
#define TDM_BASE_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

#include "runtime/base/hash.h"
#include "runtime/base/memory.h"

/* The calls that change a file system. Each behaves as the system's of that name: -1 (or a short count) and errno.
 * Names are relative to the descriptor of a folder; AT_FDCWD in its place says that the name is a path. Tests pass
 * tables that fail, or stop doing anything, at the k-th call. */
typedef struct tdm_file_ops {
    int (*open)(void *user, int folder, const char *name, int flags, mode_t mode);
    ssize_t (*pwrite)(void *user, int fd, const void *bytes, size_t count, off_t offset);
    int (*allocate)(void *user, int fd, off_t bytes); /* reserve space and set the size: no ENOSPC half-way */
    int (*truncate)(void *user, int fd, off_t bytes);
    int (*fsync)(void *user, int fd);
    int (*close)(void *user, int fd);
    int (*mkdir)(void *user, int folder, const char *name, mode_t mode);
    int (*rename)(void *user, int from_folder, const char *from, int to_folder, const char *to);
    int (*exchange)(void *user, int folder, const char *a, const char *b); /* two names in one atomic step */
    int (*unlink)(void *user, int folder, const char *name);
    int (*rmdir)(void *user, int folder, const char *name);
    void *user;
} tdm_file_ops;

extern const tdm_file_ops tdm__file_system; /* the real one */

/* What files are made with, before the umask takes its part away: nobody else may write, whatever the umask. */
enum { TDM_FILE_MODE = 0664, TDM_FOLDER_MODE = 0775 };

/* An open folder. What lies in it is reached through the descriptor, by a single name, and a symbolic link of that name
 * is refused: who can plant one must not choose where else is read or written. In place of a folder NULL says that the
 * name is a path as the user gave it, whose links are the user's own. */
typedef struct tdm_folder {
    int fd;           /* -1: not open */
    const char *path; /* for messages; borrowed */
} tdm_folder;

/* TDM_E_IO from errno: "cannot write runs/a/x: No space left on device; free some space there or choose another place".
 * Where the system has no memory, TDM_E_MEMORY. */
tdm_status tdm__file_fail(const char *doing, const tdm_folder *folder, const char *name, int error);

/* ---- writing ---- */

/* A new file that must not exist yet, written from front to end. */
typedef struct tdm_out_file {
    const tdm_file_ops *ops;
    const tdm_folder *folder; /* borrowed, as the name is */
    const char *name;
    int fd; /* -1: not open */
    off_t at;
    tdm_hasher *hasher; /* NULL: none; else sees every byte */
} tdm_out_file;

/* `bytes` is the final size if known (space is reserved, so a full disk is met first), 0 if not. */
tdm_status tdm__out_open(tdm_out_file *file, const tdm_file_ops *ops, const tdm_folder *folder, const char *name,
                         uint64_t bytes, tdm_hasher *hasher);
tdm_status tdm__out_write(tdm_out_file *file, const void *bytes, size_t count);
/* fsync and close. A failed fsync is final, for the kernel may have dropped the pages: the file is removed. */
tdm_status tdm__out_finish(tdm_out_file *file);
/* Close and remove what is there, after a failure. Nothing if the file is not open. */
void tdm__out_discard(tdm_out_file *file);

/* A file that is to take the place of `name`, in one step: a temporary sibling, whose name lives as long as the file;
 * then fsync, rename, fsync of the folder. `name` has at most 64 bytes. */
enum { TDM_FILE_SIBLING = 96 };
tdm_status tdm__out_open_beside(tdm_out_file *file, char sibling[TDM_FILE_SIBLING], const tdm_file_ops *ops,
                                const tdm_folder *folder, const char *name);
tdm_status tdm__out_replace(tdm_out_file *file, const char *name);
/* The whole of a small file in that way. */
tdm_status tdm__file_replace(const tdm_file_ops *ops, const tdm_folder *folder, const char *name, const void *bytes,
                             size_t count);

/* The same for a file that must tell the truth rather than be whole at every instant: where the disk is full it is
 * written into the room that the old one has. */
tdm_status tdm__file_update(const tdm_file_ops *ops, const tdm_folder *folder, const char *name, const void *bytes,
                            size_t count);

/* A regular file that is read and changed in place, made if it is not there. Writes go to its end. */
tdm_status tdm__file_keep(int *fd, const tdm_file_ops *ops, const tdm_folder *folder, const char *name);

/* Does the process live that a temporary name has the number of? One that has ended, but that nobody has waited for (in
 * a container whose first process does not), is dead. */
bool tdm__process_lives(long pid);
/* Is it about to end, whatever it does: killed by SIGKILL, or already ending? */
bool tdm__process_dies(long pid);

/* ---- folders ---- */

/* mkdir -p, each new folder made durable in its parent. */
tdm_status tdm__folder_make(const tdm_host *host, const tdm_file_ops *ops, const char *path);
/* One that is there; its path for messages into the arena. What is missing, or no folder, fails with the code
 * `missing`.
 */
tdm_status tdm__folder_open(tdm_folder *out, tdm_arena *arena, const tdm_folder *parent, const char *name,
                            tdm_status missing);
/* The same, made durably if it is not there. */
tdm_status tdm__folder_enter(tdm_folder *out, tdm_arena *arena, const tdm_file_ops *ops, const tdm_folder *parent,
                             const char *name);
void tdm__folder_close(tdm_folder *folder); /* fine for one that is not open */
tdm_status tdm__folder_sync(const tdm_file_ops *ops, const tdm_folder *folder);
/* A folder of plain files and the folder itself; symbolic links in it are removed, not followed. */
tdm_status tdm__folder_remove(const tdm_file_ops *ops, const tdm_folder *parent, const char *name);
/* To read the names in it; the folder stays open. For closedir. */
tdm_status tdm__folder_list(DIR **out, const tdm_folder *folder);
/* The next name, never "." or ".."; NULL at the end. A list that breaks off fails: what is behind is not gone. */
tdm_status tdm__folder_next(DIR *list, const tdm_folder *folder, const char **name);

/* ---- reading ---- */

/* A regular file, opened without waiting (a FIFO or device is refused, not hung on). What is missing, or no regular
 * file, fails with the code `missing`; what the system refuses with TDM_E_IO. */
tdm_status tdm__file_open(int *fd, uint64_t *bytes, const tdm_folder *folder, const char *name, tdm_status missing);
/* Exactly `count` bytes; fewer is `cut_short` ("... ends after byte n"). The path is for messages. */
tdm_status tdm__file_read(int fd, const char *path, void *to, size_t count, uint64_t offset, tdm_status cut_short);
bool tdm__file_is_folder(const tdm_folder *folder, const char *name);
/* Whatever it is. What cannot be looked at is there: who opens it learns why. */
bool tdm__file_is_there(const tdm_folder *folder, const char *name);

#endif
