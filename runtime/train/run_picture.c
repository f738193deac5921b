/* Pictures that a program wants predictions for, as this run's model takes them. */
#include "runtime/base/status.h"
#include "runtime/data/pictures/picture_input.h"
#include "runtime/graph/graph.h"
#include "runtime/train/run.h"

/* Opened with the first picture. */
static tdm_status get(tdm_run *run) {
    if (run->picture != NULL) return TDM_OK;
    return tdm__picture_input_open(&run->picture, run->host, &run->job->data.transform,
                                   &run->graph->values[run->graph->input].shape, run->options.module_path);
}

tdm_status tdm_run_decode_picture(tdm_run *run, const void *bytes, size_t count, float *x) {
    if (run == NULL || bytes == NULL || x == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_decode_picture: a pointer is NULL");
    TDM_TRY(get(run));
    return tdm__picture_input_decode(run->picture, bytes, count, x);
}

tdm_status tdm_run_read_picture(tdm_run *run, const char *path, float *x) {
    if (run == NULL || path == NULL || x == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_read_picture: a pointer is NULL");
    TDM_TRY(get(run));
    return tdm__picture_input_read(run->picture, path, x);
}
