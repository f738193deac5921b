/* Who is in a call of an object that one thread at a time uses: a second call says so, instead of breaking the first.
 * Threads do not live on in the child of a fork, so that there every call is refused, too. */
#ifndef TDM_BASE_CALL_GUARD_H
#define TDM_BASE_CALL_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include <tandem/status.h>

typedef struct tdm_guard {
    const char *object; /* "run", for messages */
    pid_t process;      /* that opened the object */
    atomic_ulong owner; /* the thread that is in a call; 0: none */
    _Atomic(const char *) function;
    int depth;           /* the owner's: calls in calls */
    bool reports;        /* the owner's: it is in a callback that may ask the object */
    atomic_bool is_left; /* an exception of C++ has left that callback, and with it the call, which goes on no more */
} tdm_guard;

typedef enum tdm_guard_use {
    TDM_GUARD_ASKS, /* a callback that may ask may make this call */
    TDM_GUARD_MOVES /* no callback may */
} tdm_guard_use;

void tdm__guard_init(tdm_guard *guard, const char *object);
/* TDM_E_USAGE if another thread is in a call, if a callback may not make this one, or after a fork. */
tdm_status tdm__guard_enter(tdm_guard *guard, const char *function, tdm_guard_use use);
void tdm__guard_leave(tdm_guard *guard);
/* For the call that frees the object: also after an exception has left a callback, on any thread. */
tdm_status tdm__guard_end(tdm_guard *guard, const char *function);

/* TDM_E_USAGE if another process than this one, `process`, opened the object. */
tdm_status tdm__check_home(pid_t process, const char *function, const char *object);
/* Is this the process that opened the object? In another, a lock of the program's log may be held for ever. */
bool tdm__guard_is_home(const tdm_guard *guard);

/* Enters, and leaves at the end of the block. */
#define TDM_ENTER(guard, function, use)                    \
    TDM_TRY(tdm__guard_enter((guard), (function), (use))); \
    __attribute__((cleanup(tdm__guard_leave_at), unused)) tdm_guard *const entered_ = (guard)
static inline void tdm__guard_leave_at(tdm_guard *const *guard) {
    tdm__guard_leave(*guard);
}

#endif
