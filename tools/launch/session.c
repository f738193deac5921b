/* session.c - see session.h. */
#include "tools/launch/session.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "tools/launch/launch.h"
#include "tools/launch/stop.h"
#include "tools/report/saved.h"
#include "tools/terminal/log.h"

int session_configure(session *s, tool *t, const char *const *extra) {
    *s = (session){.t = t, .fd = -1};
    s->facts = (tdm_launch_facts)TDM_LAUNCH_FACTS_INIT;
    tdm_status status = tdm_launch_from_env(&s->facts);
    int code = status == TDM_OK ? launch_join(&s->facts) : tell_error(status);
    if (status != TDM_OK) tdm_launch_fail(&s->facts, NULL, tdm_error_message());
    if (code != TDM_OK) return code;
    log_set_rank(s->facts.rank, s->facts.world);
    s->shows = s->facts.rank == 0;
    code = job_open_training(t, extra, &s->config);
    if (code != TDM_OK) {
        /* The configuration may set the rendezvous, but it could not be read: notify the ranks at the default one.
         */
        if (s->facts.world > 1) tdm_launch_fail(&s->facts, NULL, tdm_error_message());
        return code;
    }
    s->job = tdm_config_job(s->config);
    if (s->job->parallel.ddp.init_method) t->init_method = text_copy(s->job->parallel.ddp.init_method);
    if (launch_lost()) {
        tdm_launch_fail(&s->facts, t->init_method, launch_lost());
        return TDM_E_COMM;
    }
    if (s->facts.world <= 1 || s->job->parallel.mode == TDM_MODE_DDP) return TDM_OK;
    return args_wrong(t,
                      "%s started %d processes, but mode %s is a single process; use --mode ddp, or start one process",
                      tdm_launch_source_name(s->facts.source), s->facts.world, job_mode_name(s->job->parallel.mode));
}

int session_ranks_to_start(const session *s, bool among_hosts) {
    int ranks = s->job->parallel.device_ids.count / (int)s->job->parallel.stages;
    /* The only rank of a single host has been started, too, and starts no other. */
    const bool is_many = ranks > 1 || (among_hosts && !launch_is_watched());
    return s->job->parallel.mode == TDM_MODE_DDP && s->facts.world <= 1 && is_many ? ranks : 0;
}

static bool is_on_one_host(const session *s) {
    return s->facts.local_world == s->facts.world;
}

/* Ranks of mpirun know one another already, and may not know where else to meet. */
static bool only_mpi_connects(const tdm_launch_facts *facts) {
    const bool is_mpirun = facts->source == TDM_LAUNCH_OPENMPI || facts->source == TDM_LAUNCH_PMI;
    return is_mpirun && facts->master_addr[0] == '\0';
}

/* Of parallel.ddp.backend: what carries messages between hosts; NULL for the others. */
#define CARRIER_BUILT_IN(name) NULL
#define CARRIER_DEVICE_MODULE(name) NULL
#define CARRIER_HOSTS_MODULE(name) #name
#define TDM_BACKEND(key, name, source) [TDM_BACKEND_##key] = CARRIER_##source(name),
static const char *const carriers[] = {
    [TDM_BACKEND_AUTO] = NULL,
#include <tandem/sys/backends.def>
};
#undef TDM_BACKEND

/* The backend that carries data between hosts; NULL: shared memory suffices. */
static const char *hosts_backend(const session *s) {
    const char *asked = carriers[s->job->parallel.ddp.backend];
    if (asked != NULL || is_on_one_host(s)) return asked;
    return only_mpi_connects(&s->facts) ? "mpi" : "gloo";
}

static tdm_status join_hosts(session *s) {
    tdm_hosts_options options = TDM_HOSTS_OPTIONS_INIT;
    options.host = &s->t->host;
    options.backend = hosts_backend(s);
    options.init_method = s->job->parallel.ddp.init_method;
    options.interface = s->job->parallel.ddp.interface;
    options.timeout_ms = tdm_duration_ms(s->job->parallel.ddp.timeout, INT64_MAX);
    options.heartbeat_ms = tdm_duration_ms(s->job->parallel.ddp.heartbeat, 0);
    stop_joining(true, saved_code(s->job));
    const tdm_status status = tdm_comm_open_hosts(&s->comm, &s->facts, &options);
    if (status == TDM_OK) launch_met(&s->facts);
    return status;
}

/* Gets the descriptor that all ranks share: inherited from our own launcher, else at the rendezvous. From then on
 * the ranks are joining, until on_met reports that all have joined. */
static tdm_status join_ranks(session *s) {
    if (hosts_backend(s) != NULL) return join_hosts(s);
    if (s->facts.source == TDM_LAUNCH_TANDEM && s->facts.fd >= 0) {
        s->fd = s->facts.fd;
        return TDM_OK;
    }
    stop_joining(true, saved_code(s->job));
    return tdm_launch_meet(&s->fd, &s->facts, &s->t->host, s->job->parallel.ddp.init_method,
                           tdm_duration_ms(s->job->parallel.ddp.timeout, INT64_MAX),
                           tdm_duration_ms(s->job->parallel.ddp.heartbeat, 0));
}

static void on_met(void *user) {
    (void)user;
    stop_joining(false, 0);
}

/* After a stop signal a lost peer is no failure: the peer got the signal too and has already exited. */
static int left_early(const session *s) {
    int code = saved_code(s->job);
    return code != 0 ? code : 128 + stop_signal();
}

int session_open(session *s, int (*on_event)(const tdm_event *event, void *user), void *user) {
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.host = &s->t->host;
    options.on_event = on_event;
    options.on_met = on_met;
    options.user = user;
    options.run_ahead = 1; /* events may arrive late, they are only shown */
    options.restarts = launch_restarts();
    options.config_input = tdm_config_source(s->config);
    tdm_status status = tdm_config_print(s->config, TDM_CONFIG_RESOLVED, &s->resolved);
    options.config_yaml = s->resolved;
    options.pid = launch_pid();
    if (status != TDM_OK) tdm_launch_fail(&s->facts, s->t->init_method, tdm_error_message());
    if (s->facts.world > 1) {
        if (status == TDM_OK) status = join_ranks(s);
        options.rank = s->facts.rank;
        options.world = s->facts.world;
        options.launch_fd = s->fd;
        options.comm = s->comm;
        options.local_rank = s->facts.local_rank;
        options.local_world = s->facts.local_world;
    } else if (s->job->parallel.mode == TDM_MODE_DDP) {
        options.world = 1; /* the only rank of its job */
    }
    if (status == TDM_OK) status = tdm_run_open(&s->run, s->job, tdm_config_graph(s->config), &options);
    stop_joining(false, 0);
    if (status == TDM_E_COMM && stop_signal() != 0 && !launch_is_watched()) return left_early(s);
    return status == TDM_OK ? TDM_OK : session_failed(s, status);
}

/* Tells the other ranks at once, so that they do not wait for a timeout. */
int session_failed(const session *s, tdm_status status) {
    if (s->comm != NULL) tdm_comm_abort(s->comm, tdm_error_message());
    if (s->fd >= 0 && s->facts.world > 1) tdm_launch_abort(s->fd, s->facts.rank, tdm_error_message());
    return launch_report(s->t, &s->facts, status);
}

void session_close(session *s) {
    tdm_run_close(s->run);
    tdm_comm_close(s->comm);
    tdm_free(s->resolved);
    tdm_config_free(s->config);
    if (s->fd >= 0) close(s->fd);
    *s = (session){.fd = -1};
}
