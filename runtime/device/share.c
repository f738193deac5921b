#include "runtime/device/share.h"

/* Floats. LINE: a cache line, which two threads must not write to. LEAST_SHARED: with fewer, one thread is faster. */
enum { LINE = 16, LEAST_SHARED = 64 * 1024 };

typedef struct loop {
    size_t count;
    void (*work)(void *user, size_t begin, size_t end);
    void *user;
} loop;

/* Lines [begin, end). */
static void do_lines(void *data, int64_t begin, int64_t end) {
    const loop *l = data;
    const size_t last = (size_t)end * LINE;
    l->work(l->user, (size_t)begin * LINE, last < l->count ? last : l->count);
}

tdm_status tdm__share_loop(const tdm_device_threads *threads, size_t count,
                           void (*work)(void *user, size_t begin, size_t end), void *user) {
    loop all = {.count = count, .work = work, .user = user};
    if (threads->share == NULL || threads->count < 2 || count < LEAST_SHARED) {
        work(user, 0, count);
        return TDM_OK;
    }
    return threads->share(threads->count, (int64_t)((count + LINE - 1) / LINE), do_lines, &all);
}
