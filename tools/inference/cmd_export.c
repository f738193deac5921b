/* cmd_export.c - `tandem export`: one file that is the model. */
#include <stdlib.h>

#include <tandem/model.h>

#include "tools/inference/inference.h"
#include "tools/report/runs.h"
#include "tools/terminal/term.h"

static int run(tool *t) {
    const char *to = args_flag(t, "--out"), *from = t->word[0], *run = from;
    FREED char *chosen = NULL;
    TDM_FREED char *report = NULL;
    const bool onnx = args_flag(t, "--onnx") != NULL;
    if (!to) return args_wrong(t, "say where to with `-o model.%s`", onnx ? "onnx" : "tandem");
    const bool ends_in_onnx = text_ends(to, ".onnx");
    if (onnx && !ends_in_onnx) return args_wrong(t, "with --onnx `--out` must end in .onnx, got `%s`", to);
    if (!onnx && ends_in_onnx) return args_wrong(t, "%s: say --onnx, too", to);
    if (!onnx && !inference_is_model(to))
        return args_wrong(t, "`--out` must end in .tandem or .safetensors, got `%s`", to);
    if (files_exists(to)) return args_wrong(t, "%s already exists; remove it, or choose another name", to);
    int code = inference_checkpoint(t, run, &chosen);
    if (code != TDM_OK) return code;
    if (chosen) from = chosen;
    tdm_status status =
        onnx ? tdm_model_export_onnx(&t->host, from, to, &report) : tdm_model_export(&t->host, from, to, &report);
    if (status == TDM_OK) {
        term_print("%s: %s", to, report);
        return TDM_OK;
    }
    code = tell_error(status);
    if (!chosen) runs_hint(run);
    return code;
}

const tool_verb verb_export = {
    "export",
    "RUN-DIR | CHECKPOINT -o FILE.tandem | --onnx -o FILE.onnx",
    "one file that is the model: weights, layers, transforms, classes",
    "Writes the model of a run (its newest good checkpoint), of a step-... directory, or\n"
    "of the model.safetensors in one. The file is safetensors: PyTorch reads it as\n"
    "weights. Its metadata says what the model is and where it comes from, so\n"
    "`tandem predict` and tdm_model_open (tandem/model.h) need nothing else. Of a run\n"
    "with train.ema that is the average, as in its predictions. A file is never\n"
    "replaced.\n\n"
    "With --onnx: an ONNX file, for onnxruntime and others. Its input is what the model\n"
    "takes, after data.transform, with any number of rows.\n\n"
    "examples:\n"
    "  tandem export runs/a -o model.tandem\n"
    "  tandem export runs/a --checkpoint best -o best.tandem\n"
    "  tandem export --onnx runs/a -o model.onnx\n"
    "  tandem predict model.tandem photo.jpg new/",
    {{"--checkpoint", "best|latest|STEP", "the checkpoint of the run directory (default: the newest good one)"},
     {"--onnx", NULL, "write ONNX"},
     {"--out", "FILE", "the file to write, .tandem or .safetensors; with --onnx .onnx (-o)"}},
    run,
    {1, 1, false}};
