/* cmd_launch.c - `tandem launch`: a ddp job on several hosts, all of them or this host's part; or on this host alone. */
#include "tools/commands/train.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "tools/launch/hosts.h"
#include "tools/terminal/term.h"

enum { PORT_MAX = 65535, SECRET_BYTES = 32 };

/* ---- this host's part ---- */

static bool read_port(const tool *t, int *out) {
    int64_t port = 29500; /* torchrun's */
    if (!args_int(t, "--master-port", 1, &port)) return false;
    if (port > PORT_MAX) args_wrong(t, "`--master-port` must be at most %d, got %lld", PORT_MAX, (long long)port);
    *out = (int)port;
    return port <= PORT_MAX;
}

static bool read_ranks(const tool *t, int *out) {
    int64_t ranks = 0;
    if (!args_int(t, "--nproc-per-node", 1, &ranks)) return false;
    if (ranks > LAUNCH_RANKS_MAX)
        args_wrong(t, "`--nproc-per-node` must be at most %d, got %lld", LAUNCH_RANKS_MAX, (long long)ranks);
    *out = (int)ranks;
    return ranks <= LAUNCH_RANKS_MAX;
}

/* False after printing what is missing or wrong. */
static bool read_nodes(const tool *t, launch_nodes *out) {
    int64_t count = 0, rank = -1;
    int port;
    const char *master = args_flag(t, "--master-addr");
    if (!args_int(t, "--nnodes", 1, &count) || !args_int(t, "--node-rank", 0, &rank) || !read_port(t, &port))
        return false;
    if (count == 0 || rank < 0 || !master) {
        args_wrong(t, "`%s` is missing; each host is told how many there are, which one it is, and where rank 0 is",
                   count == 0 ? "--nnodes"
                   : rank < 0 ? "--node-rank"
                              : "--master-addr");
        return false;
    }
    if (count > LAUNCH_HOSTS_MAX || rank >= count) {
        args_wrong(t, "`--node-rank` must be below `--nnodes`, and that at most %d; got %lld and %lld",
                   LAUNCH_HOSTS_MAX, (long long)rank, (long long)count);
        return false;
    }
    *out = (launch_nodes){.count = (int)count, .rank = (int)rank, .master = master, .port = port};
    return true;
}

static int run_by_hand(tool *t) {
    static const char *const of_nodes[] = {"--nnodes", "--node-rank", "--master-addr", "--master-port", NULL};
    static const char *const of_ssh[] = {"--ssh", "--remote-tandem", NULL};
    launch_nodes nodes = {.count = 0};
    if (args_any(t, of_ssh)) return args_wrong(t, "`--ssh` and `--remote-tandem` are for `--hosts`, which is missing");
    const bool has_nodes = args_any(t, of_nodes) != NULL;
    if (!has_nodes && !args_flag(t, "--nproc-per-node"))
        return args_wrong(t, "nothing says where the ranks run: write `--hosts a:2,b:2`, or `--nproc-per-node 2` for "
                             "this host alone, or `--nnodes` and the others on each host");
    if (has_nodes && !read_nodes(t, &nodes)) return TDM_E_USAGE;
    return train_run(t, &nodes);
}

/* ---- all hosts ---- */

/* Other hosts connect to what host 0 is called. `localhost` would be themselves. */
static const char *find_master(const tool *t, const launch_hosts *hosts) {
    const char *given = args_flag(t, "--master-addr"), *name = hosts->host[0].name;
    const bool is_loopback =
        strncmp(name, "127.", 4) == 0 || strcmp(name, "localhost") == 0 || strcmp(name, "::1") == 0;
    if (given) return given;
    for (int i = 1; is_loopback && i < hosts->count; i++) {
        if (hosts->host[i].is_here) continue;
        args_wrong(t,
                   "`--hosts`: %s cannot reach rank 0 at `%s`; write this machine's name instead, or add "
                   "`--master-addr`",
                   hosts->host[i].name, name);
        return NULL;
    }
    return name;
}

/* Those that the list does not say are --nproc-per-node, or else the devices of the job. The caller frees them. */
static int *count_ranks(const tool *t, const launch_hosts *hosts, const tdm_job *job) {
    const int of_job = job->parallel.device_ids.count / (int)job->parallel.stages;
    int *ranks = memory_new((size_t)hosts->count, sizeof *ranks);
    for (int i = 0; i < hosts->count; i++)
        ranks[i] = hosts->host[i].ranks > 0 ? hosts->host[i].ranks : t->ranks > 0 ? t->ranks : of_job;
    return ranks;
}

/* The folder of a path, absolute. */
static char *folder_of(const char *cwd, const char *path) {
    const int length = (int)(files_name(path) - path);
    return path[0] == '/' ? text_format("%.*s", length, path) : text_format("%s/%.*s", cwd, length, path);
}

static bool make_secret(char out[2 * SECRET_BYTES + 1]) {
    unsigned char bytes[SECRET_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) return false;
    for (int i = 0; i < SECRET_BYTES; i++) snprintf(out + 2 * (size_t)i, 3, "%02x", bytes[i]);
    return true;
}

static void announce(const tool *t, const launch_hosts *hosts, const launch_orders *orders) {
    FREED char *list = text_copy("");
    for (int i = 0; i < hosts->count; i++) {
        FREED char *before = list;
        list = text_format("%s%s%d on %s", before, i ? ", " : "", orders->ranks[i], hosts->host[i].name);
    }
    if (!t->quiet) term_line("tandem: ranks: %s; they meet at %s:%d", list, orders->master, orders->port);
}

static int start_on(tool *t, const launch_hosts *hosts, const tdm_config *config, launch_orders *orders) {
    const tdm_job *job = tdm_config_job(config);
    char cwd[PATH_MAX], secret[2 * SECRET_BYTES + 1];
    if (!getcwd(cwd, sizeof cwd) || !make_secret(secret)) {
        term_error("the working directory or random numbers are missing: %m");
        return TDM_E_INTERNAL;
    }
    FREED char *folder = folder_of(cwd, t->word[0]), *self = files_self();
    FREED int *ranks = count_ranks(t, hosts, job);
    const char *ssh = args_flag(t, "--ssh"), *program = args_flag(t, "--remote-tandem");
    orders->hosts = hosts->count;
    orders->ranks = ranks;
    orders->secret = secret;
    orders->cwd = cwd;
    orders->folder = folder;
    orders->config = tdm_config_source(config);
    orders->run_dir = job->run.dir ? job->run.dir : "";
    orders->argc = t->argc;
    orders->argv = t->argv;
    const hosts_job start = {.t = t,
                             .hosts = hosts,
                             .ssh = ssh ? ssh : "ssh",
                             .program = program ? program
                                        : self  ? self
                                                : "tandem",
                             .orders = orders,
                             .grace = job->parallel.ddp.grace};
    announce(t, hosts, orders);
    return hosts_run(&start);
}

static int run_hosts(tool *t) {
    FREED_BY(hosts_free) launch_hosts hosts = {0};
    FREED_BY(job_freed) tdm_config *config = NULL;
    launch_orders orders = {.host = 0};
    if (args_flag(t, "--nnodes") || args_flag(t, "--node-rank"))
        return args_wrong(t, "`--hosts` says which hosts there are; leave out `--nnodes` and `--node-rank`");
    if (hosts_read(t, args_flag(t, "--hosts"), &hosts) != TDM_OK || !read_port(t, &orders.port)) return TDM_E_USAGE;
    orders.master = find_master(t, &hosts);
    if (!orders.master) return TDM_E_USAGE;
    int code = job_open_training(t, NULL, &config);
    if (code == TDM_OK) code = train_check_launched(t, tdm_config_job(config));
    return code == TDM_OK ? start_on(t, &hosts, config, &orders) : code;
}

/* ---- a host that was started so, and its ranks ---- */

static int run_hosted(tool *t) {
    const launch_orders *orders = t->orders;
    const launch_nodes nodes = {.count = orders->hosts,
                                .rank = orders->host,
                                .ranks = orders->ranks,
                                .master = orders->master,
                                .port = orders->port};
    const bool is_relative = t->override_count > 0 || args_flag(t, "--run-dir") || args_flag(t, "--resume");
    t->ranks = orders->ranks[orders->host];
    if (!launch_is_watched() && chdir(orders->cwd) != 0 && is_relative && !t->quiet)
        term_line(
            "tandem: warning: this host has no folder %s, where the job was started; relative paths of the command "
            "line begin at ssh's folder here",
            orders->cwd);
    return train_run(t, &nodes);
}

static int run(tool *t) {
    if (!t->orders && orders_inherit(&t->orders) != TDM_OK) return TDM_E_USAGE;
    if (!read_ranks(t, &t->ranks)) return TDM_E_USAGE;
    return t->orders ? run_hosted(t) : args_flag(t, "--hosts") ? run_hosts(t) : run_by_hand(t);
}

const tool_verb verb_launch = {
    "launch",
    "CONFIG [key.path=value ...]",
    "starts the ranks of a ddp job, on several hosts or on this one",
    "As `tandem train`, for a job on several hosts. With --hosts it is run once: it\n"
    "starts the ranks on all hosts over ssh, shows their output, passes signals on, and\n"
    "leaves nothing behind when it ends, however it ends. The hosts need tandem and the\n"
    "data; CONFIG and a secret, without which nobody can join, are sent. ssh must work\n"
    "without a password.\n\n"
    "Without --hosts run it on each host, with the same CONFIG and the host's own\n"
    "--node-rank. It starts one rank for each of parallel.device_ids, or\n"
    "--nproc-per-node ranks on devices 0, 1, ...; all hosts must start equally many.\n"
    "Whoever does not know the secret (TANDEM_SECRET_FILE) cannot join. With\n"
    "--nproc-per-node alone all ranks are on this host.\n\n"
    "The ranks meet at the host of rank 0, which must be reachable at --master-port;\n"
    "gloo carries their data unless parallel.ddp.backend names another.\n\n"
    "examples:\n"
    "  tandem launch --hosts node-0:2,node-1:2 job.yaml\n"
    "  tandem launch --hosts me@node-0:2,me@node-1:2 --ssh 'ssh -p 2222' job.yaml\n"
    "  tandem launch --nproc-per-node 4 job.yaml\n"
    "  on node-0:  tandem launch --nnodes 2 --node-rank 0 --master-addr node-0 job.yaml\n"
    "  on node-1:  tandem launch --nnodes 2 --node-rank 1 --master-addr node-0 job.yaml",
    {{"--hosts", "HOST:N,...", "start N ranks on each host; without :N --nproc-per-node, or one for each device"},
     {"--nproc-per-node", "N", "ranks on this host, or on each one"},
     {"--nnodes", "N", "hosts of the job"},
     {"--node-rank", "R", "which of them this is: 0 to N-1; rank 0 of the job is on host 0"},
     {"--master-addr", "HOST", "name or address of host 0, where the others find it (the first of --hosts)"},
     {"--master-port", "PORT", "port at which rank 0 listens (29500)"},
     {"--ssh", "COMMAND", "what reaches the other hosts, with its options (ssh)"},
     {"--remote-tandem", "PATH", "the program on the other hosts (the path that it has here)"},
     {"--mode", "ddp", "how devices share the work (parallel.mode)"},
     {"--steps", "N", "total steps, including those of an earlier run (train.steps)"},
     {"--resume", "auto|never|PATH", "the checkpoint to continue from, on host 0 (checkpoint.resume)"},
     {"--run-dir", "DIR", "the run directory, on host 0 (run.dir)"},
     {"--restarts", "N", "restart this host's ranks up to N times if one dies, here or elsewhere (0)"},
     {"--brief", NULL, "progress only: no banner, no summary"}},
    run,
    {1, 1, true}};
