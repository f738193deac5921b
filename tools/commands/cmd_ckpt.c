/* cmd_ckpt.c - `tandem ckpt ls|show|verify|diff`: works on checkpoints without opening a run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <tandem/checkpoint.h>

#include "tools/report/runs.h"
#include "tools/commands/saved.h"
#include "tools/terminal/term.h"

static int print_text(tdm_status status, char *text) {
    if (status != TDM_OK) return tell_error(status);
    fputs(text, stdout);
    size_t length = strlen(text);
    if (length > 0 && text[length - 1] != '\n') putchar('\n');
    tdm_free(text);
    return TDM_OK;
}

/* True for a folder that is not a checkpoint and holds none. */
static bool holds_none(const char *path) {
    struct stat info;
    char *manifest = text_format("%s/MANIFEST.json", path), *real = realpath(path, NULL);
    const char *name = real ? strrchr(real, '/') : NULL;
    bool may_be_one = !files_is_missing(manifest) || !name || strncmp(name, "/step-", 6) == 0;
    free(real);
    free(manifest);
    return !may_be_one && stat(path, &info) == 0 && S_ISDIR(info.st_mode) && saved_step(path) == SAVED_NONE;
}

static int list(const tool *t, bool json) {
    char *text = NULL;
    tdm_status status = tdm_checkpoint_list(&t->host, t->word[1], json, &text);
    int code = print_text(status, text);
    if (holds_none(t->word[1])) runs_hint(t->word[1]);
    return code;
}

/* show, verify and diff need a checkpoint in each path. True after printing an error about one that has none. */
static bool lacks_checkpoint(const tool *t) {
    for (int i = 1; i < t->word_count; i++) {
        if (!holds_none(t->word[i])) continue;
        term_error("%s holds no checkpoint", t->word[i]);
        runs_hint(t->word[i]);
        return true;
    }
    return false;
}

static int show(const tool *t, bool json) {
    char *text = NULL;
    if (lacks_checkpoint(t)) return TDM_E_CHECKPOINT;
    tdm_status status = tdm_checkpoint_show(&t->host, t->word[1], json, &text);
    return print_text(status, text);
}

/* A damaged checkpoint is a failed check (12). If there is nothing to check, the checkpoint is missing (8). */
static int verify(const tool *t) {
    char *checked = NULL;
    if (files_is_missing(t->word[1])) {
        term_error("%s does not exist", t->word[1]);
        return TDM_E_CHECKPOINT;
    }
    if (lacks_checkpoint(t)) return TDM_E_CHECKPOINT;
    tdm_status status = tdm_checkpoint_verify(&t->host, t->word[1], &checked);
    if (status == TDM_E_CHECKPOINT) {
        term_print("%s: damaged", t->word[1]);
        tell_error(status);
        return TDM_E_CHECK;
    }
    if (status != TDM_OK) return tell_error(status);
    term_print("%s: whole", checked);
    tdm_free(checked);
    return TDM_OK;
}

static int diff(const tool *t) {
    double rtol = 0, atol = 0;
    if (!args_number(t, "--rtol", &rtol) || !args_number(t, "--atol", &atol)) return TDM_E_USAGE;
    if (t->word_count < 3) return args_wrong(t, "`ckpt diff` needs two checkpoints");
    if (lacks_checkpoint(t)) return TDM_E_CHECKPOINT;
    tdm_checkpoint_difference d = {.size = sizeof d};
    tdm_status status = tdm_checkpoint_compare(&t->host, t->word[1], t->word[2], rtol, atol, &d);
    if (status != TDM_OK) return tell_error(status);
    if (d.equal_bits) {
        term_print("equal: %lld tensors, every bit", (long long)d.tensors);
        return TDM_OK;
    }
    if (d.first[0]) term_print("first differing tensor: %s", d.first);
    if (d.only_in_a || d.only_in_b) {
        term_print("only in the first: %lld tensors; only in the second: %lld", (long long)d.only_in_a,
                   (long long)d.only_in_b);
    }
    term_print("differing: %lld of %lld tensors (rtol %g, atol %g)", (long long)d.differing, (long long)d.tensors, rtol,
               atol);
    if (d.largest_name[0]) {
        term_print("largest difference: %.9g in %s[%lld]: %.9g and %.9g", d.largest, d.largest_name,
                   (long long)d.largest_index, d.a, d.b);
    }
    if (d.largest_model_name[0] && strcmp(d.largest_model_name, d.largest_name) != 0) {
        term_print("largest difference of a parameter or buffer: %.9g in %s", d.largest_model, d.largest_model_name);
    }
    if (d.within) term_print("within the tolerance");
    return d.within ? TDM_OK : TDM_E_CHECK;
}

static int run(tool *t) {
    static const char *const names[] = {"ls", "show", "verify", "diff", "convert"};
    const char *what = t->word[0];
    bool json = args_flag(t, "--json") != NULL;
    bool one = t->word_count == 2;
    if (strcmp(what, "ls") == 0 && one) return list(t, json);
    if (strcmp(what, "show") == 0 && one) return show(t, json);
    if (strcmp(what, "verify") == 0 && one) return verify(t);
    if (strcmp(what, "diff") == 0) return diff(t);
    if (strcmp(what, "convert") == 0) {
        term_error("`ckpt convert` is not in this build; checkpoints are safetensors already");
        return TDM_E_UNSUPPORTED;
    }
    for (int i = 0; i < 3; i++) {
        if (strcmp(what, names[i]) == 0)
            return args_wrong(t, "`ckpt %s` takes one path, unexpected `%s`", what, t->word[2]);
    }
    const char *near = tdm_text_nearest(what, names, 4);
    return args_wrong(t, "expected ls, show, verify or diff after `ckpt`, got `%s`%s%s%s", what,
                      near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
}

const tool_verb verb_ckpt = {"ckpt",
                             "ls|show|verify|diff PATH [PATH]",
                             "lists, shows, verifies and compares checkpoints",
                             "PATH is a run directory, a checkpoints directory, a step-... directory or a\n"
                             ".safetensors file. `diff` names the first differing tensor and the largest\n"
                             "difference. It exits with code 12 if a difference is above\n"
                             "atol + rtol * |second|. `verify` reads every byte.\n\n"
                             "examples:\n"
                             "  tandem ckpt ls runs/a\n"
                             "  tandem ckpt show runs/a/checkpoints/step-00000391\n"
                             "  tandem ckpt verify runs/a\n"
                             "  tandem ckpt diff runs/a runs/b --atol 1e-6",
                             {{"--json", NULL, "ls, show: print JSON"},
                              {"--rtol", "F", "diff: relative tolerance (0)"},
                              {"--atol", "F", "diff: absolute tolerance (0)"}},
                             2,
                             3,
                             false,
                             run};
