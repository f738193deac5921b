#include "tests/api/api.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(tdm_status status) {
    if (status == TDM_OK) return;
    fprintf(stderr, "api: %s: %s\n", tdm_status_name(status), tdm_error_message());
    exit(1);
}

tdm_graph *api_graph(const tdm_host *host) {
    const tdm_attr conv[] = {{"out", "4", {0}}, {"kernel", "3", {0}}, {"padding", "1", {0}}};
    const tdm_attr pool[] = {{"kernel", "2", {0}}}, drop[] = {{"p", "0.2", {0}}}, out[] = {{"out", "3", {0}}};
    tdm_graph *g = NULL;
    tdm_value v;
    must(tdm_graph_new(&g, host));
    must(tdm_graph_input(g, 3, (const int64_t[]){2, 6, 6}, &v));
    must(tdm_graph_add(g, "conv2d", "conv", &v, 1, conv, 3, &v));
    must(tdm_graph_add(g, "relu", NULL, &v, 1, NULL, 0, &v));
    must(tdm_graph_add(g, "maxpool2d", NULL, &v, 1, pool, 1, &v));
    must(tdm_graph_add(g, "batchnorm2d", "bn", &v, 1, NULL, 0, &v));
    must(tdm_graph_add(g, "flatten", NULL, &v, 1, NULL, 0, &v));
    must(tdm_graph_add(g, "dropout", NULL, &v, 1, drop, 1, &v));
    must(tdm_graph_add(g, "linear", "fc", &v, 1, out, 1, &v));
    must(tdm_graph_finish(g, v));
    return g;
}

tdm_graph *api_linear_graph(int64_t width) {
    tdm_graph *g = NULL;
    tdm_value v;
    must(tdm_graph_new(&g, NULL));
    must(tdm_graph_input(g, 1, &width, &v));
    must(tdm_graph_add(g, "linear", "fc", &v, 1, &(tdm_attr){"out", "3", {0}}, 1, &v));
    must(tdm_graph_finish(g, v));
    return g;
}

void api_job(tdm_job *job) {
    must(tdm_job_init(job));
    job->name = "api";
    job->seed = 11;
    job->data.train.format = TDM_DATA_SYNTHETIC;
    job->data.train.samples = 40;
    job->data.eval.format = TDM_DATA_SYNTHETIC;
    job->data.eval.samples = 10;
    job->data.workers = 1;
    job->optimizer.type = TDM_ADAM;
    job->optimizer.lr = 1e-2;
    job->train.steps = 6;
    job->train.per_device = 4;
    job->checkpoint.resume = "never";
}

void api_train(const tdm_job *job, const tdm_graph *graph, char hash[40]) {
    tdm_run *run = NULL;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    must(tdm_run_open(&run, job, graph, NULL));
    must(tdm_run_train(run));
    must(tdm_run_get_state(run, &state));
    tdm_run_close(run);
    memcpy(hash, state.params_xxh3, sizeof(state.params_xxh3));
}

int api_proc_count(const char *what) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/%s", what);
    DIR *folder = opendir(path);
    int count = 0;
    while (folder != NULL && readdir(folder) != NULL) count++;
    if (folder != NULL) closedir(folder);
    return count;
}
