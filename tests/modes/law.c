#include "law.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/tdm_test.h"

static void must(tdm_status status) {
    if (status == TDM_OK) return;
    fprintf(stderr, "law: %s: %s\n", tdm_status_name(status), tdm_error_message());
    exit(1);
}

static tdm_graph *picture_net(int with_batchnorm, int with_dropout, tdm_value *out) {
    tdm_graph *g = NULL;
    tdm_value x, a, b, y;
    must(tdm_graph_new(&g, NULL));
    must(tdm_graph_input(g, 3, (const int64_t[]){3, 8, 8}, &x));
    must(tdm_graph_add(g, "conv2d", "conv1", &x, 1,
                       (tdm_attr[]){{"out", "16", {0}}, {"kernel", "3", {0}}, {"padding", "1", {0}}}, 3, &a));
    if (with_batchnorm) must(tdm_graph_add(g, "batchnorm2d", "bn1", &a, 1, NULL, 0, &a));
    must(tdm_graph_add(g, "relu", "relu1", &a, 1, NULL, 0, &a));
    must(tdm_graph_add(g, "conv2d", "conv2", &a, 1,
                       (tdm_attr[]){{"out", "16", {0}}, {"kernel", "3", {0}}, {"padding", "1", {0}}}, 3, &b));
    must(tdm_graph_add(g, "relu", "relu2", &b, 1, NULL, 0, &b));
    must(tdm_graph_add(g, "add", "join", (tdm_value[]){a, b}, 2, NULL, 0, &y));
    must(tdm_graph_add(g, "maxpool2d", "pool", &y, 1, (tdm_attr[]){{"kernel", "2", {0}}}, 1, &y));
    must(tdm_graph_add(g, "flatten", "flat", &y, 1, NULL, 0, &y));
    if (with_dropout) must(tdm_graph_add(g, "dropout", "drop", &y, 1, (tdm_attr[]){{"p", "0.3", {0}}}, 1, &y));
    must(tdm_graph_add(g, "linear", "fc1", &y, 1, (tdm_attr[]){{"out", "24", {0}}}, 1, &y));
    must(tdm_graph_add(g, "relu", "relu3", &y, 1, NULL, 0, &y));
    must(tdm_graph_add(g, "linear", "fc2", &y, 1, (tdm_attr[]){{"out", "5", {0}}}, 1, out));
    return g;
}

tdm_graph *law_graph(int with_batchnorm, int with_dropout) {
    tdm_value y;
    tdm_graph *g = picture_net(with_batchnorm, with_dropout, &y);
    must(tdm_graph_finish(g, y));
    return g;
}

tdm_graph *law_log_softmax(void) {
    tdm_value y;
    tdm_graph *g = picture_net(1, 1, &y);
    must(tdm_graph_add(g, "log_softmax", "scores", &y, 1, NULL, 0, &y));
    must(tdm_graph_finish(g, y));
    return g;
}

tdm_graph *law_inputs(void) {
    static const tdm_attr conv[] = {{"out", "16", {0}}, {"kernel", "3", {0}}};
    tdm_graph *g = NULL;
    tdm_value left, right, facts, y;
    must(tdm_graph_new(&g, NULL));
    must(tdm_graph_add_input(g, "left", 3, (const int64_t[]){3, 8, 8}, &left));
    must(tdm_graph_add_input(g, "facts", 1, (const int64_t[]){7}, &facts));
    must(tdm_graph_add_input(g, "right", 3, (const int64_t[]){3, 6, 6}, &right));
    must(tdm_graph_add(g, "conv2d", "conv1", &left, 1, conv, 2, &left));
    must(tdm_graph_add(g, "batchnorm2d", "bn1", &left, 1, NULL, 0, &left));
    must(tdm_graph_add(g, "relu", "relu1", &left, 1, NULL, 0, &left));
    must(tdm_graph_add(g, "flatten", "flat1", &left, 1, NULL, 0, &left));
    must(tdm_graph_add(g, "conv2d", "conv2", &right, 1, conv, 2, &right));
    must(tdm_graph_add(g, "flatten", "flat2", &right, 1, NULL, 0, &right));
    must(tdm_graph_add(g, "dropout", "drop", &right, 1, (tdm_attr[]){{"p", "0.3", {0}}}, 1, &right));
    must(tdm_graph_add(g, "concat", "join", (tdm_value[]){left, facts, right}, 3, NULL, 0, &y));
    must(tdm_graph_add(g, "linear", "fc1", &y, 1, (tdm_attr[]){{"out", "24", {0}}}, 1, &y));
    must(tdm_graph_add(g, "concat", "again", (tdm_value[]){y, facts}, 2, NULL, 0, &y));
    must(tdm_graph_add(g, "linear", "fc2", &y, 1, (tdm_attr[]){{"out", "5", {0}}}, 1, &y));
    must(tdm_graph_finish(g, y));
    return g;
}

tdm_graph *law_series(void) {
    tdm_graph *g = NULL;
    tdm_value x;
    must(tdm_graph_new(&g, NULL));
    must(tdm_graph_input(g, 2, (const int64_t[]){3, 24}, &x));
    must(tdm_graph_add(g, "conv1d", "conv1", &x, 1,
                       (tdm_attr[]){{"out", "16", {0}}, {"kernel", "5", {0}}, {"padding", "same", {0}}}, 3, &x));
    must(tdm_graph_add(g, "relu", "relu1", &x, 1, NULL, 0, &x));
    must(tdm_graph_add(
        g, "conv1d", "conv2", &x, 1,
        (tdm_attr[]){{"out", "8", {0}}, {"kernel", "4", {0}}, {"stride", "2", {0}}, {"groups", "2", {0}}}, 4, &x));
    must(tdm_graph_add(g, "layernorm", "norm", &x, 1, NULL, 0, &x));
    must(tdm_graph_add(g, "gru", "gru", &x, 1, (tdm_attr[]){{"hidden", "12", {0}}}, 1, &x));
    must(tdm_graph_add(g, "linear", "head", &x, 1, (tdm_attr[]){{"out", "5", {0}}}, 1, &x));
    must(tdm_graph_finish(g, x));
    return g;
}

void law_job(tdm_job *job) {
    must(tdm_job_init(job));
    job->name = "law";
    job->seed = 7;
    job->data.train.format = TDM_DATA_SYNTHETIC;
    job->data.train.samples = 50;
    job->data.eval.format = TDM_DATA_SYNTHETIC;
    job->data.eval.samples = 23;
    job->data.eval.seed = 99;
    job->data.shuffle = true;
    job->data.workers = 1;
    job->parallel.device = TDM_DEVICE_CPU;
    job->optimizer.type = TDM_ADAM;
    job->optimizer.lr = 1e-2;
    job->train.epochs = TDM_INT_NULL;
    job->train.steps = 8;
    job->train.per_device = 6;
    job->train.global_batch = TDM_INT_NULL;
    job->parallel.device_ids.count = 1;
    job->parallel.device_ids.item[0] = 0;
    job->parallel.dp.scatter = TDM_SCATTER_STRIDED;
    job->parallel.ddp.timeout = 20;
    job->run.dir = NULL;
    job->checkpoint.resume = "never";
}

void law_short_job(tdm_job *job) {
    law_job(job);
    if (TDM_EVERY(2) == 1) return;
    job->data.train.samples = 26;
    job->data.eval.samples = 11;
    job->train.steps = 5;
}

tdm_graph *law_mixing(tdm_job *job) {
    static const int steps[] = {TDM_TRANSFORM_MIXUP, TDM_TRANSFORM_CUTMIX};
    tdm_graph *g = NULL;
    tdm_value y;
    law_job(job);
    job->data.train.format = job->data.eval.format = TDM_DATA_GLYPHS;
    job->data.transform.to_float = true;
    job->loss.label_smoothing = 0.1;
    job->data.transform.step_count = 2;
    for (int i = 0; i < 2; i++) must(tdm_transform_init(&job->data.transform.step[i], steps[i]));
    must(tdm_graph_new(&g, NULL));
    must(tdm_graph_input(g, 3, (const int64_t[]){3, 12, 12}, &y));
    must(tdm_graph_add(g, "conv2d", "conv1", &y, 1, (tdm_attr[]){{"out", "8", {0}}, {"kernel", "3", {0}}}, 2, &y));
    must(tdm_graph_add(g, "relu", "relu1", &y, 1, NULL, 0, &y));
    must(tdm_graph_add(g, "maxpool2d", "pool1", &y, 1, (tdm_attr[]){{"kernel", "2", {0}}}, 1, &y));
    must(tdm_graph_add(g, "flatten", "flat", &y, 1, NULL, 0, &y));
    must(tdm_graph_add(g, "linear", "fc1", &y, 1, (tdm_attr[]){{"out", "10", {0}}}, 1, &y));
    must(tdm_graph_finish(g, y));
    return g;
}

static int collect(const tdm_event *event, void *user) {
    law_result *result = user;
    if (event->kind == TDM_EVENT_STEP && event->step <= LAW_MAX_STEPS) {
        result->loss[event->step - 1] = event->loss;
        result->steps = event->step;
        result->comm_steps += event->ms.comm >= event->ms.comm_exposed;
    }
    if (event->kind == TDM_EVENT_EVAL) result->eval_loss = event->loss, result->accuracy = event->accuracy;
    return 0;
}

static void read_buffers(tdm_run *run, law_result *result) {
    int at = 0;
    for (int i = 0; i < tdm_run_tensor_count(run); i++) {
        tdm_tensor_info info = TDM_TENSOR_INFO_INIT;
        must(tdm_run_tensor(run, i, &info));
        if (!info.is_buffer || info.is_int64 || at + info.count > 64) continue;
        must(tdm_run_read(run, info.name, result->buffers + at, info.bytes));
        at += (int)info.count;
    }
}

/* What is done in each process of a job. */
typedef struct {
    const tdm_job *job;
    const tdm_graph *graph;
    int predicts; /* evaluate, and do not train */
    law_program program;
} task;

static tdm_status train(const task *t, tdm_run *run, law_result *result) {
    if (t->program.train == NULL) return tdm_run_train(run);
    const tdm_status status = t->program.train(run);
    return status == TDM_OK ? tdm_run_evaluate(run, &result->eval_loss, &result->accuracy) : status;
}

static void run_here(const task *t, int rank, int world, int fd, law_result *result) {
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.on_event = collect;
    options.user = result;
    options.rank = rank;
    options.world = world;
    options.launch_fd = fd;
    options.run_ahead = 1;
    options.predicts = t->predicts;
    if (t->program.set != NULL) t->program.set(&options);
    tdm_run *run = NULL;
    result->status = tdm_run_open(&run, t->job, t->graph, &options);
    if (result->status == TDM_OK && t->predicts)
        result->status = tdm_run_evaluate(run, &result->eval_loss, &result->accuracy);
    else if (result->status == TDM_OK)
        result->status = train(t, run, result);
    if (result->status == TDM_OK) {
        tdm_run_state state = TDM_RUN_STATE_INIT;
        must(tdm_run_get_state(run, &state));
        memcpy(result->params, state.params_xxh3, sizeof(result->params));
        read_buffers(run, result);
    } else
        snprintf(result->message, sizeof(result->message), "%s", tdm_error_message());
    tdm_run_close(run);
}

/* `threads`: of each rank, or NULL: those of the job. */
static law_result run_ranks(const task *t, int world, const int *threads) {
    law_result results[16];
    memset(results, 0, sizeof(results));
    int fd = -1, pipes[16][2];
    must(tdm_launch_create(&fd, world));
    fflush(NULL);
    for (int r = 0; r < world; r++) {
        if (pipe(pipes[r]) != 0) exit(1);
        pid_t pid = fork();
        if (pid < 0) exit(1);
        if (pid != 0) {
            close(pipes[r][1]);
            continue;
        }
        law_result own;
        memset(&own, 0, sizeof(own));
        tdm_job of_rank = *t->job;
        if (threads != NULL) of_rank.parallel.threads_per_device = threads[r];
        run_here(&(task){&of_rank, t->graph, t->predicts, t->program}, r, world, fd, &own);
        ssize_t n = write(pipes[r][1], &own, sizeof(own));
        fflush(NULL);
        _exit(n == (ssize_t)sizeof(own) ? 0 : 1);
    }
    for (int r = 0; r < world; r++) {
        size_t got = 0;
        for (ssize_t n; got < sizeof(results[r]) &&
                        (n = read(pipes[r][0], (char *)&results[r] + got, sizeof(results[r]) - got)) > 0;)
            got += (size_t)n;
        close(pipes[r][0]);
        if (got < sizeof(results[r])) results[r].status = TDM_E_INTERNAL;
    }
    for (int r = 0; r < world; r++) {
        int code = 0;
        (void)wait(&code);
        if (code != 0) results[0].status = TDM_E_INTERNAL;
        results[0].alike = (r == 0 || results[0].alike) && results[r].status == results[0].status;
        if (results[r].status != TDM_OK && results[0].status == TDM_OK) {
            results[0].status = results[r].status;
            memcpy(results[0].message, results[r].message, sizeof(results[0].message));
        }
        if (strcmp(results[r].params, results[0].params) != 0) results[0].status = TDM_E_CHECK;
    }
    close(fd);
    return results[0];
}

typedef struct {
    const task *task;
    law_result *result;
} one_run;

static void *run_one(void *argument) {
    const one_run *r = argument;
    run_here(r->task, 0, 0, -1, r->result);
    return NULL;
}

static law_result run_task(const task *t) {
    int replicas = t->job->parallel.device_ids.count / (int)t->job->parallel.stages;
    if (t->job->parallel.mode == TDM_MODE_DDP && replicas > 1) return run_ranks(t, replicas, NULL);
    if (t->job->parallel.device != TDM_DEVICE_CPU) return run_ranks(t, 1, NULL); /* CUDA does not survive a fork */
    law_result result;
    memset(&result, 0, sizeof(result));
    result.alike = 1;
    /* Threads of kernels end with the thread that they work for: the next fork finds none. */
    one_run run = {t, &result};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_one, &run) != 0) exit(1);
    pthread_join(thread, NULL);
    return result;
}

/* A run that fails is a failed check. */
static law_result checked(const tdm_job *job, law_result result) {
    if (result.status != TDM_OK) {
        tdm_test_failures++;
        fprintf(stderr, "mode %d on %d devices: %s: %s\n", job->parallel.mode, job->parallel.device_ids.count,
                tdm_status_name(result.status), result.message);
    }
    return result;
}

law_result law_run(const tdm_job *job, const tdm_graph *graph) {
    return run_task(&(task){.job = job, .graph = graph});
}

law_result law_try_program(const tdm_job *job, const tdm_graph *graph, const law_program *program) {
    return run_task(&(task){.job = job, .graph = graph, .program = *program});
}

law_result law_run_program(const tdm_job *job, const tdm_graph *graph, const law_program *program) {
    return checked(job, law_try_program(job, graph, program));
}

law_result law_evaluate(const tdm_job *job, const tdm_graph *graph) {
    return run_task(&(task){.job = job, .graph = graph, .predicts = 1});
}

law_result law_run_threads(const tdm_job *job, const tdm_graph *graph, const int *threads) {
    return run_ranks(&(task){.job = job, .graph = graph}, job->parallel.device_ids.count, threads);
}

law_result law_run_ok(const tdm_job *job, const tdm_graph *graph) {
    return checked(job, law_run(job, graph));
}

void law_check_same(const law_result *a, const law_result *b) {
    CHECK_TEXT(a->params, b->params);
    CHECK_INT(a->steps, b->steps);
    for (int64_t i = 0; i < a->steps; i++) CHECK(a->loss[i] == b->loss[i]);
    CHECK(a->eval_loss == b->eval_loss);
    CHECK(a->accuracy == b->accuracy);
    CHECK(memcmp(a->buffers, b->buffers, sizeof(a->buffers)) == 0);
}
