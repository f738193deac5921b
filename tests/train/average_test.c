/* The moving average of the parameters: torch's numbers, and when it moves. */
#include <math.h>

#include "runtime/device/device.h"
#include "runtime/train/run.h"
#include "tests/support/tdm_test.h"
#include "tests/train/average_golden.h"

static tdm_device *device;

static tdm_train_section section(double decay, bool warmup, int64_t every) {
    return (tdm_train_section){.ema_decay = decay, .ema_warmup = warmup, .ema_every = every};
}

TEST(averages_are_torchs) {
    for (int d = 0; d < GOLDEN_DECAYS; d++) {
        float average[GOLDEN_COUNT] = {0}; /* the first update copies */
        const tdm_train_section train = section(golden_decay[d], false, 1);
        for (int t = 1; t <= GOLDEN_STEPS; t++) {
            const tdm_step_values values = {.average_weight = tdm__average_weight(&train, t)};
            CHECK_OK(device->ops->arenas->average(device, &values, average, golden_p[t - 1], GOLDEN_COUNT));
            CHECK(memcmp(average, golden_average[d][t - 1], sizeof(average)) == 0);
        }
    }
}

/* All instruction sets fuse at the same places. */
TEST(variants_are_the_same) {
    const tdm_flat_kernels *const flat[] = {tdm_builtin_flat_ref(), tdm_builtin_flat()};
    float average[2][GOLDEN_COUNT];
    for (int k = 0; k < 2; k++) {
        memcpy(average[k], golden_p[0], sizeof(average[k]));
        flat[k]->lerp(average[k], golden_p[3], 0.125f, GOLDEN_COUNT);
        flat[k]->lerp(average[k], golden_p[4], 0.75f, GOLDEN_COUNT);
    }
    CHECK(memcmp(average[0], average[1], sizeof(average[0])) == 0);
}

TEST(when_it_moves) {
    tdm_train_section train = section(NAN, false, 1);
    CHECK(tdm__average_weight(&train, 1) == 0);
    train = section(0.999, false, 3);
    for (int64_t t = 1; t <= 9; t++)
        CHECK(tdm__average_weight(&train, t) == (t % 3 != 0 ? 0 : t == 3 ? 1 : (float)(1 - 0.999)));
    train = section(0.999, true, 1);
    CHECK(tdm__average_weight(&train, 1) == 1);
    CHECK(tdm__average_weight(&train, 2) == (float)(1.0 - 2.0 / 11.0));
    CHECK(tdm__average_weight(&train, 91) == (float)(1.0 - 91.0 / 100.0));
    CHECK(tdm__average_weight(&train, 100000) == (float)(1 - 0.999));
}

TEST_MAIN(const tdm_device_options options = {.index = 0};
          CHECK_OK(tdm_cpu_device.open(&device, tdm_host_default(), &options)); RUN(averages_are_torchs);
          RUN(variants_are_the_same); RUN(when_it_moves); tdm_cpu_device.close(device);)
