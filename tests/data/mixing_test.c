/* mixup and cutmix: what is drawn against closed forms, how samples are mixed against PyTorch, and that batches do not
 * depend on replicas or threads. */
#include "tests/data/support.h"

#include <math.h>

#include <tandem/sys/label.h>

#include "runtime/data/transforms/mixing.h"

/* ---- Beta(alpha, alpha) ---- */

enum { DRAWS = 20000 };

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double *draw_sorted(double alpha) {
    double *value = malloc(DRAWS * sizeof(*value));
    if (value == NULL) exit(1);
    for (int i = 0; i < DRAWS; i++) {
        tdm_draws draws = tdm__draws(5, 1, i, 0);
        value[i] = tdm__draw_beta(&draws, alpha);
    }
    qsort(value, DRAWS, sizeof(*value), by_size);
    return value;
}

static double uniform(double x) {
    return x;
}
static double arcsine(double x) {
    return 2 / M_PI * asin(sqrt(x));
}
static double parabola(double x) {
    return x * x * (3 - 2 * x);
}

/* Kolmogorov and Smirnov: a right generator exceeds 1.63 / sqrt(n) once in a hundred seeds, and the seed is fixed. */
TEST(beta_has_its_distribution) {
    static const struct {
        double alpha;
        double (*below)(double);
    } known[] = {{0.5, arcsine}, {1, uniform}, {2, parabola}};
    for (int k = 0; k < 3; k++) {
        double *value = draw_sorted(known[k].alpha), worst = 0;
        for (int i = 0; i < DRAWS; i++) {
            const double want = known[k].below(value[i]);
            worst = fmax(worst, fmax(want - (double)i / DRAWS, (double)(i + 1) / DRAWS - want));
        }
        CHECK(worst < 1.63 / sqrt(DRAWS));
        free(value);
    }
}

TEST(beta_has_its_moments) {
    static const double alphas[] = {0.01, 0.2, 0.4, 0.999, 1.001, 3, 1000};
    for (size_t k = 0; k < sizeof(alphas) / sizeof(alphas[0]); k++) {
        double *value = draw_sorted(alphas[k]), sum = 0, squares = 0;
        const double variance = 1 / (4 * (2 * alphas[k] + 1));
        CHECK(value[0] >= 0 && value[DRAWS - 1] <= 1);
        for (int i = 0; i < DRAWS; i++) {
            sum += value[i];
            squares += (value[i] - 0.5) * (value[i] - 0.5);
        }
        CHECK_NEAR(sum / DRAWS, 0.5, 4 * sqrt(variance / DRAWS));
        CHECK_NEAR(squares / DRAWS, variance, 0.04 * variance);
        free(value);
    }
}

/* ---- against torch ---- */

static void read_words(FILE *file, float *out, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        unsigned word;
        REQUIRE(fscanf(file, "%x", &word) == 1);
        memcpy(&out[i], &word, sizeof(word));
    }
}

TEST(samples_are_mixed_as_in_torch) {
    enum { MOST = 256 };
    FILE *file = fopen(TDM_TEST_DATA "/mixing.txt", "r");
    REQUIRE(file != NULL);
    long long n[8];
    int cases = 0;
    while (fscanf(file, "%lld %lld %lld %lld %lld %lld %lld %lld", &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6],
                  &n[7]) == 8) {
        const tdm_mixing mixing = {.planes = n[1], .height = n[2], .width = n[3]};
        const tdm_mix mix = {.parts = n[0], .cuts = n[6] > 0, .left = n[4], .top = n[5], .right = n[6], .bottom = n[7]};
        const int64_t count = n[1] * n[2] * n[3];
        float x[MOST], partner[MOST], want[MOST];
        REQUIRE(count <= MOST);
        read_words(file, x, count), read_words(file, partner, count), read_words(file, want, count);
        tdm__mix_samples(&mixing, &mix, x, partner);
        CHECK(memcmp(x, want, (size_t)count * sizeof(float)) == 0);
        cases++;
    }
    fclose(file);
    CHECK_INT(cases, 6);
}

/* ---- batches ---- */

enum { SAMPLES = 90, CLASSES = 90, SIDE = 8, PIXELS = 3 * SIDE * SIDE, IGNORED = 7 };

/* Sample i is all i, and so is its label: a mixed label tells what was mixed. */
static tdm_status read_flat(const tdm_sample_reader *reader, int64_t index, void *x, void *target) {
    (void)reader;
    *(int64_t *)target = index;
    memset(x, (int)index, PIXELS);
    return TDM_OK;
}

static tdm_dataset flat(void) {
    static const tdm_dataset_ops ops = {.name = "flat", .read = read_flat};
    return (tdm_dataset){.ops = &ops,
                         .host = tdm_host_default(),
                         .count = SAMPLES,
                         .x_shape = {3, {3, SIDE, SIDE}},
                         .x_is_bytes = true,
                         .target_kind = TDM_TARGET_CLASS,
                         .classes = CLASSES};
}

static tdm_transform_spec list_of(int count, const int *kind) {
    tdm_transform_spec spec = {.step_count = count};
    for (int i = 0; i < count; i++) CHECK_OK(tdm_transform_init(&spec.step[i], kind[i]));
    return spec;
}

static const int mixup[] = {TDM_TRANSFORM_MIXUP}, cutmix[] = {TDM_TRANSFORM_CUTMIX},
                 both[] = {TDM_TRANSFORM_MIXUP, TDM_TRANSFORM_CUTMIX};

static tdm_loader_options options_of(const tdm_transform_spec *spec, int replicas, int64_t per_device) {
    return (tdm_loader_options){.sampler = {.count = SAMPLES, .replicas = replicas, .shuffle = true, .seed = 42},
                                .per_device = per_device,
                                .scatter = TDM_SCATTER_STRIDED,
                                .replicas_here = replicas,
                                .ahead = 2,
                                .transform = spec,
                                .mixes = true,
                                .ignore_index = IGNORED};
}

/* All samples of an epoch, each at its index. */
typedef struct {
    float x[SAMPLES][PIXELS];
    int64_t label[SAMPLES];
} epoch_of;

static epoch_of *read_epoch_of(const tdm_dataset *dataset, const tdm_loader_options *options, int64_t epoch) {
    tdm_loader *loader = NULL;
    epoch_of *out = calloc(1, sizeof(*out));
    if (out == NULL) exit(1);
    CHECK_OK(tdm__loader_open(&loader, tdm_host_default(), dataset, options));
    if (loader == NULL) exit(1);
    CHECK_OK(tdm__loader_seek(loader, epoch, 0));
    for (int64_t step = 0; step < tdm__loader_steps_per_epoch(loader); step++) {
        const tdm_batch *batch = NULL;
        CHECK_OK(tdm__loader_next(loader, &batch));
        for (int s = 0; batch != NULL && s < batch->shard_count; s++) {
            const tdm_shard *shard = &batch->shard[s];
            for (int64_t row = 0; row < shard->rows; row++) {
                memcpy(out->x[shard->index[row]], shard->x + row * PIXELS, sizeof(out->x[0]));
                out->label[shard->index[row]] = ((const int64_t *)shard->target)[row];
            }
        }
    }
    tdm__loader_close(loader);
    return out;
}

static epoch_of *read_epoch(const tdm_loader_options *options, int64_t epoch) {
    const tdm_dataset dataset = flat();
    return read_epoch_of(&dataset, options, epoch);
}

/* What happened to the samples of an epoch. */
typedef struct {
    int plain, averaged, cut;
} tally;

/* Checks sample `index` against its label. A cut sample has points of both, in a box whose area is the weight. */
static void check_sample(const epoch_of *e, int64_t index, tally *out) {
    const tdm_label label = tdm_label_unpack(e->label[index]);
    const float weight = (float)label.weight, *x = e->x[index];
    const float average = (float)index * (1.0f - weight) + (float)label.second * weight;
    int others = 0, between = 0;
    CHECK_INT(label.first, index);
    for (int i = 0; i < PIXELS; i++) {
        if (label.weight > 0 && x[i] == (float)label.second)
            others++;
        else if (x[i] != (float)index)
            between += x[i] == average ? 1 : 2 * PIXELS;
    }
    if (label.weight == 0) {
        out->plain++;
        CHECK(others == 0 && between == 0);
    } else if (between == 0) {
        out->cut++;
        CHECK_NEAR((double)others / PIXELS, label.weight, 0x1p-22);
    } else {
        out->averaged++;
        CHECK(between == PIXELS && others == 0);
    }
    if (label.first == IGNORED || label.second == IGNORED) CHECK(label.weight == 0);
}

static tally tally_of(const tdm_transform_spec *spec) {
    const tdm_loader_options options = options_of(spec, 1, 9);
    tally out = {0};
    for (int64_t epoch = 0; epoch < 4; epoch++) {
        epoch_of *e = read_epoch(&options, epoch);
        for (int64_t i = 0; i < SAMPLES; i++) check_sample(e, i, &out);
        free(e);
    }
    return out;
}

TEST(labels_tell_what_was_mixed) {
    tdm_transform_spec spec = list_of(1, mixup);
    spec.step[0].alpha = 1;
    tally t = tally_of(&spec);
    CHECK(t.averaged > 320 && t.cut == 0 && t.plain > 0);
    spec = list_of(1, cutmix);
    t = tally_of(&spec);
    CHECK(t.cut > 280 && t.averaged == 0);
    spec = list_of(2, both);
    spec.step[0].alpha = 1;
    t = tally_of(&spec);
    CHECK(t.cut > 120 && t.averaged > 120);
}

TEST(p_is_the_probability) {
    tdm_transform_spec spec = list_of(1, mixup);
    spec.step[0].alpha = 1;
    spec.step[0].p = 0;
    CHECK_INT(tally_of(&spec).plain, 4 * SAMPLES);
    spec.step[0].p = 0.5;
    CHECK_NEAR(tally_of(&spec).averaged, 2 * SAMPLES, 40);
}

/* Another column, another number, so that a flip is seen. */
static tdm_status read_slope(const tdm_sample_reader *reader, int64_t index, void *x, void *target) {
    (void)reader;
    *(int64_t *)target = index;
    for (int i = 0; i < PIXELS; i++) ((unsigned char *)x)[i] = (unsigned char)(index + 11 * (i % SIDE) + i / SIDE);
    return TDM_OK;
}

TEST(partners_have_their_own_transforms) {
    static const tdm_dataset_ops ops = {.name = "slope", .read = read_slope};
    const tdm_transform_spec spec =
        list_of(2, (const int[]){TDM_TRANSFORM_RANDOM_HORIZONTAL_FLIP, TDM_TRANSFORM_MIXUP});
    tdm_dataset dataset = flat();
    dataset.ops = &ops;
    dataset.steps = &spec, dataset.raw_shape = dataset.x_shape, dataset.seed = 42, dataset.draws = true;
    tdm_loader_options options = options_of(&spec, 1, 9);
    epoch_of *mixed = read_epoch_of(&dataset, &options, 2);
    options.mixes = false;
    epoch_of *plain = read_epoch_of(&dataset, &options, 2);
    int flipped = 0, differ = 0;
    for (int i = 0; i < SAMPLES; i++) {
        const tdm_label label = tdm_label_unpack(mixed->label[i]);
        const float weight = (float)label.weight, own = 1.0f - weight;
        const float *a = plain->x[i], *b = plain->x[label.second];
        flipped += a[0] != (float)i;
        for (int k = 0; k < PIXELS; k++) differ += mixed->x[i][k] != a[k] * own + b[k] * weight;
    }
    CHECK_INT(differ, 0);
    CHECK_NEAR(flipped, SAMPLES / 2, 20);
    free(mixed), free(plain);
}

TEST(evaluation_does_not_mix) {
    const tdm_transform_spec spec = list_of(2, both);
    tdm_loader_options options = options_of(&spec, 1, 9);
    options.mixes = false;
    epoch_of *e = read_epoch(&options, 0);
    tally t = {0};
    for (int64_t i = 0; i < SAMPLES; i++) check_sample(e, i, &t);
    CHECK_INT(t.plain, SAMPLES);
    free(e);
}

TEST(replicas_and_threads_change_nothing) {
    const tdm_transform_spec spec = list_of(2, both);
    tdm_loader_options options = options_of(&spec, 1, 9);
    epoch_of *want = read_epoch(&options, 3), *other = read_epoch(&options, 4);
    CHECK(memcmp(want, other, sizeof(*want)) != 0);
    free(other);
    for (int replicas = 1; replicas <= 3; replicas++) {
        for (int workers = 0; workers <= 4; workers += 2) {
            options = options_of(&spec, replicas, 5);
            options.workers = workers;
            options.scatter = workers == 2 ? TDM_SCATTER_CHUNK : TDM_SCATTER_STRIDED;
            other = read_epoch(&options, 3);
            CHECK(memcmp(want, other, sizeof(*want)) == 0);
            free(other);
        }
    }
    options.sampler.seed = 43;
    other = read_epoch(&options, 3);
    CHECK(memcmp(want, other, sizeof(*want)) != 0);
    free(other);
    free(want);
}

/* ---- what is refused ---- */

static void check_refused(const tdm_dataset *dataset, const tdm_loader_options *options, tdm_status status,
                          const char *message) {
    tdm_loader *loader = NULL;
    CHECK_STATUS(tdm__loader_open(&loader, tdm_host_default(), dataset, options), status);
    CHECK_HAS(tdm_error_message(), message);
    tdm__loader_close(loader);
}

TEST(what_cannot_be_mixed) {
    tdm_transform_spec spec = list_of(1, cutmix);
    tdm_loader_options options = options_of(&spec, 1, 9);
    tdm_dataset dataset = flat();
    dataset.classes = TDM_LABEL_CLASSES + 1;
    check_refused(&dataset, &options, TDM_E_CONFIG, "cutmix can mix labels of at most 1048576 classes");
    dataset = flat();
    dataset.target_kind = TDM_TARGET_VALUES, dataset.target_width = 1;
    check_refused(&dataset, &options, TDM_E_CONFIG, "cutmix mixes labels, but the loss needs float targets");
    dataset = flat();
    dataset.x_shape = (tdm_shape){1, {PIXELS}};
    check_refused(&dataset, &options, TDM_E_CONFIG, "cutmix needs pictures, but model.input has one dimension");
    dataset = flat();
    options.ignore_index = TDM_LABEL_MIXED;
    check_refused(&dataset, &options, TDM_E_CONFIG, "loss.ignore_index must be below 2^62");
    options.ignore_index = -100;
    options.form = TDM_ROWS_RAW;
    check_refused(&dataset, &options, TDM_E_USAGE, "only rows of floats can be mixed");
    options.form = TDM_ROWS_FLOATS;
    spec = list_of(2, (const int[]){TDM_TRANSFORM_MIXUP, TDM_TRANSFORM_MIXUP});
    check_refused(&dataset, &options, TDM_E_CONFIG, "may be listed once each");
    spec = list_of(2, (const int[]){TDM_TRANSFORM_MIXUP, TDM_TRANSFORM_TO_GRAY});
    check_refused(&dataset, &options, TDM_E_CONFIG, "must come after the other steps for pictures");
}

TEST_MAIN(RUN(beta_has_its_distribution); RUN(beta_has_its_moments); RUN(samples_are_mixed_as_in_torch);
          RUN(labels_tell_what_was_mixed); RUN(p_is_the_probability); RUN(partners_have_their_own_transforms);
          RUN(evaluation_does_not_mix); RUN(replicas_and_threads_change_nothing); RUN(what_cannot_be_mixed);)
