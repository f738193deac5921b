/* A batch as the loader packs it, brought in by the device, against the floats that the CPU's loader makes: to the bit,
 * in every form, precision and layout. Nothing beyond what the batch takes is read or written. */
#include <tandem/job.h>

#include "runtime/base/bf16.h"
#include "runtime/data/data.h"
#include "runtime/data/transform.h"
#include "tests/ops/cuda_device.h"
#include "tests/support/device_fill.h"

enum { SAMPLES = 33, GUARD = 64, GUARD_BYTE = 0xA5 };

static tdm_device *device;
static tdm_queue *other; /* beside the device's own */

/* ---- samples ---- */

static uint32_t scramble(uint64_t n) {
    n = (n + 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
    n = (n ^ n >> 27) * 0x94D049BB133111EBu;
    return (uint32_t)(n >> 32);
}

static tdm_status read_sample(const tdm_sample_reader *reader, int64_t index, void *x, void *target) {
    const tdm_dataset *dataset = reader->dataset;
    int64_t numbers = dataset->x_shape.dim[0] * dataset->x_shape.dim[1] * dataset->x_shape.dim[2];
    for (int64_t i = 0; i < numbers && x != NULL; i++) {
        uint32_t word = scramble((uint64_t)(index * numbers + i));
        if (dataset->x_is_bytes) ((unsigned char *)x)[i] = (unsigned char)word;
        if (!dataset->x_is_bytes) ((float *)x)[i] = (float)(int32_t)word * 0x1p-30f;
    }
    if (dataset->target_kind == TDM_TARGET_CLASS) *(int64_t *)target = index * 3 - 100;
    for (int64_t i = 0; i < dataset->target_width; i++)
        ((float *)target)[i] = (float)(index * dataset->target_width + i);
    return TDM_OK;
}

typedef struct sample_kind {
    int64_t channels, height, width;
    bool bytes, normalize_each; /* each: with numbers of its own for each channel */
    int64_t target_width;       /* 0: a label; -1: none */
} sample_kind;

static tdm_dataset dataset_of(const sample_kind *kind) {
    static const tdm_dataset_ops ops = {.name = "scrambled", .read = read_sample};
    tdm_dataset out = {.ops = &ops,
                       .host = tdm_host_default(),
                       .count = SAMPLES,
                       .x_shape = {3, {kind->channels, kind->height, kind->width}},
                       .x_is_bytes = kind->bytes,
                       .target_kind = kind->target_width == 0 ? TDM_TARGET_CLASS : TDM_TARGET_VALUES,
                       .target_width = kind->target_width > 0 ? kind->target_width : 0};
    out.resident_bytes = SAMPLES * tdm__dataset_x_bytes(&out);
    return out;
}

static tdm_transform_spec transform_of(const sample_kind *kind) {
    static double mean[TDM_LIST_MAX], stdev[TDM_LIST_MAX];
    const int count = kind->normalize_each ? (int)kind->channels : 1;
    for (int c = 0; c < count; c++) mean[c] = 0.4 + 0.05 * c, stdev[c] = 0.3 - 0.01 * c;
    return (tdm_transform_spec){.to_float = kind->bytes,
                                .normalize = {1, {{.mean = {count, mean}, .stdev = {count, stdev}}}}};
}

enum { BATCHES = 3 }; /* of a loader, in turn */

static tdm_loader *loader_of(const tdm_dataset *dataset, const tdm_transform_spec *transform, tdm_rows_form form) {
    tdm_loader *loader = NULL;
    const tdm_loader_options options = {.sampler = {.count = SAMPLES, .replicas = 1, .shuffle = true, .seed = 7},
                                        .per_device = SAMPLES,
                                        .replicas_here = 1,
                                        .ahead = 1,
                                        .held = BATCHES,
                                        .form = form,
                                        .transform = transform};
    CHECK_OK(tdm__loader_open(&loader, tdm_host_default(), dataset, &options));
    if (loader == NULL) exit(1);
    return loader;
}

/* ---- memory of the device ---- */

typedef struct there {
    char *base, *data;
    size_t bytes;
} there;

static there new_there(size_t bytes, size_t at, size_t whole) {
    void *base = NULL;
    CHECK_OK(device->ops->allocate(device, &base, whole, "a test"));
    if (base == NULL) exit(1);
    CHECK_OK(tdm_test_fill(device, base, GUARD_BYTE, whole));
    return (there){.base = base, .data = (char *)base + at, .bytes = bytes};
}

/* For what the device writes: between guards, as much out of line as `shift` says. */
static there new_result(size_t bytes, size_t shift) {
    return new_there(bytes, GUARD + shift, GUARD + shift + bytes + GUARD);
}

/* For what it reads: ends where the emulated device's memory ends. */
static there sent(const void *from, size_t bytes) {
    const size_t whole = (bytes + 255) / 256 * 256;
    there out = new_there(bytes, whole - bytes, whole);
    CHECK_OK(device->ops->queues->copy(device, NULL, out.data, from, bytes));
    CHECK_OK(device->ops->queues->finish(device, NULL));
    return out;
}

static void free_there(there *memory) {
    device->ops->release(device, memory->base);
    *memory = (there){NULL, NULL, 0};
}

/* What the device wrote is `want`, and its guards are whole. */
static bool holds(const there *memory, const void *want) {
    unsigned char *here = malloc(GUARD + memory->bytes + GUARD);
    CHECK_OK(device->ops->queues->copy(device, NULL, here, memory->data - GUARD, GUARD + memory->bytes + GUARD));
    CHECK_OK(device->ops->queues->finish(device, NULL));
    bool good = memory->bytes == 0 || memcmp(here + GUARD, want, memory->bytes) == 0;
    for (size_t i = 0; i < GUARD; i++)
        good = good && here[i] == GUARD_BYTE && here[GUARD + memory->bytes + i] == GUARD_BYTE;
    free(here);
    return good;
}

/* ---- what is wanted ---- */

/* Channels in memory, where they are neighbours: a multiple of `group`. */
static int64_t filled_of(int64_t channels, int64_t group) {
    return (channels + group - 1) / group * group;
}

/* x of the CPU's loader, in the layout and precision; to be freed. */
static void *converted(const float *x, const tdm_ingest *g) {
    int64_t filled = g->x_channels, points = g->points;
    size_t size = g->precision == TDM_BF16 ? sizeof(uint16_t) : sizeof(float);
    char *out = calloc((size_t)(g->rows * points * filled), size);
    for (int64_t row = 0; row < g->rows; row++) {
        for (int64_t c = 0; c < g->channels; c++) {
            for (int64_t p = 0; p < points; p++) {
                float value = x[(row * g->channels + c) * points + p];
                uint16_t narrow = tdm__bf16_of(value);
                int64_t at =
                    g->layout == TDM_LAYOUT_PLAIN ? (row * filled + c) * points + p : (row * points + p) * filled + c;
                memcpy(out + (size_t)at * size, g->precision == TDM_BF16 ? (const void *)&narrow : &value, size);
            }
        }
    }
    return out;
}

/* ---- batches ---- */

/* A loader's first batches; and the same rows as the CPU's loader makes them. */
typedef struct trial {
    const char *name;
    tdm_dataset dataset;
    tdm_loader *loader, *reference;
    const tdm_shard *shard[BATCHES], *floats[BATCHES];
    there packed[BATCHES], samples, targets, table;
    tdm_ingest ingest; /* all but the rows, what is wanted, and where it goes */
} trial;

static void send_samples(trial *t, const tdm_transform *transform) {
    size_t x_bytes = t->dataset.resident_bytes, target_bytes = SAMPLES * tdm__dataset_target_bytes(&t->dataset);
    char *x = malloc(x_bytes), *targets = malloc(target_bytes + 1);
    CHECK_OK(tdm__dataset_fill(&t->dataset, transform, 0, SAMPLES, x, targets));
    t->samples = sent(x, x_bytes);
    t->targets = sent(targets, target_bytes);
    t->ingest.samples = t->samples.data;
    t->ingest.targets = t->targets.data;
    free(x);
    free(targets);
}

static void trial_open(trial *t, const char *name, const sample_kind *kind, tdm_rows_form form) {
    const tdm_transform_spec spec = transform_of(kind);
    *t = (trial){.name = name, .dataset = dataset_of(kind)};
    t->loader = loader_of(&t->dataset, &spec, form);
    t->reference = loader_of(&t->dataset, &spec, TDM_ROWS_FLOATS);
    const tdm_packing *packing = tdm__loader_packing(t->loader);
    const tdm_transform *transform = tdm__loader_transform(t->loader);
    t->ingest = (tdm_ingest){.target_at = packing->target_at,
                             .x_at = packing->x_at,
                             .bytes = kind->bytes,
                             .table_channels = (int64_t)transform->channels,
                             .channels = kind->channels,
                             .points = kind->height * kind->width,
                             .target_bytes = packing->target_bytes};
    for (int i = 0; i < BATCHES; i++) {
        const tdm_batch *batch = NULL, *floats = NULL;
        CHECK_OK(tdm__loader_next(t->loader, &batch));
        CHECK_OK(tdm__loader_next(t->reference, &floats));
        t->shard[i] = &batch->shard[0];
        t->floats[i] = &floats->shard[0];
        t->packed[i] = sent(t->shard[i]->block, packing->bytes);
    }
    if (kind->bytes) t->table = sent(transform->table, transform->channels * 256 * sizeof(float));
    t->ingest.table = (const float *)(const void *)t->table.data;
    if (form == TDM_ROWS_INDEX) send_samples(t, transform);
}

static void trial_close(trial *t) {
    for (int i = 0; i < BATCHES; i++) free_there(&t->packed[i]);
    free_there(&t->samples);
    free_there(&t->targets);
    free_there(&t->table);
    tdm__loader_close(t->loader);
    tdm__loader_close(t->reference);
}

typedef struct result {
    there x, target, position;
} result;

static void result_open(result *r, tdm_ingest *g, bool out_of_line) {
    const size_t size = g->precision == TDM_BF16 ? sizeof(uint16_t) : sizeof(float);
    const size_t numbers = (size_t)(g->rows * g->points * g->x_channels);
    r->x = new_result(numbers * size, out_of_line ? size : 0);
    r->target = new_result((size_t)g->rows * g->target_bytes, 0);
    r->position = new_result((size_t)g->rows * sizeof(int64_t), 0);
    g->x = r->x.data;
    g->target = r->target.data;
    g->position = (int64_t *)(void *)r->position.data;
}

static void result_close(result *r) {
    free_there(&r->x);
    free_there(&r->target);
    free_there(&r->position);
}

static void check_result(const trial *t, const result *r, const tdm_ingest *g, int batch) {
    void *want = converted(t->floats[batch]->x, g);
    bool good = holds(&r->x, want) && holds(&r->target, t->floats[batch]->target) &&
                holds(&r->position, t->floats[batch]->position);
    free(want);
    if (good) return;
    fprintf(stderr, "%s: %lld rows, precision %d, layout %d, batch %d, %s\n", t->name, (long long)g->rows, g->precision,
            g->layout, batch, g->samples != NULL ? "resident" : "sent");
    tdm_test_failures++;
}

/* Every layout and precision of batches of `rows` rows, with batches, queues and alignments in turn. */
static void check_rows(const trial *t, tdm_ingest g, int64_t rows) {
    static const int precisions[] = {TDM_F32, TDM_BF16};
    static const int groups[] = {0, 1, 4, 8}; /* 0: planes */
    result r;
    g.rows = rows;
    for (int i = 0; i < 8; i++) {
        const int turn = i + (int)rows;
        g.precision = precisions[i / 4];
        g.layout = groups[i % 4] == 0 ? TDM_LAYOUT_PLAIN : TDM_LAYOUT_NHWC;
        g.x_channels = filled_of(g.channels, i % 4 < 2 ? 1 : groups[i % 4]);
        result_open(&r, &g, turn % 5 == 0);
        g.packed = t->packed[turn % BATCHES].data;
        tdm_queue *queue = turn % 2 == 0 ? other : NULL;
        CHECK_OK(device->ops->queues->finish(device, NULL));
        CHECK_OK(device->ops->arenas->ingest(device, queue, &g));
        CHECK_OK(device->ops->queues->finish(device, queue));
        check_result(t, &r, &g, turn % BATCHES);
        result_close(&r);
    }
}

static void check_kind(const char *name, const sample_kind *kind, tdm_rows_form form, int64_t step) {
    trial t;
    trial_open(&t, name, kind, form);
    for (int64_t rows = 1; rows <= SAMPLES; rows += step) check_rows(&t, t.ingest, rows);
    trial_close(&t);
}

static void check_both(const char *name, const sample_kind *kind, int64_t step) {
    check_kind(name, kind, TDM_ROWS_RAW, step);
    check_kind(name, kind, TDM_ROWS_INDEX, step);
}

TEST(images) {
    check_both("one channel", &(sample_kind){1, 4, 6, true, false, 0}, 1);
    check_both("three channels alike", &(sample_kind){3, 4, 4, true, false, 0}, 8);
    check_both("three channels", &(sample_kind){3, 4, 4, true, true, 0}, 1);
    check_both("points in no pack", &(sample_kind){4, 3, 3, true, true, 0}, 8);
    check_both("numbers in no pack", &(sample_kind){3, 3, 5, true, true, 0}, 4);
    check_both("numbers in no pack, alike", &(sample_kind){3, 3, 5, true, false, 0}, 8);
    check_both("two channels", &(sample_kind){2, 2, 4, true, true, 0}, 8);
    check_both("a large table", &(sample_kind){5, 2, 4, true, true, 0}, 8);
    check_both("more channels than are read together", &(sample_kind){9, 3, 3, true, true, 0}, 16);
    check_both("eight channels", &(sample_kind){8, 2, 2, true, false, 0}, 16);
}

TEST(floats) {
    check_both("numbers", &(sample_kind){1, 1, 20, false, false, 0}, 8);
    check_both("an odd count", &(sample_kind){1, 1, 7, false, false, 0}, 1);
    check_both("three channels of floats", &(sample_kind){3, 4, 4, false, true, 0}, 8);
    check_both("five channels of floats", &(sample_kind){5, 3, 3, false, true, 0}, 16);
}

TEST(targets) {
    check_both("one float", &(sample_kind){1, 2, 2, true, false, 1}, 8);
    check_both("many floats", &(sample_kind){1, 2, 2, true, false, 700}, 16);
    check_both("no targets", &(sample_kind){1, 2, 2, true, false, -1}, 16);
}

/* The loader puts targets into a block of indices too: they serve where none are resident. */
TEST(targets_of_the_batch) {
    trial t;
    trial_open(&t, "targets of the batch", &(sample_kind){3, 2, 2, true, true, 0}, TDM_ROWS_INDEX);
    t.ingest.targets = NULL;
    check_rows(&t, t.ingest, SAMPLES);
    trial_close(&t);
}

/* Samples that begin anywhere are read number by number: a GPU faults where a pack is out of line. */
static void check_out_of_line(const char *name, const sample_kind *kind, size_t shift) {
    trial t;
    trial_open(&t, name, kind, TDM_ROWS_INDEX);
    there shifted = new_result(t.samples.bytes, shift);
    CHECK_OK(device->ops->queues->copy(device, NULL, shifted.data, t.samples.data, t.samples.bytes));
    t.ingest.samples = shifted.data;
    check_rows(&t, t.ingest, SAMPLES);
    free_there(&shifted);
    trial_close(&t);
}

TEST(out_of_line) {
    check_out_of_line("bytes out of line", &(sample_kind){3, 4, 4, true, true, 0}, 1);
    check_out_of_line("floats out of line", &(sample_kind){3, 4, 4, false, true, 0}, sizeof(float));
}

/* More items than threads at once: they are looped over. */
TEST(large_images) {
    trial t;
    trial_open(&t, "large images", &(sample_kind){3, 112, 112, true, true, 0}, TDM_ROWS_RAW);
    check_rows(&t, t.ingest, SAMPLES);
    trial_close(&t);
}

/* What lies in the memory when it runs is what is taken. */
TEST(captured) {
    trial t;
    result r;
    tdm_capture *capture = NULL;
    trial_open(&t, "captured", &(sample_kind){3, 4, 4, true, true, 0}, TDM_ROWS_INDEX);
    t.ingest.rows = 20;
    t.ingest.precision = TDM_BF16;
    t.ingest.layout = TDM_LAYOUT_NHWC;
    t.ingest.x_channels = 8;
    result_open(&r, &t.ingest, false);
    CHECK_OK(device->ops->captures->begin(device));
    t.ingest.packed = t.packed[0].data;
    CHECK_OK(device->ops->arenas->ingest(device, NULL, &t.ingest));
    CHECK_OK(device->ops->captures->end(device, &capture));
    for (int i = BATCHES; i-- > 0 && capture != NULL;) {
        CHECK_OK(device->ops->queues->copy(device, NULL, t.packed[0].data, t.shard[i]->block,
                                           tdm__loader_packing(t.loader)->bytes));
        CHECK_OK(device->ops->captures->run(device, capture));
        check_result(&t, &r, &t.ingest, i);
    }
    device->ops->captures->free(device, capture);
    result_close(&r);
    trial_close(&t);
}

TEST(nothing_and_too_much) {
    trial t;
    trial_open(&t, "limits", &(sample_kind){1, 2, 2, true, false, 0}, TDM_ROWS_RAW);
    CHECK_OK(device->ops->arenas->ingest(device, NULL, &t.ingest)); /* no rows */
    t.ingest.rows = (int64_t)1 << 40;
    CHECK_STATUS(device->ops->arenas->ingest(device, NULL, &t.ingest), TDM_E_UNSUPPORTED);
    CHECK_HAS(tdm_error_message(), "is too large");
    trial_close(&t);
}

TEST_MAIN({
    device = cuda_open();
    CHECK_OK(device->ops->queues->open(device, TDM_COPIES, &other));
    RUN(images);
    RUN(floats);
    RUN(targets);
    RUN(targets_of_the_batch);
    RUN(out_of_line);
    RUN(large_images);
    RUN(captured);
    RUN(nothing_and_too_much);
    device->ops->queues->close(device, other);
    device->ops->close(device);
})
