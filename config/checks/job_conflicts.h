/* Settings that contradict each other, whoever wrote them: a file, whose check quotes both lines, or a program,
 * which fills a tdm_job. */
#ifndef TDM_CONFIG_JOB_CONFLICTS_H
#define TDM_CONFIG_JOB_CONFLICTS_H

#include <tandem/job.h>

#include "runtime/base/text/text.h"

typedef struct tdm_job_conflict {
    const char *key, *other; /* "parallel.stages", "parallel.mode"; NULL behind the last */
    /* True if they contradict each other: writes the sentence that says so, with what to do. */
    bool (*is_met)(const tdm_job *job, tdm_text *sentence);
} tdm_job_conflict;

extern const tdm_job_conflict tdm__job_conflicts[];
/* The same of one step normalize: has it other numbers in std than in mean? */
bool tdm__normalize_is_uneven(const tdm_normalize *step, tdm_text *sentence);

#endif
