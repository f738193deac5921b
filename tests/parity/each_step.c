/* Every step of a run from a state that is given: what one step makes of PyTorch's own weights, buffers and moments.
 *
 *     each_step JOB.yaml STATES RESULTS [key.path=value ...]
 *
 * STATES holds one state per step, one behind the other: the parameters in PyTorch's order, the buffers, then each slot
 * of the optimizer for all parameters, as little-endian bytes without gaps. RESULTS gets, for each step, its loss (a
 * double) and the state behind it. The run counts on by itself, so that order of samples and schedule are its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tandem/tandem.h>

#include "runtime/train/run.h"

static void must(tdm_status status) {
    if (status == TDM_OK) return;
    fprintf(stderr, "each_step: %s: %s\n", tdm_status_name(status), tdm_error_message());
    exit(1);
}

static void must_move(bool moved, const char *what) {
    if (moved) return;
    fprintf(stderr, "each_step: %s: cannot be read or written\n", what);
    exit(1);
}

/* One tensor of the state, where checkpoints would take it from. */
static void move(FILE *file, bool in, void *at, size_t bytes) {
    must_move((in ? fread(at, 1, bytes, file) : fwrite(at, 1, bytes, file)) == bytes, in ? "STATES" : "RESULTS");
}

static void move_state(tdm_run *run, FILE *file, bool in) {
    tdm_replica *root = run->mode->replica[0];
    void *arenas[TDM_ARENA_COUNT] = {0};
    static const tdm_arena_kind kinds[] = {TDM_ARENA_PARAM, TDM_ARENA_BUFFER, TDM_ARENA_STATE};
    for (int i = 0; i < run->tensor_count; i++) {
        char *at = NULL;
        must(tdm__tensor_at(root, &run->tensors[i], arenas, &at));
        move(file, in, at, run->tensors[i].bytes);
    }
    if (!in) return;
    for (int i = 0; i < 3; i++) must(tdm__replica_put(root, kinds[i]));
    must(tdm__mode_sync(run->mode, true));
}

static void take_steps(tdm_run *run, FILE *states, FILE *results) {
    for (int64_t step = 0; step < run->steps_total; step++) {
        tdm_run_state now = TDM_RUN_STATE_INIT;
        move_state(run, states, true);
        must(tdm_run_step(run, 1));
        must(tdm_run_get_state(run, &now));
        move(results, false, &now.loss, sizeof(now.loss));
        move_state(run, results, false);
    }
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: each_step JOB.yaml STATES RESULTS [key.path=value ...]\n");
        return 2;
    }
    tdm_config *config = NULL;
    tdm_run *run = NULL;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    must(tdm_config_open(&config, NULL, argv[1]));
    for (int i = 4; i < argc; i++) must(tdm_config_override(config, argv[i]));
    must(tdm_config_check(config));
    must(tdm_run_open(&run, tdm_config_job(config), tdm_config_graph(config), &options));
    FILE *states = fopen(argv[2], "rb"), *results = fopen(argv[3], "wb");
    must_move(states != NULL && results != NULL, "STATES or RESULTS");
    take_steps(run, states, results);
    must_move(fclose(states) == 0 && fclose(results) == 0, "RESULTS");
    tdm_run_close(run);
    tdm_config_free(config);
    return 0;
}
