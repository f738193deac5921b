/* The config object: reads the file and runs the stages of the check. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "config/config_private.h"
#include "config/yaml_words.h"
#include "runtime/base/system/clock.h"
#include "runtime/base/status.h"
#include "runtime/base/text/network.h"

/* ---- creation ---- */

/* Ends the last check, and begins an empty one. */
static void forget_check(tdm_config *config) {
    const size_t kept = offsetof(tdm_config, work);
    tdm_graph_free(config->graph);
    tdm__zone_deinit(&config->work);
    memset((char *)config + kept, 0, sizeof(*config) - kept);
    tdm__zone_init(&config->work, config->host);
    tdm__faults_init(&config->faults, &config->work);
}

static tdm_status set_folder(tdm_config *config, const char *folder, size_t length) {
    if (length > 0 && folder[0] == '/')
        return tdm__zone_printf(&config->zone, &config->folder, "%.*s", (int)length, folder);
    while (length >= 2 && folder[0] == '.' && folder[1] == '/') folder += 2, length -= 2;
    if (length == 0 || (length == 1 && folder[0] == '.')) {
        config->folder = config->cwd;
        return TDM_OK;
    }
    return tdm__zone_printf(&config->zone, &config->folder, "%s/%.*s", config->cwd, (int)length, folder);
}

static tdm_status fill(tdm_config *config, const char *text, size_t bytes, const char *name) {
    char *copy;
    TDM_TRY(tdm__zone_text(&config->zone, &config->file.name, name));
    config->is_too_large = bytes > TDM_YAML_MAX_BYTES;
    if (config->is_too_large) bytes = 0;
    TDM_TRY(tdm__zone_new(&config->zone, &copy, bytes + 1, 1));
    if (bytes > 0) memcpy(copy, text, bytes);
    config->source = copy;
    config->file.bytes = copy;
    config->file.count = bytes;
    return TDM_OK;
}

/* The folder is the first `length` bytes of `folder`. */
static tdm_status make(tdm_config **out, const tdm_host *host, const char *text, size_t bytes, const char *name,
                       const char *folder, size_t length) {
    tdm_config *config;
    tdm_status status;
    char cwd[PATH_MAX];
    if (getcwd(cwd, sizeof(cwd)) == NULL) TDM_FAIL(TDM_E_IO, "cannot read the working directory: %s", strerror(errno));
    TDM_TRY(tdm__new(host, &config, 1, sizeof(*config), "config"));
    config->host = host;
    tdm__zone_init(&config->zone, host);
    forget_check(config);
    tdm__utc_stamp(host, config->start_time);
    TDM_TRY_DONE(tdm__zone_text(&config->zone, &config->cwd, cwd));
    TDM_TRY_DONE(set_folder(config, folder, length));
    TDM_TRY_DONE(fill(config, text, bytes, name));
    *out = config;
    return TDM_OK;
done:
    tdm_config_free(config);
    return status;
}

tdm_status tdm_config_parse(tdm_config **out, const tdm_host *host, const char *text, size_t bytes, const char *name,
                            const char *folder) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_parse: out is NULL");
    *out = NULL;
    TDM_TRY(tdm__host_take(&host));
    if (text == NULL && bytes > 0) TDM_FAIL(TDM_E_USAGE, "tdm_config_parse: text is NULL");
    if (folder == NULL) folder = "";
    return make(out, host, text, bytes, name != NULL ? name : "config", folder, strlen(folder));
}

/* A model has most of a job in it, and is none. */
static tdm_status refuse_model(const char *path) {
    if (!tdm__text_ends_in(path, ".tandem") && !tdm__text_ends_in(path, ".safetensors")) return TDM_OK;
    TDM_FAIL(
        TDM_E_CONFIG,
        "%s is a model, not a job; `tandem show %s >job.yaml` makes one without data: add data.train, train.steps, "
        "train.batch and `weights: %s` in model to it",
        path, path, path);
}

/* Reads the whole file, but at most one byte more than the limit. */
static tdm_status read_file(const tdm_host *host, const char *path, char **out, size_t *bytes) {
    size_t room = TDM_YAML_MAX_BYTES + 1, used = 0;
    *out = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) TDM_FAIL(TDM_E_CONFIG, "%s: cannot be opened: %s", path, strerror(errno));
    TDM_TRY_ELSE(tdm__network_refuse(path, TDM_E_CONFIG, "a job"), close(fd));
    TDM_TRY_ELSE(refuse_model(path), close(fd));
    tdm_status status = tdm__new(host, out, room, 1, "config file");
    while (status == TDM_OK && used < room) {
        ssize_t got = read(fd, *out + used, room - used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            status = tdm__fail(TDM_E_CONFIG, __FILE__, __LINE__, NULL, "%s: cannot be read: %s%s", path,
                               strerror(errno), errno == EISDIR ? "; give the YAML file in it" : "");
        if (got <= 0) break;
        used += (size_t)got;
    }
    close(fd);
    if (status != TDM_OK) {
        tdm__delete(host, *out);
        *out = NULL;
    }
    *bytes = used;
    return status;
}

tdm_status tdm_config_open(tdm_config **out, const tdm_host *host, const char *path) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_open: out is NULL");
    *out = NULL;
    if (path == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_open: path is NULL");
    TDM_TRY(tdm__host_take(&host));
    char *text = NULL;
    size_t bytes = 0;
    TDM_TRY(read_file(host, path, &text, &bytes));
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    tdm_status status = make(out, host, text, bytes, path, path, length);
    tdm__delete(host, text);
    return status;
}

tdm_status tdm_config_predicts(tdm_config *config) {
    if (config == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_predicts: config is NULL");
    config->predicts = true;
    config->is_checked = config->is_good = false;
    return TDM_OK;
}

void tdm_config_free(tdm_config *config) {
    if (config == NULL) return;
    const tdm_host *host = config->host;
    forget_check(config);
    tdm__zone_deinit(&config->work);
    tdm__zone_deinit(&config->zone);
    tdm__delete(host, config->overrides);
    tdm__delete(host, config);
}

/* ---- checking ---- */

static tdm_status read_tree(tdm_config *config, tdm_yaml_text *text, tdm_yaml_node **root) {
    *root = NULL;
    if (config->is_too_large) {
        TDM_FAULT(config, LIMIT, (tdm_position){text, 1, 1}, "", "",
                  "the file is larger than 128 KiB; a job is a few kilobytes");
        return TDM_OK;
    }
    if (!tdm__yaml_check_encoding(text, &config->faults)) return TDM_OK;
    TDM_TRY(tdm__yaml_parse(root, text, &config->work, &config->faults));
    if (*root == NULL && config->faults.total == 0)
        TDM_FAULT(config, MISSING, (tdm_position){text, 1, 1}, "",
                  "`tandem init --task mnist` writes a file to start from", "the file is empty");
    return TDM_OK;
}

static tdm_status run_stages(tdm_config *config) {
    tdm_yaml_text *text;
    tdm_yaml_node *root;
    TDM_TRY(tdm__zone_new(&config->work, &text, 1, sizeof(*text)));
    *text = config->file;
    TDM_TRY(read_tree(config, text, &root));
    if (root != NULL) {
        TDM_TRY(tdm__settings_init(&config->settings, &config->work));
        TDM_TRY(tdm__overrides_apply(config, root));
        TDM_TRY(tdm__schema_read(config, root));
        if (root->kind == TDM_YAML_MAP) {
            TDM_TRY(tdm__check_settings(config));
            TDM_TRY(tdm__model_build(config));
        }
    }
    return config->faults.status;
}

tdm_status tdm_config_check(tdm_config *config) {
    if (config == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_check: config is NULL");
    forget_check(config);
    TDM_TRY_ELSE(run_stages(config), forget_check(config));
    tdm__faults_sort(&config->faults);
    config->is_checked = true;
    config->is_good = config->faults.total == 0;
    if (config->is_good) return TDM_OK;
    const tdm_fault *first = &config->faults.item[0];
    tdm_origin origin = tdm__position_origin(config->faults.position[0]);
    int more = config->faults.total - 1;
    TDM_FAIL_AT(&origin, TDM_E_CONFIG, "%s%s", first->message,
                more > 0 ? TDM_WORDS(config, " (and %d more fault%s)", more, more == 1 ? "" : "s") : "");
}

tdm_status tdm_config_add_fault(tdm_config *config, const char *message) {
    if (config == NULL || message == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_add_fault: a pointer is NULL");
    if (!config->is_good) TDM_FAIL(TDM_E_USAGE, "tdm_config_add_fault: the config has not passed tdm_config_check");
    const char *key = TDM_WORDS(config, "%.*s", (int)strcspn(message, " :"), message);
    tdm_position at = tdm__config_position(config, key);
    const bool is_key = at.text != NULL;
    if (!is_key) at.text = &config->file;
    TDM_FAULT(config, CONFLICT, at, is_key ? key : "", "", "%s", message);
    config->is_good = false;
    return config->faults.status;
}

int tdm_config_fault_count(const tdm_config *config) {
    return config != NULL ? config->faults.count : 0;
}

const tdm_fault *tdm_config_fault(const tdm_config *config, int index) {
    return config != NULL && index >= 0 && index < config->faults.count ? &config->faults.item[index] : NULL;
}

tdm_status tdm_config_faults(const tdm_config *config, int json, char **out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_faults: out is NULL");
    *out = NULL;
    if (config == NULL || !config->is_checked) TDM_FAIL(TDM_E_USAGE, "tdm_config_faults: call tdm_config_check first");
    tdm_text text;
    tdm__text_init(&text, config->host);
    if (json)
        tdm__faults_print_json(&config->faults, &text);
    else
        tdm__faults_print(&config->faults, &text);
    return tdm__text_take_public(&text, out);
}

const tdm_job *tdm_config_job(const tdm_config *config) {
    return config != NULL && config->is_good ? &config->settings.job : NULL;
}

const tdm_graph *tdm_config_graph(const tdm_config *config) {
    return config != NULL && config->is_good ? config->graph : NULL;
}

const char *tdm_config_source(const tdm_config *config) {
    return config != NULL ? config->source : NULL;
}

/* ---- the defaults, for programs without a file ---- */

tdm_status tdm_job_init(tdm_job *job) {
    if (job == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_job_init: job is NULL");
    tdm_settings settings;
    tdm_zone zone;
    tdm__zone_init(&zone, tdm_host_default());
    tdm_status status = tdm__settings_init(&settings, &zone);
    tdm__zone_deinit(&zone);
    TDM_TRY(status);
    settings.job.run.dir = NULL;
    *job = settings.job;
    return TDM_OK;
}
