/* The blocks that batches come in: their packing, the forms of x, how long they stay, and whose memory they are. */
#include "tests/data/support.h"

#include <time.h>

#include "runtime/base/status.h"
#include "runtime/data/transform.h"

/* ---- datasets ---- */

static const int kinds[] = {TDM_DATA_GLYPHS, TDM_DATA_SYNTHETIC};
enum { KINDS = 2, SAMPLES = 61, CHANNELS = 3, SIDE = 12, NUMBERS = CHANNELS * SIDE * SIDE };

/* 61 samples of a kind, the last of more; `width`: floats of a target, 0: labels. */
static tdm_dataset *open_samples(int kind, int64_t width) {
    tdm_data_spec spec = {.format = kind,
                          .samples = SAMPLES + 9,
                          .seed = 5,
                          .classes = TDM_INT_NULL,
                          .noise = 0.2,
                          .range = {2, {9, SAMPLES + 9}}};
    tdm_data_wanted wanted = wanted_classes(3, (int64_t[]){CHANNELS, SIDE, SIDE}, 10);
    tdm_dataset *dataset = NULL;
    if (width > 0) wanted.target_kind = TDM_TARGET_VALUES, wanted.target_width = width;
    CHECK_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
    if (dataset == NULL) exit(1);
    return dataset;
}

static const tdm_transform_spec transform = {
    .to_float = true,
    .normalize = {1, {{.mean = {3, (double[]){0.5, 0.25, 0.125}}, .stdev = {3, (double[]){0.3, 0.2, 0.1}}}}}};

static tdm_loader_options options_of(int64_t count, int replicas, int64_t per_device) {
    return (tdm_loader_options){.sampler = {.count = count, .replicas = replicas, .shuffle = true, .seed = 42},
                                .per_device = per_device,
                                .scatter = TDM_SCATTER_STRIDED,
                                .replicas_here = replicas,
                                .ahead = 2,
                                .transform = &transform};
}

static tdm_loader *open_form(const tdm_dataset *dataset, tdm_loader_options options, tdm_rows_form form) {
    tdm_loader *loader = NULL;
    options.form = form;
    CHECK_OK(tdm__loader_open(&loader, tdm_host_default(), dataset, &options));
    if (loader == NULL) exit(1);
    return loader;
}

/* ---- packing ---- */

static void check_packing(const tdm_dataset *dataset, tdm_rows_form form, int64_t rows, size_t row_bytes) {
    tdm_loader_options options = options_of(dataset->count, 1, rows);
    tdm_loader *loader = open_form(dataset, options, form);
    const tdm_packing *p = tdm__loader_packing(loader);
    size_t most = (size_t)(rows < dataset->count ? rows : dataset->count);
    CHECK_INT(p->target_bytes, tdm__dataset_target_bytes(dataset));
    CHECK_INT(p->row_bytes, row_bytes);
    CHECK(p->target_at % TDM_ALIGN == 0 && p->x_at % TDM_ALIGN == 0 && p->bytes % TDM_ALIGN == 0);
    CHECK(p->target_at >= most * sizeof(int64_t) && p->target_at < most * sizeof(int64_t) + TDM_ALIGN);
    CHECK(p->x_at >= p->target_at + most * p->target_bytes);
    CHECK(p->x_at < p->target_at + most * p->target_bytes + TDM_ALIGN);
    CHECK(p->bytes >= p->x_at + most * row_bytes && p->bytes < p->x_at + most * row_bytes + TDM_ALIGN);
    CHECK_INT(tdm__packing_used(p, 0), 0);
    CHECK_INT(tdm__packing_used(p, (int64_t)most), p->x_at + most * row_bytes);
    const tdm_batch *batch = NULL;
    CHECK_OK(tdm__loader_next(loader, &batch));
    const tdm_shard *shard = &batch->shard[0];
    const char *x = shard->block + p->x_at;
    bool has_floats = form == TDM_ROWS_FLOATS || (form == TDM_ROWS_RAW && !dataset->x_is_bytes);
    CHECK_INT(shard->form, form);
    CHECK((uintptr_t)shard->block % TDM_ALIGN == 0);
    CHECK((const char *)shard->position == shard->block);
    CHECK((const char *)shard->target == shard->block + p->target_at);
    CHECK((const char *)shard->x == (has_floats ? x : NULL));
    CHECK(((const char *)shard->index == x) == (form == TDM_ROWS_INDEX));
    tdm__loader_close(loader);
}

TEST(packing) {
    for (int kind = 0; kind < KINDS; kind++) {
        tdm_dataset *dataset = open_samples(kinds[kind], 0);
        for (int64_t rows = 1; rows <= 100; rows += 11) {
            check_packing(dataset, TDM_ROWS_FLOATS, rows, NUMBERS * sizeof(float));
            check_packing(dataset, TDM_ROWS_RAW, rows, NUMBERS * (dataset->x_is_bytes ? 1 : sizeof(float)));
            check_packing(dataset, TDM_ROWS_INDEX, rows, sizeof(int64_t));
        }
        tdm__dataset_close(dataset);
    }
    tdm_dataset *values = open_samples(TDM_DATA_SYNTHETIC, 7);
    check_packing(values, TDM_ROWS_FLOATS, 5, NUMBERS * sizeof(float));
    check_packing(values, TDM_ROWS_INDEX, 5, sizeof(int64_t));
    tdm__dataset_close(values);
}

/* ---- forms ---- */

/* Row `row` of the shard as floats, whatever its form; `all` are the samples as a device keeps them. */
static const float *floats_of(const tdm_loader *loader, const tdm_dataset *dataset, const tdm_shard *shard, int64_t row,
                              const char *all) {
    static float out[NUMBERS];
    const tdm_packing *packing = tdm__loader_packing(loader);
    const char *x = shard->block + packing->x_at + (size_t)row * packing->row_bytes;
    if (shard->form == TDM_ROWS_INDEX) {
        int64_t index;
        memcpy(&index, x, sizeof(index));
        CHECK_INT(index, shard->index[row]);
        x = all + (size_t)index * tdm__dataset_x_bytes(dataset);
    }
    if (shard->form == TDM_ROWS_FLOATS || !dataset->x_is_bytes)
        memcpy(out, x, sizeof(out));
    else
        tdm__transform_bytes(tdm__loader_transform(loader), (const unsigned char *)x, out);
    return out;
}

static void check_same(const tdm_loader *loader, const tdm_dataset *dataset, const tdm_batch *got,
                       const tdm_batch *want, const char *all, const char *targets) {
    size_t target_bytes = tdm__dataset_target_bytes(dataset);
    CHECK(got->epoch == want->epoch && got->step_in_epoch == want->step_in_epoch);
    CHECK_INT(got->global_rows, want->global_rows);
    REQUIRE(got->shard_count == want->shard_count);
    for (int i = 0; i < got->shard_count; i++) {
        const tdm_shard *a = &got->shard[i], *b = &want->shard[i];
        REQUIRE(a->rows == b->rows);
        size_t rows = (size_t)a->rows;
        CHECK(rows == 0 || memcmp(a->position, b->position, rows * sizeof(int64_t)) == 0);
        CHECK(rows == 0 || memcmp(a->index, b->index, rows * sizeof(int64_t)) == 0);
        CHECK(rows == 0 || memcmp(a->target, b->target, rows * target_bytes) == 0);
        for (int64_t row = 0; row < a->rows; row++) {
            CHECK(memcmp(floats_of(loader, dataset, a, row, all), b->x + row * NUMBERS, NUMBERS * sizeof(float)) == 0);
            CHECK(memcmp((const char *)a->target + (size_t)row * target_bytes,
                         targets + (size_t)a->index[row] * target_bytes, target_bytes) == 0);
        }
    }
}

static void check_forms(const tdm_dataset *dataset, const tdm_loader_options *options) {
    tdm_loader_options plain = *options;
    plain.workers = 0;
    plain.held = 0;
    tdm_loader *reference = open_form(dataset, plain, TDM_ROWS_FLOATS);
    const int last = dataset->resident_bytes > 0 ? TDM_ROWS_INDEX : TDM_ROWS_RAW;
    char *all = malloc(SAMPLES * tdm__dataset_x_bytes(dataset)),
         *targets = malloc(SAMPLES * tdm__dataset_target_bytes(dataset));
    CHECK_OK(tdm__dataset_fill(dataset, tdm__loader_transform(reference), 0, 20, all, targets));
    CHECK_OK(tdm__dataset_fill(dataset, tdm__loader_transform(reference), 20, SAMPLES - 20,
                               all + 20 * tdm__dataset_x_bytes(dataset),
                               targets + 20 * tdm__dataset_target_bytes(dataset)));
    for (int form = TDM_ROWS_FLOATS; form <= last; form++) {
        tdm_loader *loader = open_form(dataset, *options, (tdm_rows_form)form);
        CHECK_OK(tdm__loader_seek(reference, 1, 0));
        CHECK_OK(tdm__loader_seek(loader, 1, 0));
        for (int64_t step = 0; step < 2 * tdm__loader_steps_per_epoch(loader); step++) {
            const tdm_batch *got = NULL, *want = NULL;
            REQUIRE_OK(tdm__loader_next(loader, &got));
            REQUIRE_OK(tdm__loader_next(reference, &want));
            check_same(loader, dataset, got, want, all, targets);
        }
        tdm__loader_close(loader);
    }
    free(all);
    free(targets);
    tdm__loader_close(reference);
}

TEST(forms_say_the_same) {
    for (int kind = 0; kind < KINDS; kind++) {
        for (int64_t width = 0; width < (kinds[kind] == TDM_DATA_GLYPHS ? 1 : 4); width += 3) {
            tdm_dataset *dataset = open_samples(kinds[kind], width);
            CHECK_INT(dataset->resident_bytes, SAMPLES * tdm__dataset_x_bytes(dataset));
            for (int workers = 0; workers <= 4; workers += 2) {
                for (int scatter = 0; scatter < 2; scatter++) {
                    tdm_loader_options options = options_of(SAMPLES, 3, 4); /* the last batch is short */
                    options.workers = workers;
                    options.held = 1 + workers / 2;
                    options.scatter = scatter;
                    check_forms(dataset, &options);
                }
            }
            tdm__dataset_close(dataset);
        }
    }
}

typedef struct own_arrays {
    int input;
    float x[SAMPLES][NUMBERS];
    unsigned char bytes[SAMPLES][NUMBERS];
    int64_t labels[SAMPLES];
} own_arrays;

static int copy_rows(void *user, tdm_source_rows *rows) {
    const own_arrays *own = user;
    for (int64_t i = 0; i < rows->rows; i++) {
        const int64_t index = rows->index[i];
        if (own->input == TDM_INPUT_BYTES)
            memcpy((unsigned char *)rows->x + i * NUMBERS, own->bytes[index], NUMBERS);
        else
            memcpy((float *)rows->x + i * NUMBERS, own->x[index], sizeof(own->x[index]));
        ((int64_t *)rows->targets)[i] = own->labels[index];
    }
    return 0;
}

/* A program's own, of every kind: in arrays, which a device may keep, and several in a call. */
TEST(forms_of_own_samples) {
    own_arrays *own = calloc(1, sizeof(*own));
    REQUIRE(own != NULL);
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < NUMBERS; k++) own->bytes[i][k] = (unsigned char)(i * 7 + k);
        for (int k = 0; k < NUMBERS; k++) own->x[i][k] = (float)(i - k);
        own->labels[i] = i % 10;
    }
    for (int way = 0; way < 2 * 3; way++) {
        const bool is_array = way < 3;
        tdm_data_wanted wanted = wanted_classes(3, (int64_t[]){CHANNELS, SIDE, SIDE}, 10);
        tdm_source source = {.size = sizeof(source), .count = SAMPLES, .has_labels = 1, .user = own};
        tdm_loader_options options = options_of(SAMPLES, 3, 4);
        tdm_dataset *dataset = NULL;
        source.input = own->input = way % 3;
        source.width = NUMBERS;
        if (is_array) source.x = own->input == TDM_INPUT_BYTES ? (const void *)own->bytes : own->x;
        if (is_array) source.targets = own->labels;
        if (!is_array) source.read_rows = copy_rows;
        REQUIRE_OK(tdm__dataset_open_source(&dataset, tdm_host_default(), &source, &wanted));
        CHECK((dataset->resident_bytes > 0) == is_array);
        options.workers = 2;
        options.held = 2;
        check_forms(dataset, &options);
        tdm__dataset_close(dataset);
    }
    free(own);
}

TEST(indices_want_samples_that_stay) {
    tdm_dataset *dataset = open_samples(TDM_DATA_GLYPHS, 0);
    tdm_loader_options options = options_of(SAMPLES, 1, 4);
    tdm_loader *loader;
    options.form = TDM_ROWS_INDEX;
    dataset->resident_bytes = 0;
    CHECK_STATUS(tdm__loader_open(&loader, tdm_host_default(), dataset, &options), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "cannot be kept on a device");
    CHECK(loader == NULL);
    tdm__dataset_close(dataset);
}

/* ---- batches that are held ---- */

/* Samples whose numbers tell when they were read: what is written too early differs. */
typedef struct clock_source {
    atomic_int reads;
    _Atomic int64_t broken; /* this sample fails; -1: none */
} clock_source;

static int read_clock(void *user, int64_t index, float *x, void *target) {
    clock_source *own = user;
    int read = atomic_fetch_add(&own->reads, 1);
    if (index % 7 == 0) nanosleep(&(struct timespec){0, 50000}, NULL);
    if (index == own->broken) return 1;
    for (int i = 0; i < 16; i++) x[i] = (float)(read * 16 + i);
    *(int64_t *)target = index % 10;
    return 0;
}

static tdm_dataset *open_clock(clock_source *own, int64_t count) {
    tdm_source source = {.size = sizeof(source), .count = count, .has_labels = 1, .read = read_clock, .user = own};
    tdm_data_wanted wanted = wanted_classes(1, (int64_t[]){16}, 10);
    tdm_dataset *dataset = NULL;
    CHECK_OK(tdm__dataset_open_source(&dataset, tdm_host_default(), &source, &wanted));
    if (dataset == NULL) exit(1);
    CHECK_INT(dataset->resident_bytes, 0);
    return dataset;
}

enum { HELD_MOST = 4, BATCH = 5 };

typedef struct kept_batch {
    const tdm_batch *batch;
    int64_t epoch, step;
    int64_t index[BATCH];
    char *block;
} kept_batch;

static void keep(kept_batch *kept, const tdm_batch *batch, size_t bytes) {
    free(kept->block);
    *kept = (kept_batch){batch, batch->epoch, batch->step_in_epoch, {0}, malloc(bytes)};
    memcpy(kept->index, batch->shard[0].index, (size_t)batch->shard[0].rows * sizeof(int64_t));
    memcpy(kept->block, batch->shard[0].block, bytes);
}

static void check_kept(const kept_batch *kept, size_t bytes) {
    const tdm_batch *batch = kept->batch;
    CHECK(batch->epoch == kept->epoch && batch->step_in_epoch == kept->step);
    CHECK(memcmp(batch->shard[0].index, kept->index, (size_t)batch->shard[0].rows * sizeof(int64_t)) == 0);
    CHECK(memcmp(batch->shard[0].block, kept->block, bytes) == 0);
}

static void check_held(int workers, int ahead, int held, bool peeks) {
    clock_source own = {.broken = -1};
    tdm_dataset *dataset = open_clock(&own, 43); /* batches of 5 and, at the end, 3 */
    tdm_loader_options options = options_of(43, 1, BATCH);
    options.transform = NULL;
    options.workers = workers;
    options.ahead = ahead;
    options.held = held;
    tdm_loader *loader = open_form(dataset, options, TDM_ROWS_FLOATS);
    size_t bytes = tdm__loader_packing(loader)->bytes;
    kept_batch kept[HELD_MOST] = {{0}};
    for (int step = 0; step < 40; step++) {
        const tdm_batch *batch = NULL, *peeked = peeks ? tdm__loader_peek(loader) : NULL;
        REQUIRE_OK(tdm__loader_next(loader, &batch));
        CHECK(!peeks || batch == peeked);
        for (int i = 1; i < held && i <= step; i++) {
            CHECK(kept[(step - i) % held].batch != batch);
            check_kept(&kept[(step - i) % held], bytes);
        }
        keep(&kept[step % held], batch, bytes);
        if (peeks) CHECK(tdm__loader_peek(loader) != NULL);
        /* Time for threads to fill all that is free. */
        if (workers > 0 && step % 8 == 0) nanosleep(&(struct timespec){0, 1000000}, NULL);
        for (int i = 0; i < held && i <= step; i++) check_kept(&kept[(step - i) % held], bytes);
        int given = step + 1 > held ? step + 1 : held; /* entries that none is given from yet are filled, too */
        CHECK(atomic_load(&own.reads) <= (given + (workers > ahead ? workers : ahead)) * BATCH);
    }
    for (int i = 0; i < held; i++) free(kept[i].block);
    tdm__loader_close(loader);
    tdm__dataset_close(dataset);
}

TEST(held_batches_stay) {
    for (int workers = 0; workers <= 4; workers++) {
        for (int held = 1; held <= HELD_MOST; held++) {
            check_held(workers, 1 + held % 3, held, false);
            check_held(workers, 1, held, true);
        }
    }
}

/* Threads that have gone to sleep, since nobody wanted anything yet, wake up for a look, too. */
TEST(peek_comes_first) {
    clock_source own = {.broken = -1};
    tdm_dataset *dataset = open_clock(&own, 43);
    tdm_loader_options options = options_of(43, 1, BATCH);
    options.transform = NULL;
    options.workers = 1;
    tdm_loader *loader = open_form(dataset, options, TDM_ROWS_FLOATS);
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    CHECK_INT(atomic_load(&own.reads), 0);
    const tdm_batch *peeked = tdm__loader_peek(loader), *batch = NULL;
    CHECK_OK(tdm__loader_next(loader, &batch));
    CHECK(batch != NULL && batch == peeked);
    tdm__loader_close(loader);
    tdm__dataset_close(dataset);
}

/* A batch that cannot be had takes none away but the oldest. */
TEST(held_batches_survive_a_failure) {
    for (int64_t workers = 0; workers <= 2; workers++) {
        clock_source own = {.broken = 27};
        tdm_dataset *dataset = open_clock(&own, 43);
        tdm_loader_options options = options_of(43, 1, BATCH);
        options.sampler.shuffle = false;
        options.transform = NULL;
        options.workers = workers;
        options.held = 3;
        tdm_loader *loader = open_form(dataset, options, TDM_ROWS_FLOATS);
        size_t bytes = tdm__loader_packing(loader)->bytes;
        kept_batch kept[5] = {{0}};
        const tdm_batch *batch = NULL;
        for (int i = 0; i < 5; i++) {
            REQUIRE_OK(tdm__loader_next(loader, &batch));
            keep(&kept[i], batch, bytes);
        }
        for (int again = 0; again < 3; again++) {
            CHECK(tdm__loader_peek(loader) == NULL);
            CHECK_STATUS(tdm__loader_next(loader, &batch), TDM_E_DATA);
            check_kept(&kept[3], bytes);
            check_kept(&kept[4], bytes);
        }
        for (int i = 0; i < 5; i++) free(kept[i].block);
        tdm__loader_close(loader);
        tdm__dataset_close(dataset);
    }
}

TEST(bad_options) {
    tdm_dataset *dataset = open_samples(TDM_DATA_GLYPHS, 0);
    tdm_loader_options options = options_of(SAMPLES, 1, 4);
    tdm_loader *loader;
    for (options.held = -1; options.held <= 65; options.held += 66) {
        CHECK_STATUS(tdm__loader_open(&loader, tdm_host_default(), dataset, &options), TDM_E_USAGE);
        CHECK_HAS(tdm_error_message(), "batches held must be 0 to 64");
    }
    tdm__dataset_close(dataset);
}

/* ---- lent memory ---- */

typedef struct lender {
    int fail_at, calls, live; /* fail_at: from 1; 0: never */
} lender;

static tdm_status lend(void *user, void **out, size_t bytes, const char *what) {
    lender *own = user;
    *out = NULL;
    CHECK_TEXT(what, "batch");
    if (++own->calls == own->fail_at) TDM_FAIL(TDM_E_DEVICE, "no more to lend");
    *out = aligned_alloc(TDM_ALIGN, bytes);
    memset(*out, 0xA5, bytes);
    own->live++;
    return TDM_OK;
}

static void take_back(void *user, void *block) {
    CHECK(block != NULL);
    ((lender *)user)->live--;
    free(block);
}

TEST(lent_memory) {
    tdm_dataset *dataset = open_samples(TDM_DATA_GLYPHS, 0);
    enum { REPLICAS = 2, HELD = 2, AHEAD = 3 };
    for (int form = TDM_ROWS_FLOATS; form <= TDM_ROWS_INDEX; form++) {
        int blocks = REPLICAS * (HELD + (form == TDM_ROWS_INDEX ? 1 : AHEAD)); /* indices need no threads */
        for (int fail_at = blocks + 1; fail_at >= 0; fail_at--) {
            lender own = {.fail_at = fail_at};
            const tdm_block_memory memory = {lend, take_back, &own};
            tdm_loader_options options = options_of(SAMPLES, REPLICAS, 4);
            watched_host watched;
            tdm_loader *loader;
            watch(&watched, SIZE_MAX);
            options.memory = memory;
            options.form = (tdm_rows_form)form;
            options.workers = 2;
            options.held = HELD;
            options.ahead = AHEAD;
            bool fails = fail_at >= 1 && fail_at <= blocks;
            CHECK_STATUS(tdm__loader_open(&loader, &watched.host, dataset, &options), fails ? TDM_E_DEVICE : TDM_OK);
            if (fails) CHECK_HAS(tdm_error_message(), "no more to lend");
            const tdm_batch *batch;
            for (int step = 0; step < 20 && !fails; step++) REQUIRE_OK(tdm__loader_next(loader, &batch));
            CHECK_INT(own.live, fails ? 0 : blocks);
            tdm__loader_close(loader);
            CHECK_INT(own.calls, fails ? fail_at : blocks);
            CHECK_INT(own.live, 0);
            CHECK_INT(atomic_load(&watched.blocks), 0);
        }
    }
    tdm__dataset_close(dataset);
}

TEST_MAIN(RUN(packing); RUN(forms_say_the_same); RUN(forms_of_own_samples); RUN(indices_want_samples_that_stay);
          RUN(held_batches_stay); RUN(peek_comes_first); RUN(held_batches_survive_a_failure); RUN(bad_options);
          RUN(lent_memory);)
