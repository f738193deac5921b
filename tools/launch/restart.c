/* restart.c - restarts a job when one of its processes dies. */
#include "tools/launch/launch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/saved.h"
#include "tools/terminal/term.h"

enum { IDLE_MAX = 2 }; /* restarts in a row that end without a new checkpoint */

static void add_remark(launch_end *end, const char *remark) {
    size_t used = strlen(end->error.message);
    snprintf(end->error.message + used, sizeof end->error.message - used, "; %s", remark);
}

static void warn(const launch_job *job, const launch_end *end) {
    if (job->t->quiet) return;
    term_mark(TERM_YELLOW, "", "tandem: warning:", "%.300s", end->error.message);
}

/* A process died while the job was stopping. If there is a checkpoint, the job counts as stopped: continuing it later
 * loses no more than a restart would. */
static void stop_instead(const launch_job *job, launch_end *end) {
    if (job->stop_code == 0) return;
    warn(job, end);
    end->code = job->stop_code;
    end->error = (tdm_error){.status = TDM_OK};
}

static void announce(const launch_job *job, const launch_end *end, int64_t most, int64_t step) {
    if (job->t->quiet) return;
    FREED char *from = step > 0 ? text_format("from step %lld", (long long)step) : text_copy("from the beginning");
    warn(job, end);
    term_line("tandem: restart %d %s, %lld left", job->restarts, from, (long long)most - job->restarts);
}

void restart_run(launch_job *job, const char *run_dir, int64_t most, launch_end *end) {
    int idle = 0;
    for (;;) {
        job->may_restart = job->restarts < most;
        launch_run(job, end);
        if (!end->was_lost) return;
        int64_t step = saved_step(run_dir);
        FREED char *unreadable = text_format("the checkpoints of %s cannot be read: %s", run_dir, strerror(errno));
        bool is_new = end->began_at >= 0 && step > end->began_at;
        job->goes_on = job->goes_on || is_new; /* an older checkpoint may be another run's */
        job->stop_code = job->goes_on && step > 0 ? TDM_E_STOPPED : 0;
        if (end->was_asked) {
            stop_instead(job, end);
            return;
        }
        idle = is_new || job->restarts == 0 ? 0 : idle + 1;
        const char *why_not = step == SAVED_UNREADABLE ? unreadable
                              : job->restarts >= most  ? "no restart is left"
                              : idle >= IDLE_MAX ? "giving up after two restarts in a row without a new checkpoint"
                                                 : NULL;
        if (why_not) {
            add_remark(end, why_not);
            return;
        }
        job->restarts++;
        announce(job, end, most, job->goes_on ? step : 0);
    }
}
