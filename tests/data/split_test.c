/* The split into samples to train on and samples held out, against torch's random_split. */
#include "tests/data/support.h"

static const int64_t shape[] = {1};

static tdm_dataset *open_part(int64_t samples, double holdout, int64_t seed, int split) {
    tdm_data_spec spec = {.format = TDM_DATA_SYNTHETIC,
                          .classes = 4,
                          .samples = samples,
                          .seed = seed,
                          .holdout = holdout,
                          .split = split};
    tdm_data_wanted wanted = wanted_classes(1, shape, 4);
    tdm_dataset *dataset = NULL;
    CHECK_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
    return dataset;
}

TEST(random_split) {
    FILE *golden = fopen(TDM_TEST_DATA "/split.txt", "r");
    REQUIRE(golden != NULL);
    long long n, seed, trained, cases = 0;
    unsigned long long checksum;
    double holdout;
    while (fscanf(golden, "%lld %lf %lld %lld %llu", &n, &holdout, &seed, &trained, &checksum) == 5) {
        tdm_dataset *train = open_part(n, holdout, seed, TDM_SPLIT_TRAIN);
        tdm_dataset *test = open_part(n, holdout, seed, TDM_SPLIT_TEST);
        CHECK_INT(train->count, trained);
        CHECK_INT(test->count, n - trained);
        uint64_t sum = 0;
        for (int64_t i = 0; i < n; i++) {
            const int64_t row = i < trained ? tdm__dataset_row(train, i) : tdm__dataset_row(test, i - trained);
            sum += (uint64_t)(i + 1) * (uint64_t)row;
        }
        CHECK(sum == checksum);
        tdm__dataset_close(train);
        tdm__dataset_close(test);
        cases++;
    }
    fclose(golden);
    CHECK(cases > 40);
}

/* The part of a range; the samples are those of the whole data. */
TEST(split_of_a_range) {
    tdm_data_spec spec = {
        .format = TDM_DATA_SYNTHETIC, .classes = 4, .samples = 50, .seed = 3, .holdout = 0.3, .range = {2, {20, 30}}};
    tdm_data_wanted wanted = wanted_classes(1, shape, 4);
    tdm_dataset *all = open_part(50, 0, 3, TDM_SPLIT_AUTO), *part;
    bool seen[10] = {false};
    for (int evaluates = 0; evaluates < 2; evaluates++) {
        wanted.evaluates = evaluates;
        REQUIRE_OK(tdm__dataset_open(&part, tdm_host_default(), &spec, &wanted));
        CHECK_INT(part->count, evaluates ? 3 : 7);
        for (int64_t i = 0; i < part->count; i++) {
            const int64_t row = tdm__dataset_row(part, i);
            float a, b;
            int64_t label_a, label_b;
            REQUIRE(row >= 20 && row < 30 && !seen[row - 20]);
            seen[row - 20] = true;
            REQUIRE_OK(tdm__dataset_read(part, i, &a, &label_a));
            REQUIRE_OK(tdm__dataset_read(all, row, &b, &label_b));
            CHECK(a == b && label_a == label_b);
        }
        tdm__dataset_close(part);
    }
    tdm__dataset_close(all);
}

TEST(refused) {
    tdm_data_spec spec = {.format = TDM_DATA_SYNTHETIC, .classes = 4, .samples = 3, .seed = 1, .holdout = 0.2};
    tdm_data_wanted wanted = wanted_classes(1, shape, 4);
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "holdout 0.2 of 3 samples leaves 3 to train on and 0 to test");
    spec.holdout = 1;
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_CONFIG);
    spec.holdout = (double)NAN;
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_CONFIG);
}

TEST_MAIN(RUN(random_split); RUN(split_of_a_range); RUN(refused);)
