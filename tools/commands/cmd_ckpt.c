/* cmd_ckpt.c - `tandem ckpt ls|show|verify|diff|convert`: works on checkpoints without opening a run. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <tandem/checkpoint.h>

#include "tools/report/runs.h"
#include "tools/report/saved.h"
#include "tools/terminal/term.h"

/* True for a folder that is not a checkpoint and holds none. */
static bool holds_none(const char *path) {
    struct stat info;
    FREED char *manifest = text_format("%s/MANIFEST.json", path), *real = realpath(path, NULL);
    const char *name = real ? strrchr(real, '/') : NULL;
    bool may_be_one = !files_is_missing(manifest) || !name || strncmp(name, "/step-", 6) == 0;
    return !may_be_one && stat(path, &info) == 0 && S_ISDIR(info.st_mode) && saved_step(path) == SAVED_NONE;
}

/* The path of `ckpt ls`, `show` or `verify`; NULL after printing an error if more than one is given. */
static const char *only_path(const tool *t) {
    if (t->word_count == 2) return t->word[1];
    args_wrong(t, "`ckpt %s` takes one path, unexpected `%s`", t->word[0], t->word[2]);
    return NULL;
}

static int list(tool *t) {
    char *text = NULL;
    const char *path = only_path(t);
    if (!path) return TDM_E_USAGE;
    tdm_status status = tdm_checkpoint_list(&t->host, path, args_flag(t, "--json") != NULL, &text);
    int code = tell_text(status, text);
    if (holds_none(path)) runs_hint(path);
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

static int show(tool *t) {
    char *text = NULL;
    const char *path = only_path(t);
    if (!path) return TDM_E_USAGE;
    if (lacks_checkpoint(t)) return TDM_E_CHECKPOINT;
    tdm_status status = tdm_checkpoint_show(&t->host, path, args_flag(t, "--json") != NULL, &text);
    return tell_text(status, text);
}

/* A damaged checkpoint is a failed check (12). If there is nothing to check, the checkpoint is missing (8). */
static int verify(tool *t) {
    TDM_FREED char *checked = NULL;
    const char *path = only_path(t);
    if (!path) return TDM_E_USAGE;
    if (files_is_missing(path)) {
        term_error("%s does not exist", path);
        return TDM_E_CHECKPOINT;
    }
    if (lacks_checkpoint(t)) return TDM_E_CHECKPOINT;
    tdm_status status = tdm_checkpoint_verify(&t->host, path, &checked);
    if (status == TDM_E_CHECKPOINT) {
        term_print("%s: damaged", path);
        tell_error(status);
        return TDM_E_CHECK;
    }
    if (status != TDM_OK) return tell_error(status);
    term_print("%s: whole", checked);
    return TDM_OK;
}

/* Names of tensors are the same in all parts. */
static const char *part_text(int part) {
    return part == TDM_CHECKPOINT_AVERAGE       ? ", in ema.safetensors"
           : part == TDM_CHECKPOINT_OPTIMIZER   ? ", in optimizer.safetensors"
           : part == TDM_CHECKPOINT_COMPRESSION ? ", in compression.safetensors"
                                                : "";
}

static int diff(tool *t) {
    double rtol = 0, atol = 0;
    if (!args_number(t, "--rtol", true, &rtol) || !args_number(t, "--atol", true, &atol)) return TDM_E_USAGE;
    if (t->word_count < 3) return args_wrong(t, "`ckpt diff` needs two checkpoints");
    if (lacks_checkpoint(t)) return TDM_E_CHECKPOINT;
    tdm_checkpoint_difference d = {.size = sizeof d};
    tdm_status status = tdm_checkpoint_compare(&t->host, t->word[1], t->word[2], rtol, atol, &d);
    if (status != TDM_OK) return tell_error(status);
    if (d.equal_bits) {
        term_print("equal: %lld tensors, every bit", (long long)d.tensors);
        return TDM_OK;
    }
    if (d.first[0]) term_print("first differing tensor: %s%s", d.first, part_text(d.first_part));
    if (d.only_in_a || d.only_in_b) {
        term_print("only in the first: %lld tensors; only in the second: %lld", (long long)d.only_in_a,
                   (long long)d.only_in_b);
    }
    term_print("differing: %lld of %lld tensors (rtol %g, atol %g)", (long long)d.differing, (long long)d.tensors, rtol,
               atol);
    if (d.largest_name[0]) {
        term_print("largest difference: %.9g in %s[%lld]: %.9g and %.9g%s", d.largest, d.largest_name,
                   (long long)d.largest_index, d.a, d.b, part_text(d.largest_part));
    }
    if (d.largest_model_name[0] && d.largest_part != TDM_CHECKPOINT_MODEL) {
        term_print("largest difference of a parameter or buffer: %.9g in %s", d.largest_model, d.largest_model_name);
    }
    if (d.within) term_print("within the tolerance");
    return d.within ? TDM_OK : TDM_E_CHECK;
}

static int convert(tool *t) {
    TDM_FREED char *report = NULL;
    if (t->word_count < 3) return args_wrong(t, "`ckpt convert` needs a file to read and one to write");
    tdm_status status = tdm_checkpoint_convert(&t->host, t->word[1], t->word[2], args_flag(t, "--key"), &report);
    if (status != TDM_OK) return tell_error(status);
    term_print("%s: %s", t->word[2], report);
    return TDM_OK;
}

static int run(tool *t) {
    static const tool_part parts[] = {{"ls", list},   {"show", show},       {"verify", verify},
                                      {"diff", diff}, {"convert", convert}, {NULL, NULL}};
    return args_part(t, parts);
}

const tool_verb verb_ckpt = {
    "ckpt",
    "ls|show|verify|diff|convert PATH [PATH]",
    "lists, shows, verifies, compares and converts checkpoints",
    "PATH is a run directory, a checkpoints directory, a step-... directory, or a\n"
    ".safetensors, .pt, .pth or .onnx file. `diff` names the first differing tensor and the largest\n"
    "difference. It exits with code 12 if a difference is above\n"
    "atol + rtol * |second|. `verify` reads every byte. `convert` makes a\n"
    ".safetensors file of an .onnx file, or a .pt or .pth file of PyTorch, without running anything\n"
    "in it, and a .pt file of any PATH; it never replaces a file.\n\n"
    "examples:\n"
    "  tandem ckpt ls runs/a\n"
    "  tandem ckpt show runs/a/checkpoints/step-00000391\n"
    "  tandem ckpt verify runs/a\n"
    "  tandem ckpt diff runs/a runs/b --atol 1e-6\n"
    "  tandem ckpt convert resnet18.pth resnet18.safetensors",
    {{"--json", NULL, "ls, show: print JSON"},
     {"--key", "NAME", "convert: the dictionary of tensors in a file of PyTorch"},
     {"--rtol", "F", "diff: relative tolerance (0)"},
     {"--atol", "F", "diff: absolute tolerance (0)"}},
    run,
    {2, 3, false}};
