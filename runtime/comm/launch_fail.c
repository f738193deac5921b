/* tdm_launch_fail: a rank that will not meet the others tells them, wherever they meet. */
#include "runtime/base/call/extra.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/hosts/hosts_open.h"
#include "runtime/comm/rendezvous.h"

void tdm_launch_fail(const tdm_launch_facts *facts, const char *init_method, const char *why) {
    if (!TDM_WITH_RANKS) return;
    if (facts == NULL || facts->size != sizeof(*facts)) return;
    if (why == NULL) why = "no reason was given";
    const bool is_alone = facts->world == 1 && facts->rank <= 0;
    /* The facts themselves may be wrong. The ranks are taken to be on one host unless the facts say otherwise. */
    const bool is_between_hosts = facts->local_world > 0 && facts->local_world < facts->world;
    if (facts->fd >= 0) tdm_launch_abort(facts->fd, facts->rank, why); /* its launcher's other ranks */
    if (facts->fd >= 0 && !is_between_hosts) return;
    if (is_alone) return;
    if (is_between_hosts)
        tdm__hosts_fail(facts, tdm_host_default(), init_method, why);
    else
        tdm__rendezvous_fail(facts, init_method, why);
}
