/* Pictures that a program or the command wants predictions for: read, transformed as in evaluation, turned into what
 * the model takes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/status.h"
#include "runtime/data/pictures/picture_file.h"
#include "runtime/data/transform.h"
#include "runtime/graph/graph.h"
#include "runtime/image/codec.h"
#include "runtime/train/run.h"

struct tdm_run_picture {
    const tdm_image_ops *codec;
    tdm_canvas canvas;
    tdm_file_bytes file;
    tdm_transform transform;
    unsigned char *bytes; /* a sample before it becomes floats */
};

static const tdm_shape *input_of(const tdm_run *run) {
    return &run->graph->values[run->graph->input].shape;
}

static tdm_status open_parts(tdm_run *run, struct tdm_run_picture *p) {
    const tdm_shape *input = input_of(run);
    const tdm_dataset like = {.x_shape = *input, .x_is_bytes = true};
    size_t count;
    p->transform.host = run->host;
    tdm__canvas_init(&p->canvas, run->host);
    if (input->ndim != 3 || (input->dim[0] != 1 && input->dim[0] != 3) ||
        !tdm__mul_fits(1, (size_t)tdm_run_input_width(run), &count))
        TDM_FAIL(TDM_E_USAGE, "the model does not take pictures: its input is not [1 or 3, height, width]");
    TDM_TRY(tdm__codec_open(&p->codec, run->host, run->options.module_path));
    TDM_TRY(tdm__transform_init(&p->transform, run->host, &run->job->data.transform, &like));
    return tdm__new(run->host, &p->bytes, count, 1, "picture");
}

static tdm_status get(tdm_run *run, struct tdm_run_picture **out) {
    if (run->picture == NULL) {
        TDM_TRY(tdm__new(run->host, &run->picture, 1, sizeof(*run->picture), "picture"));
        TDM_TRY_ELSE(open_parts(run, run->picture), tdm__run_close_picture(run));
    }
    *out = run->picture;
    return TDM_OK;
}

void tdm__run_close_picture(tdm_run *run) {
    struct tdm_run_picture *p = run->picture;
    if (p == NULL) return;
    tdm__canvas_deinit(&p->canvas);
    tdm__transform_deinit(&p->transform);
    tdm__delete(run->host, p->file.data);
    tdm__delete(run->host, p->bytes);
    tdm__delete(run->host, p);
    run->picture = NULL;
}

static tdm_status decode(tdm_run *run, struct tdm_run_picture *p, const void *bytes, size_t count, float *x) {
    const tdm_shape *input = input_of(run);
    const tdm_picture_call call = {
        .codec = p->codec, .channels = (int)input->dim[0], .spec = &run->job->data.transform};
    TDM_TRY(tdm__picture_decode(&call, bytes, count, &p->canvas));
    TDM_TRY(tdm__transform_picture(&run->job->data.transform, &p->canvas, &call.key));
    if (p->canvas.now.height != input->dim[1] || p->canvas.now.width != input->dim[2])
        TDM_FAIL(TDM_E_DATA, "%d x %d pixels after data.transform, and the model takes %lld x %lld",
                 p->canvas.now.width, p->canvas.now.height, (long long)input->dim[2], (long long)input->dim[1]);
    tdm__canvas_planes(&p->canvas, p->bytes);
    tdm__transform_bytes(&p->transform, p->bytes, x);
    return TDM_OK;
}

tdm_status tdm_run_decode_picture(tdm_run *run, const void *bytes, size_t count, float *x) {
    struct tdm_run_picture *p = NULL;
    if (run == NULL || bytes == NULL || x == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_decode_picture: a pointer is NULL");
    TDM_TRY(get(run, &p));
    return decode(run, p, bytes, count, x);
}

tdm_status tdm_run_read_picture(tdm_run *run, const char *path, float *x) {
    struct tdm_run_picture *p = NULL;
    uint64_t count;
    int fd;
    if (run == NULL || path == NULL || x == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_read_picture: a pointer is NULL");
    TDM_TRY(get(run, &p));
    TDM_TRY(tdm__file_open(&fd, &count, NULL, path, TDM_E_DATA));
    tdm_status status = tdm__file_take(fd, path, run->host, &p->file, count);
    close(fd);
    if (status == TDM_OK) status = decode(run, p, p->file.data, (size_t)count, x);
    if (status != TDM_E_DATA) return status;
    TDM_FAIL(status, "picture '%s': %s", path, tdm_error_message());
}
