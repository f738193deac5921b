/* A desktop program: a worker thread trains, the thread of the window shows progress, and the user cancels and goes on.
 *
 *   cc desktop.c $(pkg-config --cflags --libs tandem) -pthread -o desktop && ./desktop
 *
 * Here the window is the terminal, and the user cancels once when half is done. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "ring.h"

typedef struct worker {
    pthread_mutex_t lock;
    pthread_cond_t news;
    int64_t step, steps; /* what the window shows; under the lock, as all to the next line */
    double loss;
    int is_done;
    tdm_run *run; /* the worker's while it trains; any thread may request a stop */
    tdm_status status;
    char message[256]; /* of a failure: tdm_error_message() is the worker's own */
} worker;

/* On the worker's thread, after each step: notes what the window may show, and never waits for it. */
static int on_event(const tdm_event *event, void *user) {
    worker *w = (worker *)user;
    if (event->kind != TDM_EVENT_STEP) return 0;
    pthread_mutex_lock(&w->lock);
    w->step = event->step, w->steps = event->steps_total, w->loss = event->loss;
    pthread_cond_signal(&w->news);
    pthread_mutex_unlock(&w->lock);
    return 0;
}

static void *work(void *user) {
    worker *w = (worker *)user;
    const tdm_status status = tdm_run_train(w->run);
    pthread_mutex_lock(&w->lock);
    w->status = status, w->is_done = 1;
    snprintf(w->message, sizeof(w->message), "%s", tdm_error_message());
    pthread_cond_signal(&w->news);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* The window: shows each tenth, and cancels once at `cancel_at`. Returns when the worker has stopped. */
static tdm_status watch(worker *w, int64_t cancel_at) {
    pthread_t thread;
    int64_t shown = w->step;
    w->is_done = 0;
    if (pthread_create(&thread, NULL, work, w) != 0) return TDM_E_INTERNAL;
    pthread_mutex_lock(&w->lock);
    while (!w->is_done) {
        pthread_cond_wait(&w->news, &w->lock);
        if (w->step >= cancel_at) tdm_run_request_stop(w->run), cancel_at = INT64_MAX;
        if (w->step < shown + w->steps / 10) continue;
        shown = w->step;
        fprintf(stderr, "%3.0f %%, loss %.2f\n", 100.0 * (double)w->step / (double)w->steps, w->loss);
    }
    pthread_mutex_unlock(&w->lock);
    pthread_join(thread, NULL);
    return w->status;
}

int main(void) {
    static ring_data data;
    static float y[POINTS][2];
    static worker w;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_config *config = NULL;
    pthread_mutex_init(&w.lock, NULL), pthread_cond_init(&w.news, NULL);
    ring_draw(&data, 0.0f);
    const tdm_source train = ring_source(&data);
    options.train = &train, options.on_event = on_event, options.user = &w;
    tdm_status status = ring_config(&config);
    if (status == TDM_OK) status = tdm_run_open(&w.run, tdm_config_job(config), tdm_config_graph(config), &options);
    if (status != TDM_OK) snprintf(w.message, sizeof(w.message), "%s", tdm_error_message());
    if (status == TDM_OK) status = watch(&w, 400);
    if (status == TDM_E_STOPPED) {
        printf("cancelled\n");
        status = watch(&w, INT64_MAX); /* the user has clicked on "Continue" */
    }
    if (status == TDM_OK) status = tdm_run_predict(w.run, data.x[0], POINTS, y[0]);
    if (status == TDM_OK)
        printf("done: %lld steps, right about %.0f %%\n", (long long)w.step, 100 * ring_accuracy(&data, y));
    if (status != TDM_OK) fprintf(stderr, "desktop: %s\n", w.message);
    tdm_run_close(w.run);
    tdm_config_free(config);
    return status;
}
