/* The prediction of scale against closed forms. */
#include <math.h>
#include <stddef.h>

#include <tandem/scale.h>

#include "runtime/train/plan/plan_scale.h"
#include "tests/support/tdm_test.h"

static bool is_near(double got, double want) {
    return fabs(got - want) <= 1e-12 + 1e-9 * fabs(want);
}
#define NEAR(got, want) CHECK(is_near(got, want))

/* Hosts of one GPU each, 1 GB/s, nothing else takes time. */
static tdm_cluster plain_cluster(void) {
    const tdm_link link = {1e9, 0, 0};
    return (tdm_cluster){
        .size = sizeof(tdm_cluster), .devices_per_host = 1, .local = link, .between = link, .is_gpu = true};
}

static double time_of(const tdm_cluster *cluster, int devices, double bytes) {
    double seconds = NAN;
    CHECK_OK(tdm_all_reduce_time(cluster, devices, bytes, &seconds));
    return seconds;
}

static tdm_scale_point at(const tdm_scale_work *work, const tdm_cluster *cluster, int devices) {
    tdm_scale_point point = {.size = sizeof(point)};
    CHECK_OK(tdm_scale_at(work, cluster, devices, &point));
    return point;
}

TEST(bytes_of_each_algorithm) {
    tdm_cluster c = plain_cluster();
    for (int n = 1; n <= 1024; n *= 2) {
        const double least = 2.0 * (n - 1) / n;
        c.all_reduce = TDM_ALL_REDUCE_RING;
        NEAR(time_of(&c, n, 1e9), least);
        c.all_reduce = TDM_ALL_REDUCE_LEVELS;
        NEAR(time_of(&c, n, 1e9), least);
        c.all_reduce = TDM_ALL_REDUCE_TREE;
        NEAR(time_of(&c, n, 1e9), n > 1 ? 2 : 0);
        c.all_reduce = TDM_ALL_REDUCE_AUTO;
        NEAR(time_of(&c, n, 1e9), least);
    }
}

TEST(messages_of_each_algorithm) {
    tdm_cluster c = plain_cluster();
    c.between.rate = c.local.rate = INFINITY;
    c.between.latency = 1;
    c.all_reduce = TDM_ALL_REDUCE_RING;
    NEAR(time_of(&c, 16, 1), 2 * 15);
    c.all_reduce = TDM_ALL_REDUCE_TREE;
    NEAR(time_of(&c, 16, 1), 2 * 4);
    NEAR(time_of(&c, 17, 1), 2 * 5);
    c.all_reduce = TDM_ALL_REDUCE_AUTO; /* NCCL takes the faster */
    NEAR(time_of(&c, 16, 1), 2 * 4);
}

/* 4 hosts of 8: seven eighths twice within a host, three quarters twice through its one connection. */
TEST(levels_and_rings_of_hosts) {
    tdm_cluster c = plain_cluster();
    c.devices_per_host = 8;
    c.local.rate = 10e9;
    c.all_reduce = TDM_ALL_REDUCE_LEVELS;
    NEAR(time_of(&c, 32, 1e9), 2 * 7.0 / 8 / 10 + 2 * 3.0 / 4);
    NEAR(time_of(&c, 8, 1e9), 2 * 7.0 / 8 / 10);
    c.all_reduce = TDM_ALL_REDUCE_RING;
    NEAR(time_of(&c, 32, 1e9), 2 * 31.0 / 32);
}

/* 6 devices on 2 hosts of 3, each of which has 2 subtrees of the sum: of one half of the data each host sends both. */
TEST(hosts_send_their_subtrees) {
    tdm_cluster c = plain_cluster();
    c.is_gpu = false;
    c.local.rate = INFINITY;
    c.local.cost = c.between.cost = 0;
    c.devices_per_host = 3;
    const double peers = 2e-6, meeting = 1 * peers;
    NEAR(time_of(&c, 6, 1e6), (2 + 1) / 2.0 * 1e-3 + 2 * peers + meeting);
    c.devices_per_host = 4; /* one subtree */
    NEAR(time_of(&c, 8, 1e6), (1 + 1) / 2.0 * 1e-3 + 2 * peers + meeting);
    c.devices_per_host = 3; /* ranks 6 and 7 are alone on the last host */
    NEAR(time_of(&c, 8, 1e6), (2 + 1) * 2 / 3.0 * 1e-3 + 2 * 2 * peers + 2 * meeting);
}

/* Between CPUs each device sends to all others: those of a host share its connection, and every message has its price. */
TEST(segments_share_a_connection) {
    tdm_cluster c = plain_cluster();
    const double peers = 2e-6;
    c.is_gpu = false;
    c.devices_per_host = 3;
    c.all_reduce = TDM_ALL_REDUCE_SEGMENTS;
    /* 6 devices on 2 hosts: 3 of 5 peers are away; two exchanges and the meeting */
    NEAR(time_of(&c, 6, 1e6), 2 * 1e-3 / 6 * 5 * 3 / 5 * 3 + 2 * 5 * peers + 1 * peers);
}

TEST(one_device_and_infinite_rates) {
    const tdm_scale_bucket bucket[] = {{1e9, 0.5}, {1e9, 1}};
    const tdm_scale_work work = {.size = sizeof(work),
                                 .forward = 1,
                                 .backward = 2,
                                 .update = 0.5,
                                 .samples = 8,
                                 .buckets = bucket,
                                 .bucket_count = 2};
    tdm_cluster c = plain_cluster();
    const tdm_scale_point one = at(&work, &c, 1);
    NEAR(one.step, 3.5);
    NEAR(one.comm, 0);
    NEAR(one.exposed, 0);
    NEAR(one.efficiency, 1);
    NEAR(one.samples_per_s, 8 / 3.5);
    c.between.rate = INFINITY;
    for (int n = 1; n <= TDM_SCALE_DEVICES_MAX; n *= 4) {
        NEAR(at(&work, &c, n).efficiency, 1);
        NEAR(at(&work, &c, n).samples_per_s, n * one.samples_per_s);
    }
}

/* What of reductions is not hidden; two devices exchange as many bytes as they reduce. */
TEST(exposed_communication) {
    static const struct {
        tdm_scale_bucket bucket[2];
        double exposed;
    } rows[] = {
        {{{1e9, 1}, {0, 1}}, 1},           /* one bucket at the end: its whole time */
        {{{1e9, 0}, {0, 1}}, 0},           /* hidden */
        {{{3e9, 0.5}, {0, 1}}, 2},         /* half of backward hides one of three seconds */
        {{{1e9, 0.25}, {1e9, 0.75}}, 0.5}, /* the second begins when it is ready ... */
        {{{2e9, 0.25}, {1e9, 0.5}}, 1.5},  /* ... and when the first has ended */
    };
    tdm_cluster c = plain_cluster();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const tdm_scale_work work = {.size = sizeof(work),
                                     .forward = 1,
                                     .backward = 2,
                                     .samples = 1,
                                     .buckets = rows[i].bucket,
                                     .bucket_count = 2};
        const tdm_scale_point p = at(&work, &c, 2);
        NEAR(p.exposed, rows[i].exposed);
        NEAR(p.step, 3 + rows[i].exposed);
        NEAR(p.comm, (rows[i].bucket[0].bytes + rows[i].bucket[1].bytes) / 1e9);
    }
}

/* In shared memory a rank reads as many bytes as the data has, and writes as many, however many ranks there are. Where
 * hosts exchange what their ranks have summed, it writes its segment once, and then reads and writes the others'. */
TEST(bytes_in_shared_memory) {
    tdm_cluster c = plain_cluster();
    c.is_gpu = false;
    c.local = (tdm_link){INFINITY, 0, 1e-9};
    c.between = (tdm_link){INFINITY, 0, 0};
    for (c.devices_per_host = 2; c.devices_per_host <= 8; c.devices_per_host *= 2) {
        const double peers = 2e-6, levels = 1e-3 * (3 - 1.0 / c.devices_per_host) / 2;
        NEAR(time_of(&c, c.devices_per_host, 1e6), 1e-3);
        NEAR(time_of(&c, 2 * c.devices_per_host, 1e6), levels + 2 * peers + peers);
    }
}

/* Two ranks on a core. Within a host both add after one another, a millisecond for (3 - 1/2) / 2 MB each; then the wire
 * takes as long whoever sends. */
TEST(parts_of_a_reduction_in_turns) {
    tdm_cluster c = plain_cluster();
    const double peers = 2 * 2e-6; /* of a message, in turns, too */
    c.is_gpu = false;
    c.devices_per_host = 2;
    c.cores = 1;
    c.local = (tdm_link){INFINITY, 0, 0.8e-9};
    c.between.cost = 0;
    NEAR(time_of(&c, 4, 1e6), 2 * 1e-3 + 1e-3 + 3 * peers);
    c.local.cost = 0;
    NEAR(time_of(&c, 4, 1e6), 1e-3 + 3 * peers);
    c.between = (tdm_link){INFINITY, 0, 1e-9};
    NEAR(time_of(&c, 4, 1e6), 2 * 0.5e-3 + 3 * peers);
    c.between.rate = 1e9; /* both send while the wire works, and receive after it */
    NEAR(time_of(&c, 4, 1e6), 1e-3 + 2 * 0.25e-3 + 3 * peers);
}

/* All cores together are three times as slow at their updates as one. */
TEST(memory_that_cores_share) {
    const tdm_scale_work work = {.size = sizeof(work), .forward = 1, .update = 1, .samples = 1};
    tdm_cluster c = {.size = sizeof(c),
                     .devices_per_host = 8,
                     .local = {INFINITY, 0, 0},
                     .between = {INFINITY, 0, 0},
                     .threads = 1,
                     .cores = 4,
                     .sharing = 3};
    NEAR(at(&work, &c, 1).step, 1 + 1);
    NEAR(at(&work, &c, 2).step, 1 + 5.0 / 3);
    NEAR(at(&work, &c, 4).step, 1 + 3);
    NEAR(at(&work, &c, 4).exposed, 2);
    NEAR(at(&work, &c, 8).step, 2 * (1 + 3)); /* two on each core */
    c.threads = 2;
    NEAR(at(&work, &c, 1).step, 1 + 1); /* as it was measured */
    NEAR(at(&work, &c, 2).step, 1 + 3 / (5.0 / 3));
    c.devices_per_host = 1;
    NEAR(at(&work, &c, 2).step, 1 + 1 + 2e-6); /* they meet */
    c.sharing = 0;
    c.devices_per_host = 8;
    NEAR(at(&work, &c, 2).step, 1 + 1);
}

/* Two cores compute half as fast as one alone, each. */
TEST(computation_beside_others) {
    const tdm_scale_bucket bucket[] = {{1e9, 0.5}};
    const tdm_scale_work work = {.size = sizeof(work),
                                 .forward = 1,
                                 .backward = 2,
                                 .update = 1,
                                 .samples = 1,
                                 .buckets = bucket,
                                 .bucket_count = 1};
    tdm_cluster c = {.size = sizeof(c),
                     .devices_per_host = 4,
                     .local = {1e9, 0, 0},
                     .between = {INFINITY, 0, 0},
                     .threads = 1,
                     .cores = 2,
                     .beside = 2};
    NEAR(at(&work, &c, 1).step, 4);
    NEAR(at(&work, &c, 2).step, 2 * 3 + 1); /* half of backward hides the reduction */
    NEAR(at(&work, &c, 4).step, 2 * (2 * 3 + 1));
    c.threads = 2; /* whoever measured one device had both cores at work */
    NEAR(at(&work, &c, 2).step, 2 * 4);
}

TEST(of_all_cores) {
    NEAR(tdm__scale_of_all_cores(1.5, 2, 1, 2), 1.5);
    NEAR(tdm__scale_of_all_cores(1.5, 2, 1, 4), 2.5);
    NEAR(tdm__scale_of_all_cores(1.5, 4, 1, 4), 1.5);
    NEAR(tdm__scale_of_all_cores(0.9, 2, 1, 2), 1);
    NEAR(tdm__scale_of_all_cores(1.5, 4, 2, 2), 1);
    /* two devices of two threads on five cores: (1 + 3 s) / (1 + s), s a quarter of what all cores add */
    NEAR(tdm__scale_of_all_cores(1.5, 2, 2, 5), 1 + 4 / 3.0);
    NEAR(tdm__scale_of_all_cores(1.5, 2, 1, 1), 1);
}

/* A host that reads 10 samples a second. */
TEST(samples_that_a_host_reads) {
    const tdm_scale_work work = {.size = sizeof(work), .forward = 1, .samples = 8};
    tdm_cluster c = plain_cluster();
    c.devices_per_host = 2;
    c.loader = 10;
    NEAR(at(&work, &c, 1).step, 1);
    NEAR(at(&work, &c, 2).step, 1.6);
    NEAR(at(&work, &c, 2).exposed, 0.6);
    NEAR(at(&work, &c, 4).step, 1.6);
    NEAR(at(&work, &c, 4).efficiency, 1 / 1.6);
}

/* A program from before `sharing`. */
TEST(a_shorter_cluster) {
    const tdm_scale_work work = {.size = sizeof(work), .update = 1, .samples = 1};
    tdm_cluster c = plain_cluster();
    c.is_gpu = false;
    c.devices_per_host = c.threads = 2;
    c.cores = 4;
    c.local = (tdm_link){INFINITY, 0, 0};
    c.sharing = NAN; /* what lies behind it */
    c.size = offsetof(tdm_cluster, sharing);
    NEAR(at(&work, &c, 2).step, 1);
    NEAR(time_of(&c, 2, 1e6), 0);
}

/* How fast a machine is no test can know. */
TEST(cost_of_this_machine) {
    for (int devices = 1; devices <= 16; devices *= 4) {
        double cost = NAN;
        CHECK_OK(tdm__scale_measure_cost(tdm_host_default(), devices, 1e6, 4e6, &cost));
        CHECK(isfinite(cost) && cost > 0);
    }
}

/* A processor that copies cannot compute: without a spare core nothing is hidden but the time on the wire. */
TEST(processors_that_communicate) {
    const tdm_scale_bucket bucket[] = {{1e9, 0}, {1e9, 0}};
    const tdm_scale_work work = {
        .size = sizeof(work), .backward = 4, .samples = 1, .buckets = bucket, .bucket_count = 2};
    tdm_cluster c = {.size = sizeof(c),
                     .devices_per_host = 2,
                     .local = {INFINITY, 0, 1e-9},
                     .between = {INFINITY, 0, 0},
                     .threads = 1,
                     .cores = 2};
    NEAR(at(&work, &c, 2).step, 6);
    c.cores = 4;
    NEAR(at(&work, &c, 2).step, 4);
    c.cores = 3; /* a spare core for both */
    NEAR(at(&work, &c, 2).step, 5);
    c.cores = 0;
    NEAR(at(&work, &c, 2).step, 4);
    c.local = (tdm_link){1e9, 0, 1e-9}; /* half of each second on the wire */
    c.cores = 2;
    NEAR(at(&work, &c, 2).step, 6);
}

TEST(more_threads_than_cores) {
    const tdm_scale_work work = {.size = sizeof(work), .forward = 1, .backward = 2, .update = 1, .samples = 1};
    tdm_cluster c = {.size = sizeof(c),
                     .devices_per_host = 4,
                     .local = {INFINITY, 0, 0},
                     .between = {INFINITY, 0, 0},
                     .threads = 1,
                     .cores = 2};
    NEAR(at(&work, &c, 2).step, 4);
    NEAR(at(&work, &c, 4).step, 8);
    NEAR(at(&work, &c, 4).efficiency, 0.5);
}

/* The expected largest of n normal numbers: 0.564, 1.029, 2.51 of 2, 4 and 100. */
TEST(the_slowest_device) {
    const tdm_scale_work work = {.size = sizeof(work), .forward = 1, .jitter = 0.1, .samples = 1};
    const tdm_cluster c = plain_cluster();
    NEAR(at(&work, &c, 1).step, 1);
    CHECK(fabs(at(&work, &c, 2).step - 1.0564) < 0.003);
    CHECK(fabs(at(&work, &c, 4).step - 1.1029) < 0.003);
    CHECK(fabs(at(&work, &c, 100).step - 1.2508) < 0.003);
}

TEST(links) {
    static const struct {
        const char *text;
        double rate, latency, cost; /* cost -1: none was given */
    } good[] = {
        {"25Gb,20us", 25e9 / 8 * 0.95, 20e-6, -1},
        {"25Gbit,20us", 25e9 / 8 * 0.95, 20e-6, -1},
        {"25Gbit/s,20us", 25e9 / 8 * 0.95, 20e-6, -1},
        {"100Gbps,1.5us", 100e9 / 8 * 0.95, 1.5e-6, -1},
        {"3GB/s,20us", 3e9, 20e-6, -1},
        {"3GB,0s", 3e9, 0, -1},
        {"500Mb,2ms,1.2ns", 500e6 / 8 * 0.95, 2e-3, 1.2e-9},
        {"12.5GBps,300ns,250ps", 12.5e9, 300e-9, 250e-12},
    };
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "begins with its rate"},
        {"25Gb", "behind the rate comes the latency"},
        {"25,20us", "begins with its rate"},
        {"25Gx,20us", "begins with its rate"},
        {"0Gb,20us", "begins with its rate"},
        {"-1Gb,20us", "begins with its rate"},
        {"nanGb,20us", "begins with its rate"},
        {"25Gb,20", "comes the latency"},
        {"25Gb,20Gb", "comes the latency"},
        {"25Gb,20us,", "behind the latency"},
        {"25Gb,20us,5us", "behind the latency"},
        {"25Gb,20us,1ns,1ns", "behind the latency"},
        {"1.2.3Gb,20us", "begins with its rate"},
        {"25 Gb,20us", "begins with its rate"},
    };
    tdm_link link;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        CHECK_OK(tdm_link_parse(good[i].text, &link));
        NEAR(link.rate, good[i].rate);
        CHECK(fabs(link.latency - good[i].latency) < 1e-15);
        CHECK(good[i].cost < 0 ? isnan(link.cost) : fabs(link.cost - good[i].cost) < 1e-18);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_STATUS(tdm_link_parse(bad[i].text, &link), TDM_E_USAGE);
        CHECK_HAS(tdm_error_message(), bad[i].says);
    }
}

TEST(times) {
    static const char *const bad[] = {
        "", "1ms", "1ms,2ms", "1ms,2ms,3", "1ms,2ms,3ms,", "1ms,2ms,3ms,4ms,5ms", "0ms,0ms,0ms"};
    double seconds[4];
    CHECK_OK(tdm_scale_times_parse("46ms,0.107s,6600us", seconds));
    NEAR(seconds[0], 0.046);
    NEAR(seconds[1], 0.107);
    NEAR(seconds[2], 0.0066);
    CHECK(isnan(seconds[3]));
    CHECK_OK(tdm_scale_times_parse("46ms,107ms,6ms,3ms", seconds));
    NEAR(seconds[3], 0.003);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_STATUS(tdm_scale_times_parse(bad[i], seconds), TDM_E_USAGE);
        CHECK_HAS(tdm_error_message(), "a step");
    }
}

TEST(what_is_refused) {
    const tdm_scale_bucket falls[] = {{1, 0.5}, {1, 0.4}}, late[] = {{1, 1.5}};
    const tdm_cluster good = plain_cluster();
    tdm_cluster c = good;
    tdm_scale_work work = {.size = sizeof(work), .forward = 1, .samples = 1};
    tdm_scale_point p = {.size = sizeof(p)};
    double seconds;
#define REFUSED(call, text)          \
    CHECK_STATUS(call, TDM_E_USAGE); \
    CHECK_HAS(tdm_error_message(), text)
    REFUSED(tdm_scale_at(&work, &c, 0, &p), "devices must be from 1");
    REFUSED(tdm_scale_at(&work, &c, TDM_SCALE_DEVICES_MAX + 1, &p), "devices must be from 1");
    c.devices_per_host = 0;
    REFUSED(tdm_scale_at(&work, &c, 1, &p), "devices_per_host");
    c = good;
    c.local.rate = 0;
    REFUSED(tdm_all_reduce_time(&c, 2, 1, &seconds), "local.rate");
    c = good;
    c.between.latency = NAN;
    REFUSED(tdm_all_reduce_time(&c, 2, 1, &seconds), "between.latency");
    c = good;
    c.sharing = NAN;
    REFUSED(tdm_all_reduce_time(&c, 2, 1, &seconds), "sharing must be at least 0");
    c = good;
    c.beside = -1;
    REFUSED(tdm_all_reduce_time(&c, 2, 1, &seconds), "beside must be at least 0");
    c = good;
    c.loader = INFINITY;
    REFUSED(tdm_all_reduce_time(&c, 2, 1, &seconds), "loader must be at least 0");
    c = good;
    c.all_reduce = (tdm_all_reduce)9;
    REFUSED(tdm_all_reduce_time(&c, 2, 1, &seconds), "all_reduce");
    REFUSED(tdm_all_reduce_time(&good, 2, -1, &seconds), "bytes");
    work.backward = INFINITY;
    REFUSED(tdm_scale_at(&work, &good, 1, &p), "backward must be");
    work = (tdm_scale_work){.size = sizeof(work), .buckets = falls, .bucket_count = 2};
    REFUSED(tdm_scale_at(&work, &good, 1, &p), "buckets[1].ready");
    work = (tdm_scale_work){.size = sizeof(work), .buckets = late, .bucket_count = 1};
    REFUSED(tdm_scale_at(&work, &good, 1, &p), "buckets[0].ready");
}

TEST_MAIN(RUN(bytes_of_each_algorithm); RUN(messages_of_each_algorithm); RUN(levels_and_rings_of_hosts);
          RUN(hosts_send_their_subtrees); RUN(segments_share_a_connection); RUN(one_device_and_infinite_rates);
          RUN(exposed_communication); RUN(bytes_in_shared_memory); RUN(parts_of_a_reduction_in_turns);
          RUN(memory_that_cores_share); RUN(computation_beside_others); RUN(of_all_cores);
          RUN(samples_that_a_host_reads); RUN(a_shorter_cluster); RUN(cost_of_this_machine);
          RUN(processors_that_communicate); RUN(more_threads_than_cores); RUN(the_slowest_device); RUN(links);
          RUN(times); RUN(what_is_refused);)
