/* The exchange before the thread of the hub starts: every rank's addresses, through rank 0. */
#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/hub/hub_private.h"

static tdm_status fail_for(const tdm_hub *hub, int rank) {
    char name[TDM_NAME_TEXT];
    tdm__hub_name(hub, rank, name);
    TDM_FAIL(TDM_E_COMM, "while ranks exchanged addresses: %s is gone or does not answer", name);
}

/* all[r * world + i]: what rank r gives for rank i. Returns a rank that is gone; 0: none is. */
static int32_t gather(tdm_hub *hub, unsigned char *all, size_t row, int64_t deadline_ns) {
    for (int r = 1; r < hub->world; r++)
        if (!tdm__socket_read(hub->connection[r].fd, all + (size_t)r * row, row, deadline_ns)) return r;
    return 0;
}

/* Everybody learns first who is gone, so that nobody blames rank 0. The thread notices a rank
 * that leaves while this is sent. */
static void distribute(tdm_hub *hub, const unsigned char *all, int32_t gone, unsigned char *from, size_t bytes,
                       int64_t deadline_ns) {
    const size_t world = (size_t)hub->world, row = world * bytes;
    for (size_t to = world; to-- > 0;) { /* rank 0 last: `from` is its own, too */
        for (size_t r = 0; r < world; r++) memcpy(from + r * bytes, all + r * row + to * bytes, bytes);
        if (to == 0) continue;
        if (tdm__socket_write(hub->connection[to].fd, &gone, sizeof(gone), deadline_ns) && gone == 0)
            (void)tdm__socket_write(hub->connection[to].fd, from, row, deadline_ns);
    }
}

static tdm_status exchange_with_root(tdm_hub *hub, const void *to, void *from, size_t row, int64_t deadline_ns) {
    int32_t gone = 0;
    const int fd = hub->connection[0].fd;
    if (!tdm__socket_write(fd, to, row, deadline_ns) || !tdm__socket_read(fd, &gone, sizeof(gone), deadline_ns))
        return fail_for(hub, 0);
    if (gone > 0 && gone < hub->world) return fail_for(hub, gone);
    return tdm__socket_read(fd, from, row, deadline_ns) ? TDM_OK : fail_for(hub, 0);
}

tdm_status tdm__hub_all_to_all(tdm_hub *hub, const void *to, void *from, size_t bytes, int64_t deadline_ns) {
    const size_t row = (size_t)hub->world * bytes;
    unsigned char *all;
    if (hub->rank != 0) return exchange_with_root(hub, to, from, row, deadline_ns);
    TDM_TRY(tdm__new(hub->host, &all, (size_t)hub->world, row, "addresses of ranks"));
    memcpy(all, to, row);
    const int32_t gone = gather(hub, all, row, deadline_ns);
    distribute(hub, all, gone, from, bytes, deadline_ns);
    tdm__delete(hub->host, all);
    return gone == 0 ? TDM_OK : fail_for(hub, gone);
}
