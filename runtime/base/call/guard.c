#include "runtime/base/call/guard.h"

#include <pthread.h>
#include <unistd.h>

#include "runtime/base/status.h"

void tdm__guard_init(tdm_guard *guard, const char *object) {
    *guard = (tdm_guard){.object = object, .process = getpid()};
}

bool tdm__guard_is_home(const tdm_guard *guard) {
    return getpid() == guard->process;
}

tdm_status tdm__check_home(pid_t process, const char *function, const char *object) {
    if (process == getpid()) return TDM_OK;
    TDM_FAIL(TDM_E_USAGE,
             "%s: process %ld opened the %s, and this is process %ld, which a fork has made without its threads; "
             "open another %s here",
             function, (long)process, object, (long)getpid(), object);
}

static tdm_status enter_again(tdm_guard *guard, const char *function, tdm_guard_use use) {
    if (atomic_load(&guard->is_left) && use == TDM_GUARD_MOVES)
        TDM_FAIL(TDM_E_USAGE, "%s: an exception has left a callback of %s, which cannot go on; close the %s", function,
                 atomic_load(&guard->function), guard->object);
    if (!guard->reports || use == TDM_GUARD_MOVES)
        TDM_FAIL(TDM_E_USAGE,
                 "%s: a callback of %s calls it for the same %s; return from the callback first, or, if an exception "
                 "has left it, open another %s: this one stays in its call",
                 function, atomic_load(&guard->function), guard->object, guard->object);
    guard->depth++;
    guard->reports = false; /* what this call calls may not ask in its turn */
    return TDM_OK;
}

tdm_status tdm__guard_enter(tdm_guard *guard, const char *function, tdm_guard_use use) {
    const unsigned long self = (unsigned long)pthread_self();
    unsigned long nobody = 0;
    TDM_TRY(tdm__check_home(guard->process, function, guard->object));
    if (atomic_load(&guard->owner) == self) return enter_again(guard, function, use);
    if (!atomic_compare_exchange_strong(&guard->owner, &nobody, self)) {
        const char *other = atomic_load(&guard->function);
        TDM_FAIL(TDM_E_USAGE, "%s: another thread is in %s with this %s; one thread at a time uses it", function,
                 other != NULL ? other : "a call", guard->object);
    }
    atomic_store(&guard->function, function);
    return TDM_OK;
}

tdm_status tdm__guard_end(tdm_guard *guard, const char *function) {
    if (atomic_load(&guard->is_left)) return tdm__check_home(guard->process, function, guard->object);
    return tdm__guard_enter(guard, function, TDM_GUARD_MOVES);
}

void tdm__guard_leave(tdm_guard *guard) {
    if (guard->depth > 0) {
        guard->depth--;
        guard->reports = true; /* back in the callback that made the call */
    } else
        atomic_store(&guard->owner, 0);
}
