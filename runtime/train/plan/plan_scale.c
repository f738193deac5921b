/* What `tandem plan --scale` shows: the step of one device, and a row for each number of devices. */
#include <math.h>

#include "runtime/base/memory.h"
#include "runtime/base/call/sized.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/base/system/cpus.h"
#include "runtime/optim/optim.h"
#include "runtime/scale/scale.h"
#include "runtime/train/plan/plan_scale.h"

enum { USUAL_DEVICES = 1024 };

typedef struct scale {
    const tdm_job *job;
    const tdm_plan_scale_options *options;
    const tdm_graph *graph;
    const tdm_planned *planned;
    const char *source;  /* of the times of one device */
    bool has_measured;   /* them here */
    bool measured_rates; /* those within a host */
    tdm_cluster cluster;
    tdm_scale_work work;
    int devices; /* at most */
} scale;

/* ---- what is asked ---- */

static tdm_status check_job(const tdm_job *job) {
    if (job->parallel.stages > 1)
        TDM_FAIL(TDM_E_UNSUPPORTED, "the prediction knows replicas of one device; set parallel.stages=1");
    if (job->parallel.sync_batchnorm)
        TDM_FAIL(TDM_E_UNSUPPORTED,
                 "the prediction does not know the statistics that ranks exchange; set parallel.sync_batchnorm=false");
    if (job->parallel.ddp.compress.type == TDM_COMPRESS_POWERSGD)
        TDM_FAIL(TDM_E_UNSUPPORTED, "the prediction does not know powersgd; set parallel.ddp.compress=bf16 or none");
    return TDM_OK;
}

static bool is_time(double seconds) {
    return seconds >= 0 && isfinite(seconds);
}

static tdm_status check_options(const tdm_plan_scale_options *o) {
    if (!is_time(o->forward) || !is_time(o->backward) || !is_time(o->update) ||
        !(isnan(o->jitter) || is_time(o->jitter)))
        TDM_FAIL(TDM_E_USAGE, "forward, backward, update and jitter must be at least 0 seconds, got %g, %g, %g and %g",
                 o->forward, o->backward, o->update, o->jitter);
    if (!is_time(o->cores) || !is_time(o->loader))
        TDM_FAIL(TDM_E_USAGE, "cores and loader must be at least 0, got %g and %g", o->cores, o->loader);
    if (o->hosts < 0 || o->devices < 0)
        TDM_FAIL(TDM_E_USAGE, "hosts and devices must be at least 0, got %d and %d", o->hosts, o->devices);
    if (o->device != NULL && tdm__scale_device(o->device) == NULL) {
        tdm_text names;
        tdm__text_init(&names, tdm_host_default());
        tdm__scale_device_names(&names);
        (void)tdm__fail(TDM_E_USAGE, __FILE__, __LINE__, NULL, "there is no device '%s' in the table; it has %s",
                        o->device, names.data != NULL ? names.data : "");
        tdm__text_deinit(&names);
        return TDM_E_USAGE;
    }
    return TDM_OK;
}

static tdm_status count_devices(scale *s) {
    const int per_host = s->cluster.devices_per_host;
    const int64_t hosts = s->options->hosts > 0 ? s->options->hosts : (USUAL_DEVICES + per_host - 1) / per_host;
    const int64_t all = hosts * per_host;
    if (all > TDM_SCALE_DEVICES_MAX)
        TDM_FAIL(TDM_E_USAGE, "%lld hosts of %d devices are %lld devices; the most is %d", (long long)hosts, per_host,
                 (long long)all, TDM_SCALE_DEVICES_MAX);
    s->devices = (int)all;
    return TDM_OK;
}

static double largest(const tdm_scale_work *work) {
    double bytes = 0;
    for (int i = 0; i < work->bucket_count; i++) bytes = fmax(bytes, work->buckets[i].bytes);
    return bytes;
}

double tdm__scale_of_all_cores(double slower, int count, int threads, double cores) {
    if (!(cores > 1) || !(slower > 1)) return 1;
    const double before = (fmin(threads, cores) - 1) / (cores - 1);
    const double rise = (fmin((double)count * threads, cores) - 1) / (cores - 1) - slower * before;
    return rise > 0 ? 1 + (slower - 1) / rise : 1;
}

static double ratio(double a, double b) {
    return b > 0 ? a / b : 1;
}

/* What ranks with cores of their own take from one another, by ddp itself: as many as the host has devices or cores,
 * because from fewer nothing follows for more. Its backward has reductions beside it, so forward shows what computation
 * loses. */
static tdm_status measure_beside(scale *s, const tdm_scale_times *alone) {
    tdm_cluster *c = &s->cluster;
    const int room = (int)fmin(c->cores / c->threads, TDM_SCALE_MEASURED_MOST);
    const int count = c->devices_per_host < room ? c->devices_per_host : room;
    tdm_scale_times rank;
    if (count < 2 || c->cores > tdm__cpus_available(tdm_host_default())) return TDM_OK;
    TDM_TRY(tdm__scale_measure_ranks(s->job, s->graph, s->planned, count, &rank));
    c->beside = tdm__scale_of_all_cores(ratio(rank.forward, alone->forward), count, c->threads, c->cores);
    c->sharing = tdm__scale_of_all_cores(ratio(rank.rest, alone->rest), count, c->threads, c->cores);
    return TDM_OK;
}

/* What hosts have that are like this machine. alone: times measured here; NULL: there are none. */
static tdm_status take_machine(scale *s, const tdm_scale_times *alone) {
    const tdm_host *host = tdm_host_default();
    tdm_cluster *c = &s->cluster;
    if (c->cores == 0) c->cores = tdm__cpus_available(host);
    if (s->options->local != NULL || c->devices_per_host == 1) return TDM_OK;
    /* parameters, gradients and states */
    const double touched =
        (double)s->planned->plan->trained_floats * sizeof(float) * (2 + tdm__optim_state_count(s->job));
    TDM_TRY(tdm__scale_measure_cost(host, c->devices_per_host, largest(&s->work), touched, &c->local.cost));
    s->measured_rates = true;
    return alone != NULL ? measure_beside(s, alone) : TDM_OK;
}

static tdm_status set_cluster(scale *s, const tdm_scale_device *device, const tdm_scale_times *alone) {
    const tdm_plan_scale_options *o = s->options;
    tdm_cluster *c = &s->cluster;
    const int threads = device->is_gpu ? 1 : s->planned->plan->options.threads;
    c->size = sizeof(*c);
    c->local = o->local != NULL ? *o->local : device->local;
    c->between = o->between != NULL ? *o->between : (tdm_link){25e9 / 8 * (1 - TDM_LINK_FRAMES), 20e-6, NAN};
    /* Messages between hosts go through the system's sockets on the CPU; a GPU's go past the processor. */
    if (isnan(c->local.cost)) c->local.cost = device->local.cost;
    if (isnan(c->between.cost)) c->between.cost = device->is_gpu ? 0 : TDM_SCALE_SOCKET_COST;
    c->all_reduce = o->all_reduce;
    c->is_gpu = device->is_gpu;
    c->loader = o->loader;
    c->threads = threads;
    c->cores = device->is_gpu ? 0 : o->cores;
    if (!device->is_gpu && o->device == NULL) TDM_TRY(take_machine(s, alone));
    if (!device->is_gpu && c->cores == 0) c->cores = (double)c->devices_per_host * threads;
    return TDM_OK;
}

/* Of `accumulate` micro-batches only the last one's backward has reductions beside it. */
static void join_micro_batches(tdm_scale_work *work, double forward, double backward, int64_t count) {
    work->forward = forward + backward * (double)(count - 1) / (double)count;
    work->backward = backward / (double)count;
}

/* The times of one device: given, estimated for a device by its name, or measured. */
static tdm_status find_times(scale *s, const tdm_scale_device *named, tdm_scale_times *times) {
    const tdm_plan_scale_options *o = s->options;
    const double micro = (double)s->job->train.accumulate;
    *times = (tdm_scale_times){o->forward, o->backward, o->update, o->jitter};
    s->source = "given";
    if (o->forward + o->backward + o->update > 0) return TDM_OK;
    s->source = named != NULL ? "estimated" : "measured here";
    s->has_measured = named == NULL;
    if (named == NULL) return tdm__scale_measure(s->job, s->graph, s->planned, times);
    *times = (tdm_scale_times){s->work.forward * micro, s->work.backward * micro, s->work.update, NAN};
    return TDM_OK;
}

static tdm_status set_work(scale *s, tdm_scale_bucket *buckets) {
    const tdm_job *job = s->job;
    const tdm_planned *planned = s->planned;
    const tdm_scale_device *named = s->options->device != NULL ? tdm__scale_device(s->options->device) : NULL;
    const tdm_scale_device *device =
        named != NULL ? named : tdm__scale_usual_device(!tdm__device_on_host(planned->compute.device));
    tdm_scale_times times;
    tdm__scale_work(planned->plan, device, tdm__plan_rows(job, planned->rows), tdm__optim_state_count(job), buckets,
                    &s->work);
    TDM_TRY(find_times(s, named, &times));
    if (isnan(times.jitter)) times.jitter = device->jitter * (times.forward + times.backward + times.rest);
    join_micro_batches(&s->work, times.forward, times.backward, job->train.accumulate);
    s->work.update = times.rest;
    s->work.jitter = times.jitter;
    s->work.samples = (double)planned->rows;
    s->work.buffer_bytes = job->parallel.ddp.broadcast_buffers ? (double)planned->plan->buffer_bytes : 0;
    for (int i = 0; job->parallel.ddp.compress.type != TDM_COMPRESS_NONE && i < s->work.bucket_count; i++)
        buckets[i].bytes /= 2;
    return set_cluster(s, device, s->has_measured ? &times : NULL);
}

/* ---- what is shown ---- */

static double gradient_bytes(const tdm_scale_work *work) {
    double bytes = 0;
    for (int i = 0; i < work->bucket_count; i++) bytes += work->buckets[i].bytes;
    return bytes;
}

static void add_link(tdm_text *text, const char *name, const tdm_link *link, const char *source) {
    tdm__text_printf(text, "  %-14s ", name);
    if (isfinite(link->rate)) tdm__text_printf(text, "%.4g GB/s, ", link->rate / 1e9);
    tdm__text_printf(text, "%.4g us", link->latency * 1e6);
    if (link->cost > 0) tdm__text_printf(text, ", %.3g ns of a processor for a byte", link->cost * 1e9);
    tdm__text_puts(text, source);
}

static const char *const algorithms[] = {"auto", "segments", "ring", "tree", "levels"};

static void add_head(const scale *s, tdm_text *text) {
    const tdm_scale_work *w = &s->work;
    tdm__text_printf(text, "scale  ddp, %.0f samples per device (weak scaling), %.2f MB of gradients, %d bucket%s\n",
                     w->samples, gradient_bytes(w) / 1e6, w->bucket_count, w->bucket_count == 1 ? "" : "s");
    tdm__text_printf(text, "  %-14s forward %.4g ms, backward %.4g ms, rest %.4g ms, jitter %.3g ms: %s%s%s\n",
                     "one device", w->forward * 1e3, w->backward * 1e3, w->update * 1e3, w->jitter * 1e3, s->source,
                     s->options->device != NULL ? " for " : "", s->options->device != NULL ? s->options->device : "");
    add_link(text, "within a host", &s->cluster.local, s->measured_rates ? ": measured here\n" : "\n");
    add_link(text, "between hosts", &s->cluster.between, "\n");
    tdm__text_printf(text, "  %-14s %d device%s", "a host", s->cluster.devices_per_host,
                     s->cluster.devices_per_host == 1 ? "" : "s");
    if (s->cluster.cores > 0)
        tdm__text_printf(text, " with %d thread%s each, %.4g core%s", s->cluster.threads,
                         s->cluster.threads == 1 ? "" : "s", s->cluster.cores, s->cluster.cores == 1 ? "" : "s");
    if (s->cluster.loader > 0) tdm__text_printf(text, "; it reads at most %.6g samples/s", s->cluster.loader);
    tdm__text_printf(text, "; all_reduce %s\n", algorithms[s->cluster.all_reduce]);
    if (s->cluster.beside > 1 || s->cluster.sharing > 1)
        tdm__text_printf(text, "  %-14s computation takes up to %.2f, an update up to %.2f times as long\n",
                         "beside others", fmax(s->cluster.beside, 1), fmax(s->cluster.sharing, 1));
    tdm__text_puts(text, "\n");
    tdm__text_printf(text, "%7s  %6s  %10s  %10s  %10s  %10s  %12s\n", "devices", "hosts", "step ms", "comm ms",
                     "exposed ms", "efficiency", "samples/s");
}

static void add_point(const tdm_scale_point *p, tdm_text *text) {
    tdm__text_printf(text, "%7d  %6d  %10.3f  %10.3f  %10.3f  %8.1f %%  %12.1f\n", p->devices, p->hosts, p->step * 1e3,
                     p->comm * 1e3, p->exposed * 1e3, p->efficiency * 100, p->samples_per_s);
}

static void put_link(tdm_json_out *json, const char *key, const tdm_link *link) {
    tdm__json_put(json, "%s:{ bytes_per_s:%.9g latency_s:%.9g cost_s_per_byte:%.9g }", key, link->rate, link->latency,
                  link->cost);
}

static void put_head(const scale *s, tdm_json_out *json) {
    const tdm_scale_work *w = &s->work;
    tdm__json_put(json, "{ samples_per_device:%.0f gradient_bytes:%.0f forward_ms:%.9g backward_ms:%.9g rest_ms:%.9g",
                  w->samples, gradient_bytes(w), w->forward * 1e3, w->backward * 1e3, w->update * 1e3);
    tdm__json_put(json, "jitter_ms:%.9g source:%s device:%s devices_per_host:%d all_reduce:%s", w->jitter * 1e3,
                  s->source, s->options->device, s->cluster.devices_per_host, algorithms[s->cluster.all_reduce]);
    put_link(json, "local", &s->cluster.local);
    put_link(json, "between", &s->cluster.between);
    tdm__json_put(json, "cores:%.9g beside:%.9g sharing:%.9g loader:%.9g", s->cluster.cores, s->cluster.beside,
                  s->cluster.sharing, s->cluster.loader);
    tdm__json_put(json, "buckets:[");
    for (int i = 0; i < w->bucket_count; i++)
        tdm__json_put(json, "{ bytes:%.0f ready:%.9g }", w->buckets[i].bytes, w->buckets[i].ready);
    tdm__json_put(json, "] points:[");
}

static void put_point(const tdm_scale_point *p, tdm_json_out *json) {
    tdm__json_put(json, "{ devices:%d hosts:%d step_ms:%.9g comm_ms:%.9g exposed_ms:%.9g efficiency:%.9g", p->devices,
                  p->hosts, p->step * 1e3, p->comm * 1e3, p->exposed * 1e3, p->efficiency);
    tdm__json_put(json, "samples_per_s:%.9g }", p->samples_per_s);
}

/* 1, 2, 4, ... and the last. */
static tdm_status add_points(const scale *s, bool json, tdm_text *text) {
    tdm_json_out to = tdm__json_out(text, "");
    tdm_scale_point point = {.size = sizeof(point)};
    json ? put_head(s, &to) : add_head(s, text);
    for (int n = 1;; n = n > s->devices / 2 ? s->devices : 2 * n) {
        TDM_TRY(tdm_scale_at(&s->work, &s->cluster, n, &point));
        json ? put_point(&point, &to) : add_point(&point, text);
        if (n == s->devices) break;
    }
    if (json) tdm__json_put(&to, "]}\n");
    return TDM_OK;
}

/* ---- the call ---- */

static tdm_status print_scale(scale *s, char **out) {
    const tdm_planned *planned = s->planned;
    tdm_scale_bucket *buckets = NULL;
    tdm_text text;
    const tdm_host *host = tdm_host_default();
    TDM_TRY(tdm__new(host, &buckets, (size_t)planned->plan->bucket_count + 1, sizeof(*buckets), "buckets"));
    tdm__text_init(&text, host);
    tdm_status status = set_work(s, buckets);
    if (status == TDM_OK) status = add_points(s, s->options->json != 0, &text);
    if (status == TDM_OK && planned->note != NULL && s->options->json == 0)
        tdm__text_printf(&text, "\nnote: %s\n", planned->note);
    if (status == TDM_OK) status = tdm__text_take_public(&text, out);
    tdm__text_deinit(&text);
    tdm__delete(host, buckets);
    return status;
}

tdm_status tdm_plan_scale(const tdm_job *job, const tdm_graph *graph, const tdm_plan_scale_options *options,
                          char **out) {
    tdm_plan_scale_options asked = TDM_PLAN_SCALE_OPTIONS_INIT;
    const tdm_plan_print_options look = TDM_PLAN_PRINT_OPTIONS_INIT;
    if (job == NULL || graph == NULL || options == NULL || out == NULL)
        TDM_FAIL(TDM_E_USAGE, "tdm_plan_scale: a pointer is NULL");
    TDM_TRY(tdm__sized_take("tdm_plan_scale: options", &asked, sizeof(asked), options, TDM_SIZED_ANY));
    *out = NULL;
    TDM_EXTRA(SCALE);
    tdm_planned planned;
    scale s = {.job = job, .options = &asked, .graph = graph, .planned = &planned};
    TDM_TRY(check_options(&asked));
    TDM_TRY(check_job(job));
    s.cluster.devices_per_host = asked.devices > 0 ? asked.devices : tdm__job_replicas(job);
    TDM_TRY(count_devices(&s));
    TDM_TRY(tdm__planned_open(&planned, job, graph, s.cluster.devices_per_host, &look));
    const tdm_status status = print_scale(&s, out);
    tdm__planned_close(&planned);
    return status;
}
