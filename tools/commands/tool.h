/* tool.h - what the files of the `tandem` command share. The command is a program like any other: it includes only
 * <tandem/...>, prints results on stdout and everything else on stderr, and its exit codes are tdm_status numbers. */
#ifndef TOOL_H
#define TOOL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <tandem/tandem.h>

typedef struct tool_flag {
    const char *name;  /* "--mode" */
    const char *value; /* what the help calls its value, names to choose from as they are; NULL: a switch */
    const char *help;
} tool_flag;

enum { TOOL_FLAGS_MAX = 16, TOOL_WORDS_MAX = 8 };

typedef struct tool tool;
typedef struct tool_verb {
    const char *name;
    const char *synopsis;            /* what follows the name in the usage line; what is typed as it stands in small */
    const char *summary;             /* one line, for the list of verbs */
    const char *text;                /* paragraphs and examples, for --help */
    tool_flag flags[TOOL_FLAGS_MAX]; /* ends with a NULL name */
    int min_words, max_words;        /* arguments that are neither flags nor overrides */
    bool overrides;                  /* key.path=value is taken */
    int (*run)(tool *t);             /* the exit code */
} tool_verb;

struct tool {
    const tool_verb *verb;
    int argc;
    char **argv;
    const char *word[TOOL_WORDS_MAX];
    int word_count;
    const char **override; /* "key.path=value", in the order given */
    int override_count;
    const char *flag_value[TOOL_FLAGS_MAX]; /* beside verb->flags; "" for a switch that was given */
    bool quiet, verbose, help;
    bool is_kept;      /* what goes to stdout is in files, too */
    char *init_method; /* where the ranks of the job meet, once that is read; NULL: where they do by default */
    tdm_host host;     /* for every object of the library: its log lines go to log.c */
};

extern const tool_verb verb_train, verb_compare, verb_eval, verb_predict, verb_check, verb_show, verb_explain,
    verb_schema, verb_plan, verb_init, verb_ckpt, verb_data, verb_bench, verb_burnin, verb_doctor, verb_report,
    verb_manual;
extern const tool_verb *const tool_verbs[]; /* NULL-terminated, in the order of the help; verb_manual is not shown */

/* What `tandem help` tells beside the verbs. */
typedef struct tool_topic {
    const char *name;
    int (*print)(void); /* the exit code */
} tool_topic;
extern const tool_topic tool_topics[]; /* ends with a NULL name */

/* ---- args.c ---- */
extern const tool_verb args_global; /* its flags are those that every verb takes */
/* Fills `t` from argv[2...]; faults are told on stderr and give TDM_E_USAGE. */
int args_parse(tool *t);
/* The value of a flag of this verb, "" for a switch that was given, NULL if absent. */
const char *args_flag(const tool *t, const char *name);
bool args_int(const tool *t, const char *name, int64_t min, int64_t *value); /* false after telling what is wrong */
bool args_number(const tool *t, const char *name, double *value);            /* the same, >= 0 */
void args_print_flags(const tool_verb *verb);                                /* on stdout */
/* Wrong use: one line on stderr with a pointer to --help, and word to the other ranks; returns TDM_E_USAGE. */
int args_wrong(const tool *t, const char *format, ...) TDM_PRINTF(2, 3);

/* ---- args_key.c ---- */
/* What to write for a flag and value (NULL: none) of other trainers: "write the key: optimizer.lr=0.1". NULL: nothing.
 */
char *args_say(const tool_verb *verb, const char *flag, const char *value);

/* ---- text.c: small texts; out of memory ends the program with code 6 ---- */
_Noreturn void memory_missing(void);
/* What memory_missing does before it ends this process: it may replace it. */
void memory_at_end(void (*act)(int code));
char *text_format(const char *format, ...) TDM_PRINTF(1, 2);
char *text_format_list(const char *format, va_list args) TDM_PRINTF(1, 0);
char *text_copy(const char *text);
char *text_printable(const char *text, bool keeps_lines); /* see tdm_text_printable */
void *memory_new(size_t count, size_t bytes);             /* zeroed */
void *memory_take(size_t bytes);                          /* as malloc; jansson's, too */
void *memory_grow(void *old, size_t *capacity, size_t wanted, size_t bytes);
const char *text_count(char out[32], int64_t number); /* 4,275,594 */
const char *text_bytes(char out[32], double bytes);   /* 49.5 MiB */
const char *text_time(char out[32], double seconds);  /* 00:21, 1:02:03 */
const char *text_number(char out[32], double value);  /* about four digits, "-" for NaN */
const char *text_ms(char out[32], double ms);         /* milliseconds, three decimals for short ones */
int text_columns(const char *utf8);                   /* terminal columns; wide characters take two */
const char *text_nearest(const char *word, const char *const *names, int count); /* NULL if none is near */
/* A file of a folder, open to read, and the whole of one, terminated; NULL with errno set. `dir` NULL: a path of the
 * user's. */
FILE *text_stream(const char *dir, const char *name);
char *text_file(const char *dir, const char *name);
bool text_ends(const char *text, const char *end);
/* A text that is written as a file is; *out, for free, holds it once it is closed. */
FILE *text_open(char **out, size_t *bytes);
void text_close(FILE *to, char *const *out);
/* argv as a line that a shell would read back the same way. */
char *text_command(char *const *argv, int argc);

/* ---- files.c ---- */
/* A regular file in an open folder (a run directory, its logs), never through a symbolic link and without waiting; -1
 * with errno set. With AT_FDCWD `name` is a path of the user's, whose links are followed. */
int files_open_in(int folder, const char *name, int flags);
/* Why that, or a write, was refused at `path`: for people. */
const char *files_refusal(const char *path, int error);
bool files_exists(const char *path);
bool files_is_missing(const char *path); /* false, too, where the system refuses to look */
bool files_is_link(const char *path);
char *files_unused(const char *path); /* itself, or with -2, -3, ... behind it, the first that is not there */
/* A file on its way: written beside its place and moved there when it is whole, so that nobody reads half of one. A
 * stream (/dev/stdout, a shell's >(command)) is written to as it is. */
typedef struct files_draft {
    int fd, folder; /* fd -1: closed already; the folder is the one that it lies in, -1: a stream */
    const char *path;
    char *sibling; /* its name until it is whole; NULL: a stream */
} files_draft;
bool files_begin(files_draft *out, const char *path); /* false with errno set, and nothing to end */
bool files_end(files_draft *draft, bool good);        /* closes; not good: it is removed; false with errno set */
/* Writes `text` to `path` as a draft; TDM_E_IO after telling what is wrong. */
int files_write(const char *path, const char *text, size_t bytes);
/* The same for what nothing depends on: a warning, and on we go. */
void files_try(const char *path, const char *text, size_t bytes);
char *files_self(void); /* this program's path */

/* ---- tell.c: errors of the library, as the command tells them ---- */
/* The calling thread's last error on stderr, "file:line:col: error: message"; returns `status` as the exit code. */
int tell_error(tdm_status status);
int tell_error_of(const tdm_error *error);

/* ---- job.c: the configuration as every verb opens it ---- */
/* CONFIG of the command line with all overrides, `extra` ones (NULL-terminated, may be NULL) after them, checked. All
 * faults go to stderr. Returns the exit code. */
int job_open(tool *t, const char *const *extra, tdm_config **out);
/* The same with one that is read already, which is *out afterwards, or freed. */
int job_take(tool *t, const char *const *extra, tdm_config *config, tdm_config **out);
/* The override key="path": quoted, so that a path may look like anything. */
char *job_path_override(const char *key, const char *path);
const char *job_mode_name(int mode);

#endif
