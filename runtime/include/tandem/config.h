/* tandem/config.h - the YAML file: read, override, check, print, explain. `tandem schema` and `tandem explain` describe
 * the format, from the same table that reads it. Nothing here needs a device; only the starters read data. Free
 * returned texts with tdm_free.
 *
 * Threads: one thread at a time uses a tdm_config; any number of threads may use different ones. Functions that take
 * none keep nothing between calls: any thread. */
#ifndef TANDEM_CONFIG_H
#define TANDEM_CONFIG_H

#include <tandem/graph.h>
#include <tandem/host.h>
#include <tandem/job.h>

TDM_BEGIN_DECLS

typedef struct tdm_config tdm_config;

/* One fault of the file. Its texts are borrowed from the config. */
typedef struct tdm_fault {
    const char *id; /* "C012"; it never changes, so it can be searched for */
    const char *file;
    int line, column;    /* 0: the command line */
    const char *key;     /* "model.layers[3].kernel" */
    const char *message; /* one line */
    const char *hint;    /* what to do; may be "" */
    const char *excerpt; /* the source line, a newline, and a caret under the fault; "" if there is no source line */
} tdm_fault;

/* Reads and parses a file; end *out with tdm_config_free. host NULL: tdm_host_default(). A file that cannot be read is
 * TDM_E_CONFIG, and *out is NULL. Faults of the text are no failure here: tdm_config_check reports all of them
 * together. */
TDM_API tdm_status tdm_config_open(tdm_config **out, const tdm_host *host, const char *path);
/* The same from memory. Messages call the text `name`. Relative paths in it are relative to `folder` (NULL: the working
 * directory). `text` is copied. */
TDM_API tdm_status tdm_config_parse(tdm_config **out, const tdm_host *host, const char *text, size_t bytes,
                                    const char *name, const char *folder);
TDM_API void tdm_config_free(tdm_config *config); /* NULL is allowed */
/* Overrides one value: "key.path=value", the value as YAML. The next check applies it over the file. Malformed text is
 * TDM_E_USAGE; unknown keys and wrong values are faults that the check reports. Relative paths are relative to the
 * working directory. */
TDM_API tdm_status tdm_config_override(tdm_config *config, const char *assignment);
/* The same, with a value that is plain text instead of YAML: for paths and names that a program passes on. */
TDM_API tdm_status tdm_config_override_text(tdm_config *config, const char *key, const char *text);
/* Says that the job will predict or burn in, and not train: what only training needs (train.epochs or steps,
 * train.batch) may be left out. Without this call train.batch may be left out of a file that has `burnin`, and a length
 * too: then the job has neither epochs nor steps, and tdm_run_open refuses to train it. */
TDM_API tdm_status tdm_config_predicts(tdm_config *config);
/* Checks everything that can be checked without data and devices, model shapes included. TDM_E_CONFIG if there are
 * faults; TDM_E_UNSUPPORTED if all of them concern parts of the format that this build lacks. */
TDM_API tdm_status tdm_config_check(tdm_config *config);
/* Adds a fault that the program has found in a job that passed the check, such as what tdm_plan_check_memory says: of
 * the key that the message begins with, or of the whole file if that is none. Then the check has not passed. */
TDM_API tdm_status tdm_config_add_fault(tdm_config *config, const char *message);
/* Return the number of faults kept, and one of them. At most 20 are kept, in the order of the file; tdm_config_faults
 * says how many more there are. Borrowed until the next check or free. */
TDM_API int tdm_config_fault_count(const tdm_config *config);
TDM_API const tdm_fault *tdm_config_fault(const tdm_config *config, int index);
/* Prints all faults, as text ("file:line:col: error[C012]: message", the line, a caret, a hint) or as JSON, into *out.
 */
TDM_API tdm_status tdm_config_faults(const tdm_config *config, int json, char **out);

/* Lists, a line each, what the file needs from modules that this build does not have; "" if there is nothing. This is
 * no fault: the job may run on another machine that has them. Only after a check that passed. */
TDM_API tdm_status tdm_config_lacking(const tdm_config *config, char **out);
/* Lists, a line each, what the job does that one may not expect of its settings, as a training says it before its first
 * step; "" if there is nothing. Only after a check that passed. */
TDM_API tdm_status tdm_config_remarks(const tdm_config *config, char **out);

/* Return the job and the graph of the file. Only after a check that passed; borrowed until the next check or free. */
TDM_API const tdm_job *tdm_config_job(const tdm_config *config);
TDM_API const tdm_graph *tdm_config_graph(const tdm_config *config);

typedef enum tdm_config_form {
    TDM_CONFIG_RESOLVED, /* every value, as valid YAML that runs the same job */
    TDM_CONFIG_ORIGINS,  /* the same, each line with "# file:12", "# default" or "# command line" */
    TDM_CONFIG_JSON
} tdm_config_form;
/* Print the configuration, one value, or the text as it was read (borrowed). The first two need a check that passed. */
TDM_API tdm_status tdm_config_print(const tdm_config *config, tdm_config_form form, char **out);
TDM_API tdm_status tdm_config_get(const tdm_config *config, const char *key, char **out);
TDM_API const char *tdm_config_source(const tdm_config *config);
/* Prints the model of a job, with what predictions need beside its weights (transforms, the kind of its loss,
 * precision, how a table is read), as YAML that tdm_config_parse takes after tdm_config_predicts. Every checkpoint
 * carries it. No path is in it. TDM_E_UNSUPPORTED if YAML cannot say the model: it is too large, or a layer behind its
 * output exists. */
TDM_API tdm_status tdm_config_print_model(const tdm_job *job, const tdm_graph *graph, char **out);

typedef enum tdm_language { TDM_ENGLISH, TDM_CHINESE } tdm_language;
/* Explains a key, a section, "layers" or a layer kind in *out. An unknown key is TDM_E_USAGE, and the message names the
 * nearest one. */
TDM_API tdm_status tdm_config_explain(const char *key, tdm_language language, char **out);
/* Finds the key that `word` stands for in front of an override's "=": "lr" and "learning-rate" give "optimizer.lr".
 * *out is NULL if no key or more than one fits. */
TDM_API tdm_status tdm_config_find_key(const char *word, char **out);
TDM_API tdm_status tdm_config_schema(tdm_language language, char **out); /* the JSON Schema, draft 7 */
/* Prints a commented starter file for `task`: cifar, mnist, toy-mp or resnet50-burnin. Another task is TDM_E_USAGE. */
TDM_API tdm_status tdm_config_starter(const char *task, tdm_language language, char **out);
/* The same for a folder of pictures, whose sub-folders are the classes: looks at some of them, and chooses size,
 * network, transforms and schedule. host NULL: tdm_host_default(). TDM_E_DATA if the folder has no classes or no
 * pictures. */
TDM_API tdm_status tdm_config_starter_images(const tdm_host *host, const char *folder, tdm_language language,
                                             char **out);
/* The same for a CSV table: reads it, and chooses the kinds of its columns, network and loss. `target`: the column of
 * the label, by name or number from 0; NULL: the last. TDM_E_DATA if there is nothing to learn from. */
TDM_API tdm_status tdm_config_starter_table(const tdm_host *host, const char *path, const char *target,
                                            tdm_language language, char **out);
/* The same for series in .npy files: reads them, and chooses network, loss and schedule. `data`: a folder with x.npy
 * and y.npy, or the file of the series, [samples, channels, points] or [samples, points, features]. `labels`: the file
 * of the labels (integers) or targets (floats); NULL: beside a file x_train.npy it is y_train.npy, beside any other
 * y.npy. TDM_E_DATA if there is nothing to learn from, or a number is not finite. */
TDM_API tdm_status tdm_config_starter_series(const tdm_host *host, const char *data, const char *labels,
                                             tdm_language language, char **out);
/* The same for the network of an ONNX file (tdm_graph_from_onnx), to be trained further: its layers, and the file as
 * its weights. `task`: images, table or series, on `data` and `target` as above; the network's last layer gets as many
 * outputs as these need. task and data NULL: on numbers drawn by chance. TDM_E_UNSUPPORTED names a node that is no
 * layer, TDM_E_DATA says what does not fit. */
TDM_API tdm_status tdm_config_starter_onnx(const tdm_host *host, const char *path, const char *task, const char *data,
                                           const char *target, tdm_language language, char **out);

TDM_END_DECLS
#endif
