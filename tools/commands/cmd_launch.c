/* cmd_launch.c - `tandem launch`: this host's part of a ddp job on several hosts. */
#include "tools/commands/train.h"

enum { NODES_MAX = 256, PORT_MAX = 65535 };

/* False after printing what is missing or wrong. */
static bool read_nodes(const tool *t, launch_nodes *out) {
    int64_t count = 0, rank = -1, port = 29500; /* torchrun's */
    const char *master = args_flag(t, "--master-addr");
    if (!args_int(t, "--nnodes", 1, &count) || !args_int(t, "--node-rank", 0, &rank) ||
        !args_int(t, "--master-port", 1, &port))
        return false;
    if (count == 0 || rank < 0 || !master) {
        args_wrong(t, "`%s` is missing; each host is told how many there are, which one it is, and where rank 0 is",
                   count == 0 ? "--nnodes"
                   : rank < 0 ? "--node-rank"
                              : "--master-addr");
        return false;
    }
    if (count > NODES_MAX || rank >= count || port > PORT_MAX) {
        args_wrong(t,
                   "`--node-rank` must be below `--nnodes`, that at most %d, and `--master-port` at most %d; got %lld, "
                   "%lld and %lld",
                   NODES_MAX, PORT_MAX, (long long)rank, (long long)count, (long long)port);
        return false;
    }
    *out = (launch_nodes){.count = (int)count, .rank = (int)rank, .master = master, .port = (int)port};
    return true;
}

static int run(tool *t) {
    launch_nodes nodes;
    return read_nodes(t, &nodes) ? train_run(t, &nodes) : TDM_E_USAGE;
}

const tool_verb verb_launch = {
    "launch",
    "CONFIG [key.path=value ...]",
    "starts this host's ranks of a ddp job on several hosts",
    "As `tandem train`, for a job on several hosts. Run it once on each host, with the\n"
    "same CONFIG and the host's own --node-rank. It starts one rank for each of\n"
    "parallel.device_ids, watches them and passes signals on. All hosts must start\n"
    "equally many. The ranks meet at the host of rank 0, which must be reachable at\n"
    "--master-port; gloo carries their data unless parallel.ddp.backend says mpi.\n"
    "Whoever does not know the secret (TANDEM_SECRET_FILE) cannot join.\n\n"
    "examples:\n"
    "  on node-0:  tandem launch --nnodes 2 --node-rank 0 --master-addr node-0 job.yaml\n"
    "  on node-1:  tandem launch --nnodes 2 --node-rank 1 --master-addr node-0 job.yaml",
    {{"--nnodes", "N", "hosts of the job"},
     {"--node-rank", "R", "which of them this is: 0 to N-1; rank 0 of the job is on host 0"},
     {"--master-addr", "HOST", "name or address of host 0"},
     {"--master-port", "PORT", "port at which rank 0 listens (29500)"},
     {"--mode", "ddp", "how devices share the work (parallel.mode)"},
     {"--steps", "N", "total steps, including those of an earlier run (train.steps)"},
     {"--resume", "auto|never|PATH", "the checkpoint to continue from, on host 0 (checkpoint.resume)"},
     {"--run-dir", "DIR", "the run directory, on host 0 (run.dir)"},
     {"--restarts", "N", "restart this host's ranks up to N times if one dies, here or elsewhere (0)"},
     {"--brief", NULL, "progress only: no banner, no summary"}},
    run,
    {1, 1, true}};
