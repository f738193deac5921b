/* tdm_launch_fail: a rank that will not meet the others tells them, wherever they meet. */
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/hosts/hosts_open.h"
#include "runtime/comm/rendezvous.h"

void tdm_launch_fail(const tdm_launch_facts *facts, const char *init_method, const char *why) {
    if (facts == NULL) return;
    if (why == NULL) why = "no reason was given";
    const bool is_alone = facts->world == 1 && facts->rank <= 0;
    if (facts->fd >= 0)
        tdm_launch_abort(facts->fd, facts->rank, why);
    else if (is_alone || facts->world > TDM_COMM_WORLD_MAX)
        return;
    else if (facts->local_world != facts->world)
        tdm__hosts_fail(facts, tdm_host_default(), init_method, why);
    else
        tdm__rendezvous_fail(facts, init_method, why);
}
