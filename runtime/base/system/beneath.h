/* Opening what lies in a folder and its sub-folders, and nothing else. */
#ifndef TDM_BASE_BENEATH_H
#define TDM_BASE_BENEATH_H

/* open(2) of a path below the folder, read-only and never blocking. Symbolic links are followed as long as they stay in
 * the folder (openat2, RESOLVE_BENEATH); where the system cannot check that, none is followed. -1 and errno after a
 * failure; EXDEV or ELOOP: the path leads out. `flags`: 0 or O_DIRECTORY. */
int tdm__open_beneath(int folder, const char *path, int flags);

#endif
