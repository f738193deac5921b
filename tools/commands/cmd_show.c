/* cmd_show.c - `tandem show`, `explain`, `schema` and `init`: print a configuration, the help of a key, the JSON
 * Schema, a starter file. */
#include <string.h>

#include "tools/inference/inference.h"
#include "tools/terminal/term.h"

/* Writes a text of the library to stdout, or to the file of --out, and frees it. */
static int deliver(const tool *t, tdm_status status, char *made) {
    TDM_FREED char *text = made;
    return status == TDM_OK ? files_deliver(t, text) : tell_error(status);
}

static int run_show(tool *t) {
    FREED_BY(job_freed) tdm_config *config = NULL;
    int code = inference_is_model(t->word[0]) ? inference_model(t, &config) : job_open(t, NULL, &config);
    if (code != TDM_OK) return code;
    char *text = NULL;
    tdm_status status;
    if (t->word_count == 2) {
        status = tdm_config_get(config, t->word[1], &text);
    } else {
        tdm_config_form form = args_flag(t, "--origins") ? TDM_CONFIG_ORIGINS
                               : args_flag(t, "--json")  ? TDM_CONFIG_JSON
                                                         : TDM_CONFIG_RESOLVED;
        status = tdm_config_print(config, form, &text);
    }
    return deliver(t, status, text);
}

static int run_explain(tool *t) {
    int in = TDM_ENGLISH;
    if (!args_choice(t, "--lang", &in)) return TDM_E_USAGE;
    TDM_FREED char *text = NULL;
    tdm_status status = tdm_config_explain(t->word[0], (tdm_language)in, &text);
    if (status != TDM_OK) return tell_error(status);
    term_print_folded(stdout, text_copy(text));
    return TDM_OK;
}

static int run_schema(tool *t) {
    int in = TDM_ENGLISH;
    if (!args_choice(t, "--lang", &in)) return TDM_E_USAGE;
    char *text = NULL;
    tdm_status status = tdm_config_schema((tdm_language)in, &text);
    return deliver(t, status, text);
}

/* What `tandem init` looks at. */
typedef struct starter {
    const char *task, *data, *target, *onnx;
    tdm_language language;
} starter;

static bool is_task(const starter *s, const char *name) {
    return s->task && strcmp(s->task, name) == 0;
}

/* False after printing which flag is missing. */
static bool has_data(const tool *t, const starter *s) {
    const char *needs = s->data                ? NULL
                        : is_task(s, "table")  ? "FILE.csv`"
                        : is_task(s, "images") ? "FOLDER`, a folder for each class"
                        : is_task(s, "series") ? "FOLDER`, with x.npy and y.npy, or a file"
                                               : NULL;
    if (needs) args_wrong(t, "`--task %s` needs `--data %s", s->task, needs);
    return !needs;
}

static tdm_status make_starter(const tool *t, const starter *s, char **out) {
    if (s->onnx) return tdm_config_starter_onnx(&t->host, s->onnx, s->task, s->data, s->target, s->language, out);
    if (is_task(s, "images")) return tdm_config_starter_images(&t->host, s->data, s->language, out);
    if (is_task(s, "table")) return tdm_config_starter_table(&t->host, s->data, s->target, s->language, out);
    if (is_task(s, "series")) return tdm_config_starter_series(&t->host, s->data, s->target, s->language, out);
    return tdm_config_starter(s->task ? s->task : "cifar", s->language, out);
}

static int run_init(tool *t) {
    int in = TDM_ENGLISH;
    if (!args_choice(t, "--lang", &in)) return TDM_E_USAGE;
    const char *path = args_flag(t, "--out");
    if (path && !args_flag(t, "--force") && files_exists(path)) {
        return args_wrong(t, "%s already exists; --force overwrites it", path);
    }
    const starter s = {args_flag(t, "--task"), args_flag(t, "--data"), args_flag(t, "--target"), args_flag(t, "--onnx"),
                       (tdm_language)in};
    const bool looks = is_task(&s, "images") || is_task(&s, "table") || is_task(&s, "series");
    char *text = NULL;
    if (!has_data(t, &s)) return TDM_E_USAGE;
    if (s.onnx && s.data && !s.task) return args_wrong(t, "say with `--task images`, table or series what --data is");
    if (s.onnx && s.task && !looks)
        return args_wrong(t,
                          "with --onnx the task is images, table or series, got `%s`; without one the data are numbers "
                          "drawn by chance",
                          s.task);
    tdm_status status = make_starter(t, &s, &text);
    if (status == TDM_OK && ((s.data && !looks) || (s.target && (is_task(&s, "images") || !looks)))) {
        tdm_free(text); /* a misspelt task is told first */
        return args_wrong(t, s.target ? "`--target` belongs to `--task table` and `--task series`"
                                      : "`--data` belongs to `--task images`, `--task table` and `--task series`");
    }
    int code = deliver(t, status, text);
    if (code == TDM_OK && path && !t->quiet) term_line("wrote %s; next: tandem check %s", path, path);
    return code;
}

const tool_verb verb_show = {
    "show",
    "CONFIG | MODEL.tandem [KEY] [key.path=value ...]",
    "the whole configuration, including defaults, as valid YAML",
    "Prints every value that a run of this file would use. With KEY, only that value. Of a\n"
    "model (`tandem export`): what its file says, and defaults.\n\n"
    "examples:\n"
    "  tandem show job.yaml --origins          where each value comes from\n"
    "  tandem show job.yaml optimizer.lr\n"
    "  tandem show job.yaml train.steps=10 -o resolved.yaml",
    {{"--origins", NULL, "print the origin of each value: file and line, default, command line"},
     {"--json", NULL, "print JSON"},
     {"--out", "FILE", "write to a file (-o)"}},
    run_show,
    {1, 2, true}};

const tool_verb verb_explain = {"explain",
                                "[KEY]",
                                "one key's type, default, range and meaning",
                                "KEY is a key of the file, a section, a kind of layer, or `layers` for all kinds\n"
                                "of layers. Without KEY it lists the sections.\n\n"
                                "examples:\n"
                                "  tandem explain\n"
                                "  tandem explain optimizer.lr\n"
                                "  tandem explain parallel\n"
                                "  tandem explain conv2d --lang zh",
                                {{"--lang", "en|zh", "language of the text (en)"}},
                                run_explain,
                                {0, 1, false}};

const tool_verb verb_schema = {
    "schema",
    "",
    "JSON Schema of the file, for completion in editors",
    "Prints a JSON Schema (draft 7). For the YAML language server, begin the YAML\n"
    "file with\n"
    "  # yaml-language-server: $schema=./tandem.schema.json\n\n"
    "example:\n"
    "  tandem schema -o tandem.schema.json",
    {{"--out", "FILE", "write to a file (-o)"}, {"--lang", "en|zh", "language of the descriptions (en)"}},
    run_schema,
    {0, 0, false}};

const tool_verb verb_init = {
    "init",
    "",
    "a commented starter YAML",
    "Tasks: images (looks at the pictures in --data and writes a file that trains on\n"
    "them), table (reads the CSV file in --data, and writes a file that trains on it),\n"
    "series (the same for x.npy and y.npy, [samples, channels, points] or\n"
    "[samples, points, features], and labels or targets),\n"
    "cifar (a CNN on CIFAR-10, ddp), mnist (a CNN on MNIST, dp), toy-mp (a\n"
    "small net on synthetic data; needs no download), resnet50-burnin (tests the\n"
    "devices).\n"
    "With --onnx the network is that of an ONNX file, whose weights training begins\n"
    "with; its last layer gets as many outputs as the data need.\n\n"
    "examples:\n"
    "  tandem init --task images --data photos -o photos.yaml\n"
    "  tandem init --task table --data homes.csv --target price -o homes.yaml\n"
    "  tandem init --task series --data folder -o series.yaml\n"
    "  tandem init --onnx net.onnx --task images --data photos -o photos.yaml\n"
    "  tandem init --task toy-mp -o toy.yaml\n"
    "  tandem init --task mnist --lang zh -o mnist.yaml",
    {{"--task", "images|table|series|cifar|mnist|toy-mp|resnet50-burnin", "which starter (cifar)"},
     {"--data", "FOLDER|FILE", "images: a sub-folder for each class; table: the .csv; series: x.npy and y.npy"},
     {"--target", "COLUMN|FILE", "table: what to predict, by name or number from 0 (the last); series: the labels"},
     {"--onnx", "FILE", "the network of this file, to be trained further"},
     {"--lang", "en|zh", "language of the comments (en)"},
     {"--out", "FILE", "write to a file (-o); never overwrites an existing file"},
     {"--force", NULL, "let --out overwrite an existing file"}},
    run_init,
    {0, 0, false}};
