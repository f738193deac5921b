/* cmd_eval.c - `tandem eval`: loss and accuracy of a checkpoint on a split. */
#include <math.h>
#include <stdlib.h>

#include "tools/inference/inference.h"
#include "tools/terminal/json.h"

static int write_json(const char *path, const tdm_scores *scores, int64_t samples, int64_t unseen) {
    json_t *top5 = isnan(scores->top5) ? NULL : json_number(scores->top5);
    json_t *result = json_pack("{s:o, s:o, s:o*, s:I}", "loss", json_number(scores->loss), "accuracy",
                               json_number(scores->accuracy), "top5", top5, "samples", (json_int_t)samples);
    if (unseen > 0) json_object_set_new(result, "unseen", json_integer(unseen));
    FREED char *text = NULL;
    size_t bytes = 0;
    FILE *to = text_open(&text, &bytes);
    json_print(result, to);
    text_close(to);
    return files_write(path, text, bytes);
}

static int run(tool *t) {
    FREED_BY(inference_close) inference in = {.config = NULL};
    tdm_scores scores = TDM_SCORES_INIT;
    char count[32];
    int code = inference_open(&in, t, INFERENCE_SPLIT);
    if (code != TDM_OK) return code;
    int64_t samples = tdm_run_eval_count(in.run);
    tdm_status status = tdm_run_evaluate_scores(in.run, &scores);
    if (status != TDM_OK) return tell_error(status);
    printf("loss %.9g", isnan(scores.loss) ? (double)NAN : scores.loss); /* without the sign of a NaN */
    if (isfinite(scores.accuracy)) printf("  accuracy %.4f", scores.accuracy);
    if (isfinite(scores.top5)) printf("  top5 %.4f", scores.top5);
    printf("  samples %s\n", text_count(count, samples));
    code = inference_tell_unseen(in.run);
    if (code != TDM_OK || !args_flag(t, "--out")) return code;
    return write_json(args_flag(t, "--out"), &scores, samples, tdm_run_unseen_count(in.run));
}

const tool_verb verb_eval = {
    "eval",
    "RUN-DIR | MODEL | CONFIG --weights PATH [key.path=value ...]",
    "loss and accuracy of a checkpoint on a split",
    "Loads weights into the model of CONFIG and evaluates data.eval (or\n"
    "data.train). PATH is a run directory (its newest good checkpoint), a step-...\n"
    "directory, or a .safetensors, .pt, .pth or .onnx file. With RUN-DIR alone, the\n"
    "configuration and the newest good checkpoint are taken from it. MODEL is an\n"
    "exported file; its data is given as data.eval. Categories of a table that the\n"
    "run was not trained on are told on stderr, a line for each column; `unseen` in\n"
    "the file of --out counts them.\n\n"
    "examples:\n"
    "  tandem eval runs/a\n"
    "  tandem eval job.yaml --weights runs/a\n"
    "  tandem eval model.tandem 'data.eval={format: npy, x: x.npy, y: y.npy}'\n"
    "  tandem eval job.yaml --weights model.safetensors --split train --out train.json",
    {{"--weights", "PATH", "the weights (default: RUN-DIR, else model.weights of CONFIG)"},
     {"--checkpoint", "best|latest|STEP", "the checkpoint of the run directory (default: the newest good one)"},
     {"--split", "train|eval", "which split of the data (eval)"},
     {"--out", "FILE", "also write the result to a file, as JSON (-o)"}},
    run,
    {1, 1, true}};
