/* Error reporting inside the library: a status for programs, a message for people. */
#ifndef TDM_BASE_STATUS_H
#define TDM_BASE_STATUS_H

#include <tandem/status.h>

/* Fills this thread's error record and returns `status`. Use the macros below. */
tdm_status tdm__fail(tdm_status status, const char *file, int line, const tdm_origin *origin, const char *format, ...)
    TDM_PRINTF(5, 6);
/* Adds a stack frame to the record on the way up; returns `status`. */
tdm_status tdm__frame(tdm_status status, const char *file, int line);
/* Sets the record's position in the user's file, unless it is set already; returns `status`. */
tdm_status tdm__error_at(tdm_status status, const tdm_origin *origin);
/* Carry a record to another thread: save copies it out of this thread; restore makes it the record of the calling
 * thread, with `prefix` (may be NULL), such as "replica 1 (cpu:1): ", before the message. Returns the record's status.
 */
void tdm__error_save(tdm_error *out);
tdm_status tdm__error_restore(const tdm_error *saved, const char *prefix);

/* TDM_FAIL returns `code` as it stands in the source, so that static analysers see that it is not TDM_OK. */
#define TDM_FAIL(code, ...) TDM_FAIL_AT(NULL, code, __VA_ARGS__)
#define TDM_FAIL_AT(origin, code, ...)                                            \
    do {                                                                          \
        tdm_status fail_status_ = (code);                                         \
        (void)tdm__fail(fail_status_, __FILE__, __LINE__, (origin), __VA_ARGS__); \
        return fail_status_;                                                      \
    } while (0)
#define TDM_TRY(expression)                                    \
    do {                                                       \
        tdm_status try_status_ = (expression);                 \
        if (try_status_ != TDM_OK) {                           \
            (void)tdm__frame(try_status_, __FILE__, __LINE__); \
            return try_status_;                                \
        }                                                      \
    } while (0)
/* On failure it calls `undo` first. */
#define TDM_TRY_ELSE(expression, undo)                          \
    do {                                                        \
        tdm_status try_status_ = (expression);                  \
        if (try_status_ != TDM_OK) {                            \
            undo;                                               \
            return tdm__frame(try_status_, __FILE__, __LINE__); \
        }                                                       \
    } while (0)
/* For functions with one `done:` label and a local `tdm_status status`. */
#define TDM_TRY_DONE(expression)                    \
    do {                                            \
        status = (expression);                      \
        if (status != TDM_OK) {                     \
            tdm__frame(status, __FILE__, __LINE__); \
            goto done;                              \
        }                                           \
    } while (0)
#define TDM_FAIL_DONE(code, ...)                                           \
    do {                                                                   \
        status = tdm__fail((code), __FILE__, __LINE__, NULL, __VA_ARGS__); \
        goto done;                                                         \
    } while (0)

#endif
