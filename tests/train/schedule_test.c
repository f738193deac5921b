/* Schedules against PyTorch's, equal as doubles. */
#include "runtime/train/train.h"
#include "tests/support/tdm_test.h"
#include "tests/train/schedule_golden.h"

TEST(equal_pytorch) {
    for (size_t c = 0; c < sizeof(schedule_golden) / sizeof(schedule_golden[0]); c++) {
        tdm_schedule_section section = schedule_golden[c].section;
        section.per = TDM_SCHEDULE_PER_STEP;
        if (section.total == 0) section.total = TDM_INT_NULL;
        tdm_schedule schedule;
        tdm__schedule_init(&schedule, &section, schedule_golden[c].lr, 0.9, 1000, 100);
        for (int i = 0; i < schedule_golden[c].steps; i++) {
            if (schedule.lr != schedule_golden[c].want_lr[i] ||
                schedule.momentum != schedule_golden[c].want_momentum[i]) {
                tdm_test_failures++;
                fprintf(stderr, "%s, step %d: lr %a momentum %a, wanted %a and %a\n", schedule_golden[c].name, i,
                        schedule.lr, schedule.momentum, schedule_golden[c].want_lr[i],
                        schedule_golden[c].want_momentum[i]);
                break;
            }
            tdm__schedule_step(&schedule, false);
        }
    }
}

TEST(per_epoch_steps_at_the_end_of_epochs) {
    tdm_schedule_section section = {
        .type = TDM_SCHEDULE_STEP, .per = TDM_SCHEDULE_PER_EPOCH, .step_size = 2, .gamma = 0.5, .total = TDM_INT_NULL};
    tdm_schedule schedule;
    tdm__schedule_init(&schedule, &section, 1.0, 0, 40, 10);
    for (int step = 1; step <= 40; step++) {
        CHECK(schedule.lr == (step <= 20 ? 1.0 : 0.5));
        tdm__schedule_step(&schedule, step % 10 == 0);
    }
}

TEST_MAIN(RUN(equal_pytorch); RUN(per_epoch_steps_at_the_end_of_epochs);)
