/* An ONNX file as a model that predicts: its graph as the text of a model, its weights as tensors. */
#include "runtime/ckpt/tensor_file.h"
#include "tests/model/onnx_made.h"

/* Its whole text; NULL and the message of the error if the file is refused. Free it with tdm_free. */
static inline char *text_of_onnx(const char *path) {
    tdm_graph *graph;
    tdm_value output;
    tdm_job job;
    char *text = NULL;
    if (tdm_graph_from_onnx(&graph, &output, NULL, path) != TDM_OK) return NULL;
    must(tdm_graph_finish(graph, output) == TDM_OK && tdm_job_init(&job) == TDM_OK, path);
    job.name = "read";
    job.train.steps = 1;
    job.train.per_device = 1;
    job.loss.type = TDM_MSE;
    job.parallel.kernels = TDM_KERNELS_REF;
    must(tdm_config_print_model(&job, graph, &text) == TDM_OK, path);
    tdm_graph_free(graph);
    return text;
}

/* Writes the file that predicts as it does; its numbers must be F32. */
static inline void put_read(const char *onnx, const char *text, const char *to) {
    static tdm_tensor tensor[MOST_TENSORS];
    tdm_tensor_file *file;
    must(tdm__onnx_tensors_open(&file, tdm_host_default(), onnx, NULL, 0) == TDM_OK, onnx);
    const int count = tdm__tensor_file_count(file);
    must(count <= MOST_TENSORS, "too many tensors");
    for (int i = 0; i < count; i++) {
        tensor[i] = *tdm__tensor_file_get(file, i);
        void *data = malloc(tensor[i].bytes);
        must(data != NULL && tdm__tensor_file_read(file, tdm__tensor_file_get(file, i), data) == TDM_OK,
             tensor[i].name);
        tensor[i].data = data;
    }
    put_model(to, text, tensor, count);
    for (int i = 0; i < count; i++) free((void *)(uintptr_t)tensor[i].data);
    tdm__tensor_file_close(file);
}
