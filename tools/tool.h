/* tool.h - what the files of the `tandem` command share. The command includes only <tandem/...>, as any program would,
 * and modes/modes.def, a list of names. It prints results on stdout and everything else on stderr. Its exit codes are
 * tdm_status numbers. */
#ifndef TOOL_H
#define TOOL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <tandem/data.h>
#include <tandem/tandem.h>

typedef struct tool_flag {
    const char *name;  /* "--mode" */
    const char *value; /* the value in the help: "N", or the choices "auto|never"; NULL: a switch */
    const char *help;
} tool_flag;

enum { TOOL_FLAGS_MAX = 16, TOOL_WORDS_MAX = 8, TOOL_PARTS_MAX = 16, TOOL_VERBS_MAX = 32 };

typedef struct tool tool;
typedef struct tool_verb {
    const char *name;
    const char *synopsis;            /* what follows the name in the usage line; literal words are in lower case */
    const char *summary;             /* one line, for the list of verbs */
    const char *text;                /* paragraphs and examples, for --help */
    tool_flag flags[TOOL_FLAGS_MAX]; /* the last has a NULL name */
    int (*run)(tool *t);             /* returns the exit code */
    struct {
        int min_words, max_words; /* arguments that are neither flags nor overrides */
        bool overrides;           /* key.path=value */
    } takes;
} tool_verb;

struct tool {
    const tool_verb *verb;
    int argc;
    char **argv;
    const char **word; /* those that are neither flags nor overrides; unused ones are NULL */
    int word_count;
    const char **override; /* "key.path=value", in the order given */
    int override_count;
    const char **input; /* of `predict`, "image=a.npy": an array for an input of the model */
    int input_count;
    const char *flag_value[TOOL_FLAGS_MAX]; /* parallel to verb->flags; "" for a switch that was given */
    bool quiet, verbose, help;
    bool is_kept;                 /* the results on stdout are also in files */
    char *init_method;            /* where the ranks of the job meet; NULL: the default, or not read yet */
    int ranks;                    /* on this host; 0: as many as parallel.device_ids has devices for */
    struct launch_orders *orders; /* of the host that starts the job on several; NULL: there is none */
    tdm_host host;                /* for every object of the library; its log lines go to log.c */
};

extern const tool_verb verb_train, verb_launch, verb_compare, verb_eval, verb_predict, verb_export, verb_check,
    verb_show, verb_explain, verb_schema, verb_plan, verb_init, verb_ckpt, verb_data, verb_bench, verb_burnin,
    verb_doctor, verb_report, verb_manual;

/* A part of a verb: `ckpt ls`. */
typedef struct tool_part {
    const char *name;
    int (*run)(tool *t); /* returns the exit code */
} tool_part;

/* ---- verbs.c ---- */
extern const tool_verb *const tool_verbs[]; /* NULL-terminated, in the order of the help; verb_manual is not shown */
extern const tool_part tool_topics[];       /* what `tandem help` prints besides the verbs; ends with a NULL name */

/* ---- args.c ---- */
extern const tool_verb args_global; /* its flags are accepted by every verb */
/* Fills `t` from argv[2...]. Wrong arguments: prints the error on stderr and returns TDM_E_USAGE. */
int args_parse(tool *t);
/* The value of a flag of this verb, "" for a switch that was given, NULL if absent. */
const char *args_flag(const tool *t, const char *name);
/* The first of these flags that is given, or NULL; the list ends with NULL. */
const char *args_any(const tool *t, const char *const *names);
bool args_int(const tool *t, const char *name, int64_t min, int64_t *value); /* false after printing the error */
/* The same; above 0, or `zero` and more. */
bool args_number(const tool *t, const char *name, bool zero, double *value);
/* The same for a flag with choices, "auto|never": the index of the choice. */
bool args_choice(const tool *t, const char *name, int *value);
/* Runs the part of a verb that its first argument names. `parts` ends with a NULL name. */
int args_part(tool *t, const tool_part *parts);
void args_print_flags(const tool_verb *verb); /* on stdout */
/* Wrong usage: prints the error and a pointer to --help on stderr, and notifies the other ranks. Returns TDM_E_USAGE.
 */
int args_wrong(const tool *t, const char *format, ...) TDM_PRINTF(2, 3);

/* ---- args_key.c ---- */
/* The verb's flag of this name; NULL: it has none. */
const tool_flag *args_find(const tool_verb *verb, const char *name);
/* "; did you mean `x`?" if one of the names is near the word, else "". The caller frees it. */
char *args_near(const char *word, const char *const *names, int count);
/* What to write instead of another trainer's flag and value (NULL: none): "write the key: optimizer.lr=0.1". NULL if
 * there is no equivalent. */
char *args_suggest(const tool_verb *verb, const char *flag, const char *value);

/* ---- text.c: small texts. Out of memory ends the program with code 6. ---- */
/* A local variable declared FREED_BY is given to the function where its scope ends, FREED to free, TDM_FREED (a text of
 * the library) to tdm_free. It must have an initial value. */
#define FREED_BY(function) __attribute__((cleanup(function)))
#define FREED FREED_BY(memory_freed)
#define TDM_FREED FREED_BY(text_freed)
void memory_freed(void *variable);
void text_freed(char **text);
_Noreturn void memory_missing(void);
/* memory_missing calls `act` before it ends this process; `act` may replace the process. */
void memory_at_end(void (*act)(int code));
char *text_format(const char *format, ...) TDM_PRINTF(1, 2);
char *text_format_list(const char *format, va_list args) TDM_PRINTF(1, 0);
char *text_format_printable(const char *format, va_list args) TDM_PRINTF(1, 0); /* on one line */
char *text_copy(const char *text);
char *text_printable(const char *text, bool keeps_lines); /* see tdm_text_printable */
void *memory_new(size_t count, size_t bytes);             /* zeroed */
void *memory_take(size_t bytes);                          /* as malloc; jansson uses it too */
void *memory_grow(void *old, size_t *capacity, size_t needed, size_t bytes);
const char *text_count(char out[32], int64_t number); /* 4,275,594 */
const char *text_bytes(char out[32], double bytes);   /* 49.5 MiB */
const char *text_time(char out[32], double seconds);  /* 00:21, 1:02:03 */
const char *text_number(char out[32], double value);  /* about four digits, "-" for NaN */
const char *text_ms(char out[32], double ms);         /* milliseconds, three decimals for short ones */
bool text_ends(const char *text, const char *end);
void text_print(const char *text); /* on stdout, with a newline at its end */
/* A text written through a stream. After text_close *out holds it; the caller frees it. */
FILE *text_open(char **out, size_t *bytes);
void text_close(FILE *to);
/* The value of the line "key value" in a description of a run (tdm_run_print); NULL if it has none. */
const char *text_fact(const char *description, const char *key);
/* The word as a shell needs it: quoted, unless it is plain. */
char *text_quoted(const char *word);

/* A growing list of texts. A NULL follows the last, as in argv. Begins as {0}. */
typedef struct text_list {
    char **text;
    size_t count, room;
} text_list;
void text_add(text_list *to, const char *format, ...) TDM_PRINTF(2, 3);
char *text_command(const text_list *words); /* one line for a shell */
void text_list_free(text_list *list);

/* ---- files.c ---- */
/* Opens a regular file in an open folder (a run directory, its logs). Never follows a symbolic link, never blocks. -1
 * with errno set. With AT_FDCWD `name` is a path given by the user, and links are followed. */
int files_open_in(int folder, const char *name, int flags);
/* files_stream opens a file of a folder for reading; files_text reads it whole, NUL-terminated. NULL with errno set.
 * `dir` NULL: `name` is a path given by the user. */
FILE *files_stream(const char *dir, const char *name);
char *files_text(const char *dir, const char *name);
/* Why opening or writing `path` failed with `error`, for a message. */
const char *files_refusal(const char *path, int error);
bool files_exists(const char *path);
bool files_is_missing(const char *path); /* also false if the system refuses access */
bool files_is_link(const char *path);
const char *files_name(const char *path); /* behind the last slash */
char *files_unused(const char *path);     /* `path`, or the first of path-2, path-3, ... that does not exist */
/* A file being written: under a temporary name beside `path`, renamed when complete, so that nobody reads half a file.
 * A stream (/dev/stdout, a shell's >(command)) is written to directly. */
typedef struct files_draft {
    int fd, folder; /* fd -1: already closed; folder: the one that holds the file, -1: a stream */
    const char *path;
    char *sibling; /* the temporary name; NULL: a stream */
} files_draft;
bool files_begin(files_draft *out, const char *path); /* false with errno set; then do not call files_end */
bool files_end(files_draft *draft, bool good);        /* closes and renames; not good: removes; false with errno set */
/* Writes `text` to `path` as a draft. TDM_E_IO after printing the error. */
int files_write(const char *path, const char *text, size_t bytes);
/* The same, but a failure is only a warning. */
void files_try(const char *path, const char *text, size_t bytes);
/* Writes a result to the file of --out, or else to stdout (text_print). */
int files_deliver(const tool *t, const char *text);
char *files_self(void); /* this program's path */

/* ---- tell.c: prints errors of the library ---- */
/* Prints the calling thread's last error on stderr, "file:line:col: error: message". Returns `status` as the exit
 * code. */
int tell_error(tdm_status status);
int tell_error_of(const tdm_error *error);
/* Prints a text of the library (text_print), and frees it. `status` is that of the call that made it: after a failure
 * it prints the error instead. Returns the exit code. */
int tell_text(tdm_status status, char *text);
/* "file:line:col: ", "file: " or "", for a message. The caller frees it. */
char *tell_position(const char *file, int line, int column);

/* ---- job.c: how every verb opens the configuration ---- */
/* Opens CONFIG of the command line, applies all overrides and then `extra` (NULL-terminated, may be NULL), and checks
 * it. Prints all faults on stderr. Returns the exit code. */
int job_open(tool *t, const char *const *extra, tdm_config **out);
/* The same for what trains: a file for burn-in alone is refused. */
int job_open_training(tool *t, const char *const *extra, tdm_config **out);
/* The same for what does not train: what only training needs may be missing. */
int job_open_predicting(tool *t, tdm_config **out);
/* The same as job_open for a config that is already open. On success *out is `config`, on failure `config` is freed. */
int job_take(tool *t, const char *const *extra, tdm_config *config, tdm_config **out);
/* The overrides and flags of the command line, then `extra`. */
tdm_status job_override(const tool *t, const char *const *extra, tdm_config *config);
void job_freed(tdm_config **config); /* for FREED_BY */
/* What the model of a checked file needs from its samples. Its inputs, if they have names, are put into `inputs`. */
tdm_data_use job_data_use(const tdm_config *config, tdm_input_info inputs[TDM_SHAPES_MAX]);
/* The override key="path", quoted so that any path is safe. */
char *job_path_override(const char *key, const char *path);
const char *job_mode_name(int mode);

#endif
