#include "runtime/data/pictures/picture_input.h"

#include <unistd.h>

#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/base/system/file.h"
#include "runtime/data/formats.h"
#include "runtime/data/pictures/picture_file.h"
#include "runtime/data/transform.h"
#include "runtime/image/codec.h"

struct tdm_picture_input {
    const tdm_host *host;
    const tdm_transform_spec *spec;
    const tdm_shape *shape;
    const tdm_image_ops *codec;
    tdm_canvas canvas;
    tdm_file_bytes file;
    tdm_transform transform;
    unsigned char *bytes; /* a sample before it becomes floats */
};

static tdm_status open_parts(tdm_picture_input *p, const tdm_data_inputs *inputs, const char *module_path) {
    const tdm_dataset like = {.x_shape = *p->shape, .inputs = *inputs, .x_is_bytes = true};
    char names[TDM_INPUTS_TEXT];
    size_t count;
    p->transform.host = p->host;
    tdm__canvas_init(&p->canvas, p->host);
    if (inputs->count > 1)
        TDM_FAIL(TDM_E_USAGE, "the model has %d inputs (%s), and a picture is only one of them; give arrays",
                 inputs->count, tdm__data_inputs_print(names, inputs));
    if (p->shape->ndim != 3 || (p->shape->dim[0] != 1 && p->shape->dim[0] != 3) ||
        !tdm__shape_elements(p->shape, &count))
        TDM_FAIL(TDM_E_USAGE, "the model does not take pictures: its input is not [1 or 3, height, width]");
    TDM_TRY(tdm__codec_open(&p->codec, p->host, module_path));
    TDM_TRY(tdm__transform_init(&p->transform, p->host, p->spec, &like));
    return tdm__new(p->host, &p->bytes, count, 1, "picture");
}

tdm_status tdm__picture_input_open(tdm_picture_input **out, const tdm_host *host, const tdm_transform_spec *spec,
                                   const tdm_shape *shape, const tdm_data_inputs *inputs, const char *module_path) {
    tdm_picture_input *p = NULL;
    *out = NULL;
    TDM_EXTRA(PICTURES);
    TDM_TRY(tdm__new(host, &p, 1, sizeof(*p), "picture"));
    p->host = host;
    p->spec = spec;
    p->shape = shape;
    TDM_TRY_ELSE(open_parts(p, inputs, module_path), tdm__picture_input_close(p));
    *out = p;
    return TDM_OK;
}

void tdm__picture_input_close(tdm_picture_input *p) {
    if (p == NULL) return;
    tdm__canvas_deinit(&p->canvas);
    tdm__transform_deinit(&p->transform);
    tdm__delete(p->host, p->file.data);
    tdm__delete(p->host, p->bytes);
    tdm__delete(p->host, p);
}

tdm_status tdm__picture_input_decode(tdm_picture_input *p, const void *bytes, size_t count, float *x) {
    TDM_EXTRA(PICTURES);
    const tdm_picture_call call = {.codec = p->codec, .channels = (int)p->shape->dim[0], .spec = p->spec};
    TDM_TRY(tdm__picture_decode(&call, bytes, count, &p->canvas));
    if (p->canvas.now.height != p->shape->dim[1] || p->canvas.now.width != p->shape->dim[2])
        TDM_FAIL(TDM_E_DATA, "%d x %d pixels after data.transform, and the model takes %lld x %lld",
                 p->canvas.now.width, p->canvas.now.height, (long long)p->shape->dim[2], (long long)p->shape->dim[1]);
    tdm__canvas_planes(&p->canvas, p->bytes);
    tdm__transform_bytes(&p->transform, p->bytes, x);
    return TDM_OK;
}

tdm_status tdm__picture_input_read(tdm_picture_input *p, const char *path, float *x) {
    uint64_t count;
    int fd;
    TDM_TRY(tdm__file_open(&fd, &count, NULL, path, TDM_E_DATA));
    tdm_status status = tdm__file_take(fd, path, p->host, &p->file, count);
    close(fd);
    if (status == TDM_OK) status = tdm__picture_input_decode(p, p->file.data, (size_t)count, x);
    if (status != TDM_E_DATA) return status;
    TDM_FAIL(status, "picture '%s': %s", path, tdm_error_message());
}
