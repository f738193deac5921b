/* Public calls for launchers and for the processes that they start. */
#include <tandem/tandem.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/launch.h"

tdm_status tdm_launch_create(int *fd, int world) {
    if (fd == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_launch_create: fd is NULL");
    return tdm__shm_create(fd, tdm_host_default(), world);
}

void tdm_launch_abort(int fd, int rank, const char *why) {
    tdm__shm_abort(fd, rank, why);
}

tdm_status tdm_launch_from_env(tdm_launch_facts *out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_launch_from_env: out is NULL");
    return tdm__launch_from_env(out);
}

tdm_status tdm_launch_meet(int *fd, const tdm_launch_facts *facts, const tdm_host *host, const char *init_method,
                           int64_t timeout_ms, int64_t heartbeat_ms) {
    if (fd == NULL || facts == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_launch_meet: fd or facts is NULL");
    TDM_TRY(tdm__host_take(&host));
    return tdm__rendezvous_shm(fd, facts, host, init_method, timeout_ms, heartbeat_ms);
}

void tdm_launch_fail(const tdm_launch_facts *facts, const char *init_method, const char *why) {
    if (facts != NULL) tdm__rendezvous_fail(facts, init_method, why != NULL ? why : "no reason was given");
}
