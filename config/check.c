/* Checks that involve several settings: pairs of which exactly one must be written, limits that depend on each other.
 * Faults quote both settings. Also fills in the defaults that depend on other settings. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/checks/checks.h"
#include "config/checks/job_conflicts.h"
#include "runtime/data/data.h"
#include "runtime/graph/graph.h"
#include "runtime/optim/schedule.h"

enum { PREDICTED_ROWS = 32 }; /* in a batch, where train.batch is not written and need not be */

/* The position for a fault about a whole section: its key, else the key of the enclosing section, else the start of the
 * file. */
static tdm_position section_position(const tdm_config *config, const char *path) {
    tdm_position at = config->section_at[tdm__section_find(path)];
    const char *dot = strchr(path, '.');
    for (int i = 1; at.text == NULL && dot != NULL && i < TDM_SECTION_COUNT; i++) {
        const char *outer = tdm__sections[i].path;
        if (strlen(outer) == (size_t)(dot - path) && strncmp(outer, path, (size_t)(dot - path)) == 0)
            at = config->section_at[i];
    }
    return at.text != NULL ? at : config->section_at[0];
}

/* ---- name, paths ---- */

static void check_name(tdm_config *config) {
    const char *name = config->settings.job.name;
    bool is_bad = name[0] == '\0' || strlen(name) > 128 || name[0] == '.' || strchr(name, '/') != NULL;
    for (const char *at = name; *at != '\0'; at++) is_bad = is_bad || (unsigned char)*at < 0x20;
    if (is_bad)
        TDM_FAULT(config, VALUE, tdm__config_position(config, "name"), "name", "it becomes the name of a folder",
                  "name must have 1 to 128 bytes, no '/', no control characters, and not begin with '.', got '%.160s'",
                  name);
}

static void fill_run_dir(tdm_config *config) {
    const char **dir = &config->settings.job.run.dir;
    if (tdm__check_is_written(config, "run.dir") || *dir == NULL) return;
    const char *text = tdm__substitute(config, *dir, (tdm_position){0}, "run.dir");
    if (text != NULL) *dir = tdm__path_resolve(config, text, (tdm_position){0}, "run.dir");
}

/* ---- pairs ---- */

/* What only predicts needs no `train`, nor does a file with `burnin`, which may be for that alone. */
static bool must_train(const tdm_config *config) {
    return !config->predicts && config->section_at[tdm__section_find("burnin")].text == NULL;
}

/* Exactly one of two keys must be written, or at most one where nothing trains. If both are, a later override wins over
 * the other text. */
static void check_pair(tdm_config *config, const char *section, const char *a, int64_t *a_value, const char *b,
                       int64_t *b_value, const char *hint) {
    const char *a_key = tdm__fault_key(&config->faults, section, a);
    const char *b_key = tdm__fault_key(&config->faults, section, b);
    tdm_position a_at = tdm__config_position(config, a_key), b_at = tdm__config_position(config, b_key);
    bool has_a = *a_value != TDM_INT_NULL, has_b = *b_value != TDM_INT_NULL;
    bool a_is_bad = tdm__config_is_bad(config, a_key), b_is_bad = tdm__config_is_bad(config, b_key);
    if (a_is_bad || b_is_bad || config->section_is_bad[tdm__section_find(section)]) return;
    if (has_a && has_b && a_at.text->order != b_at.text->order) {
        *(a_at.text->order > b_at.text->order ? b_value : a_value) = TDM_INT_NULL;
    } else if (has_a && has_b) {
        bool a_is_first = a_at.line < b_at.line || (a_at.line == b_at.line && a_at.column < b_at.column);
        TDM_FAULT(config, EXCLUSIVE, a_is_first ? b_at : a_at, a_is_first ? b_key : a_key,
                  tdm__check_quote(config, a_is_first ? a_key : b_key), "%s must have either %s or %s, got both",
                  section, a, b);
    } else if (!has_a && !has_b && must_train(config)) {
        tdm_position at = a_at.text != NULL ? a_at : b_at.text != NULL ? b_at : section_position(config, section);
        TDM_FAULT(config, EXCLUSIVE, at, section, hint, "%s must have either %s or %s", section, a, b);
    }
}

static void check_pairs(tdm_config *config) {
    tdm_train_section *train = &config->settings.job.train;
    check_pair(config, "train", "epochs", &train->epochs, "steps", &train->steps, "write `epochs: 3` or `steps: 1000`");
    if (config->section_is_bad[tdm__section_find("train")]) return;
    check_pair(config, "train.batch", "per_device", &train->per_device, "global", &train->global_batch,
               "write `train: {batch: {per_device: 32}}` or `{global: 64}`");
    if (must_train(config)) return;
    if (train->per_device == TDM_INT_NULL && train->global_batch == TDM_INT_NULL) train->per_device = PREDICTED_ROWS;
    if (config->predicts && train->epochs == TDM_INT_NULL && train->steps == TDM_INT_NULL) train->steps = 1;
}

/* ---- optimizer and schedule ---- */

static void check_optimizer(tdm_config *config) {
    tdm_optimizer_section *optimizer = &config->settings.job.optimizer;
    const tdm_optim_def *optim = tdm_builtin_optims[optimizer->type];
    if (isnan(optimizer->weight_decay)) optimizer->weight_decay = optim->weight_decay;
    for (const tdm_optim_conflict *row = optim->conflict; row->key != NULL; row++) {
        if (row->is_met(optimizer)) tdm__conflict(config, row->key, row->other, row->message);
    }
}

/* A beta1 of 1 divides by zero in the bias correction; a momentum may have any value, as in PyTorch. */
static void check_cycled_momentum(tdm_config *config, const char *key, double momentum) {
    const tdm_job *job = &config->settings.job;
    const tdm_optim_def *optim = tdm_builtin_optims[job->optimizer.type];
    if (!job->schedule.cycle_momentum || !optim->moves_beta1 || momentum < 1.0) return;
    tdm__conflict(config, key, "optimizer.type",
                  TDM_WORDS(config, "%s is beta1 of %s and must be below 1, got %.17g", key, optim->name, momentum));
}

static void check_onecycle(tdm_config *config) {
    const tdm_schedule_section *schedule = &config->settings.job.schedule;
    const tdm_train_section *train = &config->settings.job.train;
    bool per_step = schedule->per == TDM_SCHEDULE_PER_STEP;
    int64_t length = per_step ? train->steps : train->epochs;
    if (schedule->total == TDM_INT_NULL || length == TDM_INT_NULL) return;
    if (per_step && length > schedule->warmup_steps) length -= schedule->warmup_steps;
    if (schedule->total >= length) return;
    tdm__conflict(config, "schedule.total", per_step ? "train.steps" : "train.epochs",
                  TDM_WORDS(config,
                            "schedule.total of onecycle must cover the %lld %s of the run, got %lld; the schedule "
                            "has no values after its end",
                            (long long)length, per_step ? "steps" : "epochs", (long long)schedule->total));
}

/* The run's length is known without data only in part: an epoch has at least one step. */
static void check_changes(tdm_config *config) {
    const tdm_job *job = &config->settings.job;
    bool by_steps = job->train.steps != TDM_INT_NULL;
    int64_t steps = by_steps ? job->train.steps : job->train.epochs;
    if (steps == TDM_INT_NULL) return;
    int64_t steps_per_epoch = by_steps && job->schedule.per != TDM_SCHEDULE_PER_STEP ? steps + 1 : 1;
    tdm_schedule schedule;
    tdm__schedule_init(&schedule, &job->schedule, 0, 0, steps, steps_per_epoch);
    const char *fault = tdm__schedule_fault(&schedule, steps, steps_per_epoch);
    if (fault == NULL) return;
    tdm__conflict(config, tdm__check_is_written(config, "schedule.type") ? "schedule.type" : "schedule.warmup_steps",
                  by_steps ? "train.steps" : "train.epochs", fault);
}

static void check_schedule(tdm_config *config) {
    tdm_schedule_section *schedule = &config->settings.job.schedule;
    bool spans_whole_run = schedule->total == TDM_INT_NULL && config->settings.job.train.steps != TDM_INT_NULL &&
                           (schedule->type == TDM_SCHEDULE_COSINE || schedule->type == TDM_SCHEDULE_LINEAR);
    if (!tdm__check_is_written(config, "schedule.per") && (schedule->type == TDM_SCHEDULE_ONECYCLE || spans_whole_run))
        schedule->per = TDM_SCHEDULE_PER_STEP;
    for (int i = 1; i < schedule->milestones.count; i++) {
        const int64_t *at = &schedule->milestones.item[i];
        if (at[-1] < at[0]) continue;
        TDM_FAULT(config, VALUE, tdm__config_position(config, "schedule.milestones"), "schedule.milestones", "",
                  "schedule.milestones must be rising numbers, got %lld after %lld", (long long)at[0],
                  (long long)at[-1]);
        break;
    }
    check_changes(config);
    if (schedule->type == TDM_SCHEDULE_EXPONENTIAL && !tdm__check_is_written(config, "schedule.gamma"))
        TDM_FAULT(config, MISSING, section_position(config, "schedule"), "schedule.gamma", "write `gamma: 0.95`",
                  "schedule: type exponential needs `gamma`");
    if (schedule->type != TDM_SCHEDULE_ONECYCLE) return;
    check_onecycle(config);
    check_cycled_momentum(config, "schedule.base_momentum", schedule->base_momentum);
    check_cycled_momentum(config, "schedule.max_momentum", schedule->max_momentum);
}

/* ---- devices and batches ---- */

static bool has_id(const tdm_ints *ids, int count, int64_t id) {
    for (int i = 0; i < count; i++) {
        if (ids->item[i] == id) return true;
    }
    return false;
}

static void check_devices(tdm_config *config) {
    tdm_parallel_section *parallel = &config->settings.job.parallel;
    const tdm_ints *ids = &parallel->device_ids;
    for (int i = 1; i < ids->count && !parallel->allow_shared_device; i++) {
        if (!has_id(ids, i, ids->item[i])) continue;
        TDM_FAULT(config, CONFLICT, tdm__config_position(config, "parallel.device_ids"), "parallel.device_ids",
                  "write `parallel.allow_shared_device: true` to try several replicas on one device",
                  "parallel.device_ids must be distinct devices, got %lld twice", (long long)ids->item[i]);
        break;
    }
    if (!tdm__check_is_written(config, "parallel.dp.output_device") && ids->count > 0)
        parallel->dp.output_device = ids->item[0];
}

static void check_batch(tdm_config *config) {
    const tdm_train_section *train = &config->settings.job.train;
    const tdm_parallel_section *parallel = &config->settings.job.parallel;
    const int replicas = tdm__job_replicas(&config->settings.job);
    int64_t per_device = train->per_device;
    if (train->global_batch != TDM_INT_NULL) {
        per_device = train->global_batch / replicas;
        if (train->global_batch % replicas != 0) {
            long long down = (long long)(per_device * replicas), up = down + replicas;
            const char *try = down > 0 ? TDM_WORDS(config, "%lld or %lld", down, up) : TDM_WORDS(config, "%lld", up);
            tdm__conflict(
                config, "train.batch.global", "parallel.device_ids",
                TDM_WORDS(config,
                          "train.batch.global must be a multiple of the %d %s parallel.device_ids, got %lld; write %s",
                          replicas, parallel->stages > 1 ? "replicas on" : "devices of", (long long)train->global_batch,
                          try));
            return;
        }
    }
    if (per_device != TDM_INT_NULL && train->accumulate > per_device)
        tdm__conflict(
            config, "train.accumulate",
            train->per_device != TDM_INT_NULL ? "train.batch.per_device" : "train.batch.global",
            TDM_WORDS(config,
                      "train.accumulate splits the %lld samples of a device into %lld micro-batches; write at "
                      "most %lld",
                      (long long)per_device, (long long)train->accumulate, (long long)per_device));
}

static void check_init_method(tdm_config *config) {
    const tdm_parallel_section *parallel = &config->settings.job.parallel;
    const char *method = parallel->ddp.init_method;
    bool is_good = strcmp(method, "env") == 0 || (strncmp(method, "file:///", 8) == 0 && method[8] != '\0');
    if (strncmp(method, "tcp://", 6) == 0) {
        const char *colon = strrchr(method + 6, ':');
        int64_t port;
        is_good = colon != NULL && colon > method + 6 && tdm__parse_int(colon + 1, &port) && port >= 1 && port <= 65535;
    }
    if (!is_good)
        TDM_FAULT(config, VALUE, tdm__config_position(config, "parallel.ddp.init_method"), "parallel.ddp.init_method",
                  "", "parallel.ddp.init_method must be env, tcp://host:port or file:///path, got '%s'", method);
}

/* ---- data ---- */

/* cifar10: turns `path` and `split` into `files`. */
static void fill_cifar(tdm_config *config, tdm_data_spec *spec, const char *section, bool is_eval) {
    const char *path_key = tdm__fault_key(&config->faults, section, "path");
    const char *files_key = tdm__fault_key(&config->faults, section, "files");
    if (spec->path == NULL && spec->files.count == 0) {
        tdm_position at = section_position(config, section);
        if (!tdm__check_is_written(config, path_key) && !tdm__check_is_written(config, files_key))
            TDM_FAULT(config, MISSING, at, files_key,
                      "write `files: [data_batch_1.bin]`, or `path: FOLDER` of the unpacked archive",
                      "%s: format cifar10 needs `files` or `path`", section);
        return;
    }
    if (spec->path == NULL) return;
    if (spec->files.count > 0) {
        tdm__conflict(config, path_key, files_key,
                      TDM_WORDS(config, "%s must have either files or path, got both", section));
        return;
    }
    bool is_test = spec->split == TDM_SPLIT_TEST || (spec->split == TDM_SPLIT_AUTO && is_eval);
    int count = is_test ? 1 : 5;
    for (int i = 0; i < count; i++) {
        spec->files.item[i] = is_test ? TDM_WORDS(config, "%s/test_batch.bin", spec->path)
                                      : TDM_WORDS(config, "%s/data_batch_%d.bin", spec->path, i + 1);
    }
    spec->files.count = count;
}

/* The keys that name the samples and the targets. Not the first that is written: a resolved configuration has all keys of
 * the format, most of them with null. */
static const char *input_key(const tdm_data_spec *spec) {
    if (spec->images != NULL) return "images";
    if (spec->x != NULL) return "x";
    if (spec->inputs.count > 0) return "inputs";
    if (spec->files.count > 0) return "files";
    return spec->file != NULL ? "file" : "path";
}

static const char *target_key(const tdm_data_spec *spec) {
    if (spec->labels != NULL) return "labels";
    return spec->y != NULL ? "y" : "label";
}

static tdm_origin origin_of(tdm_config *config, const char *key) {
    return tdm__key_origin(&config->faults, tdm__config_position(config, key), key);
}

/* csv and image_folder need a path. The table of keys cannot say so, because cifar10 has the key and may do without. */
static void check_path(tdm_config *config, const tdm_data_spec *spec, const char *section) {
    const char *path_key = tdm__fault_key(&config->faults, section, "path");
    const bool is_csv = spec->format == TDM_DATA_CSV;
    if ((!is_csv && spec->format != TDM_DATA_IMAGE_FOLDER) || spec->path != NULL || spec->file != NULL) return;
    if (!tdm__check_is_written(config, path_key))
        TDM_FAULT(config, MISSING, section_position(config, section), path_key,
                  is_csv ? "write `path: table.csv`" : "write `path: FOLDER`", "%s: format %s needs `path`", section,
                  is_csv ? "csv" : "image_folder");
}

static void check_spec(tdm_config *config, tdm_data_spec *spec, const char *section, bool is_eval) {
    const char *format_key = tdm__fault_key(&config->faults, section, "format");
    if (!tdm__check_is_written(config, format_key)) return;
    spec->origin = tdm__key_origin(&config->faults, config->section_at[tdm__section_find(section)], section);
    spec->inputs_at = origin_of(config, tdm__fault_key(&config->faults, section, input_key(spec)));
    spec->targets_at = origin_of(config, tdm__fault_key(&config->faults, section, target_key(spec)));
    if (spec->format == TDM_DATA_CIFAR10) fill_cifar(config, spec, section, is_eval);
    check_path(config, spec, section);
    tdm__check_arrays(config, spec, section);
    if (spec->holdout > 0.0 && spec->split == TDM_SPLIT_AUTO) spec->split = is_eval ? TDM_SPLIT_TEST : TDM_SPLIT_TRAIN;
    if (spec->range.count != 2) return;
    const char *range_key = tdm__fault_key(&config->faults, section, "range");
    if (spec->range.item[0] >= spec->range.item[1])
        TDM_FAULT(config, VALUE, tdm__config_position(config, range_key), range_key, "",
                  "%s must be [first, end) with first below end, got [%lld, %lld)", range_key,
                  (long long)spec->range.item[0], (long long)spec->range.item[1]);
    if (tdm__data_is_made(spec->format) && spec->range.item[1] > spec->samples)
        tdm__conflict(config, range_key, tdm__fault_key(&config->faults, section, "samples"),
                      TDM_WORDS(config, "%s ends at %lld, but there are %lld samples", range_key,
                                (long long)spec->range.item[1], (long long)spec->samples));
}

static bool is_same_text(const char *a, const char *b) {
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool are_same_files(const tdm_texts *a, const tdm_texts *b) {
    for (int i = 0; i < a->count && i < b->count; i++) {
        if (!is_same_text(a->item[i], b->item[i])) return false;
    }
    return a->count == b->count;
}

static bool are_apart(const tdm_ints *a, const tdm_ints *b) {
    return a->count == 2 && b->count == 2 && (a->item[1] <= b->item[0] || b->item[1] <= a->item[0]);
}

/* True if both sections read the same samples before they are split. */
static bool is_same_data(const tdm_data_spec *a, const tdm_data_spec *b) {
    return a->format == b->format && !tdm__data_is_made(a->format) && is_same_text(a->images, b->images) &&
           is_same_text(a->x, b->x) && are_same_files(&a->files, &b->files) && are_same_files(&a->inputs, &b->inputs) &&
           is_same_text(a->path, b->path) && is_same_text(a->file, b->file) && !are_apart(&a->range, &b->range);
}

/* Both sections split the same data: if they split it in two ways, some samples would be in both parts. */
static void check_holdout(tdm_config *config) {
    const tdm_data_spec *train = &config->settings.job.data.train, *eval = &config->settings.job.data.eval;
    if (!is_same_data(train, eval) || (train->holdout == eval->holdout && train->seed == eval->seed)) return;
    if (train->holdout == 0.0 && eval->holdout == 0.0) return;
    tdm__conflict(config, train->holdout != eval->holdout ? "data.eval.holdout" : "data.eval.seed",
                  train->holdout != eval->holdout ? "data.train.holdout" : "data.train.seed",
                  "data.train and data.eval split the same samples; write the same holdout and seed in both");
}

/* ---- what evaluations are judged by ---- */

/* Without data.train, a program provides the samples, those to evaluate on as well. */
static void check_evaluates(tdm_config *config, bool judges, const char *key, const char *name) {
    const tdm_data_section *data = &config->settings.job.data;
    if (!judges || data->train.format == TDM_DATA_NONE || data->eval.format != TDM_DATA_NONE) return;
    tdm__conflict(
        config, key, "data.eval.format",
        TDM_WORDS(config, "%s judges evaluations, and the job has no data.eval; add it, or leave %s out", name, name));
}

static void check_metrics(tdm_config *config) {
    const tdm_job *job = &config->settings.job;
    check_evaluates(config, job->checkpoint.keep_best != TDM_METRIC_NONE, "checkpoint.keep_best",
                    "checkpoint.keep_best");
    check_evaluates(config, job->schedule.type == TDM_SCHEDULE_PLATEAU, "schedule.type", "schedule: plateau");
    check_evaluates(config, job->train.stop_after != TDM_INT_NULL, "train.stop_early.after", "train.stop_early");
}

/* What a job from a program must not say either. */
static void check_conflicts(tdm_config *config) {
    for (const tdm_job_conflict *row = tdm__job_conflicts; row->key != NULL; row++) {
        tdm_text sentence;
        tdm__text_init(&sentence, config->host);
        const bool is_met = row->is_met(&config->settings.job, &sentence);
        if (sentence.failed)
            config->faults.status = TDM_E_MEMORY;
        else if (is_met)
            tdm__conflict(config, row->key, row->other, TDM_WORDS(config, "%s", sentence.data));
        tdm__text_deinit(&sentence);
    }
}

tdm_status tdm__check_settings(tdm_config *config) {
    tdm_job *job = &config->settings.job;
    tdm__inputs_choose(config);
    check_name(config);
    fill_run_dir(config);
    check_pairs(config);
    check_optimizer(config);
    check_schedule(config);
    check_devices(config);
    check_batch(config);
    check_init_method(config);
    check_spec(config, &job->data.train, "data.train", false);
    check_spec(config, &job->data.eval, "data.eval", true);
    check_holdout(config);
    tdm__check_tables(config);
    check_metrics(config);
    check_conflicts(config);
    tdm__check_stages(config);
    job->weights_at = origin_of(config, "model.weights");
    job->freeze_at = origin_of(config, "model.freeze");
    job->host.memory_limit_at = origin_of(config, "host.memory_limit");
    job->checkpoint.resume_at = origin_of(config, "checkpoint.resume");
    if (job->checkpoint.resume[0] == '\0')
        TDM_FAULT(config, VALUE, tdm__config_position(config, "checkpoint.resume"), "checkpoint.resume", "",
                  "checkpoint.resume must be auto, never or a path, got nothing");
    return config->faults.status;
}
