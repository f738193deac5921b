/* ONNX files from hostile hands: nothing crashes; what is read becomes a graph that can be finished if it has
 * parameters, and numbers of as many bytes as these have. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/onnx/import.h"

#define MUST(condition)                                                           \
    do {                                                                          \
        if (!(condition)) {                                                       \
            fprintf(stderr, "broken: %s: %s\n", #condition, tdm_error_message()); \
            abort();                                                              \
        }                                                                         \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

/* The memory has no byte too many, so that the sanitizer sees one that is written. */
static void read_params(const tdm_onnx_import *import) {
    enum { MOST = 1 << 20 };
    size_t sum = 0;
    for (int i = 0; i < import->param_count; i++) {
        const tdm_onnx_param *param = &import->param[i];
        const size_t size = (size_t)param->of->count * param->element;
        if (size > MOST || (sum += size) > MOST) return;
        void *to = malloc(size);
        MUST(to != NULL && tdm__onnx_param_read(import, param, to) == TDM_OK);
        free(to);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    tdm_onnx_import *import;
    const tdm_status status = tdm__onnx_import_open(&import, tdm_host_default(), "file", bytes, count);
    MUST(status == TDM_OK || status == TDM_E_CHECKPOINT || status == TDM_E_UNSUPPORTED);
    MUST((status == TDM_OK) == (import != NULL));
    if (import == NULL) {
        MUST(strncmp(tdm_error_message(), "file: ", 6) == 0);
        return 0;
    }
    const tdm_graph *graph = import->graph;
    MUST((size_t)import->param_count == graph->param_count + graph->buffer_count);
    read_params(import);
    const bool has_none =
        graph->param_count == 0; /* a file may have no parameters, but there is nothing to train then */
    MUST(tdm_graph_finish(import->graph, import->output) == (has_none ? TDM_E_CONFIG : TDM_OK));
    tdm__onnx_import_close(import);
    return 0;
}
