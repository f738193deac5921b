/* "Did you mean": hints for keys that are misspelt, in the wrong section, or known from other trainers. */
#include <string.h>

#include "config/config_private.h"
#include "runtime/base/status.h"
#include "runtime/graph/graph.h"

/* Our name, and the names that others give it, with spaces between. */
typedef struct foreign_name {
    const char *ours, *foreign;
} foreign_name;

static const foreign_name foreign_keys[] = {
    {"optimizer.lr", "learning_rate base_lr learning_rate_init"},
    {"optimizer", "optim opt"},
    {"optimizer.weight_decay", "wd"},
    {"optimizer.betas", "beta1 beta2 adam_beta1"},
    {"optimizer.eps", "adam_epsilon epsilon"},
    {"train.batch.per_device",
     "batch_size micro_batch_size per_device_batch_size per_device_train_batch_size batch b bs"},
    {"train.batch.global", "train_batch_size global_batch_size"},
    {"train.epochs", "epoch num_epochs max_epochs n_epochs num_train_epochs"},
    {"train.steps", "max_steps num_steps max_iter max_iters iterations total_steps"},
    {"train.accumulate", "gradient_accumulation_steps accumulate_grad_batches grad_accum"},
    {"train.clip_grad_norm", "max_grad_norm gradient_clip_val clip_grad grad_clip"},
    {"train.clip_grad_value", "clip_value clipvalue"},
    {"train.precision", "amp fp16 bf16 dtype mixed_precision"},
    {"train.recompute", "checkpointing activation_checkpointing gradient_checkpointing remat"},
    {"data.workers", "j num_workers dataloader_num_workers loaders"},
    {"data.train", "dataset train_data data_dir data_path"},
    {"data.eval", "val valid test"},
    {"data.transform", "transforms"},
    {"seed", "random_seed seed_everything"},
    {"parallel.device_ids", "gpu gpus gpu_ids n_gpu ngpu num_gpus num_devices devices nproc nproc_per_node world_size"},
    {"parallel.device", "accelerator cuda no_cuda use_cpu"},
    {"parallel.mode", "mode strategy distributed"},
    {"parallel.threads_per_device", "num_threads threads"},
    {"parallel.dp.output_device", "main_device"},
    {"parallel.ddp.bucket_cap_mb", "bucket_mb"},
    {"parallel.ddp.find_unused_parameters", "find_unused"},
    {"parallel.ddp.compress", "comm_hook gradient_compression compression"},
    {"parallel.ddp.compress.rank", "matrix_approximation_rank"},
    {"parallel.ddp.compress.start_step", "start_powerSGD_iter"},
    {"parallel.ddp.compress.min_rate", "min_compression_rate"},
    {"parallel.ddp.compress.error_feedback", "use_error_feedback"},
    {"parallel.ddp.join", "uneven uneven_inputs"},
    {"parallel.ddp.backend", "dist_backend"},
    {"parallel.ddp.init_method", "dist_url"},
    {"schedule", "lr_scheduler lr_schedule scheduler"},
    {"schedule.type", "lr_scheduler_type"},
    {"schedule.warmup_steps", "warmup"},
    {"schedule.total", "T_max"},
    {"schedule.min_lr", "eta_min"},
    {"schedule.t_0", "T_0"},
    {"schedule.t_mult", "T_mult"},
    {"loss.weight", "class_weight class_weights"},
    {"loss", "criterion loss_fn"},
    {"model", "network"},
    {"model.input", "input_shape"},
    {"model.weights", "pretrained"},
    {"checkpoint.resume", "checkpoint_path resume_from resume_from_checkpoint"},
    {"checkpoint.every", "save_steps save_every save_interval"},
    {"checkpoint.keep_last", "save_total_limit"},
    {"eval.every", "eval_steps eval_every val_check_interval"},
    {"log.every", "logging_steps print_freq log_every log_interval"},
    {"run.dir", "output_dir save_dir work_dir output logdir run_dir log_dir"},
    {"name", "run_name"},
    {"tandem", "version"},
    {NULL, NULL},
};

static const foreign_name foreign_attrs[] = {
    {"out", "out_channels out_features filters units output_size"},
    {"in", "in_channels in_features num_features num_channels"},
    {"kernel", "kernel_size"},
    {"stride", "strides"},
    {"padding", "pad"},
    {"input", "inputs from"},
    {"p", "probability rate drop_prob"},
    {"groups", "num_groups"},
    {"scale", "scale_factor"},
    {"dim", "axis"},
    {NULL, NULL},
};

static const struct {
    const char *key, *foreign, *hint;
} foreign_values[] = {
    {"format", "mnist", "for MNIST's files write format: idx, with images and labels"},
    {"format", "cifar", "for the binary files of CIFAR-10 write format: cifar10"},
    {"format", "imagenet", "for one folder per class write format: image_folder"},
    {"format", "numpy", "write format: npy"},
    {"format", "random", "write format: synthetic"},
    {"mode", "none", "for one device write mode: single"},
    {"mode", "DataParallel", "write mode: dp"},
    {"mode", "DistributedDataParallel", "write mode: ddp"},
    {"device", "gpu", "write device: cuda; device_ids chooses the GPUs"},
    {"device", "cuda:0", "write device: cuda and device_ids: [0]"},
    {"device", "cuda:1", "write device: cuda and device_ids: [1]"},
    {"type", "CosineAnnealingLR", "write cosine"},
    {"type", "OneCycleLR", "write onecycle"},
    {"type", "StepLR", "write step"},
    {"type", "MultiStepLR", "write multistep"},
    {"precision", "fp32", "write f32"},
    {"precision", "float32", "write f32"},
    {"precision", "bfloat16", "write bf16"},
    {"precision", "fp16", "tandem has f32, tf32 and bf16"},
    {"precision", "f16", "tandem has f32, tf32 and bf16"},
};

/* `compare`: strncmp or strncasecmp. */
static bool has_word(const char *words, const char *word, int (*compare)(const char *, const char *, size_t)) {
    const size_t length = strlen(word);
    for (const char *at = words; at != NULL && *at != '\0'; at += strspn(at, " ")) {
        const size_t here = strcspn(at, " ");
        if (here == length && compare(at, word, length) == 0) return true;
        at += here;
    }
    return false;
}

const char *tdm__foreign_value(tdm_config *config, const char *key, const char *value) {
    for (const tdm_loss_def *const *loss = tdm_builtin_losses; strcmp(key, "type") == 0 && *loss != NULL; loss++)
        if (has_word((*loss)->also_called, value, strncasecmp)) return TDM_WORDS(config, "write %s", (*loss)->name);
    for (size_t i = 0; i < sizeof(foreign_values) / sizeof(foreign_values[0]); i++) {
        if (strcmp(key, foreign_values[i].key) == 0 && strcasecmp(value, foreign_values[i].foreign) == 0)
            return foreign_values[i].hint;
    }
    return "";
}

static const char *find_ours(const foreign_name *names, const char *word) {
    while (names->ours != NULL && !has_word(names->foreign, word, strncmp)) names++;
    return names->ours;
}

const char *tdm__foreign_layer(const char *kind) {
    for (const tdm_op_def *const *op = tdm_builtin_ops; *op != NULL; op++) {
        if (has_word((*op)->also_called, kind, strncasecmp)) return (*op)->name;
    }
    return NULL;
}

const char *tdm__foreign_attr(const char *key) {
    return find_ours(foreign_attrs, key);
}

const char *tdm__hint_nearest(tdm_config *config, const char *word, const char *const *names, int count) {
    const char *near = tdm_text_nearest(word, names, count);
    return near != NULL ? TDM_WORDS(config, "did you mean `%s`?", near) : "";
}

/* Another section that has this key: "optimizer" for lr. */
static const char *section_with(const char *key, int not_here) {
    const char *part;
    if (strcmp(key, "layers") == 0 || strcmp(key, "blocks") == 0) return "model";
    for (int i = 1; i < TDM_SECTION_COUNT; i++) {
        if (i == not_here) continue;
        if (tdm__section_row(&tdm__sections[i], key) >= 0) return tdm__sections[i].path;
        for (int k = 0; (k = tdm__section_part(&tdm__sections[i], k, &part)) > 0;) {
            if (tdm__text_same(part, key)) return tdm__sections[i].path;
        }
    }
    return NULL;
}

static const char *nearest_anywhere(tdm_config *config, const char *key) {
    const char *keys[TDM_ROWS_MAX + TDM_SECTION_COUNT + 1];
    int best = 1 << 20;
    const char *text = NULL;
    for (int i = 0; i < TDM_SECTION_COUNT; i++) {
        const char *near =
            tdm_text_nearest(key, keys, tdm__section_keys(i, keys, TDM_ROWS_MAX + TDM_SECTION_COUNT + 1));
        int distance = near != NULL ? tdm__text_distance(key, near) : best;
        if (distance >= best) continue;
        best = distance;
        const char *path = tdm__sections[i].path;
        text = i == 0 ? TDM_WORDS(config, "did you mean `%s` at the top of the file?", near)
                      : TDM_WORDS(config, "did you mean `%s`? it belongs under `%s`", near, path);
    }
    return text;
}

static const char *hint_for(tdm_config *config, int section, const tdm_yaml_node *node) {
    const char *keys[TDM_ROWS_MAX + TDM_SECTION_COUNT + 1], *key = node->key;
    int count = tdm__section_keys(section, keys, TDM_ROWS_MAX + TDM_SECTION_COUNT + 1);
    const char *wide = tdm__fault_wide_hint(&config->faults, node->key_at);
    if (wide[0] != '\0') return wide;
    if (section != 0 && tdm__section_row(&tdm__sections[0], key) >= 0)
        return TDM_WORDS(config, "`%s` belongs at the top of the file, not under `%s`", key,
                         tdm__sections[section].path);
    const char *other = section_with(key, section);
    if (other != NULL) return TDM_WORDS(config, "`%s` belongs under `%s`", key, other);
    const char *ours = find_ours(foreign_keys, key);
    if (ours != NULL) return TDM_WORDS(config, "tandem calls it `%s`", ours);
    const char *near = tdm__hint_nearest(config, key, keys, count);
    if (near[0] == '\0') near = nearest_anywhere(config, key);
    if (near != NULL && near[0] != '\0') return near;
    return TDM_WORDS(config, "keys here: %s", tdm__fault_list_of(&config->faults, keys, count));
}

void tdm__unknown_key(tdm_config *config, int section, const tdm_yaml_node *node) {
    if (tdm__fault_skip(&config->faults)) return;
    const char *path = tdm__sections[section].path;
    const char *hint = hint_for(config, section, node);
    const char *full = tdm__fault_key(&config->faults, path, node->key);
    if (section == 0)
        TDM_FAULT(config, UNKNOWN_KEY, node->key_at, full, hint, "unknown key '%s'", node->key);
    else
        TDM_FAULT(config, UNKNOWN_KEY, node->key_at, full, hint, "unknown key '%s' in %s", node->key, path);
}

/* ---- finding a key by a word ---- */

/* The single row that a word names, by its path or the last part of it; false if there is none or several. data.train
 * and data.eval share their rows: the result is data.train. Items of lists have no path of their own. */
static bool find_row(const char *word, const tdm_section **section, const tdm_field **row) {
    int whole, at;
    *row = NULL;
    if (tdm__table_find(word, strlen(word), &whole, &at)) {
        *section = &tdm__sections[whole];
        *row = &(*section)->rows[at];
        return true;
    }
    for (int i = 1; i < TDM_SECTION_COUNT; i++) {
        const tdm_field *found = tdm__field_find(tdm__sections[i].rows, word);
        if (found == NULL || found == *row || tdm__section_list(&tdm__sections[i]) != NULL) continue;
        if (*row != NULL) return false;
        *section = &tdm__sections[i];
        *row = found;
    }
    return *row != NULL;
}

/* True for a section that has a short form, such as `loss: mse`. */
static bool is_short_section(const char *word) {
    int index = strchr(word, '.') == NULL ? tdm__section_find(word) : -1;
    return index > 0 && tdm__field_main(tdm__sections[index].rows) != NULL;
}

tdm_status tdm_config_find_key(const char *word, char **out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_find_key: out is NULL");
    *out = NULL;
    if (word == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_find_key: word is NULL");
    const tdm_section *section;
    const tdm_field *row;
    char plain[64];
    size_t length = strlen(word);
    if (length >= sizeof(plain)) return TDM_OK;
    for (size_t i = 0; i <= length; i++) plain[i] = word[i] == '-' ? '_' : word[i];
    const char *foreign = find_ours(foreign_keys, plain);
    tdm_text text;
    tdm__text_init(&text, tdm_host_default());
    if (is_short_section(plain))
        tdm__text_puts(&text, plain);
    else if (foreign != NULL)
        tdm__text_puts(&text, foreign);
    else if (find_row(plain, &section, &row))
        tdm__text_printf(&text, "%s%s%s", section->path, section->path[0] != '\0' ? "." : "", row->key);
    else
        return TDM_OK;
    return tdm__text_take_public(&text, out);
}
