/* How computation and communication overlap: as modes/ddp.c and its reducers do it. A bucket is queued when its last
 * gradient is written; one bucket is reduced at a time, in order; the update waits for all of them. */
#include <math.h>

#include "runtime/base/call/sized.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/scale/scale.h"

/* Backward, beside one reduction at a time. */
typedef struct backward {
    double now, done; /* wall time; seconds of its own work */
    double until;     /* the end of the last reduction that has begun */
    double speed;     /* of computation until then: below 1 if the reduction takes a core away */
} backward;

/* Goes on until `work` seconds of backward's own work are done, or until the time `wall`. */
static void go_on(backward *b, double work, double wall) {
    while (b->done < work && b->now < wall) {
        const bool is_beside = b->now < b->until;
        const double speed = is_beside ? b->speed : 1, stop = is_beside ? fmin(b->until, wall) : wall;
        if (b->now + (work - b->done) / speed <= stop) {
            b->now += (work - b->done) / speed;
            b->done = work;
        } else {
            b->done += (stop - b->now) * speed;
            b->now = stop;
        }
    }
}

/* The share of communication's processor time that computation loses: none while a host has cores that compute nothing,
 * all of it if every core does. */
static double stolen_share(const tdm_scale_group *g) {
    const tdm_cluster *c = g->cluster;
    if (c->is_gpu || c->cores <= 0) return 0;
    const double spare = (c->cores - (double)g->locals * c->threads) / g->locals;
    return 1 - fmin(fmax(spare, 0), 1);
}

/* How much longer computation takes because devices share cores. */
static double crowding(const tdm_scale_group *g) {
    const tdm_cluster *c = g->cluster;
    return c->is_gpu || c->cores <= 0 ? 1 : fmax(1, (double)g->locals * c->threads / c->cores);
}

static double slowed_by(const tdm_cluster *c, double most, double threads) {
    return 1 + (most - 1) * (fmin(threads, c->cores) - 1) / (c->cores - 1);
}

/* How much longer something takes beside that of the host's other devices; `most`: of all cores, beside that of one. */
static double slowed(const tdm_scale_group *g, double most) {
    const tdm_cluster *c = g->cluster;
    if (c->is_gpu || c->cores <= 1 || most <= 1) return 1;
    return slowed_by(c, most, (double)g->locals * c->threads) / slowed_by(c, most, c->threads);
}

/* The least time in which a host reads the samples of its devices, while these compute. */
static double reading(const tdm_scale_group *g, double samples) {
    const double per_second = g->cluster->loader;
    return per_second > 0 ? samples * g->locals / per_second : 0;
}

/* The seconds from the beginning of backward until all its gradients are reduced. Adds the time of the reductions to
 * *comm. */
static double reduce_all(const tdm_scale_group *g, const tdm_scale_work *work, double seconds, double *comm) {
    const double stolen = stolen_share(g);
    backward b = {.speed = 1};
    for (int i = 0; i < work->bucket_count; i++) {
        const tdm_scale_time time = tdm__scale_all_reduce(g, work->buckets[i].bytes);
        go_on(&b, work->buckets[i].ready * seconds, INFINITY);
        go_on(&b, seconds, b.until); /* the reduction before comes first */
        b.until = fmax(b.now, b.until) + time.seconds;
        b.speed = time.seconds > 0 ? 1 - stolen * fmin(time.busy / time.seconds, 1) : 1;
        *comm += time.seconds;
    }
    go_on(&b, seconds, INFINITY);
    return fmax(b.now, b.until);
}

/* The expected largest of n numbers of the standard normal distribution, by Blom's quantile: 0 of one number. */
static double expected_most(int n) {
    const double share = (n - 0.375) / (n + 0.25);
    double low = -1, high = 8;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        *(0.5 * erfc(-middle * M_SQRT1_2) < share ? &low : &high) = middle;
    }
    return n > 1 ? low : 0;
}

static double step_of(const tdm_scale_group *g, const tdm_scale_work *work, double *comm) {
    const tdm_cluster *c = g->cluster;
    const double crowd = crowding(g), computing = crowd * slowed(g, c->beside);
    const double before = tdm__scale_all_reduce(g, work->buffer_bytes).seconds;
    const double after = tdm__scale_meeting(g).seconds; /* losses and hits of all ranks */
    *comm = before + after;
    const double reduced = reduce_all(g, work, work->backward * computing, comm);
    const double slowest = work->jitter * crowd * expected_most(g->devices);
    const double update = work->update * crowd * slowed(g, c->sharing);
    return fmax(before + work->forward * computing + reduced + update + slowest + after, reading(g, work->samples));
}

static tdm_status check_work(const tdm_scale_work *work) {
    const double numbers[] = {work->forward, work->backward,     work->update,
                              work->jitter,  work->buffer_bytes, work->samples};
    static const char *const names[] = {"forward", "backward", "update", "jitter", "buffer_bytes", "samples"};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (!(numbers[i] >= 0 && isfinite(numbers[i])))
            TDM_FAIL(TDM_E_USAGE, "%s must be at least 0, got %g", names[i], numbers[i]);
    if (work->bucket_count < 0 || (work->bucket_count > 0 && work->buckets == NULL))
        TDM_FAIL(TDM_E_USAGE, "buckets is NULL, or bucket_count is %d", work->bucket_count);
    for (int i = 0; i < work->bucket_count; i++) {
        const tdm_scale_bucket *b = &work->buckets[i];
        if (!(b->bytes >= 0 && isfinite(b->bytes)))
            TDM_FAIL(TDM_E_USAGE, "buckets[%d].bytes must be at least 0, got %g", i, b->bytes);
        if (!(b->ready >= (i > 0 ? b[-1].ready : 0) && b->ready <= 1))
            TDM_FAIL(TDM_E_USAGE, "buckets[%d].ready must be from 0 to 1 and never fall, got %g", i, b->ready);
    }
    return TDM_OK;
}

tdm_status tdm_scale_at(const tdm_scale_work *work, const tdm_cluster *cluster, int devices, tdm_scale_point *out) {
    if (work == NULL || cluster == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_scale_at: a pointer is NULL");
    TDM_EXTRA(SCALE);
    TDM_TRY(tdm__sized_check("tdm_scale_at: tdm_scale_work", work, sizeof(*work), sizeof(*work)));
    TDM_TRY(tdm__sized_check("tdm_scale_at: tdm_scale_point", out, sizeof(*out), sizeof(*out)));
    tdm_cluster taken;
    TDM_TRY(tdm__scale_take_cluster(&taken, cluster, devices));
    TDM_TRY(check_work(work));
    const tdm_scale_group group = tdm__scale_group(&taken, devices), one = tdm__scale_group(&taken, 1);
    double none = 0;
    const double alone = step_of(&one, work, &none);
    tdm_scale_point p = {.size = sizeof(p), .devices = devices, .hosts = group.hosts};
    p.step = step_of(&group, work, &p.comm);
    p.exposed = p.step - (work->forward + work->backward + work->update) * crowding(&group);
    p.efficiency = p.step > 0 ? alone / p.step : 1;
    p.samples_per_s = p.step > 0 ? work->samples * devices / p.step : 0;
    *out = p;
    return TDM_OK;
}
