/* The table of calls for modules and ops: they do not link tandem, so they get its functions this way. */
#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/env.h"
#include "runtime/comm/comm.h"
#include "runtime/device/threads.h"
#include "runtime/module/module.h"

static tdm_status share(tdm_device *device, int64_t count, void (*work)(void *data, int64_t begin, int64_t end),
                        void *data) {
    return tdm__threads_share(device->threads, count, work, data);
}

/* Without an error record: the module says what it wanted the memory for. */
static void *allocate(const tdm_host *host, size_t bytes) {
    void *pointer = tdm__host_allocate(host, bytes, TDM_ALIGN);
    return pointer != NULL ? memset(pointer, 0, bytes) : NULL;
}

const tdm_host_calls tdm__host_calls = {
    .fail = tdm__fail,
    .frame = tdm__frame,
    .environment = tdm__env_by_name,
    .comm_call = tdm__comm_call,
    .share = share,
    .allocate = allocate,
    .release = tdm__delete,
};
