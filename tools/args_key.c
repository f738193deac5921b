/* args_key.c - a flag of somebody else's trainer, as the override that says it here: --lr 0.1 is optimizer.lr=0.1. */
#include "tools/tool.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_number(const char *text) {
    return text[0] && text[strspn(text, "0123456789")] == 0;
}

static bool ends_a_list(const char *text) {
    return text[0] && text[strspn(text, "0123456789, ")] == 0;
}

/* A count of devices becomes their numbers: 2 is [0, 1]. What names one (--gpu 1) or lists them is a list as it stands.
 */
static char *device_list(const char *word, const char *value) {
    int count = is_number(value) && strlen(value) < 3 ? atoi(value) : 0;
    if (strcmp(word, "gpu") == 0 || count < 1 || count > 16) return text_format("[%s]", value);
    char *list = text_copy("[0");
    for (int i = 1; i < count; i++) {
        char *longer = text_format("%s, %d", list, i);
        free(list);
        list = longer;
    }
    char *whole = text_format("%s]", list);
    free(list);
    return whole;
}

/* The value in this format's words; NULL: as it was given. */
static char *translate(const char *word, const char *key, const char *value) {
    bool of_steps =
        strcmp(key, "eval.every") == 0 || strcmp(key, "checkpoint.every") == 0 || strcmp(key, "log.every") == 0;
    if (strcmp(word, "no_cuda") == 0 || strcmp(word, "use_cpu") == 0) return text_copy("cpu");
    if (strcmp(word, "cuda") == 0) return text_copy("cuda");
    if (strcmp(word, "amp") == 0 || strcmp(word, "fp16") == 0 || strcmp(word, "bf16") == 0) return text_copy("bf16");
    if (!value) return NULL;
    if (strcmp(key, "parallel.device") == 0 && (strcmp(value, "gpu") == 0 || strncmp(value, "cuda:", 5) == 0)) {
        return text_copy("cuda");
    }
    if (strcmp(key, "parallel.device_ids") == 0 && ends_a_list(value)) return device_list(word, value);
    if (of_steps && is_number(value)) return text_format("%s steps", value);
    return NULL;
}

char *args_key_for(const char *flag, const char *value) {
    char *key = NULL, word[64];
    size_t used = 0;
    flag += strspn(flag, "-");
    for (; *flag && used + 1 < sizeof word; flag++) word[used++] = *flag == '-' ? '_' : *flag;
    word[used] = 0;
    if (tdm_config_find_key(word, &key) != TDM_OK || !key) return NULL;
    char *ours = translate(word, key, value);
    char *pair = text_format("%s=%s", key, ours ? ours : value ? value : "...");
    char *argv[] = {pair};
    char *line = text_command(argv, 1);
    if (value && strcmp(key, "parallel.device") == 0 && strncmp(value, "cuda:", 5) == 0 && is_number(value + 5)) {
        char *both = text_format("%s 'parallel.device_ids=[%s]'", line, value + 5);
        free(line);
        line = both;
    }
    free(pair);
    free(ours);
    tdm_free(key);
    return line;
}
