/* cmd_predict.c - `tandem predict`: the model's outputs for every sample of a split, as CSV, JSONL or .npy. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/inference/predict.h"
#include "tools/terminal/json.h"
#include "tools/terminal/term.h"

/* .npy version 1.0: magic, header length, a Python dict padded so that the numbers start at a multiple of 64. */
static void npy_header(const prediction *p) {
    char dict[160];
    int length = snprintf(dict, sizeof dict, "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %lld), }",
                          (long long)p->count, (long long)p->width);
    int padded = (10 + length + 1 + 63) / 64 * 64 - 10;
    fwrite("\x93NUMPY\x01\x00", 1, 8, p->to);
    fputc(padded & 255, p->to);
    fputc(padded >> 8, p->to);
    fprintf(p->to, "%s%*s\n", dict, padded - length - 1, "");
}

static void head(const prediction *p) {
    if (p->form == PREDICT_NPY) npy_header(p);
    if (p->form != PREDICT_CSV) return;
    fputs(p->classes ? "index,label,predicted" : "index", p->to);
    for (int64_t i = 0; i < p->width; i++) fprintf(p->to, p->classes ? ",score_%lld" : ",output_%lld", (long long)i);
    fputc('\n', p->to);
}

/* A number if the classes have no names. */
static json_t *class_of(const prediction *p, int64_t index, char number[24]) {
    return tdm_run_class_name(p->run, index) ? json_string(predict_class(p, index, number)) : json_integer(index);
}

static void json_row(const prediction *p, int64_t index, int64_t label, const float *y) {
    json_t *outputs = json_array();
    char a[24], b[24];
    for (int64_t i = 0; i < p->width; i++) json_array_append_new(outputs, json_number((double)y[i]));
    json_print(p->classes
                   ? json_pack("{s:I, s:o, s:o, s:o}", "index", (json_int_t)index, "label", class_of(p, label, a),
                               "predicted", class_of(p, predict_best(y, p->width), b), "scores", outputs)
                   : json_pack("{s:I, s:o}", "index", (json_int_t)index, "outputs", outputs),
               p->to);
}

static void csv_classes(const prediction *p, int64_t label, int64_t predicted) {
    char number[24];
    fputc(',', p->to);
    predict_cell(p, predict_class(p, label, number));
    fputc(',', p->to);
    predict_cell(p, predict_class(p, predicted, number));
}

static void row(const prediction *p, int64_t index, int64_t label, const float *y) {
    if (p->form == PREDICT_NPY) {
        fwrite(y, sizeof *y, (size_t)p->width, p->to);
    } else if (p->form == PREDICT_JSONL) {
        json_row(p, index, label, y);
    } else {
        fprintf(p->to, "%lld", (long long)index);
        if (p->classes) csv_classes(p, label, predict_best(y, p->width));
        for (int64_t i = 0; i < p->width; i++) fprintf(p->to, ",%.9g", (double)y[i]);
        fputc('\n', p->to);
    }
}

static tdm_status predict_all(prediction *p, tdm_run *run) {
    int64_t inputs = tdm_run_input_width(run), most = tdm_run_eval_batch(run);
    FREED float *x = memory_new((size_t)(inputs * most), sizeof *x),
                *y = memory_new((size_t)(p->width * most), sizeof *y);
    FREED int64_t *labels = memory_new((size_t)most, sizeof *labels);
    tdm_status status = TDM_OK;
    for (int64_t first = 0; first < p->count && status == TDM_OK && !ferror(p->to); first += most) {
        int64_t rows = p->count - first < most ? p->count - first : most;
        for (int64_t i = 0; i < rows && status == TDM_OK; i++) {
            status = tdm_run_eval_sample(run, first + i, x + i * inputs, &labels[i]);
        }
        if (status == TDM_OK) status = tdm_run_predict_as(run, TDM_INPUT_READY, x, rows, y);
        for (int64_t i = 0; i < rows && status == TDM_OK; i++) {
            FREED char *name = text_format("sample %lld", (long long)(first + i));
            predict_look(p, name, y + i * p->width);
            row(p, first + i, labels[i], y + i * p->width);
        }
    }
    return status;
}

static int storage_failed(const char *path) {
    if (errno == ENOMEM) memory_missing();
    term_error("%s cannot be written: %s", path, files_refusal(path, errno));
    return TDM_E_IO;
}

static int predict_to(prediction *p, tdm_run *run) {
    const char *word = p->tool->word_count > 1 ? p->tool->word[1] : NULL;
    if (p->tool->input_count > 0 && p->form != PREDICT_NPY) return predict_rows(p);
    if (word && (predict_is_table(word) || (predict_is_array(word) && p->form != PREDICT_NPY))) return predict_rows(p);
    if (word && !predict_is_array(word)) return predict_pictures(p);
    head(p);
    tdm_status status = predict_all(p, run);
    return status == TDM_OK ? inference_tell_unseen(run) : tell_error(status);
}

static int predict_into(prediction *p, tdm_run *run, const char *path) {
    files_draft draft;
    if (!files_begin(&draft, path)) return storage_failed(path);
    FILE *to = p->to = fdopen(draft.fd, "wb");
    if (!to) {
        files_end(&draft, false);
        return storage_failed(path);
    }
    int code = predict_to(p, run);
    bool good = !ferror(to);
    good = fclose(to) == 0 && good;
    draft.fd = -1;
    /* Pictures that could not be read are named, and the others have their rows. */
    const bool kept = code == TDM_OK || (code == TDM_E_DATA && p->tool->word_count > 1);
    if (!files_end(&draft, good && kept) && kept) code = storage_failed(path);
    return code;
}

/* Another file than an array, for what is no key: the model says whether it is an input. */
static bool is_wrong_file(const char *override, size_t name) {
    const char *ending = strrchr(override + name, '.');
    if (!ending || !isalpha((unsigned char)ending[1])) return false;
    FREED char *key = text_format("%.*s", (int)name, override);
    TDM_FREED char *page = NULL;
    return tdm_config_explain(key, TDM_ENGLISH, &page) != TDM_OK;
}

/* No key of a file is called so, and none has such a value. */
static bool is_input(const char *override) {
    const size_t name = strcspn(override, "=");
    return strcspn(override, ".-[") > name && (text_ends(override, ".npy") || is_wrong_file(override, name));
}

/* Takes the arrays of inputs out of the overrides. */
static void take_inputs(tool *t) {
    int kept = 0;
    t->input = memory_new((size_t)t->override_count + 1, sizeof *t->input);
    for (int i = 0; i < t->override_count; i++) {
        if (is_input(t->override[i]))
            t->input[t->input_count++] = t->override[i];
        else
            t->override[kept++] = t->override[i];
    }
    t->override_count = kept;
}

/* Where the samples come from, by the words of the command line. */
static int choose_data(const tool *t, const prediction *p, inference_data *data) {
    const char *word = t->word_count > 1 ? t->word[1] : NULL;
    if (t->input_count > 0 && word)
        return args_wrong(t, "samples are in %s, and in arrays of inputs (%s); give one of the two", word, t->input[0]);
    *data = t->input_count > 0       ? INFERENCE_ARRAY
            : !word                  ? INFERENCE_SPLIT
            : predict_is_table(word) ? INFERENCE_TABLE
            : predict_is_array(word) ? INFERENCE_ARRAY
                                     : INFERENCE_NONE;
    if ((*data == INFERENCE_TABLE || *data == INFERENCE_ARRAY) && t->word_count > 2)
        return args_wrong(t, "one %s at a time; %s is one too many", *data == INFERENCE_TABLE ? "table" : "array",
                          t->word[2]);
    if ((*data == INFERENCE_TABLE || *data == INFERENCE_NONE) && p->form == PREDICT_NPY)
        return args_wrong(t, "`--out` for pictures and tables must end in .csv or .jsonl");
    return TDM_OK;
}

static int choose_form(const tool *t, const char *path, prediction *p) {
    p->form = path && text_ends(path, ".jsonl") ? PREDICT_JSONL
              : path && text_ends(path, ".npy") ? PREDICT_NPY
                                                : PREDICT_CSV;
    if (path && p->form == PREDICT_CSV && !text_ends(path, ".csv"))
        return args_wrong(t, "`--out` must end in .csv, .jsonl or .npy, got `%s`", path);
    return TDM_OK;
}

static int run(tool *t) {
    const char *path = args_flag(t, "--out");
    prediction p = {.form = PREDICT_CSV};
    inference_data data = INFERENCE_SPLIT;
    take_inputs(t);
    int code = choose_form(t, path, &p);
    if (code == TDM_OK) code = choose_data(t, &p, &data);
    if (code != TDM_OK) return code;
    FREED_BY(inference_close) inference in = {.config = NULL};
    code = inference_open(&in, t, data);
    if (code != TDM_OK) return code;
    p.run = in.run;
    p.tool = t;
    p.classes = tdm_job_has_labels(&in.job);
    p.binary = tdm_job_has_logits(&in.job);
    p.width = tdm_run_output_width(in.run);
    p.count = tdm_run_eval_count(in.run);
    p.to = stdout;
    code = path ? predict_into(&p, in.run, path) : predict_to(&p, in.run);
    predict_tell_not_finite(&p);
    return code;
}

const tool_verb verb_predict = {
    "predict",
    "RUN-DIR | MODEL.tandem | CONFIG --weights PATH [TABLE.csv | X.npy | INPUT=X.npy ... | PICTURE | FOLDER ...] "
    "[key.path=value ...]",
    "the model's outputs for a table, an array, pictures or samples: CSV, JSONL or .npy",
    "With pictures (.jpg, .png) or folders of them, writes one row per picture: file,\n"
    "class, its probability, and the probability of every class. The run directory\n"
    "holds model, transforms and names of classes; its data need not be there. A\n"
    "picture that cannot be read is named, and the exit status is 4.\n\n"
    "With a table (.csv, .csv.gz), writes one row per row of it: its number from 0, and\n"
    "the class with probabilities, or the value in the unit of the column trained on.\n"
    "The run directory holds categories, means and deviations. Columns are found by\n"
    "their names, in any order; that of the label need not be there. A category that\n"
    "the run was not trained on is told on stderr, a line for each column, and in the\n"
    "key `unseen` of its row in JSONL (`unseen: unknown`), or is refused.\n\n"
    "With an array (.npy; its first dimension is the sample), writes one row per sample:\n"
    "its number from 0, and the class with probabilities, or the values. The array is\n"
    "read as data.train.x of format npy is: each sample must have the shape of\n"
    "model.input, and data.transform is applied (to_float to bytes alone). --out may\n"
    "be a .npy file of the raw outputs, too. A model with several inputs takes an array\n"
    "for each, by its name in model.inputs; or one array whose samples are rows of the\n"
    "numbers of all.\n\n"
    "Without any of these, writes one row per sample of data.eval (or data.train), in the order of the\n"
    "data: index, label, predicted class and scores. The scores are the model's raw\n"
    "outputs (logits). Without labels: index and outputs. .npy has only the outputs,\n"
    "float32 [samples, outputs]. With RUN-DIR alone, the configuration and the\n"
    "newest good checkpoint are taken from it.\n\n"
    "MODEL.tandem, of `tandem export`, or the model.safetensors of a checkpoint, stands\n"
    "for its run, with the same numbers; it has no data of its own.\n\n"
    "examples:\n"
    "  tandem predict runs/a photo.jpg new/\n"
    "  tandem predict model.tandem photo.jpg\n"
    "  tandem predict runs/a new.csv\n"
    "  tandem predict runs/a new.npy --out new.jsonl\n"
    "  tandem predict runs/b image=new-image.npy facts=new-facts.npy\n"
    "  tandem predict runs/a > predictions.csv\n"
    "  tandem predict job.yaml --weights runs/a > predictions.csv\n"
    "  tandem predict job.yaml --weights runs/a --out predictions.npy",
    {{"--weights", "PATH", "the weights (default: RUN-DIR, else model.weights of CONFIG)"},
     {"--checkpoint", "best|latest|STEP", "the checkpoint of the run directory (default: the newest good one)"},
     {"--split", "train|eval", "which split of the data (eval)"},
     {"--out", "FILE", "a .csv, .jsonl or .npy file (-o); without it, CSV on stdout, printable"}},
    run,
    {1, 1 << 20, true}};
