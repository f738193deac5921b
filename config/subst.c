/* ${env:X}, ${name}, ${start_time}, and paths. */
#include <string.h>

#include "config/config_private.h"
#include "runtime/base/system/env.h"

/* The replacement for one ${...}, or NULL after a fault. */
static const char *lookup(tdm_config *config, const char *word, tdm_position at, const char *key) {
    const char *value = NULL;
    if (strncmp(word, "env:", 4) == 0) {
        value = word[4] != '\0' ? tdm__env_of_user(word + 4) : NULL;
        if (value == NULL)
            TDM_FAULT(config, SUBSTITUTION, at, key, "export it before you start tandem",
                      "%s: the environment variable '%s' is not set", key, word + 4);
    } else if (strcmp(word, "start_time") == 0) {
        value = config->start_time;
        if (strcmp(key, "run.dir") == 0) config->settings.job.run.has_its_time = true;
    } else if (strcmp(word, "name") == 0 && strcmp(key, "name") != 0) {
        value = config->settings.job.name;
    } else {
        TDM_FAULT(config, SUBSTITUTION, at, key, "use ${env:X}, ${name} or ${start_time}", "%s: there is no ${%s}%s",
                  key, word, strcmp(word, "name") == 0 ? " inside the name itself" : "");
    }
    if (value != NULL && strstr(value, "${") != NULL) {
        TDM_FAULT(config, SUBSTITUTION, at, key, "a replaced value is not expanded again",
                  "%s: the value of ${%s} contains '${'", key, word);
        return NULL;
    }
    return value;
}

const char *tdm__substitute(tdm_config *config, const char *text, tdm_position at, const char *key) {
    if (strstr(text, "${") == NULL) return text;
    tdm_text out;
    tdm__text_init(&out, config->host);
    const char *result = NULL, *start;
    while ((start = strstr(text, "${")) != NULL) {
        const char *end = strchr(start, '}');
        if (end == NULL) {
            TDM_FAULT(config, SUBSTITUTION, at, key, "", "%s: '${' without '}'", key);
            goto done;
        }
        const char *word = TDM_WORDS(config, "%.*s", (int)(end - start - 2), start + 2);
        const char *value = lookup(config, word, at, key);
        if (value == NULL) goto done;
        config->replaced_bytes += (size_t)(start - text) + strlen(value);
        if (config->replaced_bytes > TDM_YAML_MAX_BYTES) {
            TDM_FAULT(config, LIMIT, at, key, "", "%s: after all ${...} are replaced, the file is larger than 128 KiB",
                      key);
            goto done;
        }
        tdm__text_add(&out, text, (size_t)(start - text));
        tdm__text_puts(&out, value);
        text = end + 1;
    }
    tdm__text_puts(&out, text);
    result = out.failed ? NULL : TDM_WORDS(config, "%s", out.data);
    if (out.failed) config->faults.status = TDM_E_MEMORY;
done:
    tdm__text_deinit(&out);
    return result;
}

const char *tdm__path_resolve(tdm_config *config, const char *path, tdm_position at, const char *key) {
    const char *folder = at.text != NULL && at.text->order != 0 ? config->cwd : config->folder;
    if (path[0] == '/' || path[0] == '\0') return path;
    if (path[0] == '~' && (path[1] == '/' || path[1] == '\0')) {
        folder = tdm__env_of_user("HOME");
        if (folder == NULL) {
            TDM_FAULT(config, SUBSTITUTION, at, key, "write the path out",
                      "%s: '~' stands for the variable HOME, which is not set", key);
            return NULL;
        }
        path += path[1] == '/' ? 2 : 1;
    }
    while (path[0] == '.' && path[1] == '/') path += 2 + strspn(path + 2, "/");
    if (path[0] == '\0' || strcmp(path, ".") == 0) return folder;
    const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
    return TDM_WORDS(config, "%s%s%s", folder, slash, path);
}
