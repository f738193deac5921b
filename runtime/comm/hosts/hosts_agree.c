/* How a collective begins: its ranks agree on the call. See hosts.h. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/comm/hosts/hosts.h"
#include "runtime/comm/hosts/levels.h"

/* Every rank compares all calls with member 0's, so that all reach the same verdict. */
static tdm_status compare_calls(tdm_hosts_comm *c) {
    for (int r = 1; r < c->comm.world; r++)
        TDM_TRY(tdm__hosts_judge(c, tdm__call_compare(&c->entry[0].call, 0, &c->entry[r].call, r, c->job_rank)));
    return TDM_OK;
}

tdm_status tdm__hosts_agree_on_call(tdm_hosts_comm *c, const void *data, size_t small) {
    tdm_hosts_entry *own = &c->entry[c->comm.rank];
    own->call = c->call;
    if (data != NULL && small > 0 && small <= sizeof(own->data)) memcpy(own->data, data, small);
    TDM_TRY(c->levels != NULL ? tdm__levels_exchange_entries(c)
                              : tdm__hosts_exchange_blocks(c, c->entry, sizeof(*c->entry)));
    return compare_calls(c);
}
