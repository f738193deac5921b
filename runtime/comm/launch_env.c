/* Launchers pass a process its rank in environment variables. This file knows the variables of each launcher.
 *
 * They are tried in this order: tandem's own, torchrun, srun, mpirun, PyTorchJob. Launchers nest, so the variables of
 * several may be set. torchrun inside a step of srun sets its own ones; so does mpirun, and its ranks are then not the
 * ranks of the step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/base/system/env.h"
#include "runtime/base/hash.h"
#include "runtime/base/call/sized.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/base/text/text.h"
#include "runtime/comm/comm.h"

enum { RANKS_MAX = 1000000, PORT_MAX = 65535 };

/* Names of a launcher's variables; NULL: it has no such variable. */
typedef struct launcher {
    tdm_launch_source source;
    const char *rank, *world, *local_rank, *local_world;
} launcher;

static const launcher tandem = {TDM_LAUNCH_TANDEM, "TANDEM_RANK", "TANDEM_WORLD", "TANDEM_LOCAL_RANK",
                                "TANDEM_LOCAL_WORLD"};
static const launcher torchrun = {TDM_LAUNCH_TORCHRUN, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
static const launcher slurm = {TDM_LAUNCH_SLURM, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL};
static const launcher pytorchjob = {TDM_LAUNCH_PYTORCHJOB, "RANK", "WORLD_SIZE", NULL, NULL};
static const launcher mpi[] = {
    {TDM_LAUNCH_OPENMPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {TDM_LAUNCH_PMI, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {TDM_LAUNCH_PMI, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE"},
};
enum { MPI_LAUNCHERS = sizeof(mpi) / sizeof(mpi[0]) };

const char *tdm_launch_source_name(tdm_launch_source source) {
    static const char *const names[] = {
        [TDM_LAUNCH_NONE] = "none",
        [TDM_LAUNCH_TANDEM] = "tandem",
        [TDM_LAUNCH_TORCHRUN] = "torchrun",
        [TDM_LAUNCH_SLURM] = "srun",
        [TDM_LAUNCH_OPENMPI] = "mpirun (Open MPI)",
        [TDM_LAUNCH_PMI] = "mpirun (PMI)",
        [TDM_LAUNCH_PYTORCHJOB] = "PyTorchJob",
    };
    return (size_t)source < sizeof(names) / sizeof(names[0]) ? names[source] : "unknown";
}

/* ---- reading variables ---- */

typedef struct variables {
    tdm_variable_fn get;
    void *user;
} variables;

/* NULL if the variable is unset or empty. */
static const char *get(const variables *vars, const char *name) {
    const char *text = name != NULL ? vars->get(name, vars->user) : NULL;
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static tdm_status get_number(const variables *vars, const char *name, int least, int most, int *out) {
    int64_t value;
    const char *text = get(vars, name);
    if (text == NULL) return TDM_OK;
    if (!tdm__parse_int(text, &value) || value < least || value > most)
        TDM_FAIL(TDM_E_USAGE, "environment variable %s must be an integer from %d to %d, got '%s'", name, least, most,
                 text);
    *out = (int)value;
    return TDM_OK;
}

/* ---- one launcher ---- */

/* Reads a number from 1 to RANKS_MAX and moves *text past it. 0: there is none. */
static int take_count(const char **text) {
    char *end;
    long value = strtol(*text, &end, 10);
    if (end == *text || value < 1 || value > RANKS_MAX) return 0;
    *text = end;
    return (int)value;
}

/* The number of tasks on `node`, from a list such as "2(x3),1": three nodes with 2 tasks each, then one with 1. -1 if
 * the list is malformed or too short. */
static int tasks_on_node(const char *text, int node) {
    for (int first = 0; first <= node;) {
        int times = 1, tasks = take_count(&text);
        if (tasks == 0) return -1;
        if (strncmp(text, "(x", 2) == 0) {
            text += 2;
            times = take_count(&text);
            if (times == 0 || *text++ != ')') return -1;
        }
        if (node < first + times) return tasks;
        first += times;
        if (*text++ != ',') return -1;
    }
    return -1;
}

static tdm_status slurm_local_world(const variables *vars, tdm_launch_facts *out) {
    int node = 0, nodes = 0;
    TDM_TRY(get_number(vars, "SLURM_NODEID", 0, RANKS_MAX, &node));
    TDM_TRY(get_number(vars, "SLURM_STEP_NUM_NODES", 1, RANKS_MAX, &nodes));
    const char *list = get(vars, "SLURM_STEP_TASKS_PER_NODE");
    if (nodes == 1)
        out->local_world = out->world;
    else if (list != NULL)
        out->local_world = tasks_on_node(list, node);
    return TDM_OK;
}

static bool is_loopback(const char *host) {
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0;
}

/* Fills in what the launcher does not say about this host. */
static void complete_local(tdm_launch_facts *out) {
    bool one_host = out->source == TDM_LAUNCH_TANDEM || is_loopback(out->master_addr);
    if (out->source == TDM_LAUNCH_PYTORCHJOB && !one_host) { /* RANK is the number of the pod */
        out->local_rank = 0;
        out->local_world = 1;
    }
    if (out->local_rank < 0) out->local_rank = out->rank;
    if (out->local_world < 0) out->local_world = out->local_rank == out->rank ? out->world : out->local_rank + 1;
}

static tdm_status read_ranks(const variables *vars, const launcher *from, tdm_launch_facts *out) {
    out->source = from->source;
    out->rank = out->world = out->local_rank = out->local_world = -1;
    TDM_TRY(get_number(vars, from->world, 1, RANKS_MAX, &out->world));
    TDM_TRY(get_number(vars, from->rank, 0, RANKS_MAX, &out->rank));
    TDM_TRY(get_number(vars, from->local_rank, 0, RANKS_MAX, &out->local_rank));
    TDM_TRY(get_number(vars, from->local_world, 1, RANKS_MAX, &out->local_world));
    if (out->rank < 0 || out->world < 0)
        TDM_FAIL(TDM_E_USAGE, "environment variable %s is set, but %s is not; set both or neither",
                 out->rank < 0 ? from->world : from->rank, out->rank < 0 ? from->rank : from->world);
    if (out->rank >= out->world)
        TDM_FAIL(TDM_E_USAGE, "environment variables contradict each other: %s is %d, but %s is %d", from->rank,
                 out->rank, from->world, out->world);
    if (from->source == TDM_LAUNCH_SLURM) TDM_TRY(slurm_local_world(vars, out));
    complete_local(out);
    const char *local_world = from->local_world != NULL ? from->local_world : "the tasks of this node";
    if (out->local_rank >= out->local_world && from->local_rank != NULL)
        TDM_FAIL(TDM_E_USAGE, "environment variables contradict each other: %s is %d, but %s is %d", from->local_rank,
                 out->local_rank, local_world, out->local_world);
    if (out->local_world > out->world)
        TDM_FAIL(TDM_E_USAGE, "environment variables contradict each other: %s is %d, but %s is %d", local_world,
                 out->local_world, from->world, out->world);
    return TDM_OK;
}

/* ---- which launcher counts ---- */

static bool has_any(const variables *vars, const launcher *from) {
    return get(vars, from->rank) != NULL || get(vars, from->world) != NULL;
}

/* A step of srun has several tasks. The shell of a batch script has the same variables, but only one task. */
static bool in_slurm_step(const variables *vars) {
    int64_t tasks;
    const char *text = get(vars, slurm.world);
    return get(vars, slurm.rank) != NULL && text != NULL && (!tdm__parse_int(text, &tasks) || tasks > 1);
}

static bool same_text(const variables *vars, const char *a, const char *b) {
    const char *left = get(vars, a), *right = get(vars, b);
    return left != NULL && right != NULL && strcmp(left, right) == 0;
}

static const launcher *find_launcher(const variables *vars) {
    const launcher *inner = NULL;
    if (has_any(vars, &tandem)) return &tandem;
    bool torch_like = has_any(vars, &torchrun);
    if (torch_like && (get(vars, "LOCAL_RANK") != NULL || get(vars, "TORCHELASTIC_RUN_ID") != NULL)) return &torchrun;
    for (int i = 0; i < MPI_LAUNCHERS && inner == NULL; i++) {
        if (has_any(vars, &mpi[i])) inner = &mpi[i];
    }
    /* srun may set MPI variables too, with the step's own numbers. Other numbers come from an mpirun inside the step.
     */
    if (in_slurm_step(vars) &&
        (inner == NULL || (same_text(vars, inner->rank, slurm.rank) && same_text(vars, inner->world, slurm.world))))
        return &slurm;
    if (inner != NULL) return inner;
    return torch_like ? &pytorchjob : NULL;
}

/* ---- where to meet ---- */

/* The first host of a list such as "a[01-03,7],b": a01. */
static void first_host(char *out, size_t bytes, const char *list) {
    size_t prefix = strcspn(list, "[,");
    int digits = list[prefix] == '[' ? (int)strcspn(list + prefix + 1, "-,]") : 0;
    snprintf(out, bytes, "%.*s%.*s", (int)prefix, list, digits, digits > 0 ? list + prefix + 1 : "");
}

static tdm_status read_master(const variables *vars, tdm_launch_facts *out) {
    const char *address = get(vars, "MASTER_ADDR"), *nodes = get(vars, "SLURM_STEP_NODELIST");
    if (address == NULL && out->source == TDM_LAUNCH_SLURM && nodes != NULL)
        first_host(out->master_addr, sizeof(out->master_addr), nodes);
    else if (address != NULL && strlen(address) >= sizeof(out->master_addr))
        TDM_FAIL(TDM_E_USAGE, "environment variable MASTER_ADDR must be a host name, got %zu characters",
                 strlen(address));
    else if (address != NULL)
        memcpy(out->master_addr, address, strlen(address) + 1);
    return get_number(vars, "MASTER_PORT", 1, PORT_MAX, &out->master_port);
}

/* out->job: a text that is equal on all ranks of this job and differs from that of every other job on this host. */
static void name_job(const variables *vars, tdm_launch_facts *out) {
    static const char *const torch_names[] = {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", NULL};
    static const char *const slurm_names[] = {"SLURM_JOB_ID", "SLURM_STEP_ID", NULL};
    static const char *const mpi_names[] = {"MASTER_PORT", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_PORT",
                                            NULL};
    const char *const *name = torch_names;
    if (out->source == TDM_LAUNCH_SLURM) name = slurm_names;
    if (out->source == TDM_LAUNCH_OPENMPI || out->source == TDM_LAUNCH_PMI) name = mpi_names;
    size_t used = 0;
    for (; *name != NULL && used < sizeof(out->job) - 1; name++) {
        const char *value = get(vars, *name);
        if (value == NULL) continue;
        int length = snprintf(out->job + used, sizeof(out->job) - used, "%s%s", used > 0 ? "/" : "", value);
        used += (size_t)length;
    }
    if (out->source == TDM_LAUNCH_SLURM && out->master_port == 0)
        out->master_port = 10000 + (int)(tdm__hash64(out->job, strlen(out->job), 0) % 20000);
}

tdm_status tdm__launch_from(tdm_launch_facts *out, tdm_variable_fn variable, void *user) {
    variables vars = {variable, user};
    *out = (tdm_launch_facts){.size = sizeof(*out), .source = TDM_LAUNCH_NONE, .world = 1, .local_world = 1, .fd = -1};
    const launcher *from = find_launcher(&vars);
    if (from == NULL) return TDM_OK;
    out->source = from->source;
    TDM_TRY(read_master(&vars, out));
    name_job(&vars, out);
    const char *store = get(&vars, "TORCHELASTIC_USE_AGENT_STORE");
    out->store = out->source == TDM_LAUNCH_TORCHRUN && store != NULL && strcasecmp(store, "true") == 0;
    if (from == &tandem) TDM_TRY(get_number(&vars, "TANDEM_LAUNCH_FD", 0, INT32_MAX, &out->fd));
    return read_ranks(&vars, from, out); /* last: a rank whose number is wrong can still report that to the others */
}

static const char *from_environment(const char *name, void *user) {
    (void)user;
    return tdm__env_of_user(name);
}

tdm_status tdm_launch_from_env(tdm_launch_facts *out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_launch_from_env: out is NULL");
    TDM_TRY(tdm__sized_check("tdm_launch_from_env: tdm_launch_facts", out, sizeof(*out), sizeof(*out)));
    TDM_EXTRA(RANKS);
    return tdm__launch_from(out, from_environment, NULL);
}
