/* libFuzzer's place in builds without it: every file of the folders that are named goes through the target once. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

enum { MOST = 1 << 20 };

static int replay_file(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "rbe");
    uint8_t *bytes = malloc(MOST);
    if (file == NULL || bytes == NULL) {
        perror(path);
        abort();
    }
    size_t count = fread(bytes, 1, MOST, file);
    fclose(file);
    uint8_t *exact = malloc(count + 1); /* so that a read behind its end is seen by sanitizers */
    if (exact == NULL) abort();
    memcpy(exact + 1, bytes, count);
    free(bytes);
    LLVMFuzzerTestOneInput(exact + 1, count);
    free(exact);
    return 1;
}

int main(int argc, char **argv) {
    int done = 0;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') continue; /* libFuzzer's own */
        DIR *folder = opendir(argv[i]);
        if (folder == NULL) {
            perror(argv[i]);
            return 1;
        }
        for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
            if (entry->d_name[0] != '.') done += replay_file(argv[i], entry->d_name);
        }
        closedir(folder);
    }
    printf("stat::number_of_executed_units: %d\n", done);
    return 0;
}
