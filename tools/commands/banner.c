/* banner.c - see banner.h. */
#include "tools/commands/banner.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tools/launch/launch.h"
#include "tools/terminal/term.h"

static void row(const char *name, const char *text) {
    char mark[16];
    snprintf(mark, sizeof mark, "%-8s", name);
    term_mark(TERM_DIM, "  ", mark, "%s", text);
}

/* A row whose text is folded to the width of the terminal. */
static void line(const char *name, char *text) {
    FREED char *folded = term_fold(text, stderr, 2 + 8 + 1);
    char *rest = folded;
    for (const char *part; (part = strsep(&rest, "\n")) != NULL && rest; name = "") row(name, part);
    free(text);
}

/* "; gradients over gloo (several hosts)": which backend reduces them, and why that one. */
static char *gradients_text(const banner *b, const char *description) {
    const char *name = text_fact(description, "gradients");
    const int length = name ? (int)strcspn(name, "\n") : 0;
    const char *why = b->job->parallel.ddp.backend != TDM_BACKEND_AUTO ? "parallel.ddp.backend"
                      : b->facts->local_world != b->facts->world       ? "several hosts"
                      : strncmp(name ? name : "", "shm", 3) != 0 ? "GPUs"
                                                                 : "one host";
    if (length == 0 || b->state->replicas == 1) return text_copy("");
    return text_format("; gradients over %.*s (%s)", length, name, why);
}

static char *mode_text(const banner *b, const char *description) {
    static const char *const precisions[] = {[TDM_F32] = "f32", [TDM_TF32] = "tf32", [TDM_BF16] = "bf16"};
    const tdm_parallel_section *parallel = &b->job->parallel;
    const char *device = text_fact(description, "device");
    const char *threads_each = text_fact(description, "threads_per_device");
    const bool on_cuda = device && strncmp(device, "cuda\n", 5) == 0;
    const char *kind = on_cuda ? "cuda" : "cpu";
    int replicas = b->state->replicas, count = threads_each ? atoi(threads_each) : 1;
    const char *each = parallel->mode == TDM_MODE_SINGLE && parallel->stages == 1 ? "" : " each";
    FREED char *threads = on_cuda ? text_copy(precisions[b->job->train.precision])
                                  : text_format("%d thread%s%s", count, count == 1 ? "" : "s", each);
    const bool one = parallel->stages == 1;
    FREED char *devices =
        one ? text_copy("1 device") : text_format("%lld stages, a device each", (long long)parallel->stages);
    char *out;
    if (parallel->mode == TDM_MODE_DDP) {
        const char *by = b->facts->source == TDM_LAUNCH_NONE || b->facts->source == TDM_LAUNCH_TANDEM
                             ? "tandem"
                             : tdm_launch_source_name(b->facts->source);
        FREED char *gradients = gradients_text(b, description);
        out = text_format("ddp, %d rank%s x %s (%s), %s; ranks started by %s%s", replicas, replicas == 1 ? "" : "s",
                          devices, kind, threads, by, gradients);
    } else if (parallel->mode == TDM_MODE_DP) {
        out = text_format("dp, 1 process x %d device%s (%s), %s; output_device %lld, scatter %s", replicas,
                          replicas == 1 ? "" : "s", kind, threads, (long long)parallel->dp.output_device,
                          parallel->dp.scatter == TDM_SCATTER_CHUNK ? "chunk" : "strided");
    } else {
        out = text_format("%s, %s (%s), %s", job_mode_name(parallel->mode), devices, kind, threads);
    }
    return out;
}

static char *batch_text(const banner *b) {
    const tdm_run_state *s = b->state;
    FREED char *micro = b->job->train.accumulate > 1
                            ? text_format(" (in %lld micro-batches)", (long long)b->job->train.accumulate)
                            : text_copy("");
    const char *where = b->job->parallel.mode == TDM_MODE_SINGLE && s->replicas > 1 ? ", all on one device" : "";
    return text_format("per device %lld x %d = %lld per step%s%s, %lld steps/epoch", (long long)s->per_device,
                       s->replicas, (long long)s->global_batch, where, micro, (long long)s->steps_per_epoch);
}

/* The memory that the plan needs, in the order of the arenas. Only a run with train.ema has that part. */
static char *memory_text(const banner *b) {
    static const char *const parts[] = {"parameters", "gradients", "optimizer", "ema", "activations"};
    TDM_FREED char *plan = NULL;
    char size[32];
    if (tdm_plan_print(b->job, b->graph, 1, &plan) != TDM_OK) return NULL;
    json_auto_t *root = json_loads(plan, 0, NULL);
    const json_t *bytes = json_object_get(root, "memory_bytes");
    double total = json_number_value(json_object_get(bytes, "total"));
    if (!(total > 0)) return NULL;
    char *out = text_format("about %s per device", text_bytes(size, total));
    for (size_t i = 0, shown = 0; i < sizeof parts / sizeof *parts; i++) {
        double part = json_number_value(json_object_get(bytes, parts[i]));
        if (part == 0 && strcmp(parts[i], "ema") == 0) continue;
        FREED char *before = out;
        out = text_format("%s%s %s %s", before, shown++ == 0 ? ":" : ",", parts[i], text_bytes(size, part));
    }
    return out;
}

static const char *const formats[] = {
    "none",
#define TDM_FORMAT(key, name) #name,
#include <tandem/sys/formats.def>
#undef TDM_FORMAT
};

/* "sign.npy, facts.npy" */
static char *input_files(const tdm_texts *inputs) {
    char *all = text_copy("");
    for (int i = 1; i < inputs->count; i += 2) {
        FREED char *before = all;
        all = text_format("%s%s%s", before, i > 1 ? ", " : "", files_name(inputs->item[i]));
    }
    return all;
}

/* `samples`: how many there are, as in the description of the run; NULL: not known. */
static char *data_text(const tdm_data_spec *spec, const char *samples) {
    char range[64] = "", count[32];
    const char *many = samples ? text_count(count, atoll(samples)) : "?";
    if (spec->range.count == 2) {
        snprintf(range, sizeof range, " [%lld, %lld)", (long long)spec->range.item[0], (long long)spec->range.item[1]);
    }
    const char *file = spec->images ? spec->images : spec->x ? spec->x : spec->path;
    if (spec->format == TDM_DATA_NONE) return text_copy("none");
    if (file) return text_format("%s of %s%s", many, files_name(file), range);
    FREED char *each = input_files(&spec->inputs);
    if (each[0]) return text_format("%s of %s%s", many, each, range);
    return text_format("%s %s%s%s", many, spec->files.count ? "of " : "", formats[spec->format], range);
}

static char *both_data(const banner *b, const char *description) {
    FREED char *train = data_text(&b->job->data.train, text_fact(description, "train_samples"));
    FREED char *eval = data_text(&b->job->data.eval, text_fact(description, "eval_samples"));
    return text_format("train: %s; eval: %s", train, eval);
}

static char *length_text(const banner *b) {
    const tdm_run_state *s = b->state;
    char total[32], done[32];
    FREED char *epochs =
        b->job->train.epochs != TDM_INT_NULL
            ? text_format(" (%lld epoch%s)", (long long)b->job->train.epochs, b->job->train.epochs == 1 ? "" : "s")
            : text_copy("");
    return s->step > 0
               ? text_format("to step %s%s, continued after step %s", text_count(total, s->steps_total), epochs,
                             text_count(done, s->step))
               : text_format("%s step%s%s", text_count(total, s->steps_total), s->steps_total == 1 ? "" : "s", epochs);
}

char *banner_resume_command(const tool *t, const char *run_dir) {
    FREED_BY(text_list_free) text_list words = {0};
    text_add(&words, "tandem");
    for (int i = 1; i < t->argc; i++) {
        if (strcmp(t->argv[i], "--run-dir") == 0 || strcmp(t->argv[i], "--resume") == 0) {
            i++;
        } else if (strncmp(t->argv[i], "--run-dir=", 10) != 0 && strncmp(t->argv[i], "--resume=", 9) != 0 &&
                   strncmp(t->argv[i], "run.dir=", 8) != 0) {
            text_add(&words, "%s", t->argv[i]);
        }
    }
    text_add(&words, "--run-dir");
    text_add(&words, "%s", run_dir);
    return text_command(&words);
}

void banner_print(const banner *b) {
    char count[32];
    FREED char *title = text_format("tandem %s", tdm_version());
    term_mark(TERM_BOLD, "", title, " %s", b->job->name);
    TDM_FREED char *description = NULL;
    if (tdm_run_print(b->run, "summary", &description) != TDM_OK) description = NULL;
    line("mode", mode_text(b, description));
    line("batch", batch_text(b));
    line("model", text_format("%s parameters", text_count(count, b->state->params)));
    char *memory = memory_text(b);
    if (memory) line("memory", memory);
    line("data", both_data(b, description));
    line("length", length_text(b));
    if (b->dry) {
        line("run dir", text_copy("none (a dry run writes nothing)"));
        return;
    }
    row("run dir", b->job->run.dir ? b->job->run.dir : "none (nothing is written)");
    line("stop", text_format("Ctrl-C or `kill %d`: finishes the step%s", launch_pid(),
                             b->job->run.dir ? ", saves, exits with code 75" : ", exits with code 75"));
    if (!b->job->run.dir) return;
    FREED char *command = banner_resume_command(b->t, b->job->run.dir);
    row("resume", command);
}
