/* A service that learns new labels while it keeps serving: the model that answers and the run that learns live in one
 * process, and nothing is written to a disk.
 *
 *   cc service.c $(pkg-config --cflags --libs tandem) -pthread -o service && ./service
 *
 * The model of the factory knows a ring in the plane. At the customer's the ring lies elsewhere. One thread answers
 * requests all the time; the main thread trains the served weights on the customer's labels and exchanges the model. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "ring.h"

typedef struct service {
    pthread_rwlock_t lock; /* requests read, all else writes */
    tdm_model *model;      /* NULL before the first */
    tdm_buffer file;       /* that the model reads */
    long answers;
    int ends;
} service;

static tdm_status ask(service *s, const float *x, int64_t rows, float *y) {
    pthread_rwlock_rdlock(&s->lock);
    const tdm_status status = tdm_model_predict(s->model, TDM_INPUT_FLOATS, x, rows, y);
    pthread_rwlock_unlock(&s->lock);
    return status;
}

/* Counts `more` answers, or ends the service. Returns how many there are; -1: it has ended. */
static long note(service *s, long more, int ends) {
    pthread_rwlock_wrlock(&s->lock);
    const int has_ended = s->ends |= ends;
    const long answers = s->answers += more;
    pthread_rwlock_unlock(&s->lock);
    return has_ended ? -1 : answers;
}

static void *serve(void *user) {
    service *s = (service *)user;
    float x[2] = {0.5f, 0.0f}, y[2];
    while (note(s, ask(s, x, 1, y) == TDM_OK, 0) >= 0) continue;
    return NULL;
}

/* Requests wait only while two pointers are exchanged. The old model comes back, to be closed. */
static void exchange(service *s, tdm_model **model, tdm_buffer *file) {
    pthread_rwlock_wrlock(&s->lock);
    tdm_model *old = s->model;
    const tdm_buffer kept = s->file;
    s->model = *model, s->file = *file;
    pthread_rwlock_unlock(&s->lock);
    *model = old, *file = kept;
}

/* Goes on from the weights that are served; before the first model, from random ones. */
static tdm_status learn(service *s, const tdm_config *config, const ring_data *data) {
    const tdm_source train = ring_source(data);
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_buffer file = TDM_BUFFER_INIT;
    tdm_writer writer = TDM_WRITER_INIT;
    tdm_run *run = NULL;
    tdm_model *model = NULL;
    options.train = &train, writer.write = tdm_buffer_write, writer.user = &file;
    tdm_status status = tdm_run_open(&run, tdm_config_job(config), tdm_config_graph(config), &options);
    if (status == TDM_OK && s->model) status = tdm_run_load_memory(run, s->file.bytes, s->file.count);
    if (status == TDM_OK) status = tdm_run_train(run);
    if (status == TDM_OK) status = tdm_run_export_to(run, &writer, NULL);
    if (status == TDM_OK) status = tdm_model_open_memory(&model, file.bytes, file.count, NULL);
    if (status == TDM_OK) exchange(s, &model, &file);
    tdm_run_close(run), tdm_model_close(model), tdm_buffer_free(&file);
    return status;
}

int main(void) {
    static ring_data factory, customer;
    static float y[POINTS][2];
    static service s;
    tdm_config *config = NULL;
    pthread_t server;
    pthread_rwlock_init(&s.lock, NULL), s.file.size = sizeof(s.file);
    ring_draw(&factory, 0.0f), ring_draw(&customer, 0.4f);
    tdm_status status = ring_config(&config);
    if (status == TDM_OK) status = learn(&s, config, &factory);
    if (status == TDM_OK) status = ask(&s, customer.x[0], POINTS, y[0]);
    if (status == TDM_OK && pthread_create(&server, NULL, serve, &s) == 0) {
        const double before = ring_accuracy(&customer, y);
        const long answers = note(&s, 0, 0);
        status = learn(&s, config, &customer);
        const long meanwhile = note(&s, 0, 0) - answers;
        note(&s, 0, 1);
        pthread_join(server, NULL);
        if (status == TDM_OK) status = ask(&s, customer.x[0], POINTS, y[0]);
        printf("right at the customer's: %.0f %% before, %.0f %% after; %ld requests were answered meanwhile\n",
               100 * before, 100 * ring_accuracy(&customer, y), meanwhile);
    }
    if (status != TDM_OK) fprintf(stderr, "service: %s\n", tdm_error_message());
    tdm_model_close(s.model), tdm_buffer_free(&s.file);
    tdm_config_free(config);
    return status;
}
