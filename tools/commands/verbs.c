/* verbs.c - the lists of what `tandem` and `tandem help` know. */
#include <tandem/doctor.h>

#include "tools/tool.h"

const tool_verb *const tool_verbs[] = {&verb_train,  &verb_launch, &verb_compare, &verb_eval,    &verb_predict,
                                       &verb_export, &verb_check,  &verb_show,    &verb_explain, &verb_schema,
                                       &verb_plan,   &verb_init,   &verb_ckpt,    &verb_data,    &verb_bench,
                                       &verb_burnin, &verb_doctor, &verb_report,  NULL};

static int print_exit_codes(tool *t) {
    (void)t;
    printf("exit codes of every verb:\n");
#define X(name, number, text) printf("  %3d  %s\n", number, text);
    TDM_STATUS_MAP(X)
#undef X
    printf("  128+n  ended by signal n\n"
           "If tandem started the ranks of a ddp job, it exits with the code of the rank that failed first.\n");
    return TDM_OK;
}

static int print_variables(tool *t) {
    (void)t;
    TDM_FREED char *text = NULL;
    tdm_status status = tdm_environment_variables(NULL, &text);
    if (status != TDM_OK) return tell_error(status);
    printf("environment variables that tandem reads; none of them changes numbers:\n%s"
           "A launcher tells each process its rank through these variables: RANK,\n"
           "WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT (torchrun),\n"
           "SLURM_* (srun), OMPI_*, PMI_*, MV2_* (mpirun)\n",
           text);
    return TDM_OK;
}

const tool_part tool_topics[] = {{"exit-codes", print_exit_codes}, {"env", print_variables}, {NULL, NULL}};
