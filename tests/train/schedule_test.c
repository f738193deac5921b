/* Schedules against PyTorch's, equal as doubles. */
#include <math.h>

#include "config/fields/fields.h"
#include "runtime/optim/schedule.h"
#include "tests/support/tdm_test.h"
#include "tests/train/schedule_golden.h"

TEST(equal_pytorch) {
    for (size_t c = 0; c < sizeof(schedule_golden) / sizeof(schedule_golden[0]); c++) {
        tdm_schedule_section section = schedule_golden[c].section;
        section.per = TDM_SCHEDULE_PER_STEP;
        if (section.total == 0) section.total = TDM_INT_NULL;
        tdm_schedule schedule;
        tdm__schedule_init(&schedule, &section, schedule_golden[c].lr, schedule_golden[c].momentum, 1000, 100);
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

static bool same(const tdm_schedule *a, const tdm_schedule *b) {
    return a->lr == b->lr && a->momentum == b->momentum && a->count == b->count && a->warmup == b->warmup;
}

/* A resume goes to its place at once, and to the bits of a run that came there step by step. */
TEST(seeking_is_stepping) {
    for (size_t c = 0; c < sizeof(schedule_golden) / sizeof(schedule_golden[0]); c++) {
        for (int per = TDM_SCHEDULE_PER_EPOCH; per <= TDM_SCHEDULE_PER_STEP; per++) {
            tdm_schedule_section section = schedule_golden[c].section;
            tdm_schedule walks, jumps;
            section.per = per;
            if (section.total == 0) section.total = TDM_INT_NULL;
            tdm__schedule_init(&walks, &section, 0.1, 0.9, 100, 7);
            for (int64_t step = 0; step < 120; step++) {
                tdm__schedule_init(&jumps, &section, 0.1, 0.9, 100, 7);
                tdm__schedule_seek(&jumps, step, 7);
                if (!same(&walks, &jumps)) {
                    tdm_test_failures++;
                    fprintf(stderr, "%s, unit %d: step %d differs\n", schedule_golden[c].name, per, (int)step);
                    break;
                }
                tdm__schedule_step(&walks, (step + 1) % 7 == 0);
            }
        }
    }
}

/* What every type wants. */
static tdm_schedule_section section_of(int type) {
    return (tdm_schedule_section){.type = type,
                                  .per = TDM_SCHEDULE_PER_STEP,
                                  .warmup_factor = 0.5,
                                  .step_size = 1,
                                  .gamma = 0.5,
                                  .total = 1000,
                                  .max_lr = 1,
                                  .pct_start = 0.3,
                                  .div_factor = 4,
                                  .final_div_factor = 2,
                                  .start_factor = 0.5,
                                  .end_factor = 0.25,
                                  .t_0 = 2 * ((INT64_C(1) << 53) - 3),
                                  .t_mult = 1};
}

/* Where nothing changes nothing is computed. */
TEST(a_far_place_is_near) {
    const int64_t far = INT64_C(1) << 53;
    static const double want[] = {
        [TDM_SCHEDULE_CONSTANT] = 1,          [TDM_SCHEDULE_STEP] = 0,      [TDM_SCHEDULE_MULTISTEP] = 0.25,
        [TDM_SCHEDULE_ONECYCLE] = 0.125,      [TDM_SCHEDULE_LINEAR] = 0.25, [TDM_SCHEDULE_EXPONENTIAL] = 0,
        [TDM_SCHEDULE_COSINE_RESTARTS] = 0.5, [TDM_SCHEDULE_PLATEAU] = 1};
    const char *const *names = tdm__schedule_rows[0].names;
    for (int type = 0; names[type] != NULL; type++) {
        if (type == TDM_SCHEDULE_COSINE) continue; /* each value follows from the one before */
        REQUIRE(type < (int)(sizeof(want) / sizeof(want[0])));
        tdm_schedule_section section = section_of(type);
        section.warmup_steps = 3;
        section.milestones = (tdm_ints){2, {7, far - 3}};
        tdm_schedule schedule;
        tdm__schedule_init(&schedule, &section, 1, 0.9, far, 10);
        tdm__schedule_seek(&schedule, far, 10);
        CHECK_NEAR(schedule.lr, want[type], 1e-12);
        CHECK_INT(schedule.count, far - 3);
    }
}

/* A checkpoint that says step 10^12 must not be followed there for hours, however long the job is. */
TEST(a_job_whose_changes_are_too_many) {
    static const struct {
        int type, per;
        int64_t warmup, steps;
        bool good;
    } rows[] = {
        {TDM_SCHEDULE_COSINE, TDM_SCHEDULE_PER_STEP, 0, 100000000, true},
        {TDM_SCHEDULE_COSINE, TDM_SCHEDULE_PER_STEP, 0, 100000001, false},
        {TDM_SCHEDULE_COSINE, TDM_SCHEDULE_PER_STEP, 7, 100000001, false},
        {TDM_SCHEDULE_COSINE, TDM_SCHEDULE_PER_EPOCH, 0, 1000000000, true},
        {TDM_SCHEDULE_COSINE, TDM_SCHEDULE_PER_EPOCH, 0, 1000000010, false},
        {TDM_SCHEDULE_LINEAR, TDM_SCHEDULE_PER_STEP, 0, INT64_C(1) << 53, true},
        {TDM_SCHEDULE_LINEAR, TDM_SCHEDULE_PER_STEP, 200000000, INT64_C(1) << 53, false},
        {TDM_SCHEDULE_STEP, TDM_SCHEDULE_PER_STEP, 0, 1000000000, true},
        {TDM_SCHEDULE_STEP, TDM_SCHEDULE_PER_STEP, 0, 1000000010, false},
        {TDM_SCHEDULE_EXPONENTIAL, TDM_SCHEDULE_PER_STEP, 0, 100000000, true},
        {TDM_SCHEDULE_EXPONENTIAL, TDM_SCHEDULE_PER_STEP, 0, 100000001, false},
        {TDM_SCHEDULE_COSINE_RESTARTS, TDM_SCHEDULE_PER_STEP, 0, INT64_C(1) << 53, true},
        {TDM_SCHEDULE_PLATEAU, TDM_SCHEDULE_PER_STEP, 0, INT64_C(1) << 53, true},
        {TDM_SCHEDULE_ONECYCLE, TDM_SCHEDULE_PER_STEP, 0, INT64_C(1) << 53, true},
        {TDM_SCHEDULE_CONSTANT, TDM_SCHEDULE_PER_STEP, 0, INT64_C(1) << 53, true},
        {TDM_SCHEDULE_CONSTANT, TDM_SCHEDULE_PER_STEP, 100000001, INT64_C(1) << 53, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tdm_schedule_section section = section_of(rows[i].type);
        section.per = rows[i].per;
        section.warmup_steps = rows[i].warmup;
        section.step_size = 10;
        tdm_schedule schedule;
        tdm__schedule_init(&schedule, &section, 1, 0.9, rows[i].steps, 10);
        CHECK((tdm__schedule_fault(&schedule, rows[i].steps, 10) == NULL) == rows[i].good);
    }
}

/* ---- plateau ---- */

enum { MEASURED = sizeof(plateau_metric) / sizeof(plateau_metric[0]) };

static tdm_job plateau_job(size_t c) {
    tdm_job job = {.schedule = plateau_golden[c].section, .optimizer = {.lr = 0.1, .groups.count = 1}};
    job.optimizer.groups.item[0].lr = 0.013;
    return job;
}

TEST(plateau_equals_pytorch) {
    for (size_t c = 0; c < sizeof(plateau_golden) / sizeof(plateau_golden[0]); c++) {
        const tdm_job job = plateau_job(c);
        tdm_schedules all;
        tdm__schedules_init(&all, &job, 0, 1000, 10);
        for (int i = 0; i < MEASURED; i++) {
            tdm__schedules_step(&all, true);
            tdm__schedules_measured(&all, plateau_metric[i]);
            if (all.own.lr == plateau_golden[c].want[0][i] && all.group[0].lr == plateau_golden[c].want[1][i]) continue;
            tdm_test_failures++;
            fprintf(stderr, "%s, evaluation %d: lr %a and %a, wanted %a and %a\n", plateau_golden[c].name, i,
                    all.own.lr, all.group[0].lr, plateau_golden[c].want[0][i], plateau_golden[c].want[1][i]);
            break;
        }
    }
}

/* A resume has what the checkpoint keeps of it, and the number of steps. */
TEST(plateau_goes_on_from_its_state) {
    for (size_t c = 0; c < sizeof(plateau_golden) / sizeof(plateau_golden[0]); c++) {
        const tdm_job job = plateau_job(c);
        tdm_schedules all, resumed;
        tdm__schedules_init(&all, &job, 0, 1000, 10);
        for (int i = 0; i < MEASURED; i++) {
            tdm__schedules_step(&all, true);
            tdm__schedules_measured(&all, plateau_metric[i]);
            tdm__schedules_init(&resumed, &job, 0, 1000, 10);
            tdm__schedules_seek(&resumed, i + 1, 1, &all.plateau);
            CHECK(resumed.own.lr == all.own.lr && resumed.group[0].lr == all.group[0].lr);
            CHECK(memcmp(&resumed.plateau, &all.plateau, sizeof all.plateau) == 0);
        }
    }
}

TEST(plateau_waits_for_the_end_of_warmup) {
    tdm_job job = plateau_job(0);
    tdm_schedules all;
    job.schedule.warmup_steps = 3;
    job.schedule.warmup_factor = 0.5;
    job.schedule.patience = 0;
    tdm__schedules_init(&all, &job, 0, 1000, 10);
    for (int step = 1; step <= 5; step++) {
        tdm__schedules_step(&all, false);
        tdm__schedules_measured(&all, 1.0);
        CHECK(step < 3 || all.own.lr == (step == 5 ? 0.1 * 0.3 * 0.3 : step == 4 ? 0.1 * 0.3 : 0.1));
    }
    CHECK_INT(all.plateau.reductions, 2);
}

/* Unless it is written, the metric says which way is better. */
TEST(plateau_mode_auto) {
    tdm_job job = plateau_job(2); /* patience 0 */
    job.schedule.mode = TDM_PLATEAU_AUTO;
    for (int metric = TDM_METRIC_ACCURACY; metric <= TDM_METRIC_LOSS; metric++) {
        tdm_schedules all;
        job.schedule.metric = metric;
        tdm__schedules_init(&all, &job, 0, 1000, 10);
        tdm__schedules_measured(&all, 0.5);
        tdm__schedules_measured(&all, 0.6);
        CHECK_INT(all.plateau.reductions, metric == TDM_METRIC_LOSS);
    }
}

TEST_MAIN(RUN(equal_pytorch); RUN(per_epoch_steps_at_the_end_of_epochs); RUN(seeking_is_stepping);
          RUN(a_far_place_is_near); RUN(a_job_whose_changes_are_too_many); RUN(plateau_equals_pytorch);
          RUN(plateau_goes_on_from_its_state); RUN(plateau_waits_for_the_end_of_warmup); RUN(plateau_mode_auto);)
