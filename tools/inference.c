/* inference.c - see inference.h. The split is opened as both train and eval data, so that only its files must be there.
 */
#include "tools/inference.h"

#include <stdlib.h>
#include <string.h>

#include "tools/term.h"

static int choose_split(inference *in, const tool *t) {
    const char *split = args_flag(t, "--split");
    if (split && strcmp(split, "train") != 0 && strcmp(split, "eval") != 0) {
        return args_wrong(t, "`--split` wants train or eval, `%s` was given", split);
    }
    if (split && strcmp(split, "train") == 0) {
        in->job.data.eval = in->job.data.train;
    } else {
        if (in->job.data.eval.format == TDM_DATA_NONE) {
            return args_wrong(t, "%s has no data.eval section; --split train takes data.train", t->word[0]);
        }
        in->job.data.train = in->job.data.eval;
    }
    return TDM_OK;
}

/* A run directory, or a checkpoint in one, holds the configuration beside the weights. */
static const char *enter_folder(inference *in, tool *t) {
    const char *folder = t->word[0];
    in->file = text_format("%s/config.resolved.yaml", folder);
    if (!files_exists(in->file)) return NULL;
    t->word[0] = in->file;
    return folder;
}

int inference_open(inference *in, tool *t) {
    *in = (inference){.config = NULL};
    const char *folder = enter_folder(in, t);
    int code = job_open(t, NULL, &in->config);
    if (code != TDM_OK) return code;
    const char *weights = args_flag(t, "--weights");
    if (!weights) weights = folder;
    in->job = *tdm_config_job(in->config);
    if (weights) {
        in->job.weights = weights;
        in->job.weights_at = (tdm_origin){.file = NULL};
    }
    if (!in->job.weights)
        return args_wrong(t, "which weights? --weights takes a run directory, a checkpoint or a file");
    code = choose_split(in, t);
    if (code != TDM_OK) return code;
    if (in->job.train.per_device == TDM_INT_NULL) /* what eval.batch follows from unless it is written */
        in->job.train.per_device = in->job.train.global_batch / in->job.parallel.device_ids.count;
    in->job.train.global_batch = TDM_INT_NULL;
    in->job.parallel.mode = TDM_MODE_SINGLE;
    in->job.parallel.device_ids = (tdm_ints){.count = 1};
    in->job.parallel.dp.output_device = 0;
    in->job.data.drop_last = false;
    in->job.checkpoint.resume = "never";
    in->job.run.dir = NULL;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.host = &t->host;
    tdm_status status = tdm_run_open(&in->run, &in->job, tdm_config_graph(in->config), &options);
    return status == TDM_OK ? TDM_OK : tell_error(status);
}

void inference_close(inference *in) {
    tdm_run_close(in->run);
    tdm_config_free(in->config);
    free(in->file);
    *in = (inference){.config = NULL};
}
