/* tandem/config.h - the YAML file: read, override, check, print, explain. The format is described by `tandem schema`
 * and `tandem explain`, from the same table that reads it. Nothing here needs a device or touches data files. */
#ifndef TANDEM_CONFIG_H
#define TANDEM_CONFIG_H

#include <tandem/graph.h>
#include <tandem/host.h>
#include <tandem/job.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tdm_config tdm_config;

/* One thing wrong with the file. Texts are borrowed from the config. */
typedef struct tdm_fault {
    const char *id; /* "C012": stable, for search engines */
    const char *file;
    int line, column;    /* 0: the command line */
    const char *key;     /* "model.layers[3].kernel" */
    const char *message; /* one line */
    const char *hint;    /* what to do; "" if there is nothing to say */
    const char *excerpt; /* the source line, a newline, and a caret under the place; "" if there is none */
} tdm_fault;

/* Reads and parses; host NULL: tdm_host_default(). A file that cannot be read is TDM_E_CONFIG with *out NULL; faults of
 * the text are kept for tdm_config_check, so that all are told at once. */
TDM_API tdm_status tdm_config_open(tdm_config **out, const tdm_host *host, const char *path);
/* The same from memory; `name` is used in messages, relative paths are relative to `folder` (NULL: the working
 * directory). */
TDM_API tdm_status tdm_config_parse(tdm_config **out, const tdm_host *host, const char *text, size_t bytes,
                                    const char *name, const char *folder);
TDM_API void tdm_config_free(tdm_config *config); /* NULL is fine */
/* "key.path=value", applied over the file at the next check. Malformed text is TDM_E_USAGE; unknown keys and wrong
 * values are faults. Relative paths are relative to the working directory. */
TDM_API tdm_status tdm_config_override(tdm_config *config, const char *assignment);
/* The same with a value that is text as it stands, not YAML: for paths, names and whatever a program passes on. */
TDM_API tdm_status tdm_config_override_text(tdm_config *config, const char *key, const char *text);
/* Everything that can be known without data and devices, model shapes included. TDM_E_CONFIG when there are faults,
 * TDM_E_UNSUPPORTED when all of them are about parts of the format that this build does not have. */
TDM_API tdm_status tdm_config_check(tdm_config *config);
/* At most 20 are kept, in the order of the file; tdm_config_faults says how many more there are. */
TDM_API int tdm_config_fault_count(const tdm_config *config);
TDM_API const tdm_fault *tdm_config_fault(const tdm_config *config, int index);
/* All faults as people read them ("file:line:col: error[C012]: message", the line, a caret, a hint), or as JSON. */
TDM_API tdm_status tdm_config_faults(const tdm_config *config, int json, char **out);

/* After a good check: what the file asks for from modules that this build does not have, a line for each, "" where
 * there is nothing. No fault: another build has them, and a module may be found where the job runs. */
TDM_API tdm_status tdm_config_lacking(const tdm_config *config, char **out);

/* After a good check; borrowed until the next check or free. */
TDM_API const tdm_job *tdm_config_job(const tdm_config *config);
TDM_API const tdm_graph *tdm_config_graph(const tdm_config *config);

typedef enum tdm_config_form {
    TDM_CONFIG_RESOLVED, /* every value, valid YAML that runs the same job */
    TDM_CONFIG_ORIGINS,  /* the same, each line with "# file:12", "# default" or "# command line" */
    TDM_CONFIG_JSON
} tdm_config_form;
/* Texts are released with tdm_free. */
TDM_API tdm_status tdm_config_print(const tdm_config *config, tdm_config_form form, char **out);
TDM_API tdm_status tdm_config_get(const tdm_config *config, const char *key, char **out); /* one value as text */
TDM_API const char *tdm_config_source(const tdm_config *config);                          /* the text as read */

typedef enum tdm_language { TDM_ENGLISH, TDM_CHINESE } tdm_language;
/* `key` may be a key, a section, "layers" or a layer kind. Unknown keys are TDM_E_USAGE with the nearest one. */
TDM_API tdm_status tdm_config_explain(const char *key, tdm_language language, char **out);
/* The key that `word` means, as it stands in front of an override's "=": "lr" and "learning-rate" are "optimizer.lr".
 * *out is NULL where none is meant, or more than one. Released with tdm_free. */
TDM_API tdm_status tdm_config_find_key(const char *word, char **out);
TDM_API tdm_status tdm_config_schema(tdm_language language, char **out); /* JSON Schema, draft 7 */
/* A commented starter file for `task` (cifar, mnist, toy-mp, resnet50-burnin). */
TDM_API tdm_status tdm_config_starter(const char *task, tdm_language language, char **out);

#ifdef __cplusplus
}
#endif
#endif
