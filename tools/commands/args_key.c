/* args_key.c - finds flags; translates those of other trainers: --lr 0.1 is optimizer.lr=0.1 here. */
#include "tools/tool.h"

#include <stdlib.h>
#include <string.h>

const tool_flag *args_find(const tool_verb *verb, const char *name) {
    for (const tool_flag *flag = verb->flags; flag->name; flag++) {
        if (strcmp(flag->name, name) == 0) return flag;
    }
    return NULL;
}

char *args_near(const char *word, const char *const *names, int count) {
    const char *near = tdm_text_nearest(word, names, count);
    return near ? text_format("; did you mean `%s`?", near) : text_copy("");
}

static bool is_number(const char *text) {
    return text[0] && text[strspn(text, "0123456789")] == 0;
}

static bool ends_a_list(const char *text) {
    return text[0] && text[strspn(text, "0123456789, ")] == 0;
}

/* A number of devices becomes a list of device ids: 2 is [0, 1]. A device id (--gpu 1) or a list is used as it is. */
static char *device_list(const char *word, const char *value) {
    int count = is_number(value) && strlen(value) < 3 ? atoi(value) : 0;
    if (strcmp(word, "gpu") == 0 || count < 1 || count > 16) return text_format("[%s]", value);
    char list[64] = "[0";
    for (int i = 1, used = 2; i < count; i++) used += snprintf(list + used, sizeof list - (size_t)used, ", %d", i);
    return text_format("%s]", list);
}

/* --device 0 and cuda:0 give the kind of device and its id; here these are two keys. */
static const char *cuda_ids(const char *key, const char *value) {
    if (!value || strcmp(key, "parallel.device") != 0) return NULL;
    const char *ids = strncmp(value, "cuda:", 5) == 0 ? value + 5 : value;
    return ends_a_list(ids) ? ids : NULL;
}

static bool is_device(const char *value) {
    return strcmp(value, "auto") == 0 || strcmp(value, "cpu") == 0 || strcmp(value, "cuda") == 0;
}

/* The value as this format writes it; NULL: unchanged. "..." for what this format cannot express (all devices). */
static char *translate(const char *word, const char *key, const char *value) {
    bool of_steps =
        strcmp(key, "eval.every") == 0 || strcmp(key, "checkpoint.every") == 0 || strcmp(key, "log.every") == 0;
    if (strcmp(word, "no_cuda") == 0 || strcmp(word, "use_cpu") == 0) return text_copy("cpu");
    if (strcmp(word, "cuda") == 0) return text_copy("cuda");
    if (strcmp(word, "amp") == 0 || strcmp(word, "fp16") == 0 || strcmp(word, "bf16") == 0) return text_copy("bf16");
    if (!value) return NULL;
    if (strcmp(key, "parallel.device") == 0 && !is_device(value)) {
        return text_copy(strcmp(value, "gpu") == 0 || cuda_ids(key, value) ? "cuda" : "...");
    }
    if (strcmp(key, "parallel.device_ids") == 0) {
        return ends_a_list(value) ? device_list(word, value) : text_copy("[0, ...]");
    }
    if (of_steps && is_number(value)) return text_format("%s steps", value);
    return NULL;
}

#define FROM_LAUNCHER "nothing: the launcher sets it through variables (tandem help env)"

/* Words that are not keys. A row whose `write` is a flag applies to verbs that have this flag. */
static const struct {
    const char *word, *write;
    bool takes_value;
} elsewhere[] = {
    {"version", "tandem --version", false},
    {"V", "tandem --version", false},
    {"config", "only", true},
    {"config_file", "only", true},
    {"cfg", "only", true},
    {"checkpoint", "--resume", true},
    {"checkpoint", "--weights", true},
    {"ckpt", "--resume", true},
    {"ckpt", "--weights", true},
    {"ckpt_path", "--resume", true},
    {"ckpt_path", "--weights", true},
    {"load", "--resume", true},
    {"load", "--weights", true},
    {"evaluate", "tandem eval RUN-DIR", false},
    {"rank", FROM_LAUNCHER, false},
    {"local_rank", FROM_LAUNCHER, false},
    {"node_rank", FROM_LAUNCHER, false},
    {"master_addr", FROM_LAUNCHER, false},
    {"master_port", FROM_LAUNCHER, false},
};

static char *suggest_flag(const char *flag, const char *value) {
    FREED char *quoted = text_quoted(value ? value : "...");
    return text_format("write %s %s", flag, quoted);
}

static char *suggest_elsewhere(const tool_verb *verb, const char *word, const char *value) {
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        const char *write = elsewhere[i].write;
        if (strcmp(word, elsewhere[i].word) != 0 || (write[0] == '-' && !args_find(verb, write))) continue;
        return elsewhere[i].takes_value ? suggest_flag(write, value) : text_format("write %s", write);
    }
    return NULL;
}

static char *suggest_key(const tool_verb *verb, const char *word, const char *value) {
    TDM_FREED char *key = NULL;
    if (tdm_config_find_key(word, &key) != TDM_OK || !key) return NULL;
    if (strcmp(key, "run.dir") == 0 && args_find(verb, "--out")) /* it holds the verb's run directories, if any */
        return suggest_flag("--out", value);
    FREED char *ours = translate(word, key, value);
    FREED char *pair = text_format("%s=%s", key, ours ? ours : value ? value : "...");
    FREED char *quoted = text_quoted(pair);
    const char *ids = cuda_ids(key, value);
    return ids ? text_format("write the key: %s 'parallel.device_ids=[%s]'", quoted, ids)
               : text_format("write the key: %s", quoted);
}

char *args_suggest(const tool_verb *verb, const char *flag, const char *value) {
    char word[64];
    size_t used = 0;
    flag += strspn(flag, "-");
    for (; *flag && used + 1 < sizeof word; flag++) word[used++] = *flag == '-' ? '_' : *flag;
    word[used] = 0;
    char *out = suggest_elsewhere(verb, word, value);
    return out || !verb->takes.overrides ? out : suggest_key(verb, word, value);
}
