/* Data that is made, not read: torch's random numbers, drawn digits, and the embedder's callback. */
#include "tests/data/support.h"

#include <inttypes.h>

#include "runtime/base/hash.h"

static tdm_dataset *open_or_stop(const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    tdm_dataset *dataset = NULL;
    CHECK_OK(tdm__dataset_open(&dataset, tdm_host_default(), spec, wanted));
    if (dataset == NULL) exit(1);
    return dataset;
}

/* ---- synthetic ---- */

static bool next_word(FILE *file, uint32_t *word) {
    return fscanf(file, "%x", word) == 1;
}

static void check_floats(FILE *file, const float *got, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t want = 0, word;
        CHECK(next_word(file, &want));
        memcpy(&word, &got[i], sizeof(word));
        CHECK_INT(word, want);
    }
}

static void check_case(FILE *file, bool labels, long long samples, long long seed, long long width,
                       const tdm_shape *input) {
    tdm_data_spec spec = {
        .format = TDM_DATA_SYNTHETIC, .samples = samples, .seed = TDM_INT_NULL, .classes = TDM_INT_NULL};
    tdm_data_wanted wanted = wanted_classes(input->ndim, input->dim, labels ? width : 0);
    wanted.seed = seed;
    if (!labels) wanted.target_kind = TDM_TARGET_VALUES;
    if (!labels) wanted.target_width = width;
    tdm_dataset *dataset = open_or_stop(&spec, &wanted);
    size_t elements = 1;
    for (int i = 0; i < input->ndim; i++) elements *= (size_t)input->dim[i];
    float x[8][64], values[8][8];
    int64_t label[8];
    CHECK_INT(dataset->count, samples);
    for (long long i = 0; i < samples; i++) {
        void *target = labels ? (void *)&label[i] : (void *)values[i];
        CHECK_OK(tdm__dataset_read(dataset, i, x[i], target));
    }
    for (long long i = 0; i < samples; i++) check_floats(file, x[i], elements);
    for (long long i = 0; i < samples; i++) {
        long long want = -1;
        if (!labels) check_floats(file, values[i], (size_t)width);
        if (labels) CHECK(fscanf(file, "%lld", &want) == 1 && want == label[i]);
    }
    tdm__dataset_close(dataset);
}

TEST(synthetic_is_torch) {
    FILE *file = fopen(TDM_TEST_DATA "/synthetic.txt", "r");
    REQUIRE(file != NULL);
    char kind[16];
    long long samples, seed, width;
    int cases = 0;
    tdm_shape input;
    while (fscanf(file, "%15s %lld %lld %lld %d", kind, &samples, &seed, &width, &input.ndim) == 5) {
        REQUIRE(input.ndim <= 3 && samples <= 8);
        for (int i = 0; i < input.ndim; i++) REQUIRE(fscanf(file, "%" SCNd64, &input.dim[i]) == 1);
        check_case(file, strcmp(kind, "labels") == 0, samples, seed, width, &input);
        cases++;
    }
    fclose(file);
    CHECK_INT(cases, 5);
}

/* Numbers 1 to 3 and 3 to 4 are looked up; the others stay torch's. Number 3 must be good for both. */
TEST(synthetic_indices_are_known) {
    enum { SAMPLES = 400, WIDTH = 6 };
    const tdm_data_spec spec = {
        .format = TDM_DATA_SYNTHETIC, .samples = SAMPLES, .seed = TDM_INT_NULL, .classes = TDM_INT_NULL};
    const tdm_data_index index[] = {{1, 3, 3, "few"}, {3, 2, 50, "many"}};
    tdm_data_wanted wanted = wanted_classes(1, (const int64_t[]){WIDTH}, 2);
    tdm_dataset *plain = open_or_stop(&spec, &wanted);
    wanted.index = index, wanted.index_count = 2;
    tdm_dataset *made = open_or_stop(&spec, &wanted);
    int seen[WIDTH][50] = {{0}};
    for (int64_t i = 0; i < SAMPLES; i++) {
        float x[WIDTH], y[WIDTH];
        int64_t label[2];
        CHECK_OK(tdm__dataset_read(plain, i, x, &label[0]));
        CHECK_OK(tdm__dataset_read(made, i, y, &label[1]));
        CHECK(x[0] == y[0] && x[5] == y[5] && label[0] == label[1]);
        for (int k = 1; k <= 4; k++) {
            REQUIRE(y[k] >= 0 && y[k] < (k <= 3 ? 3 : 50) && y[k] == (float)(int)y[k]);
            seen[k][(int)y[k]]++;
        }
    }
    for (int k = 1; k <= 4; k++)
        for (int v = 0; v < (k <= 3 ? 3 : 50); v++) CHECK(seen[k][v] > 0);
    tdm__dataset_close(plain);
    tdm__dataset_close(made);
}

/* Large tensors are drawn sample by sample; in one piece they would be the same numbers. */
static void check_large(int64_t samples, int64_t width, int profile) {
    size_t count = (size_t)(samples * width);
    float *all = malloc(count * sizeof(*all)), *x = malloc((size_t)width * sizeof(*x));
    int64_t *labels = malloc((size_t)samples * sizeof(*labels)), label;
    tdm_rng rng;
    tdm__rng_seed(&rng, 9, (tdm_rng_profile)profile);
    tdm__rng_normal(&rng, all, count, 0.0, 1.0);
    tdm__rng_randint(&rng, labels, (size_t)samples, 0, 10);
    tdm_data_spec spec = {.format = TDM_DATA_SYNTHETIC, .samples = samples, .seed = 9, .classes = TDM_INT_NULL};
    tdm_data_wanted wanted = wanted_classes(1, &width, 10);
    wanted.rng_profile = profile;
    tdm_dataset *dataset = open_or_stop(&spec, &wanted);
    int64_t wrong = 0;
    for (int64_t i = samples - 1; i >= 0; i -= samples > 10000 ? 19 : 1) {
        CHECK_OK(tdm__dataset_read(dataset, i, x, &label));
        wrong += memcmp(x, all + i * width, (size_t)width * sizeof(*x)) != 0 || label != labels[i];
    }
    CHECK_INT(wrong, 0);
    tdm__dataset_close(dataset);
    free(all);
    free(x);
    free(labels);
}

TEST(synthetic_at_any_size) {
    check_large(3400, 1237, TDM_RNG_TORCH_AVX2); /* samples across blocks of 16, a last block of its own */
    check_large(524300, 8, TDM_RNG_TORCH_AVX2);  /* two samples in a block */
    check_large(1000, 100, TDM_RNG_TORCH_GENERIC);
}

TEST(synthetic_limits) {
    tdm_data_spec spec = {.format = TDM_DATA_SYNTHETIC, .samples = 8, .seed = 1, .classes = TDM_INT_NULL};
    tdm_data_wanted wanted = wanted_classes(3, (int64_t[]){3, 32, 32}, 10);
    CHECK_OK(try_open(&spec, &wanted));
    spec.classes = 11;
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "labels must be 0 to 9, found 10");
    spec.classes = 0;
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    spec.classes = 2;
    CHECK_OK(try_open(&spec, &wanted));
    spec.samples = 6000000;
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "at most 5592405 samples of 3072 floats");
    spec.samples = INT64_MAX;
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    spec.samples = 0;
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
}

/* ---- glyphs ---- */

static tdm_data_spec glyph_spec(int64_t samples, int64_t seed, double noise) {
    return (tdm_data_spec){.format = TDM_DATA_GLYPHS, .samples = samples, .seed = seed, .noise = noise};
}

static uint64_t hash_samples(const tdm_data_spec *spec, int64_t c, int64_t h, int64_t w) {
    tdm_data_wanted wanted = wanted_classes(3, (int64_t[]){c, h, w}, 10);
    tdm_dataset *dataset = open_or_stop(spec, &wanted);
    size_t bytes = (size_t)(c * h * w);
    unsigned char *x = malloc(bytes);
    uint64_t hash = 0;
    for (int64_t i = 0; i < dataset->count; i++) {
        int64_t label = -1;
        CHECK_OK(tdm__dataset_read(dataset, i, x, &label));
        CHECK(label >= 0 && label < 10);
        hash = tdm__hash64(x, bytes, hash + (uint64_t)label);
    }
    free(x);
    tdm__dataset_close(dataset);
    return hash;
}

/* The same bytes on every machine and for every compiler: these values were written down once. */
TEST(glyphs_are_fixed) {
    static const struct {
        int64_t c, h, w, seed;
        double noise;
        uint64_t hash;
    } cases[] = {
        {1, 28, 28, 42, 0.1, 0x5cf4f340fa5d5e0d}, {1, 28, 28, 43, 0.1, 0xcf7108dd8c9474b2},
        {1, 28, 28, 42, 0.0, 0x2ce1e4eaac0f0c37}, {3, 32, 32, 42, 0.1, 0xfe77bd491b5efa48},
        {1, 12, 12, 42, 0.1, 0x58ae8d19e1b5cb75}, {2, 17, 40, -1, 0.5, 0x4bccc9cdde075cb6},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tdm_data_spec spec = glyph_spec(50, cases[i].seed, cases[i].noise);
        uint64_t hash = hash_samples(&spec, cases[i].c, cases[i].h, cases[i].w);
        CHECK(hash == hash_samples(&spec, cases[i].c, cases[i].h, cases[i].w));
        if (hash != cases[i].hash) fprintf(stderr, "case %zu: 0x%016llx\n", i, (unsigned long long)hash);
        CHECK(hash == cases[i].hash);
    }
}

/* Sample i depends on the seed and i alone: not on how many there are, nor on what was read before. */
TEST(glyphs_are_pure) {
    tdm_data_wanted wanted = wanted_classes(3, (int64_t[]){1, 28, 28}, 10);
    tdm_data_spec all = glyph_spec(100, 7, 0.2), some = glyph_spec(1000, 7, 0.2);
    some.range = (tdm_ints){2, {40, 90}};
    tdm_dataset *a = open_or_stop(&all, &wanted), *b = open_or_stop(&some, &wanted);
    CHECK_INT(b->count, 50);
    for (int64_t i = 49; i >= 0; i -= 7) {
        unsigned char x[784], y[784];
        int64_t label_x, label_y;
        CHECK_OK(tdm__dataset_read(a, 40 + i, x, &label_x));
        CHECK_OK(tdm__dataset_read(b, i, y, &label_y));
        CHECK_INT(label_x, label_y);
        CHECK(memcmp(x, y, sizeof(x)) == 0);
        CHECK_OK(tdm__dataset_read(b, i, NULL, &label_y)); /* alone, too */
        CHECK_INT(label_x, label_y);
    }
    tdm__dataset_close(a);
    tdm__dataset_close(b);
}

/* So much as is drawn in seconds may be drawn at once. */
TEST(resident) {
    tdm_data_wanted wanted = wanted_classes(3, (int64_t[]){3, 32, 32}, 10);
    tdm_data_spec specs[2] = {glyph_spec(87381, 7, 0.2), glyph_spec(87382, 7, 0.2)};
    tdm_dataset *dataset;
    for (int i = 0; i < 2; i++) {
        dataset = open_or_stop(&specs[i], &wanted);
        CHECK_INT(dataset->resident_bytes, i == 0 ? 87381 * 3072 : 0);
        tdm__dataset_close(dataset);
        specs[i].range = (tdm_ints){2, {7, 10}}; /* only these are */
        dataset = open_or_stop(&specs[i], &wanted);
        CHECK_INT(dataset->resident_bytes, 3 * 3072);
        tdm__dataset_close(dataset);
    }
}

/* A nearest-mean classifier, the simplest there is, must tell them apart far better than chance. */
TEST(glyphs_can_be_learned) {
    static double mean[10][784];
    int64_t count[10] = {0}, right = 0;
    tdm_data_spec spec = glyph_spec(3000, 42, 0.1);
    tdm_data_wanted wanted = wanted_classes(3, (int64_t[]){1, 28, 28}, 10);
    tdm_dataset *dataset = open_or_stop(&spec, &wanted);
    unsigned char x[784];
    int64_t label;
    for (int64_t i = 0; i < 2500; i++) {
        CHECK_OK(tdm__dataset_read(dataset, i, x, &label));
        count[label]++;
        for (int j = 0; j < 784; j++) mean[label][j] += x[j];
    }
    for (int d = 0; d < 10; d++) {
        CHECK(count[d] > 180 && count[d] < 320);
        for (int j = 0; j < 784; j++) mean[d][j] /= (double)count[d];
    }
    for (int64_t i = 2500; i < 3000; i++) {
        CHECK_OK(tdm__dataset_read(dataset, i, x, &label));
        double best = INFINITY;
        int choice = -1;
        for (int d = 0; d < 10; d++) {
            double distance = 0;
            for (int j = 0; j < 784; j++) distance += (x[j] - mean[d][j]) * (x[j] - mean[d][j]);
            if (distance < best) choice = d;
            if (distance < best) best = distance;
        }
        right += choice == label;
    }
    CHECK(right > 350);
    tdm__dataset_close(dataset);
}

TEST(glyph_limits) {
    tdm_data_spec spec = glyph_spec(10, 1, 0.1);
    static const struct {
        tdm_shape input;
        int64_t classes;
        double noise;
        tdm_status status;
    } cases[] = {
        {{3, {1, 12, 12}}, 10, 0.1, TDM_OK},        {{2, {28, 28}}, 10, 0.1, TDM_OK},
        {{3, {1, 11, 28}}, 10, 0.1, TDM_E_DATA},    {{3, {1, 28, 11}}, 10, 0.1, TDM_E_DATA},
        {{1, {784}}, 10, 0.1, TDM_E_DATA},          {{3, {1, 5000, 28}}, 10, 0.1, TDM_E_DATA},
        {{4, {1, 1, 28, 28}}, 10, 0.1, TDM_E_DATA}, {{3, {1, 28, 28}}, 9, 0.1, TDM_E_DATA},
        {{3, {1, 28, 28}}, 100, 0.1, TDM_OK},       {{3, {1, 28, 28}}, 10, -0.1, TDM_E_DATA},
        {{3, {1, 28, 28}}, 10, 1.5, TDM_E_DATA},    {{3, {1, 28, 28}}, 10, NAN, TDM_E_DATA},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tdm_data_wanted wanted = wanted_classes(cases[i].input.ndim, cases[i].input.dim, cases[i].classes);
        spec.noise = cases[i].noise;
        CHECK_STATUS(try_open(&spec, &wanted), cases[i].status);
    }
}

/* ---- the embedder's own ---- */

static int read_square(void *user, int64_t index, float *x, void *target) {
    (void)user;
    x[0] = (float)index;
    x[1] = (float)(index * index);
    *(int64_t *)target = index;
    return index == 5 ? 17 : 0;
}

TEST(source) {
    tdm_source own = {.size = sizeof(own), .count = 8, .has_labels = 1, .read = read_square};
    tdm_data_wanted wanted = wanted_classes(1, (int64_t[]){2}, 7);
    tdm_dataset *dataset;
    REQUIRE_OK(tdm__dataset_open_source(&dataset, tdm_host_default(), &own, &wanted));
    float x[2];
    int64_t label;
    CHECK_OK(tdm__dataset_read(dataset, 3, x, &label));
    CHECK(x[0] == 3.0f && x[1] == 9.0f && label == 3);
    CHECK_STATUS(tdm__dataset_read(dataset, 5, x, &label), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "sample 5 of the program's own source: read returned 17");
    CHECK_STATUS(tdm__dataset_read(dataset, 7, x, &label), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "label must be 0 to 6, found 7");
    tdm__dataset_close(dataset);

    tdm_source bad = own;
    bad.read = NULL;
    CHECK_STATUS(tdm__dataset_open_source(&dataset, tdm_host_default(), &bad, &wanted), TDM_E_USAGE);
    bad = own;
    bad.count = 0;
    CHECK_STATUS(tdm__dataset_open_source(&dataset, tdm_host_default(), &bad, &wanted), TDM_E_USAGE);
    bad = own;
    bad.size = 4;
    CHECK_STATUS(tdm__dataset_open_source(&dataset, tdm_host_default(), &bad, &wanted), TDM_E_USAGE);
    bad = own;
    bad.has_labels = 0;
    CHECK_STATUS(tdm__dataset_open_source(&dataset, tdm_host_default(), &bad, &wanted), TDM_E_USAGE);
    CHECK(dataset == NULL);
}

TEST_MAIN(RUN(synthetic_is_torch); RUN(synthetic_indices_are_known); RUN(synthetic_at_any_size); RUN(synthetic_limits);
          RUN(glyphs_are_fixed); RUN(glyphs_are_pure); RUN(resident); RUN(glyphs_can_be_learned); RUN(glyph_limits);
          RUN(source);)
