/* A device that learns in the time and the memory that its own work leaves: each period has a deadline, and tandem has
 * a budget of memory.
 *
 *   cc device.c $(pkg-config --cflags --libs tandem) -pthread -o device && ./device [KiB of memory]
 *
 * In each period the device does its own work, and then makes steps of training as long as one more fits in front of
 * the deadline, if it takes no longer than the slowest of the last ones. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <time.h>

#include "ring.h"

enum { PERIOD_US = 4000, OWN_WORK_US = 1000 };

static int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Returns how many steps were made, fewer than `left` if no more fit; below 0 after a failure. *longest: of a step. */
static int64_t learn_until(tdm_run *run, int64_t deadline, int64_t left, int64_t *longest) {
    int64_t made = 0;
    *longest -= *longest / 16; /* so that a pause of the system is forgotten */
    for (int64_t at = now_us(); made < left && at + *longest <= deadline; made++) {
        if (tdm_run_step(run, 1) != TDM_OK) return -1;
        const int64_t end = now_us();
        *longest = end - at > *longest ? end - at : *longest;
        at = end;
    }
    return made;
}

int main(int argc, char **argv) {
    static ring_data data;
    static float y[POINTS][2];
    const struct timespec own_work = {0, OWN_WORK_US * 1000}; /* of the device, in each period */
    tdm_host host = TDM_HOST_INIT;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_config *config = NULL;
    tdm_run *run = NULL;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    ring_draw(&data, 0.0f);
    const tdm_source train = ring_source(&data);
    host.memory_limit = (argc > 1 ? (size_t)atol(argv[1]) : 1024) << 10;
    options.host = &host, options.train = &train;
    tdm_status status = ring_config(&config);
    /* The machine code of oneDNN's kernels would take 6 MiB of it. */
    if (status == TDM_OK) status = tdm_config_override(config, "parallel.kernels=ref");
    if (status == TDM_OK) status = tdm_config_check(config);
    if (status == TDM_OK) status = tdm_run_open(&run, tdm_config_job(config), tdm_config_graph(config), &options);
    if (status == TDM_OK) status = tdm_run_get_state(run, &state);
    for (int64_t left = state.steps_total, longest = 0, made = 0; status == TDM_OK && left > 0; left -= made) {
        const int64_t deadline = now_us() + PERIOD_US;
        nanosleep(&own_work, NULL);
        made = learn_until(run, deadline, left, &longest);
        if (made < 0) status = tdm_error_last()->status;
    }
    if (status == TDM_OK) status = tdm_run_predict(run, data.x[0], POINTS, y[0]);
    if (status == TDM_OK) printf("right about %.0f %%\n", 100 * ring_accuracy(&data, y));
    if (status != TDM_OK) fprintf(stderr, "device: %s\n", tdm_error_message());
    tdm_run_close(run);
    tdm_config_free(config);
    return status;
}
