/* A folder for the files of one test. In memory where that is possible: some tests make and remove tens of thousands.
 */
#ifndef TDM_TESTS_TEST_FOLDER_H
#define TDM_TESTS_TEST_FOLDER_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Writes the path of a new folder: in $TMPDIR, or else /dev/shm, or else /tmp. Ends the program where none can be made.
 */
static inline void test_folder_make(char path[256]) {
    const char *base = getenv("TMPDIR");
    if (base == NULL || base[0] == '\0') base = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, 256, "%s/tdm-test-XXXXXX", base);
    if (mkdtemp(path) != NULL) return;
    perror(path);
    exit(1);
}

static inline int test_folder_remove_entry(const char *path, const struct stat *info, int kind, struct FTW *depth) {
    (void)info, (void)kind, (void)depth;
    return remove(path);
}

/* Removes the folder with everything in it. */
static inline void test_folder_remove(const char *path) {
    nftw(path, test_folder_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
