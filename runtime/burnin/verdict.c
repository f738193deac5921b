/* The verdicts. For each sample that all devices have computed: a device is right if more than half of them, itself
 * counted, gave its outputs within the tolerance. Where no device has so many, or there is one device only, the host
 * decides. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/burnin/burnin.h"

/* The devices that ran to the end. */
typedef struct comparison {
    tdm_burnin *all;
    tdm_burnin_worker *of[TDM_LIST_MAX];
    int count;
    int64_t samples;  /* that all of them have computed */
    int64_t disputed; /* the first sample without a majority; -1 */
} comparison;

static const float *outputs_of(const comparison *c, int device, int64_t sample) {
    return c->of[device]->first + sample * c->all->outputs;
}

static double largest(const float *y, int64_t count) {
    double most = 0.0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(y[i]) && fabs((double)y[i]) > most) most = fabs((double)y[i]);
    return most;
}

/* The largest difference of two outputs, relative to the largest number of b; infinite where only one is finite. */
static double difference(const float *a, const float *b, int64_t count) {
    const double scale = largest(b, count);
    double most = 0.0;
    for (int64_t i = 0; i < count; i++) {
        if (memcmp(&a[i], &b[i], sizeof(*a)) == 0 || (isnan(a[i]) && isnan(b[i]))) continue;
        if (!isfinite(a[i]) || !isfinite(b[i])) return INFINITY;
        const double here = fabs((double)a[i] - (double)b[i]);
        if (here > most) most = here;
    }
    return most == 0.0 ? 0.0 : scale > 0.0 ? most / scale : INFINITY;
}

static void mark_bad(const comparison *c, tdm_burnin_worker *w, int64_t sample, double by, const char *whose) {
    if (by > w->seen.difference) w->seen.difference = by;
    if (by <= c->all->tolerance || w->seen.verdict != TDM_BURNIN_GOOD) return;
    w->seen.verdict = TDM_BURNIN_WRONG;
    if (isfinite(by))
        snprintf(w->seen.why, sizeof(w->seen.why),
                 "its outputs of sample %lld differ from %s by %.2g of the largest, tolerated is %.2g",
                 (long long)sample, whose, by, c->all->tolerance);
    else
        snprintf(w->seen.why, sizeof(w->seen.why), "its outputs of sample %lld are not finite, or only %s are not",
                 (long long)sample, whose);
}

/* The first device that gave the same outputs as more than half of the devices; -1: there is none. */
static int majority(const comparison *c, int64_t sample) {
    for (int i = 0; i < c->count; i++) {
        int agree = 0;
        for (int k = 0; k < c->count; k++)
            agree +=
                difference(outputs_of(c, k, sample), outputs_of(c, i, sample), c->all->outputs) <= c->all->tolerance;
        if (2 * agree > c->count) return i;
    }
    return -1;
}

static void compare_sample(comparison *c, int64_t sample) {
    const int right = majority(c, sample);
    if (right < 0) {
        if (c->disputed < 0) c->disputed = sample;
        return;
    }
    for (int i = 0; i < c->count; i++) {
        const float *y = outputs_of(c, i, sample), *want = outputs_of(c, right, sample);
        mark_bad(c, c->of[i], sample, difference(y, want, c->all->outputs), "those of the other devices");
        if (memcmp(y, want, (size_t)c->all->outputs * sizeof(*y)) != 0) c->all->equal_bits = false;
    }
}

static tdm_status ask_arbiter(const comparison *c, int64_t sample) {
    float *want = NULL;
    TDM_TRY(tdm__new(c->all->host, &want, (size_t)c->all->outputs, sizeof(*want), "burn-in"));
    const tdm_status status = tdm__burnin_arbitrate(c->all, sample, want);
    for (int i = 0; i < c->count && status == TDM_OK; i++)
        mark_bad(c, c->of[i], sample, difference(outputs_of(c, i, sample), want, c->all->outputs),
                 "those of the host's processor");
    tdm__delete(c->all->host, want);
    return status;
}

static void find_unstable(const comparison *c) {
    for (int i = 0; i < c->count; i++) {
        tdm_burnin_device *seen = &c->of[i]->seen;
        if (seen->wrong_batches == 0) continue;
        seen->verdict = TDM_BURNIN_UNSTABLE;
        snprintf(seen->why, sizeof(seen->why), "%lld of %lld batches gave other bits than in the first pass",
                 (long long)seen->wrong_batches, (long long)seen->batches);
    }
}

/* What good devices agree on must be numbers. */
static tdm_status check_finite(const comparison *c) {
    for (int i = 0; i < c->count; i++) {
        if (c->of[i]->seen.verdict != TDM_BURNIN_GOOD) continue;
        for (int64_t k = 0; k < c->samples * c->all->outputs; k++)
            if (!isfinite(c->of[i]->first[k]))
                TDM_FAIL(
                    TDM_E_NUMERIC,
                    "burn-in: output %lld of sample %lld is not finite on %s, and the other devices agree; look at "
                    "the weights and the data",
                    (long long)(k % c->all->outputs), (long long)(k / c->all->outputs), c->of[i]->seen.name);
        return TDM_OK;
    }
    return TDM_OK;
}

tdm_status tdm__burnin_judge(tdm_burnin *all) {
    comparison c = {.all = all, .samples = all->samples, .disputed = -1};
    for (int i = 0; i < all->count; i++) {
        tdm_burnin_worker *w = &all->worker[i];
        if (w->seen.verdict == TDM_BURNIN_FAILED) continue;
        c.of[c.count++] = w;
        if (w->covered < c.samples) c.samples = w->covered;
    }
    all->equal_bits = c.count > 1;
    if (c.count == 0) return TDM_OK;
    if (c.samples == 0)
        TDM_FAIL(TDM_E_STOPPED, "burn-in: stopped before all devices had made a batch; there is no verdict");
    find_unstable(&c);
    for (int64_t s = 0; s < c.samples && c.count > 1; s++) compare_sample(&c, s);
    if (c.disputed >= 0) all->equal_bits = false;
    if (c.disputed >= 0 || c.count == 1) TDM_TRY(ask_arbiter(&c, c.disputed >= 0 ? c.disputed : 0));
    return check_finite(&c);
}
