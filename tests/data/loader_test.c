/* Batches: what is in them, in which order, and that threads, seeks and failures never change that. */
#include "tests/data/support.h"

#include <time.h>

/* A source whose sample i is [i, i + 0.5], label i % 10; slow and late at some places, broken at others. */
typedef struct numbers {
    _Atomic int64_t broken; /* this index fails; -1: none */
    bool uneven;            /* some take longer */
    atomic_int reads;
} numbers;

static int read_number(void *user, int64_t index, float *x, void *target) {
    numbers *own = user;
    atomic_fetch_add(&own->reads, 1);
    if (own->uneven && index % 5 == 0) nanosleep(&(struct timespec){0, 200000}, NULL);
    if (index == own->broken) return 1;
    x[0] = (float)index;
    x[1] = (float)index + 0.5f;
    *(int64_t *)target = index % 10;
    return 0;
}

static tdm_dataset *open_numbers(numbers *own, int64_t count) {
    tdm_source source = {.size = sizeof(source), .count = count, .has_labels = 1, .read = read_number, .user = own};
    tdm_data_wanted wanted = wanted_classes(1, (int64_t[]){2}, 10);
    tdm_dataset *dataset;
    CHECK_OK(tdm__dataset_open_source(&dataset, tdm_host_default(), &source, &wanted));
    return dataset;
}

static tdm_loader_options options_of(int64_t count, int replicas, int64_t per_device) {
    return (tdm_loader_options){
        .sampler = {.count = count, .replicas = replicas, .shuffle = true, .seed = 42},
        .per_device = per_device,
        .scatter = TDM_SCATTER_STRIDED,
        .replicas_here = replicas,
        .ahead = 2,
    };
}

static tdm_loader *open_loader(const tdm_dataset *dataset, const tdm_loader_options *options) {
    tdm_loader *loader = NULL;
    CHECK_OK(tdm__loader_open(&loader, tdm_host_default(), dataset, options));
    if (loader == NULL) exit(1);
    return loader;
}

/* ---- a second implementation, after the parity script's generator `batches` ---- */

static void check_rank_batch(const tdm_loader_options *o, const int64_t *order, int64_t epoch, int64_t step,
                             const tdm_batch *batch) {
    int64_t per = tdm__sampler_per_replica(&o->sampler), world = o->sampler.replicas;
    int64_t begin = step * o->per_device, end = begin + o->per_device < per ? begin + o->per_device : per;
    int64_t flat[512], rows = 0;
    for (int64_t j = begin; j < end; j++) {
        for (int64_t r = 0; r < world; r++) flat[rows++] = order[j * world + r];
    }
    CHECK_INT(batch->epoch, epoch);
    CHECK_INT(batch->step_in_epoch, step);
    CHECK_INT(batch->global_rows, rows);
    CHECK_INT(batch->shard_count, o->replicas_here);
    int64_t size = (rows + world - 1) / world;
    for (int i = 0; i < batch->shard_count; i++) {
        const tdm_shard *shard = &batch->shard[i];
        int64_t r = o->first_replica + i, row = 0;
        for (int64_t k = 0; k < rows; k++) {
            bool mine = o->scatter == TDM_SCATTER_CHUNK ? k / size == r : k % world == r;
            if (!mine) continue;
            REQUIRE(row < shard->rows);
            CHECK_INT(shard->position[row], k);
            CHECK_INT(shard->index[row], flat[k]);
            CHECK(shard->x[2 * row] == (float)flat[k] && shard->x[2 * row + 1] == (float)flat[k] + 0.5f);
            CHECK_INT(((const int64_t *)shard->target)[row], flat[k] % 10);
            row++;
        }
        CHECK_INT(shard->rows, row);
    }
}

/* Reads on from (epoch, step) and compares `count` batches. */
static void check_batches(tdm_loader *loader, const tdm_loader_options *o, int64_t epoch, int64_t step, int count) {
    int64_t *order = malloc((size_t)tdm__sampler_room(&o->sampler) * sizeof(*order));
    tdm__sampler_order(&o->sampler, epoch, order);
    for (int i = 0; i < count; i++) {
        const tdm_batch *batch;
        CHECK_OK(tdm__loader_next(loader, &batch));
        if (batch == NULL) break;
        check_rank_batch(o, order, epoch, step, batch);
        step++;
        if (step == tdm__loader_steps_per_epoch(loader)) {
            epoch++;
            step = 0;
            tdm__sampler_order(&o->sampler, epoch, order);
        }
    }
    free(order);
}

TEST(any_workers_any_scatter) {
    static const int workers[] = {0, 1, 4}, aheads[] = {1, 2, 9};
    numbers own = {.broken = -1, .uneven = true};
    tdm_dataset *dataset = open_numbers(&own, 103);
    for (int w = 0; w < 3; w++) {
        for (int scatter = 0; scatter < 2; scatter++) {
            for (int replicas = 1; replicas <= 4; replicas++) {
                tdm_loader_options o = options_of(103, replicas, 7);
                o.workers = workers[w];
                o.ahead = aheads[(w + replicas) % 3];
                o.scatter = scatter;
                o.sampler.drop_last = replicas == 2;
                o.drop_last_batch = replicas == 3;
                tdm_loader *loader = open_loader(dataset, &o);
                check_batches(loader, &o, 0, 0, 33);
                tdm__loader_close(loader);
            }
        }
    }
    tdm__dataset_close(dataset);
}

TEST(seek) {
    numbers own = {.broken = -1, .uneven = true};
    tdm_dataset *dataset = open_numbers(&own, 50);
    for (int workers = 0; workers <= 4; workers += 2) {
        tdm_loader_options o = options_of(50, 2, 4); /* 25 each: 7 steps, the last one of 1 row */
        o.workers = workers;
        tdm_loader *loader = open_loader(dataset, &o);
        CHECK_INT(tdm__loader_steps_per_epoch(loader), 7);
        CHECK_OK(tdm__loader_seek(loader, 5, 3));
        check_batches(loader, &o, 5, 3, 3);
        CHECK_OK(tdm__loader_seek(loader, 0, 0));
        check_batches(loader, &o, 0, 0, 9);
        CHECK_OK(tdm__loader_seek(loader, 2, 7)); /* the end of an epoch is the start of the next */
        check_batches(loader, &o, 3, 0, 8);
        CHECK_OK(tdm__loader_seek(loader, 1, 6));
        CHECK_OK(tdm__loader_seek(loader, 1, 2));
        check_batches(loader, &o, 1, 2, 1);
        CHECK_STATUS(tdm__loader_seek(loader, 0, 8), TDM_E_USAGE);
        CHECK_STATUS(tdm__loader_seek(loader, -1, 0), TDM_E_USAGE);
        check_batches(loader, &o, 1, 3, 1); /* a refused seek changes nothing */
        tdm__loader_close(loader);
    }
    tdm__dataset_close(dataset);
}

/* A rank of ddp sees exactly its part of what dp sees. */
TEST(one_replica_of_many) {
    numbers own = {.broken = -1};
    tdm_dataset *dataset = open_numbers(&own, 41);
    for (int rank = 0; rank < 4; rank++) {
        tdm_loader_options o = options_of(41, 4, 3);
        o.first_replica = rank;
        o.replicas_here = 1;
        o.workers = rank;
        tdm_loader *loader = open_loader(dataset, &o);
        check_batches(loader, &o, 0, 0, 10);
        tdm__loader_close(loader);
    }
    tdm__dataset_close(dataset);
}

/* torch.chunk leaves late replicas without rows. */
TEST(empty_shards) {
    numbers own = {.broken = -1};
    tdm_dataset *dataset = open_numbers(&own, 5);
    tdm_loader_options o = options_of(5, 4, 100); /* padded to 8 rows, 2 each; a per_device beyond the data is fine */
    o.scatter = TDM_SCATTER_CHUNK;
    o.sampler.shuffle = false;
    tdm_loader *loader = open_loader(dataset, &o);
    check_batches(loader, &o, 0, 0, 2);
    tdm__loader_close(loader);
    tdm__dataset_close(dataset);
}

TEST(last_batches) {
    numbers own = {.broken = -1};
    tdm_dataset *dataset = open_numbers(&own, 10);
    static const struct {
        int replicas;
        int64_t per_device;
        bool drop_samples, drop_batch;
        int64_t steps; /* 0: refused */
    } cases[] = {
        {1, 4, false, false, 3}, {1, 4, false, true, 2}, {1, 5, false, true, 2},  {1, 11, false, false, 1},
        {1, 11, false, true, 0}, {4, 3, true, true, 0},  {4, 2, true, true, 1},   {4, 3, false, true, 1},
        {16, 1, false, true, 1}, {16, 1, true, true, 0}, {16, 1, true, false, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tdm_loader_options o = options_of(10, cases[i].replicas, cases[i].per_device);
        o.sampler.drop_last = cases[i].drop_samples;
        o.drop_last_batch = cases[i].drop_batch;
        tdm_loader *loader;
        CHECK_STATUS(tdm__loader_open(&loader, tdm_host_default(), dataset, &o),
                     cases[i].steps == 0 ? TDM_E_DATA : TDM_OK);
        CHECK((loader == NULL) == (cases[i].steps == 0));
        if (loader != NULL) CHECK_INT(tdm__loader_steps_per_epoch(loader), cases[i].steps);
        if (loader != NULL) check_batches(loader, &o, 0, 0, 5);
        tdm__loader_close(loader);
    }
    tdm__dataset_close(dataset);
}

TEST(failures_arrive_in_order) {
    for (int workers = 0; workers <= 4; workers += 2) {
        numbers own = {.broken = 23, .uneven = true};
        tdm_dataset *dataset = open_numbers(&own, 64);
        tdm_loader_options o = options_of(64, 1, 4);
        o.sampler.shuffle = false;
        o.workers = workers;
        o.ahead = 6;
        tdm_loader *loader = open_loader(dataset, &o);
        const tdm_batch *batch;
        check_batches(loader, &o, 0, 0, 5); /* 0 to 19: good, however far ahead 23 has been met */
        for (int again = 0; again < 3; again++) {
            CHECK_STATUS(tdm__loader_next(loader, &batch), TDM_E_DATA);
            CHECK_HAS(tdm_error_message(), "sample 23 ");
            CHECK(batch == NULL);
        }
        CHECK_OK(tdm__loader_seek(loader, 0, 6));
        check_batches(loader, &o, 0, 6, 10);
        own.broken = -1;
        CHECK_OK(tdm__loader_seek(loader, 0, 5));
        check_batches(loader, &o, 0, 5, 3);
        tdm__loader_close(loader);
        tdm__dataset_close(dataset);
    }
}

/* Closing never waits for a batch that nobody will take. */
TEST(close_at_any_moment) {
    numbers own = {.broken = -1, .uneven = true};
    tdm_dataset *dataset = open_numbers(&own, 40);
    for (int takes = 0; takes < 12; takes++) {
        tdm_loader_options o = options_of(40, 1, 3);
        o.workers = 1 + takes % 4;
        o.ahead = 1 + takes % 3;
        tdm_loader *loader = open_loader(dataset, &o);
        if (takes % 2 == 1) CHECK_OK(tdm__loader_seek(loader, 0, 0));
        check_batches(loader, &o, 0, 0, takes / 2);
        tdm__loader_close(loader);
    }
    tdm__loader_close(NULL);
    tdm__dataset_close(dataset);
}

/* Nothing is read before it is asked for: whoever opens and then seeks reads nothing twice. */
TEST(starts_on_demand) {
    numbers own = {.broken = -1};
    tdm_dataset *dataset = open_numbers(&own, 40);
    tdm_loader_options o = options_of(40, 1, 4);
    o.workers = 2;
    tdm_loader *loader = open_loader(dataset, &o);
    nanosleep(&(struct timespec){0, 5000000}, NULL);
    CHECK_INT(atomic_load(&own.reads), 0);
    tdm__loader_close(loader);
    tdm__dataset_close(dataset);
}

TEST(bad_options) {
    numbers own = {.broken = -1};
    tdm_dataset *dataset = open_numbers(&own, 10);
    tdm_loader *loader;
    tdm_loader_options o = options_of(10, 2, 2);
    o.first_replica = 1;
    CHECK_STATUS(tdm__loader_open(&loader, tdm_host_default(), dataset, &o), TDM_E_USAGE);
    o = options_of(10, 2, 0);
    CHECK_STATUS(tdm__loader_open(&loader, tdm_host_default(), dataset, &o), TDM_E_USAGE);
    o = options_of(10, 2, 2);
    o.workers = -1;
    CHECK_STATUS(tdm__loader_open(&loader, tdm_host_default(), dataset, &o), TDM_E_USAGE);
    o = options_of(10, 2, 2);
    o.ahead = 0;
    CHECK_STATUS(tdm__loader_open(&loader, tdm_host_default(), dataset, &o), TDM_E_USAGE);
    CHECK(loader == NULL);
    tdm__dataset_close(dataset);
}

/* Every third step from the second on, and no more. */
TEST(strides) {
    for (int workers = 0; workers <= 2; workers++) {
        numbers own = {.broken = -1};
        tdm_dataset *dataset = open_numbers(&own, 20);
        tdm_loader_options o = options_of(20, 1, 2);
        tdm_loader *loader;
        const tdm_batch *batch;
        o.workers = workers;
        o.stride = 3;
        REQUIRE_OK(tdm__loader_open(&loader, tdm_host_default(), dataset, &o));
        for (int round = 0; round < 2; round++) {
            REQUIRE_OK(tdm__loader_seek(loader, 0, 1));
            for (int64_t step = 1; step < 10; step += 3) {
                REQUIRE_OK(tdm__loader_next(loader, &batch));
                CHECK_INT(batch->epoch, 0);
                CHECK_INT(batch->step_in_epoch, step);
            }
            CHECK_STATUS(tdm__loader_next(loader, &batch), TDM_E_INTERNAL);
        }
        tdm__loader_close(loader);
        tdm__dataset_close(dataset);
    }
}

/* ---- transforms ---- */

/* Samples 0 to n - 1: the bytes (or floats) 0 to 255 on each of three channels. */
static tdm_status read_ramp(const tdm_sample_reader *reader, int64_t index, void *x, void *target) {
    const tdm_dataset *dataset = reader->dataset;
    *(int64_t *)target = index;
    for (int c = 0; c < 3; c++) {
        for (int v = 0; v < 256; v++) {
            if (dataset->x_is_bytes) ((unsigned char *)x)[c * 256 + v] = (unsigned char)v;
            if (!dataset->x_is_bytes) ((float *)x)[c * 256 + v] = (float)v - 100.5f;
        }
    }
    return TDM_OK;
}

static tdm_dataset ramp(bool bytes) {
    static const tdm_dataset_ops ops = {.name = "ramp", .read = read_ramp};
    return (tdm_dataset){
        .ops = &ops, .host = tdm_host_default(), .count = 2, .x_shape = {3, {3, 16, 16}}, .x_is_bytes = bytes};
}

static uint64_t checksum(const float *x) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < 256; i++) {
        uint32_t word;
        memcpy(&word, &x[i], sizeof(word));
        sum += (i + 1) * word;
    }
    return sum;
}

/* Its numbers are valid until the next call. */
static tdm_transform_spec normalize(int count, double mean, double stdev) {
    static double means[3], stdevs[3];
    for (int i = 0; i < count; i++) means[i] = mean, stdevs[i] = stdev;
    return (tdm_transform_spec){.to_float = true,
                                .normalize = {1, {{.mean = {count, means}, .stdev = {count, stdevs}}}}};
}

TEST(transform_is_torch) {
    FILE *file = fopen(TDM_TEST_DATA "/transform.txt", "r");
    REQUIRE(file != NULL);
    double mean, stdev;
    unsigned long long want[2];
    int lines = 0;
    while (fscanf(file, "%lf %lf %llu %llu", &mean, &stdev, &want[0], &want[1]) == 4) {
        for (int floats = 0; floats < 2; floats++) {
            tdm_dataset dataset = ramp(floats == 0);
            tdm_transform_spec alike = normalize(3, mean, stdev), each = alike;
            alike.normalize.item[0].mean.count = alike.normalize.item[0].stdev.count = 1;
            each.normalize.item[0].mean.item = (double[]){mean, 0.25, mean}; /* only its own channel may notice */
            tdm_loader_options o = options_of(2, 1, 1);
            for (int per_channel = 0; per_channel < 2; per_channel++) {
                o.transform = per_channel ? &each : &alike;
                tdm_loader *loader = open_loader(&dataset, &o);
                const tdm_batch *batch;
                REQUIRE_OK(tdm__loader_next(loader, &batch));
                const float *x = batch->shard[0].x;
                CHECK(checksum(x) == want[floats]);
                CHECK((checksum(x + 256) == want[floats]) == (per_channel == 0));
                CHECK(checksum(x + 512) == want[floats]);
                tdm__loader_close(loader);
            }
        }
        lines++;
    }
    fclose(file);
    CHECK_INT(lines, 4);
}

TEST(bad_transforms) {
    tdm_dataset dataset = ramp(true);
    tdm_loader_options o = options_of(2, 1, 1);
    tdm_loader *loader;
    tdm_transform_spec spec = normalize(2, 0.5, 0.5);
    o.transform = &spec;
    CHECK_STATUS(tdm__loader_open(&loader, tdm_host_default(), &dataset, &o), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "one for each of 3 channels, got 2");
    spec = normalize(3, 0.5, 0.5);
    spec.normalize.item[0].stdev.count = 1;
    CHECK_STATUS(tdm__loader_open(&loader, tdm_host_default(), &dataset, &o), TDM_E_CONFIG);
    spec = normalize(1, 0.5, 0.0);
    CHECK_STATUS(tdm__loader_open(&loader, tdm_host_default(), &dataset, &o), TDM_E_CONFIG);
    spec = normalize(1, NAN, 1.0);
    CHECK_STATUS(tdm__loader_open(&loader, tdm_host_default(), &dataset, &o), TDM_E_CONFIG);
}

TEST(bytes_without_to_float) {
    tdm_dataset dataset = ramp(true);
    tdm_loader_options o = options_of(2, 1, 1);
    tdm_loader *loader = open_loader(&dataset, &o);
    const tdm_batch *batch;
    REQUIRE_OK(tdm__loader_next(loader, &batch));
    for (int v = 0; v < 256; v++) CHECK(batch->shard[0].x[v] == (float)v);
    tdm__loader_close(loader);
}

TEST(out_of_memory) {
    tdm_dataset dataset = ramp(true);
    tdm_loader_options o = options_of(2, 1, 1);
    tdm_transform_spec spec = normalize(3, 0.5, 0.5);
    o.transform = &spec;
    o.workers = 2;
    watched_host watched;
    tdm_loader *loader;
    tdm_status status = TDM_E_MEMORY;
    for (size_t limit = 0; status != TDM_OK; limit += 512) {
        REQUIRE(limit < 1 << 20);
        watch(&watched, limit);
        status = tdm__loader_open(&loader, &watched.host, &dataset, &o);
        CHECK(status == TDM_OK || status == TDM_E_MEMORY);
        CHECK(status == TDM_OK || atomic_load(&watched.blocks) == 0);
    }
    tdm__loader_close(loader);
    CHECK_INT(watched.blocks, 0);
}

TEST_MAIN(RUN(any_workers_any_scatter); RUN(seek); RUN(strides); RUN(one_replica_of_many); RUN(empty_shards);
          RUN(last_batches); RUN(failures_arrive_in_order); RUN(close_at_any_moment); RUN(starts_on_demand);
          RUN(bad_options); RUN(transform_is_torch); RUN(bad_transforms); RUN(bytes_without_to_float);
          RUN(out_of_memory);)
