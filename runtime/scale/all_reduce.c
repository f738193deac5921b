/* The time of an all_reduce: latencies, bytes over the slowest connection, and processor time. Every algorithm here
 * moves 2 (n - 1) / n of the data out of each device, the least possible (levels: more, where a host has several
 * subtrees of the sum); they differ in how many messages follow one another, and in what crosses the network. */
#include <math.h>
#include <stddef.h>

#include "runtime/base/call/sized.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/base/tree.h"
#include "runtime/scale/scale.h"

/* What gloo and tandem's hosts do: bytes that go through the levels at a time, bytes of a message to all peers, and a
 * processor's time for a message of its own to each (a send, a receive, a wake-up). */
static const double levels_bytes = 16.0 * 1024 * 1024, chunk_bytes = 4.0 * 1024 * 1024;
static const double peer_seconds = 2e-6;

tdm_scale_group tdm__scale_group(const tdm_cluster *cluster, int devices) {
    const int per_host = cluster->devices_per_host;
    return (tdm_scale_group){.cluster = cluster,
                             .devices = devices,
                             .hosts = (devices + per_host - 1) / per_host,
                             .locals = devices < per_host ? devices : per_host};
}

static double cost_of(const tdm_link *link) {
    return isnan(link->cost) ? 0 : link->cost;
}

/* 2 (n - 1) / n: what each of n sends of the data. */
static double sent_share(int n) {
    return 2.0 * (n - 1) / n;
}

static double log2_up(int n) {
    return ceil(log2(n));
}

static tdm_scale_time add(tdm_scale_time a, tdm_scale_time b) {
    return (tdm_scale_time){a.seconds + b.seconds, a.busy + b.busy};
}

/* Ranks of a host that communicate need one core each; with fewer they take turns. */
static double turns(const tdm_scale_group *g) {
    const tdm_cluster *c = g->cluster;
    return c->is_gpu || c->cores <= 0 ? 1 : fmax(1, g->locals / c->cores);
}

/* Time of `messages` messages, one after another: `here` bytes leave the device, `crossing` bytes use the connection,
 * which the devices of a host may share. A processor sends while the wire works, and receives and adds after it. */
static tdm_scale_time over(const tdm_scale_group *g, const tdm_link *link, double messages, double here,
                           double crossing) {
    const double busy = here * cost_of(link) * turns(g);
    return (tdm_scale_time){messages * link->latency + fmax(crossing / link->rate, busy / 2) + busy / 2, busy};
}

/* Messages of one device to n - 1 others at the same time. */
static tdm_scale_time to_peers(const tdm_scale_group *g, int n, double times) {
    const double busy = times * (n - 1) * peer_seconds * turns(g);
    return (tdm_scale_time){busy, busy};
}

/* What counts within a host. On CPUs a rank reads its segment of all ranks' data, and writes the sum into all: twice as
 * many bytes as the data has, however many ranks there are, which is what the cost is of. */
static double within(const tdm_scale_group *g, double bytes) {
    return g->cluster->is_gpu ? sent_share(g->locals) * bytes : bytes;
}

/* The same where hosts sum what their ranks have summed: a rank reads its segment of all ranks' data, writes it into its
 * own, and then reads and writes those of the others. */
static double within_levels(const tdm_scale_group *g, double bytes) {
    return g->cluster->is_gpu ? sent_share(g->locals) * bytes : (3 - 1.0 / g->locals) / 2 * bytes;
}

/* ---- the algorithms ---- */

static tdm_scale_time segments(const tdm_scale_group *g, double bytes) {
    const tdm_cluster *c = g->cluster;
    const double sent = sent_share(g->devices) * bytes;
    if (g->hosts == 1) return over(g, &c->local, 2, within(g, bytes), within(g, bytes));
    const double away = (double)(g->devices - g->locals) / (g->devices - 1);
    const double messages = 2 * ceil(bytes / chunk_bytes); /* data and sums; those of a chunk while others travel */
    return add(over(g, &c->between, 2, sent, sent * away * g->locals), to_peers(g, g->devices, messages));
}

/* Of the connections that a chain of devices through all hosts uses. */
static const tdm_link *slowest(const tdm_scale_group *g) {
    const tdm_cluster *c = g->cluster;
    return g->locals > 1 && c->local.rate < c->between.rate ? &c->local : &c->between;
}

/* Host after host. A chunk goes twice around. */
static tdm_scale_time ring(const tdm_scale_group *g, double bytes) {
    const tdm_cluster *c = g->cluster;
    const double sent = sent_share(g->devices) * bytes, hops = sent_share(g->devices);
    if (g->hosts == 1) return over(g, &c->local, hops * g->devices, sent, sent);
    tdm_scale_time time = over(g, slowest(g), 0, sent, sent);
    time.seconds += hops * (g->hosts * c->between.latency + (g->devices - g->hosts) * c->local.latency);
    return time;
}

/* Chains within hosts, two binary trees of hosts, each for half of the data: a host is a leaf in one of them. */
static tdm_scale_time tree(const tdm_scale_group *g, double bytes) {
    const tdm_cluster *c = g->cluster;
    if (g->hosts == 1) return over(g, &c->local, 2 * log2_up(g->devices), 2 * bytes, 2 * bytes);
    tdm_scale_time time = over(g, slowest(g), 0, 2 * bytes, 2 * bytes);
    time.seconds += 2 * (log2_up(g->hosts) * c->between.latency + (g->locals - 1) * c->local.latency);
    return time;
}

/* Sums that each host sends of a number, on the host that has the most: those of the largest subtrees within its ranks. */
static int most_subtrees(int locals, int devices) {
    int most = 0;
    for (int first = 0; first < devices; first += locals) {
        const int end = first + locals < devices ? first + locals : devices;
        int count = 0;
        for (int r = first; r < end; r = tdm__tree_block_end(r, end, devices)) count++;
        most = count > most ? count : most;
    }
    return most;
}

/* Scattered within a host, added between hosts by each device for its part, and gathered. */
static tdm_scale_time levels(const tdm_scale_group *g, double bytes) {
    const tdm_cluster *c = g->cluster;
    const double inside = within_levels(g, bytes), part = sent_share(g->hosts) * bytes / g->locals;
    const tdm_scale_time local = over(g, &c->local, c->is_gpu ? 2.0 * (g->locals - 1) : 4, inside, inside);
    if (g->hosts == 1) return segments(g, bytes);
    if (c->is_gpu) return add(local, over(g, &c->between, 2 * log2_up(g->hosts), part, part * g->locals));
    const double rounds = 2 * ceil(bytes / levels_bytes);
    const double sent = part / 2 * (1 + most_subtrees(g->locals, g->devices)); /* half of the part are results */
    return add(local, add(over(g, &c->between, rounds, sent, sent * g->locals), to_peers(g, g->hosts, rounds)));
}

static tdm_scale_time fastest(tdm_scale_time a, tdm_scale_time b) {
    return a.seconds <= b.seconds ? a : b;
}

static tdm_scale_time automatic(const tdm_scale_group *g, double bytes) {
    if (g->cluster->is_gpu) return fastest(ring(g, bytes), tree(g, bytes));
    return g->locals > 1 ? levels(g, bytes) : segments(g, bytes);
}

tdm_scale_time tdm__scale_all_reduce(const tdm_scale_group *group, double bytes) {
    static tdm_scale_time (*const times[])(const tdm_scale_group *, double) = {[TDM_ALL_REDUCE_AUTO] = automatic,
                                                                               [TDM_ALL_REDUCE_SEGMENTS] = segments,
                                                                               [TDM_ALL_REDUCE_RING] = ring,
                                                                               [TDM_ALL_REDUCE_TREE] = tree,
                                                                               [TDM_ALL_REDUCE_LEVELS] = levels};
    if (group->devices == 1 || bytes <= 0) return (tdm_scale_time){0, 0};
    return add(times[group->cluster->all_reduce](group, bytes), tdm__scale_meeting(group));
}

/* Ranks on CPUs announce each call to all others before data moves. NCCL's do not; what ranks of GPUs report of a step
 * travels while the next step runs. */
tdm_scale_time tdm__scale_meeting(const tdm_scale_group *group) {
    const tdm_cluster *c = group->cluster;
    if (group->devices == 1 || c->is_gpu) return (tdm_scale_time){0, 0};
    if (group->hosts == 1) return over(group, &c->local, 1, 0, 0);
    return add(over(group, &c->between, 1, 0, 0), to_peers(group, group->hosts, 1));
}

/* ---- checks ---- */

static tdm_status check_link(const tdm_link *link, const char *name) {
    if (!(link->rate > 0)) TDM_FAIL(TDM_E_USAGE, "%s.rate must be above 0 bytes per second, got %g", name, link->rate);
    if (!(link->latency >= 0 && isfinite(link->latency)))
        TDM_FAIL(TDM_E_USAGE, "%s.latency must be at least 0 seconds, got %g", name, link->latency);
    if (!isnan(link->cost) && !(link->cost >= 0 && isfinite(link->cost)))
        TDM_FAIL(TDM_E_USAGE, "%s.cost must be at least 0 seconds per byte, got %g", name, link->cost);
    return TDM_OK;
}

/* Programs from before `sharing` was there have none. */
enum { CLUSTER_OLDEST = offsetof(tdm_cluster, sharing) };

tdm_status tdm__scale_take_cluster(tdm_cluster *cluster, const tdm_cluster *given, int devices) {
    *cluster = (tdm_cluster){.size = sizeof(*cluster)};
    TDM_TRY(tdm__sized_take("tdm_cluster", cluster, sizeof(*cluster), given, CLUSTER_OLDEST));
    if (devices < 1 || devices > TDM_SCALE_DEVICES_MAX)
        TDM_FAIL(TDM_E_USAGE, "devices must be from 1 to %d, got %d", TDM_SCALE_DEVICES_MAX, devices);
    if (cluster->devices_per_host < 1)
        TDM_FAIL(TDM_E_USAGE, "devices_per_host must be at least 1, got %d", cluster->devices_per_host);
    if (cluster->all_reduce < TDM_ALL_REDUCE_AUTO || cluster->all_reduce > TDM_ALL_REDUCE_LEVELS)
        TDM_FAIL(TDM_E_USAGE, "all_reduce must be one of tdm_all_reduce, got %d", (int)cluster->all_reduce);
    if (!(cluster->cores >= 0 && isfinite(cluster->cores)) || cluster->threads < 0)
        TDM_FAIL(TDM_E_USAGE, "cores and threads must be at least 0, got %g and %d", cluster->cores, cluster->threads);
    const double numbers[] = {cluster->sharing, cluster->beside, cluster->loader};
    static const char *const names[] = {"sharing", "beside", "loader"};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (!(numbers[i] >= 0 && isfinite(numbers[i])))
            TDM_FAIL(TDM_E_USAGE, "%s must be at least 0, got %g", names[i], numbers[i]);
    TDM_TRY(check_link(&cluster->local, "local"));
    return check_link(&cluster->between, "between");
}

tdm_status tdm_all_reduce_time(const tdm_cluster *cluster, int devices, double bytes, double *seconds) {
    if (cluster == NULL || seconds == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_all_reduce_time: a pointer is NULL");
    TDM_EXTRA(SCALE);
    tdm_cluster taken;
    TDM_TRY(tdm__scale_take_cluster(&taken, cluster, devices));
    if (!(bytes >= 0 && isfinite(bytes))) TDM_FAIL(TDM_E_USAGE, "bytes must be at least 0, got %g", bytes);
    const tdm_scale_group group = tdm__scale_group(&taken, devices);
    *seconds = tdm__scale_all_reduce(&group, bytes).seconds;
    return TDM_OK;
}
