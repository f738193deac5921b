#include "runtime/base/call/sized.h"

#include <stdint.h>
#include <string.h>

#include "runtime/base/status.h"

static uint32_t size_of(const void *object) {
    uint32_t size;
    memcpy(&size, object, sizeof(size));
    return size;
}

/* A size that is no multiple of 8 would cut a pointer or a number in two. */
tdm_status tdm__sized_check(const char *what, const void *object, size_t oldest, size_t known) {
    const size_t size = size_of(object);
    if (size > known)
        TDM_FAIL(
            TDM_E_USAGE,
            "%s.size is %zu, and this library knows %zu; start with its INIT macro or function, or install the tandem that the "
            "program was built with",
            what, size, known);
    if (size < oldest || (size != known && size != TDM_SIZED_ANY && size % sizeof(int64_t) != 0))
        TDM_FAIL(
            TDM_E_USAGE,
            "%s.size is %zu, which it has in no version of this library (in this one %zu); start with its INIT macro or "
            "function",
            what, size, known);
    return TDM_OK;
}

static void copy_members(void *to, const void *from, size_t size) {
    const size_t skip = sizeof(uint32_t);
    if (size > skip) memcpy((char *)to + skip, (const char *)from + skip, size - skip);
}

tdm_status tdm__sized_take(const char *what, void *to, size_t known, const void *from, size_t oldest) {
    if (from == NULL) return TDM_OK;
    TDM_TRY(tdm__sized_check(what, from, oldest, known));
    copy_members(to, from, size_of(from));
    return TDM_OK;
}

void tdm__sized_give(void *to, const void *full) {
    copy_members(to, full, size_of(to));
}
