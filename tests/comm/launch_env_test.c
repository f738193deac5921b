/* Whose rank is this process, by the variables of each launcher. */
#include "runtime/comm/comm.h"
#include "tests/support/tdm_test.h"

/* "A=1", "B=2", NULL */
static const char *lookup(const char *name, void *user) {
    size_t length = strlen(name);
    for (const char *const *entry = user; *entry != NULL; entry++) {
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
    }
    return NULL;
}

static tdm_status read_facts(tdm_launch_facts *out, const char *const *variables) {
    return tdm__launch_from(out, lookup, (void *)(uintptr_t)variables);
}
#define FACTS(...) read_facts(&facts, (const char *const[]){__VA_ARGS__, NULL})

#define CHECK_FACTS(s, r, w, lr, lw)                                                 \
    do {                                                                             \
        CHECK_TEXT(tdm_launch_source_name(facts.source), tdm_launch_source_name(s)); \
        CHECK_INT(facts.rank, r);                                                    \
        CHECK_INT(facts.world, w);                                                   \
        CHECK_INT(facts.local_rank, lr);                                             \
        CHECK_INT(facts.local_world, lw);                                            \
    } while (0)

TEST(each_launcher) {
    tdm_launch_facts facts = TDM_LAUNCH_FACTS_INIT;
    CHECK_OK(FACTS("HOME=/root"));
    CHECK_FACTS(TDM_LAUNCH_NONE, 0, 1, 0, 1);
    CHECK_INT(facts.fd, -1);
    CHECK_OK(FACTS("TANDEM_RANK=2", "TANDEM_WORLD=4", "TANDEM_LAUNCH_FD=7", "RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0"));
    CHECK_FACTS(TDM_LAUNCH_TANDEM, 2, 4, 2, 4);
    CHECK_INT(facts.fd, 7);
    CHECK_OK(FACTS("RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=node0",
                   "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=abc", "TORCHELASTIC_RESTART_COUNT=1", "SLURM_PROCID=1",
                   "SLURM_STEP_NUM_TASKS=2"));
    CHECK_FACTS(TDM_LAUNCH_TORCHRUN, 3, 4, 1, 2);
    CHECK_TEXT(facts.master_addr, "node0");
    CHECK_INT(facts.master_port, 29500);
    CHECK_TEXT(facts.job, "29500/abc/1");
    CHECK_OK(FACTS("OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=1",
                   "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_RANK=1", "PMIX_NAMESPACE=prterun-1"));
    CHECK_FACTS(TDM_LAUNCH_OPENMPI, 1, 2, 1, 2);
    CHECK_TEXT(facts.job, "prterun-1");
    CHECK_OK(FACTS("PMI_RANK=5", "PMI_SIZE=8", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=4"));
    CHECK_FACTS(TDM_LAUNCH_PMI, 5, 8, 1, 4);
    CHECK_OK(FACTS("MV2_COMM_WORLD_RANK=1", "MV2_COMM_WORLD_SIZE=2", "MV2_COMM_WORLD_LOCAL_RANK=1",
                   "MV2_COMM_WORLD_LOCAL_SIZE=2"));
    CHECK_FACTS(TDM_LAUNCH_PMI, 1, 2, 1, 2);
    CHECK_OK(FACTS("RANK=1", "WORLD_SIZE=3", "MASTER_ADDR=job-master-0", "MASTER_PORT=23456"));
    CHECK_FACTS(TDM_LAUNCH_PYTORCHJOB, 1, 3, 0, 1);
    CHECK_OK(FACTS("RANK=1", "WORLD_SIZE=3", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=23456"));
    CHECK_FACTS(TDM_LAUNCH_PYTORCHJOB, 1, 3, 1, 3);
}

TEST(slurm) {
    tdm_launch_facts facts = TDM_LAUNCH_FACTS_INIT;
    /* The shell of a batch script or of salloc is no step with peers. */
    CHECK_OK(FACTS("SLURM_PROCID=0", "SLURM_NTASKS=4", "SLURM_JOB_ID=7"));
    CHECK_FACTS(TDM_LAUNCH_NONE, 0, 1, 0, 1);
    CHECK_OK(FACTS("SLURM_PROCID=0", "SLURM_NTASKS=4", "SLURM_STEP_NUM_TASKS=1", "SLURM_JOB_ID=7"));
    CHECK_FACTS(TDM_LAUNCH_NONE, 0, 1, 0, 1);
    CHECK_OK(FACTS("SLURM_PROCID=5", "SLURM_STEP_NUM_TASKS=7", "SLURM_LOCALID=1", "SLURM_NODEID=2",
                   "SLURM_STEP_TASKS_PER_NODE=2(x3),1", "SLURM_STEP_NODELIST=gpu[03-05,9],x1", "SLURM_JOB_ID=7",
                   "SLURM_STEP_ID=0"));
    CHECK_FACTS(TDM_LAUNCH_SLURM, 5, 7, 1, 2);
    CHECK_TEXT(facts.master_addr, "gpu03");
    CHECK_TEXT(facts.job, "7/0");
    CHECK(facts.master_port >= 10000 && facts.master_port < 30000);
    int port = facts.master_port;
    CHECK_OK(FACTS("SLURM_PROCID=6", "SLURM_STEP_NUM_TASKS=7", "SLURM_LOCALID=0", "SLURM_NODEID=3",
                   "SLURM_STEP_TASKS_PER_NODE=2(x3),1", "SLURM_JOB_ID=7", "SLURM_STEP_ID=0",
                   "SLURM_STEP_NODELIST=solo"));
    CHECK_FACTS(TDM_LAUNCH_SLURM, 6, 7, 0, 1);
    CHECK_TEXT(facts.master_addr, "solo");
    CHECK_INT(facts.master_port, port);
    CHECK_OK(FACTS("SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_LOCALID=1", "SLURM_STEP_NUM_NODES=1"));
    CHECK_FACTS(TDM_LAUNCH_SLURM, 1, 2, 1, 2);
    /* srun sets PMI's variables itself; mpirun inside a step has ranks of its own. */
    CHECK_OK(FACTS("SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_NUM_NODES=1", "PMI_RANK=1", "PMI_SIZE=2"));
    CHECK_FACTS(TDM_LAUNCH_SLURM, 1, 2, 1, 2);
    CHECK_OK(FACTS("SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2", "OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=8",
                   "OMPI_COMM_WORLD_LOCAL_RANK=3", "OMPI_COMM_WORLD_LOCAL_SIZE=4"));
    CHECK_FACTS(TDM_LAUNCH_OPENMPI, 3, 8, 3, 4);
    /* Lists that make no sense say nothing. */
    CHECK_OK(FACTS("SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_TASKS_PER_NODE=2(x", "SLURM_NODEID=0"));
    CHECK_FACTS(TDM_LAUNCH_SLURM, 1, 2, 1, 2);
    CHECK_OK(FACTS("SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_TASKS_PER_NODE=99999999999999999999"));
    CHECK_FACTS(TDM_LAUNCH_SLURM, 1, 2, 1, 2);
}

TEST(contradictions) {
    tdm_launch_facts facts = TDM_LAUNCH_FACTS_INIT;
    CHECK_STATUS(FACTS("RANK=4", "WORLD_SIZE=4", "LOCAL_RANK=0"), TDM_E_USAGE);
    CHECK_TEXT(tdm_error_message(), "environment variables contradict each other: RANK is 4, but WORLD_SIZE is 4");
    CHECK_FACTS(TDM_LAUNCH_TORCHRUN, 4, 4, 0, -1); /* for tdm_launch_fail */
    CHECK_STATUS(FACTS("RANK=x", "WORLD_SIZE=4", "LOCAL_RANK=0", "MASTER_PORT=29500"), TDM_E_USAGE);
    CHECK_TEXT(facts.job, "29500");
    CHECK_STATUS(FACTS("RANK=1", "LOCAL_RANK=0"), TDM_E_USAGE);
    CHECK_TEXT(tdm_error_message(), "environment variable RANK is set, but WORLD_SIZE is not; set both or neither");
    CHECK_STATUS(FACTS("TANDEM_WORLD=2"), TDM_E_USAGE);
    CHECK_TEXT(tdm_error_message(),
               "environment variable TANDEM_WORLD is set, but TANDEM_RANK is not; set both or neither");
    CHECK_STATUS(FACTS("RANK=one", "WORLD_SIZE=2"), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "RANK must be an integer from 0 to 1000000, got 'one'");
    CHECK_STATUS(FACTS("RANK=-1", "WORLD_SIZE=2"), TDM_E_USAGE);
    CHECK_STATUS(FACTS("RANK=0", "WORLD_SIZE=0"), TDM_E_USAGE);
    CHECK_STATUS(FACTS("RANK=0", "WORLD_SIZE=99999999999999999999"), TDM_E_USAGE);
    CHECK_STATUS(FACTS("RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2"), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "LOCAL_RANK is 2, but LOCAL_WORLD_SIZE is 2");
    CHECK_STATUS(FACTS("RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=4"), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "LOCAL_WORLD_SIZE is 4, but WORLD_SIZE is 2");
    CHECK_STATUS(FACTS("RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0", "MASTER_PORT=70000"), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "MASTER_PORT must be an integer from 1 to 65535");
    CHECK_STATUS(FACTS("TANDEM_RANK=0", "TANDEM_WORLD=2", "TANDEM_LAUNCH_FD=x"), TDM_E_USAGE);
    CHECK_OK(FACTS("RANK=", "WORLD_SIZE=")); /* empty is unset */
}

TEST_MAIN({
    RUN(each_launcher);
    RUN(slurm);
    RUN(contradictions);
})
