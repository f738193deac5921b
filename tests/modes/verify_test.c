/* A bit that turns over in one replica's memory between two steps is found, and nothing is saved over what was good.
 * The bits are drawn; `verify_test every_bit_is_found COUNT SEED` draws as many as one likes. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "law.h"
#include "runtime/train/run.h"
#include "tests/support/tdm_test.h"
#include "tests/support/test_folder.h"

enum { STEPS = 4 };

typedef struct flip { /* what turns over, after which step, in which replica */
    int replica;
    int64_t step;
    tdm_arena_kind arena;
    uint64_t draw;
    bool in_statistics; /* of batch norm: each rank's own */
} flip;

typedef struct trial {
    tdm_run *run;
    const flip *flip;
    int rank; /* -1: all replicas are here */
    char tensor[64];
    tdm_status status;
    char message[512];
    int64_t steps;
} trial;

static uint64_t seed = 1;

static uint64_t draw(void) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return seed >> 20;
}

/* ---- one trial ---- */

static void turn_over(trial *t, tdm_replica *replica) {
    const tdm_plan *plan = t->run->plan;
    const flip *f = t->flip;
    void *memory = NULL;
    char *tensor;
    size_t bytes;
    CHECK_OK(tdm__replica_fetch(replica, f->arena, &memory));
    if (f->arena == TDM_ARENA_BUFFER) {
        const tdm_plan_buffer *buffer = NULL;
        for (int i = 0; i < plan->buffer_count; i++) {
            if (plan->buffers[i].def.is_counter != f->in_statistics) buffer = &plan->buffers[i];
        }
        tensor = (char *)memory + buffer->offset;
        bytes = buffer->def.is_counter ? sizeof(int64_t) : (size_t)buffer->count * sizeof(float);
        snprintf(t->tensor, sizeof(t->tensor), "%s", buffer->name);
    } else {
        int slots = f->arena == TDM_ARENA_STATE ? replica->arena.state_count : 1,
            slot = (int)(f->draw % (unsigned)slots);
        const tdm_plan_param *param = &plan->params[f->draw / 7 % (unsigned)plan->param_count];
        tensor = (char *)memory + (param->offset + (size_t)slot * plan->trained_floats) * sizeof(float);
        bytes = (size_t)param->count * sizeof(float);
        snprintf(t->tensor, sizeof(t->tensor), "%s%s%s", f->arena == TDM_ARENA_STATE ? t->run->optim->state[slot] : "",
                 f->arena == TDM_ARENA_STATE ? "." : "", param->name);
    }
    uint64_t bit = f->draw / 101 % (8 * bytes);
    tensor[bit / 8] = (char)(tensor[bit / 8] ^ (1 << bit % 8));
    CHECK_OK(tdm__replica_put(replica, f->arena));
}

static int on_event(const tdm_event *event, void *user) {
    trial *t = user;
    if (event->kind != TDM_EVENT_STEP) return 0;
    t->steps = event->step;
    if (t->flip == NULL || event->step != t->flip->step) return 0;
    if (t->rank < 0)
        turn_over(t, t->run->mode->replica[t->flip->replica]);
    else if (t->rank == t->flip->replica)
        turn_over(t, t->run->mode->replica[0]);
    return 0;
}

static void run_here(trial *t, const tdm_job *job, const tdm_graph *graph, int world, int fd) {
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.on_event = on_event;
    options.user = t;
    options.rank = t->rank >= 0 ? t->rank : 0;
    options.world = world;
    options.launch_fd = fd;
    t->status = tdm_run_open(&t->run, job, graph, &options);
    if (t->status == TDM_OK) t->status = tdm_run_train(t->run);
    if (t->status != TDM_OK) snprintf(t->message, sizeof(t->message), "%s", tdm_error_message());
    tdm_run_close(t->run);
}

/* Of ranks, all must say the same. */
static void run_ranks(trial *t, const tdm_job *job, const tdm_graph *graph, int world) {
    int fd = -1, ends[8][2];
    CHECK_OK(tdm_launch_create(&fd, world));
    fflush(NULL);
    for (int r = 0; r < world; r++) {
        REQUIRE(pipe(ends[r]) == 0);
        pid_t pid = fork();
        REQUIRE(pid >= 0);
        if (pid != 0) {
            close(ends[r][1]);
            continue;
        }
        t->rank = r;
        run_here(t, job, graph, world, fd);
        ssize_t n = write(ends[r][1], t, sizeof(*t));
        fflush(NULL);
        _exit(n == (ssize_t)sizeof(*t) ? 0 : 1);
    }
    for (int r = 0; r < world; r++) {
        trial own;
        CHECK(read(ends[r][0], &own, sizeof(own)) == (ssize_t)sizeof(own));
        close(ends[r][0]);
        if (r > 0) CHECK_INT(own.status, t->status);
        if (r > 0) CHECK_TEXT(own.message, t->message);
        if (own.tensor[0] != '\0') memcpy(t->tensor, own.tensor, sizeof(own.tensor));
        t->status = own.status;
        t->steps = own.steps;
        memcpy(t->message, own.message, sizeof(own.message));
    }
    for (int r = 0; r < world; r++) (void)wait(NULL);
    close(fd);
}

static void set_devices(tdm_job *job, int mode, int devices) {
    job->parallel.mode = mode;
    job->parallel.device_ids.count = devices;
    for (int i = 0; i < devices; i++) job->parallel.device_ids.item[i] = i;
    job->parallel.dp.update = TDM_DP_UPDATE_ALL;
    job->parallel.dp.loss = TDM_DP_LOSS_REPLICA;
}

static trial try(const tdm_job *job, const tdm_graph *graph, const flip *f) {
    trial t = {.flip = f, .rank = -1};
    if (job->parallel.mode == TDM_MODE_DDP)
        run_ranks(&t, job, graph, job->parallel.device_ids.count);
    else
        run_here(&t, job, graph, 0, -1);
    return t;
}

static void check_found(const trial *t, const tdm_job *job) {
    char who[64];
    int devices = job->parallel.device_ids.count;
    const char *what = job->parallel.mode == TDM_MODE_DDP ? "rank" : "replica";
    if (devices > 2)
        snprintf(who, sizeof(who), "%s %d differs from the %d that are equal", what, t->flip->replica, devices - 1);
    else
        snprintf(who, sizeof(who), "%s 1 differs from %s 0", what, what);
    CHECK_INT(t->status, TDM_E_CHECK);
    CHECK_INT(t->steps, t->flip->step);
    CHECK_HAS(t->message, who);
    CHECK_HAS(t->message, t->tensor);
}

/* ---- tests ---- */

static int count = 12;

TEST(every_bit_is_found) {
    static const tdm_arena_kind arenas[] = {TDM_ARENA_PARAM, TDM_ARENA_STATE, TDM_ARENA_PARAM, TDM_ARENA_STATE,
                                            TDM_ARENA_BUFFER};
    tdm_graph *graph = law_graph(1, 1);
    for (int i = 0; i < count; i++) {
        tdm_job job;
        law_job(&job);
        job.train.steps = STEPS;
        job.parallel.verify = (tdm_interval){TDM_INTERVAL_STEPS, 1};
        bool ranks = draw() % 2 == 0;
        set_devices(&job, ranks ? TDM_MODE_DDP : TDM_MODE_DP, 2 + (int)(draw() % 3));
        flip f = {.replica = (int)(draw() % (unsigned)job.parallel.device_ids.count),
                  .step = 1 + (int64_t)(draw() % STEPS),
                  .arena = arenas[draw() % (ranks ? 5 : 4)],
                  .draw = draw()};
        trial t = try(&job, graph, &f);
        check_found(&t, &job);
    }
    tdm_graph_free(graph);
}

static char folder[256];

static bool has_checkpoint(int step) {
    char path[320];
    snprintf(path, sizeof(path), "%s/checkpoints/step-%08d/MANIFEST.json", folder, step);
    return access(path, F_OK) == 0;
}

/* Without the key: before the evaluation, which would copy rank 0's parameters over the others, and the checkpoint. */
TEST(no_checkpoint_of_replicas_that_differ) {
    tdm_graph *graph = law_graph(1, 0);
    for (int mode = TDM_MODE_DP; mode <= TDM_MODE_DDP; mode++) {
        tdm_job job;
        law_job(&job);
        test_folder_make(folder);
        job.run.dir = folder;
        job.train.steps = 6;
        job.checkpoint.every = job.eval.every = (tdm_interval){TDM_INTERVAL_STEPS, 2};
        set_devices(&job, mode, 3);
        flip f = {.replica = 1, .step = 3, .arena = TDM_ARENA_PARAM, .draw = 101 * 30};
        trial t = try(&job, graph, &f);
        CHECK_INT(t.status, TDM_E_CHECK);
        CHECK_INT(t.steps, 4);
        CHECK_HAS(t.message, mode == TDM_MODE_DDP ? "rank 1 differs" : "replica 1 differs");
        CHECK(has_checkpoint(2) && !has_checkpoint(4));
        job.checkpoint.resume = "auto"; /* and from there it goes on */
        t = try(&job, graph, NULL);
        CHECK_INT(t.status, TDM_OK);
        CHECK_INT(t.steps, 6);
        test_folder_remove(folder);
    }
    tdm_graph_free(graph);
}

/* What replicas do not have in common is not taken for a fault: batch-norm statistics between two forward passes, and
 * the copies that dp makes anew in each step. */
TEST(what_is_not_promised_is_not_compared) {
    tdm_graph *graph = law_graph(1, 1);
    tdm_job job;
    law_job(&job);
    job.train.steps = STEPS;
    job.parallel.verify = (tdm_interval){TDM_INTERVAL_STEPS, 1};
    set_devices(&job, TDM_MODE_DDP, 2);
    trial t = try(&job, graph, NULL);
    CHECK_INT(t.status, TDM_OK);
    job.parallel.ddp.broadcast_buffers = false;
    flip f = {.replica = 1, .step = 2, .arena = TDM_ARENA_BUFFER, .draw = 101 * 3, .in_statistics = true};
    t = try(&job, graph, &f);
    CHECK_INT(t.status, TDM_OK);
    set_devices(&job, TDM_MODE_DP, 3);
    job.parallel.dp.update = TDM_DP_UPDATE_ROOT;
    f = (flip){.replica = 2, .step = 2, .arena = TDM_ARENA_PARAM, .draw = 101 * 30};
    t = try(&job, graph, &f);
    CHECK_INT(t.status, TDM_OK);
    CHECK_INT(t.steps, STEPS);
    tdm_graph_free(graph);
}

TEST_MAIN(if (argc > 2) count = atoi(argv[2]); if (argc > 3) seed = strtoull(argv[3], NULL, 10); if (argc > 2) argc = 2;
          RUN(every_bit_is_found); RUN(no_checkpoint_of_replicas_that_differ);
          RUN(what_is_not_promised_is_not_compared);)
