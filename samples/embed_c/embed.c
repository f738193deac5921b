/* Training inside a C program: own data, no YAML, no files.
 *
 *   cc embed.c $(pkg-config --cflags --libs tandem) -o embed && ./embed
 *
 * A two-layer net learns whether a point of the plane lies inside a ring. The program brings its samples by callback,
 * trains on two virtual devices of the CPU in one process, stops by itself when the loss is low, and then asks the
 * trained net about three points. */
#include <stdio.h>

#include <tandem/tandem.h>

/* One sample, a pure function of its index: a point in [-1, 1] x [-1, 1] and its label. */
static int read_point(void *user, int64_t index, float *x, void *label) {
    (void)user;
    uint64_t h = ((uint64_t)index + 1) * UINT64_C(0x9E3779B97F4A7C15);
    h ^= h >> 29, h *= UINT64_C(0xBF58476D1CE4E5B9), h ^= h >> 32;
    x[0] = (float)(h & 0xFFFF) / 32768.0f - 1.0f;
    x[1] = (float)(h >> 16 & 0xFFFF) / 32768.0f - 1.0f;
    float square = x[0] * x[0] + x[1] * x[1];
    *(int64_t *)label = square > 0.16f && square < 0.81f;
    return 0;
}

static int on_event(const tdm_event *event, void *user) {
    double *smooth = (double *)user; /* single batches are noisy */
    if (event->kind != TDM_EVENT_STEP) return 0;
    *smooth += 0.02 * (event->loss - *smooth);
    if (event->step % 200 == 0) printf("step %4lld  loss %.2f\n", (long long)event->step, *smooth);
    return *smooth < 0.15; /* non-zero: stop after this step */
}

static tdm_status build_net(tdm_graph **graph) {
    static const int64_t plane[] = {2};
    static const tdm_attr hidden = {"out", "64", {NULL, 0, 0}}, sides = {"out", "2", {NULL, 0, 0}};
    tdm_value v;
    tdm_status status = tdm_graph_new(graph, NULL);
    if (status == TDM_OK) status = tdm_graph_input(*graph, 1, plane, &v);
    if (status == TDM_OK) status = tdm_graph_add(*graph, "linear", "fc1", &v, 1, &hidden, 1, &v);
    if (status == TDM_OK) status = tdm_graph_add(*graph, "relu", NULL, &v, 1, NULL, 0, &v);
    if (status == TDM_OK) status = tdm_graph_add(*graph, "linear", "fc2", &v, 1, &sides, 1, &v);
    if (status == TDM_OK) status = tdm_graph_finish(*graph, v);
    return status;
}

static tdm_status ask(tdm_run *run) {
    static const float points[3][2] = {{0.0f, 0.0f}, {0.6f, 0.2f}, {0.95f, 0.95f}};
    float y[3][2];
    tdm_status status = tdm_run_predict(run, points[0], 3, y[0]);
    for (int i = 0; i < 3 && status == TDM_OK; i++)
        printf("(%.2f, %.2f) is %s the ring\n", points[i][0], points[i][1], y[i][1] > y[i][0] ? "inside" : "outside");
    return status;
}

int main(void) {
    tdm_graph *graph = NULL;
    tdm_run *run = NULL;
    tdm_job job;
    tdm_source train = TDM_SOURCE_INIT;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    train.count = 4096, train.has_labels = 1, train.read = read_point;
    options.train = &train;
    double smooth = 1;
    options.on_event = on_event;
    options.user = &smooth;

    tdm_status status = build_net(&graph);
    if (status == TDM_OK) status = tdm_job_init(&job);
    if (status == TDM_OK) {
        job.seed = 1;
        job.train.steps = 3000, job.train.epochs = TDM_INT_NULL;
        job.train.per_device = 32, job.train.global_batch = TDM_INT_NULL;
        job.optimizer.type = TDM_ADAM, job.optimizer.lr = 1e-2;
        job.parallel.mode = TDM_MODE_DP;
        job.parallel.device_ids.count = 2;
        job.parallel.device_ids.item[0] = 0, job.parallel.device_ids.item[1] = 1;
        job.run.dir = NULL; /* write nothing */
        status = tdm_run_open(&run, &job, graph, &options);
    }
    if (status == TDM_OK) status = tdm_run_train(run);
    if (status == TDM_E_STOPPED) status = TDM_OK; /* our own on_event asked for it */
    if (status == TDM_OK) status = ask(run);
    if (status != TDM_OK) fprintf(stderr, "embed: %s\n", tdm_error_message());
    tdm_run_close(run);
    tdm_graph_free(graph);
    return status;
}
