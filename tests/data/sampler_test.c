/* The order of samples against torch's DistributedSampler, and DataParallel's cut against torch.chunk. */
#include "tests/data/support.h"

typedef struct golden {
    int64_t n;
    int world;
    int64_t epoch, seed;
    bool drop_last;
    int64_t per;
    int64_t order[16]; /* rank 0's, then rank 1's, ... */
} golden;

static int64_t *order_of(const tdm_sampler *sampler, int64_t epoch) {
    int64_t *order = malloc((size_t)tdm__sampler_room(sampler) * sizeof(*order));
    tdm__sampler_order(sampler, epoch, order);
    return order;
}

/* Against the batches themselves, cut as the modes cut them. */
TEST(fewest_rows_of_a_pass) {
    for (int64_t count = 1; count <= 40; count++) {
        for (int replicas = 1; replicas <= 3; replicas++) {
            for (int64_t per_device = 1; per_device <= 9; per_device++) {
                for (int parts = 1; parts <= 4; parts++) {
                    tdm_sampler sampler = {.count = count, .replicas = replicas};
                    int64_t samples = tdm__sampler_per_replica(&sampler), whole = 0, all = 0, first;
                    for (int64_t at = 0; at < samples; at += per_device) {
                        int64_t rows = samples - at < per_device ? samples - at : per_device;
                        for (int part = 0; part < parts; part++) {
                            int64_t n = tdm__chunk(rows, parts, part, &first);
                            if (n > 0 && (all == 0 || n < all)) all = n;
                            if (n > 0 && rows == per_device && (whole == 0 || n < whole)) whole = n;
                        }
                    }
                    CHECK_INT(tdm__sampler_fewest_rows(&sampler, per_device, parts, true, false), all);
                    CHECK_INT(tdm__sampler_fewest_rows(&sampler, per_device, parts, false, false), whole);
                    CHECK_INT(tdm__sampler_fewest_rows(&sampler, per_device, parts, true, true), all * replicas);
                }
            }
        }
    }
}

/* Without padding every sample is in one batch of one replica, and positions are dealt out in turn. */
TEST(joined_batches_have_all_samples_once) {
    for (int64_t count = 1; count <= 40; count++) {
        for (int replicas = 1; replicas <= 5; replicas++) {
            for (int64_t per_device = 1; per_device <= 9; per_device++) {
                const tdm_sampler sampler = {.count = count, .replicas = replicas, .joins = true};
                const int64_t samples = tdm__sampler_per_replica(&sampler);
                int64_t all = 0, fewest = 0, together = count, unused;
                for (int64_t step = 0; step * per_device < samples; step++) {
                    const int64_t rows = tdm__sampler_step_rows(&sampler, per_device, step);
                    int64_t dealt = 0;
                    for (int r = 0; r < replicas; r++) {
                        const int64_t own = tdm__sampler_rows_of(&sampler, rows, r);
                        const int64_t cut = tdm__chunk(rows, replicas, r, &unused);
                        CHECK(own <= per_device && own >= rows / replicas);
                        dealt += own;
                        if (own > 0 && (fewest == 0 || own < fewest)) fewest = own;
                        if (cut > 0 && cut < fewest) fewest = cut;
                    }
                    CHECK_INT(dealt, rows);
                    if (rows < together) together = rows;
                    all += rows;
                }
                CHECK_INT(all, count);
                CHECK_INT(tdm__sampler_fewest_rows(&sampler, per_device, 1, true, false), fewest);
                CHECK_INT(tdm__sampler_fewest_rows(&sampler, per_device, 1, true, true), together);
            }
        }
    }
}

TEST(known_orders) {
    static const golden cases[] = {
        {10, 4, 0, 0, false, 3, {4, 3, 6, 1, 9, 2, 7, 0, 4, 5, 8, 1}},
        {10, 4, 1, 0, false, 3, {5, 0, 7, 6, 8, 4, 1, 9, 5, 2, 3, 6}},
        {10, 4, 0, 0, true, 2, {4, 3, 1, 9, 7, 0, 5, 8}},
        {10, 4, 1, 0, true, 2, {5, 0, 6, 8, 1, 9, 2, 3}},
        {7, 3, 5, 11, false, 3, {0, 4, 1, 3, 5, 0, 2, 6, 3}},
        {3, 8, 0, 0, false, 1, {2, 0, 1, 2, 0, 1, 2, 0}},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const golden *g = &cases[c];
        tdm_sampler sampler = {
            .count = g->n, .replicas = g->world, .shuffle = true, .drop_last = g->drop_last, .seed = g->seed};
        CHECK_INT(tdm__sampler_per_replica(&sampler), g->per);
        int64_t *order = order_of(&sampler, g->epoch);
        for (int r = 0; r < g->world; r++) {
            for (int64_t j = 0; j < g->per; j++) CHECK_INT(order[j * g->world + r], g->order[r * g->per + j]);
        }
        free(order);
    }
}

TEST(orders_of_torch) {
    FILE *file = fopen(TDM_TEST_DATA "/sampler.txt", "r");
    REQUIRE(file != NULL);
    long long n, epoch, seed, per;
    int world, shuffle, drop_last, lines = 0;
    unsigned long long sum;
    while (fscanf(file, "%lld %d %lld %lld %d %d %lld %llu", &n, &world, &epoch, &seed, &shuffle, &drop_last, &per,
                  &sum) == 8) {
        tdm_sampler sampler = {
            .count = n, .replicas = world, .shuffle = shuffle != 0, .drop_last = drop_last != 0, .seed = seed};
        CHECK_INT(tdm__sampler_per_replica(&sampler), per);
        int64_t *order = order_of(&sampler, epoch);
        uint64_t got = 0, k = 0;
        for (int r = 0; r < world; r++) {
            for (int64_t j = 0; j < per; j++) got += ++k * (uint64_t)order[j * world + r];
        }
        if (got != sum) fprintf(stderr, "n %lld world %d epoch %lld seed %lld\n", n, world, epoch, seed);
        CHECK(got == sum);
        free(order);
        lines++;
    }
    fclose(file);
    CHECK_INT(lines, 350);
}

/* torch.chunk: pieces of ceil(rows / parts), so that late parts may get less or nothing. */
TEST(chunks) {
    static const struct {
        int64_t rows;
        int parts;
        int64_t size[8];
    } cases[] = {
        {10, 4, {3, 3, 3, 1}}, {9, 4, {3, 3, 3, 0}}, {6, 4, {2, 2, 2, 0}},
        {5, 4, {2, 2, 1, 0}},  {2, 4, {1, 1, 0, 0}}, {17, 8, {3, 3, 3, 3, 3, 2, 0, 0}},
        {1, 8, {1}},           {8, 2, {4, 4}},       {7, 1, {7}},
        {3, 3, {1, 1, 1}},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        int64_t next = 0, first;
        for (int part = 0; part < cases[c].parts; part++) {
            int64_t rows = tdm__chunk(cases[c].rows, cases[c].parts, part, &first);
            CHECK_INT(rows, cases[c].size[part]);
            CHECK_INT(first, next);
            next += rows;
        }
        CHECK_INT(next, cases[c].rows);
    }
}

TEST_MAIN(RUN(known_orders); RUN(fewest_rows_of_a_pass); RUN(joined_batches_have_all_samples_once);
          RUN(orders_of_torch); RUN(chunks);)
