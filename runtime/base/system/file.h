/* Files: writing that survives a crash, through a table of calls that tests can make fail; and checked reading. */
#ifndef TDM_BASE_FILE_H
#define TDM_BASE_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

#include "runtime/base/hash.h"
#include "runtime/base/memory.h"

/* The calls that change a file system. Each behaves like the system call of that name: it returns -1 (or a short count)
 * and sets errno. Names are relative to the descriptor of a folder; with AT_FDCWD the name is a path. Tests pass tables
 * whose k-th call fails, or which do nothing from the k-th call on. */
typedef struct tdm_file_ops {
    int (*open)(void *user, int folder, const char *name, int flags, mode_t mode);
    ssize_t (*pwrite)(void *user, int fd, const void *bytes, size_t count, off_t offset);
    int (*allocate)(void *user, int fd, off_t bytes); /* reserves space and sets the size, so later writes fit */
    int (*truncate)(void *user, int fd, off_t bytes);
    int (*fsync)(void *user, int fd);
    int (*close)(void *user, int fd);
    int (*mkdir)(void *user, int folder, const char *name, mode_t mode);
    int (*rename)(void *user, int from_folder, const char *from, int to_folder, const char *to);
    int (*exchange)(void *user, int folder, const char *a, const char *b); /* swaps two names atomically */
    int (*unlink)(void *user, int folder, const char *name);
    int (*rmdir)(void *user, int folder, const char *name);
    void *user;
} tdm_file_ops;

extern const tdm_file_ops tdm__file_system; /* the real one */

/* The modes of new files and folders, before the umask. Other users cannot write, whatever the umask is. */
enum { TDM_FILE_MODE = 0664, TDM_FOLDER_MODE = 0775 };

/* An open folder. Its entries are opened through the descriptor, by a single name. A symbolic link of that name is
 * refused, because it could redirect reads and writes to another file. A NULL folder means that the name is a path
 * that the user has given; links in it are the user's own and are followed. */
typedef struct tdm_folder {
    int fd;           /* -1: not open */
    const char *path; /* for messages; borrowed */
} tdm_folder;

/* TDM_E_IO with a message from errno: "cannot write runs/a/x: No space left on device; free some space there or choose
 * another place". For ENOMEM, TDM_E_MEMORY. */
tdm_status tdm__file_fail(const char *doing, const tdm_folder *folder, const char *name, int error);

/* ---- writing ---- */

/* A new file that must not exist yet, written from front to end. */
typedef struct tdm_out_file {
    const tdm_file_ops *ops;
    const tdm_folder *folder; /* borrowed, like the name */
    const char *name;
    int fd; /* -1: not open */
    off_t at;
    tdm_hasher *hasher; /* hashes every byte; NULL: none */
} tdm_out_file;

/* `bytes` is the final size, or 0 if unknown. If it is known, space is reserved, so that a full disk is found at once.
 */
tdm_status tdm__out_open(tdm_out_file *file, const tdm_file_ops *ops, const tdm_folder *folder, const char *name,
                         uint64_t bytes, tdm_hasher *hasher);
tdm_status tdm__out_write(tdm_out_file *file, const void *bytes, size_t count);
/* fsync and close. A failed fsync cannot be retried, because the kernel may have dropped the pages: removes the file.
 */
tdm_status tdm__out_finish(tdm_out_file *file);
/* After a failure: closes and removes the file. Does nothing if it is not open. */
void tdm__out_discard(tdm_out_file *file);

/* Replaces the file `name` atomically: writes a temporary sibling, then fsync, rename, fsync of the folder. `sibling`
 * must live as long as `file`. `name` has at most 64 bytes. */
enum { TDM_FILE_SIBLING = 96 };
tdm_status tdm__out_open_beside(tdm_out_file *file, char sibling[TDM_FILE_SIBLING], const tdm_file_ops *ops,
                                const tdm_folder *folder, const char *name);
tdm_status tdm__out_replace(tdm_out_file *file, const char *name);
/* Replaces a small file in that way. */
tdm_status tdm__file_replace(const tdm_file_ops *ops, const tdm_folder *folder, const char *name, const void *bytes,
                             size_t count);

/* The same for a file that must be up to date even at the cost of being torn by a crash: if the disk is full, writes
 * into the space of the old file. */
tdm_status tdm__file_update(const tdm_file_ops *ops, const tdm_folder *folder, const char *name, const void *bytes,
                            size_t count);

/* Opens a regular file for reading and appending; creates it if missing. */
tdm_status tdm__file_keep(int *fd, const tdm_file_ops *ops, const tdm_folder *folder, const char *name);

/* ---- folders ---- */

/* mkdir -p. Each new folder is flushed to disk in its parent. */
tdm_status tdm__folder_make(const tdm_host *host, const tdm_file_ops *ops, const char *path);
/* Opens a folder; its path, for messages, is in the zone. Fails with `missing` if there is none, or no folder. */
tdm_status tdm__folder_open(tdm_folder *out, tdm_zone *zone, const tdm_folder *parent, const char *name,
                            tdm_status missing);
/* The same, but makes the folder if it is missing. */
tdm_status tdm__folder_enter(tdm_folder *out, tdm_zone *zone, const tdm_file_ops *ops, const tdm_folder *parent,
                             const char *name);
void tdm__folder_close(tdm_folder *folder); /* does nothing if it is not open */
tdm_status tdm__folder_sync(const tdm_file_ops *ops, const tdm_folder *folder);
/* Removes a folder and the files in it. Symbolic links in it are removed, not followed. */
tdm_status tdm__folder_remove(const tdm_file_ops *ops, const tdm_folder *parent, const char *name);
/* Begins to list a folder. The caller ends it with closedir; the folder stays open. */
tdm_status tdm__folder_list(DIR **out, const tdm_folder *folder);
/* The next name, never "." or ".."; NULL at the end. A read error fails: the remaining names are not missing. */
tdm_status tdm__folder_next(DIR *list, const tdm_folder *folder, const char **name);

/* ---- reading ---- */

/* Opens a regular file. Never blocks: a FIFO or device is refused. Fails with `missing` if there is none, or no regular
 * file; other failures of the system are TDM_E_IO. */
tdm_status tdm__file_open(int *fd, uint64_t *bytes, const tdm_folder *folder, const char *name, tdm_status missing);
/* Reads exactly `count` bytes. Fails with `cut_short` if the file ends before that. The path is for messages. */
tdm_status tdm__file_read(int fd, const char *path, void *to, size_t count, uint64_t offset, tdm_status cut_short);
bool tdm__file_is_folder(const tdm_folder *folder, const char *name);
/* Is there an entry of this name, of any kind? True if that cannot be found out: opening it then reports why. */
bool tdm__file_is_there(const tdm_folder *folder, const char *name);

#endif
