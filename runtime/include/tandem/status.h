/* tandem/status.h - status codes and the error record of the calling thread.
 *
 * Every function that can fail returns a tdm_status. When it fails it has filled in this thread's error record. Success
 * leaves the record alone. The numbers are the exit codes of the `tandem` command and never change their meaning. */
#ifndef TANDEM_STATUS_H
#define TANDEM_STATUS_H

#include <stddef.h>

/* Around the declarations of every header of tandem, so that C++ can include it. */
#ifdef __cplusplus
#define TDM_BEGIN_DECLS extern "C" {
#define TDM_END_DECLS }
#else
#define TDM_BEGIN_DECLS
#define TDM_END_DECLS
#endif

TDM_BEGIN_DECLS

#if defined(__GNUC__)
#define TDM_API __attribute__((visibility("default")))
#define TDM_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define TDM_API
#define TDM_PRINTF(fmt, args)
#endif

/* name, number, text */
#define TDM_STATUS_MAP(X)                                                 \
    X(OK, 0, "ok")                                                        \
    X(E_INTERNAL, 1, "bug in tandem")                                     \
    X(E_USAGE, 2, "wrong use of a function or command")                   \
    X(E_CONFIG, 3, "bad configuration")                                   \
    X(E_DATA, 4, "bad or missing data")                                   \
    X(E_DEVICE, 5, "device absent or failed")                             \
    X(E_MEMORY, 6, "out of memory")                                       \
    X(E_COMM, 7, "communication failed or a peer was lost")               \
    X(E_CHECKPOINT, 8, "checkpoint missing, damaged or of another model") \
    X(E_NUMERIC, 9, "non-finite numbers")                                 \
    X(E_IO, 10, "storage failed")                                         \
    X(E_UNSUPPORTED, 11, "not supported in this build")                   \
    X(E_CHECK, 12, "a check did not hold")                                \
    X(E_STOPPED, 75, "stopped early")

typedef enum tdm_status {
#define X(name, number, text) TDM_##name = number,
    TDM_STATUS_MAP(X)
#undef X
} tdm_status;

/* A position in a text that the user wrote. `file` is borrowed. Line 0 means that there is no line. */
typedef struct tdm_origin {
    const char *file;
    int line, column; /* both from 1; columns count characters, not bytes */
} tdm_origin;

enum { TDM_ERROR_FRAMES = 16 };

/* The last failure of a thread. It has a fixed size, so that reporting exhausted memory needs no memory. */
typedef struct tdm_error {
    tdm_status status;
    char message[2048]; /* one printable line: names before numbers, what was expected, then what was found */
    /* The user's file, byte for byte (show it through tdm_text_printable); "" if there is none. "command line: KEY" for
     * an override, "command line" where the message begins with KEY. */
    char file[512];
    int line, column;
    int frame_count;
    struct {
        const char *file;
        int line;
    } frame[TDM_ERROR_FRAMES]; /* where in tandem's source, innermost first */
} tdm_error;

/* Returns this thread's last failure. Never NULL; its status is TDM_OK if there has been no failure. Borrowed until the
 * next failure on this thread. */
TDM_API const tdm_error *tdm_error_last(void);
/* Returns the message of tdm_error_last(), "" if there has been no failure. Never NULL; borrowed like the record. */
TDM_API const char *tdm_error_message(void);
/* Return "E_CONFIG" and "bad configuration" for TDM_E_CONFIG, and "unknown" for a number that is not a status. Static;
 * never NULL. */
TDM_API const char *tdm_status_name(tdm_status status);
TDM_API const char *tdm_status_text(tdm_status status);

/* Copies a text of foreign origin (a name, a file, the environment) in a form that is safe to show on a terminal.
 * Control characters, marks that change the direction of writing, and bytes that are not UTF-8 become \x1b or \u202e;
 * if `keeps_lines` is non-zero, newlines and tabs stay. A text that is printable already stays as it is. tandem's own
 * messages and texts are printable.
 *
 * Like snprintf it writes at most `capacity` bytes with the terminating NUL and returns the length of the whole result.
 * It cuts between characters. text NULL counts as "", out NULL as a capacity of 0. */
TDM_API size_t tdm_text_printable(char *out, size_t capacity, const char *text, int keeps_lines);
/* The columns that a terminal needs for a UTF-8 text: East Asian wide characters and emoji take two, combining marks
 * none. NULL is "". */
TDM_API int tdm_text_columns(const char *text);
/* For "did you mean": the candidate nearest to `word` by the number of letters to insert, delete, replace or swap, if
 * that is at most a third of the word's letters; else NULL. Case and '-' or '_' do not count. Words are compared by
 * their first 63 bytes. The result is one of `candidates`; NULL where a pointer is NULL. */
TDM_API const char *tdm_text_nearest(const char *word, const char *const *candidates, int count);

TDM_END_DECLS

#endif
