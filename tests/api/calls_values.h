/* Values for the parameters of public functions, by type: number 0 is good, 1 is NULL where it is a pointer, the others
 * are bad in some way. A new type of parameter needs a take_TYPE here: without it calls_test.c does not compile. */
#ifndef TDM_TEST_CALLS_VALUES_H
#define TDM_TEST_CALLS_VALUES_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tandem/burnin.h>
#include <tandem/comm.h>
#include <tandem/data.h>
#include <tandem/doctor.h>
#include <tandem/model.h>
#include <tandem/scale.h>
#include <tandem/tandem.h>

#define CALL_SAVED "saved/step-00000000" /* a checkpoint that lies there */
enum { CALL_PARAMETERS = 16, CALL_BYTES = 65536, CALL_ITEMS = 128, CALL_RANKS = 256 };

/* One call: which value each parameter gets, what lives for its time, what it made. */
typedef struct bent {
    int choice[CALL_PARAMETERS]; /* taken modulo the number of values */
    int choices[CALL_PARAMETERS];
    void *freed[CALL_PARAMETERS]; /* structs on the heap, of exactly their size */
    const char *function;
    tdm_status status;
    bool returns_status;
    /* Objects that functions use; they live from call to call. */
    tdm_graph *graph, *unfinished;
    tdm_run *run;
    tdm_config *config;
    tdm_model *model;
    tdm_burnin *burnin;
    tdm_comm *comm;
    tdm_job job;
    /* What the call made. */
    tdm_graph *made_graph;
    tdm_run *made_run;
    tdm_config *made_config;
    tdm_model *made_model;
    tdm_burnin *made_burnin;
    tdm_comm *made_comm[CALL_RANKS];
    tdm_comm_request *request, *made_request;
    char *text;
    int numbers[8];
    tdm_buffer buffer;
    void *memory;
    void *scratch[CALL_PARAMETERS];
    const void *zeros;   /* CALL_BYTES of them */
    const char *word[8]; /* each with as many zeros behind it */
    char *good[CALL_PARAMETERS];
} bent;

static inline int pick(bent *b, int i, int count) {
    b->choices[i] = count;
    return b->choice[i] % count;
}

#define RETURNS_STATUS(b, call) ((b)->returns_status = true, (b)->status = (call))
#define RETURNS_OTHER(b, call) ((b)->returns_status = false, (void)(call))

/* ---- numbers, texts, memory ---- */

#define TAKE_NUMBER(type, ...)                                              \
    static type take_##type(bent *b, int i, const char *name) {             \
        static const type values[] = {__VA_ARGS__};                         \
        (void)name;                                                         \
        return values[pick(b, i, (int)(sizeof(values) / sizeof(*values)))]; \
    }
TAKE_NUMBER(int64_t, 1, 0, -1, 2, INT64_MIN, 99)
TAKE_NUMBER(size_t, 12, 0, 1, 4, 64, CALL_BYTES)
TAKE_NUMBER(double, 0.5, 0, -1, NAN, INFINITY, 1e300)
TAKE_NUMBER(tdm_value, 0, -1, 1, 77)
TAKE_NUMBER(tdm_status, TDM_OK, TDM_E_STOPPED, (tdm_status)-1, (tdm_status)4711)
TAKE_NUMBER(tdm_language, TDM_ENGLISH, TDM_CHINESE, (tdm_language)-1, (tdm_language)9)
TAKE_NUMBER(tdm_dtype, TDM_DTYPE_I64, TDM_DTYPE_F32, (tdm_dtype)-1, TDM_DTYPE_COUNT)
TAKE_NUMBER(tdm_reduce_op, TDM_REDUCE_SUM, TDM_REDUCE_AVG, (tdm_reduce_op)-1, TDM_REDUCE_OPS)
TAKE_NUMBER(tdm_config_form, TDM_CONFIG_RESOLVED, TDM_CONFIG_JSON, (tdm_config_form)-1, (tdm_config_form)9)
TAKE_NUMBER(tdm_launch_source, TDM_LAUNCH_NONE, TDM_LAUNCH_SLURM, (tdm_launch_source)-1, (tdm_launch_source)99)

TAKE_NUMBER(tdm_input, TDM_INPUT_READY, TDM_INPUT_BYTES, (tdm_input)-1, (tdm_input)3)
TAKE_NUMBER(tdm_transform_kind, TDM_TRANSFORM_RESIZE, (tdm_transform_kind)-1, TDM_TRANSFORM_KINDS)
TAKE_NUMBER(tdm_burnin_verdict, TDM_BURNIN_FAILED, (tdm_burnin_verdict)-1, (tdm_burnin_verdict)4)

/* Ranks, groups and the like count from 0. */
static int take_int(bent *b, int i, const char *name) {
    static const int values[] = {1, 0, -1, 2, INT32_MIN, 99};
    const int at = pick(b, i, 6);
    const bool is_place = strcmp(name, "root") == 0 || strcmp(name, "index") == 0 || strcmp(name, "rank") == 0;
    return is_place && at < 2 ? values[1 - at] : values[at];
}

/* Good texts, by the beginning of a function's name and a parameter; of all others it is "x". */
static const struct {
    const char *function, *name, *text;
} call_texts[] = {{"tdm_checkpoint_convert", "to", "converted.safetensors"},
                  {"tdm_checkpoint_", "a", CALL_SAVED},
                  {"tdm_checkpoint_", "b", CALL_SAVED},
                  {"tdm_checkpoint_", "from", CALL_SAVED "/model.safetensors"},
                  {"tdm_checkpoint_list", "path", "saved"},
                  {"tdm_checkpoint_", "path", CALL_SAVED},
                  {"tdm_model_export", "from", CALL_SAVED},
                  {"tdm_model_export", "to", "exported"},
                  {"tdm_model_", "path", CALL_SAVED "/model.safetensors"},
                  {"tdm_run_load", "path", CALL_SAVED},
                  {"tdm_run_save", "dir", "more"},
                  {"tdm_run_read_optimizer", "param", "fc.bias"},
                  {"tdm_run_read_optimizer", "state", "exp_avg"},
                  {"tdm_run_print", "what", "plan"},
                  {"tdm_run_", "name", "fc.bias"},
                  {"tdm_config_override_text", "text", "0.5"},
                  {"tdm_config_override", "assignment", "train.steps=1"},
                  {"tdm_config_parse", "text", "tandem: 1\n"},
                  {"tdm_config_starter", "task", "mnist"},
                  {"tdm_config_", "key", "optimizer.lr"},
                  {"tdm_data_make", "format", "npy"},
                  {"tdm_data_make", "folder", "made"},
                  {"tdm_graph_", "op", "relu"},
                  {"tdm_link_parse", "text", "25Gb,20us"},
                  {"tdm_scale_times_parse", "text", "46ms,107ms,6.6ms"}};

static const char *good_text(bent *b, int i, const char *name) {
    const char *text = b->word[0];
    for (size_t k = sizeof(call_texts) / sizeof(*call_texts); k > 0; k--)
        if (strncmp(b->function, call_texts[k - 1].function, strlen(call_texts[k - 1].function)) == 0 &&
            strcmp(name, call_texts[k - 1].name) == 0)
            text = call_texts[k - 1].text;
    memset(b->good[i], 0, CALL_BYTES);
    return strcpy(b->good[i], text);
}

static const char *take_c_char_p(bent *b, int i, const char *name) {
    const int at = pick(b, i, 9);
    return at == 0 ? good_text(b, i, name) : at == 1 ? NULL : b->word[at - 1];
}

static const char *const *take_c_char_pc__p(bent *b, int i, const char *name) {
    static const char *words[CALL_ITEMS];
    (void)name;
    for (int k = 0; k < CALL_ITEMS; k++) words[k] = k % 2 == 0 ? "word" : "";
    return pick(b, i, 2) == 1 ? NULL : words;
}

static void *take_memory(bent *b, int i) {
    return pick(b, i, 2) == 1 ? NULL : b->scratch[i];
}

static const void *take_zeros(bent *b, int i) {
    return pick(b, i, 2) == 1 ? NULL : b->zeros;
}

#define TAKE_MEMORY(type, ident)                                  \
    static type *take_##ident(bent *b, int i, const char *name) { \
        (void)name;                                               \
        return take_memory(b, i);                                 \
    }
TAKE_MEMORY(float, float_p)
TAKE_MEMORY(double, double_p)
TAKE_MEMORY(char, char_p)
TAKE_MEMORY(int64_t, int64_t_p)
TAKE_MEMORY(tdm_value, tdm_value_p)
TAKE_MEMORY(tdm_link, tdm_link_p)
TAKE_MEMORY(tdm_transform_step, tdm_transform_step_p)

#define TAKE_ZEROS(type, ident)                                         \
    static const type *take_##ident(bent *b, int i, const char *name) { \
        (void)name;                                                     \
        return take_zeros(b, i);                                        \
    }
TAKE_ZEROS(void, c_void_p)
TAKE_ZEROS(int, c_int_p)
TAKE_ZEROS(float, c_float_p)
TAKE_ZEROS(int64_t, c_int64_t_p)
TAKE_ZEROS(size_t, c_size_t_p)
TAKE_ZEROS(tdm_value, c_tdm_value_p)
TAKE_ZEROS(tdm_origin, c_tdm_origin_p)
TAKE_ZEROS(struct tdm_module, c_tdm_module_p)

static void *take_void_p(bent *b, int i, const char *name) {
    const bool is_buffer = strcmp(name, "buffer") == 0;
    if (is_buffer && pick(b, i, 3) == 2) b->buffer.size = 7;
    return is_buffer ? (pick(b, i, 3) == 1 ? NULL : &b->buffer) : take_memory(b, i);
}

static tdm_buffer *take_tdm_buffer_p(bent *b, int i, const char *name) {
    return take_void_p(b, i, name);
}

/* ---- where something is returned ---- */

#define TAKE_PLACE(type, ident, place)                            \
    static type *take_##ident(bent *b, int i, const char *name) { \
        (void)name;                                               \
        return pick(b, i, 2) == 1 ? NULL : (place);               \
    }
TAKE_PLACE(char *, char_p_p, &b->text)
TAKE_PLACE(void *, void_p_p, &b->memory)
TAKE_PLACE(int, int_p, b->numbers)
TAKE_PLACE(tdm_graph *, tdm_graph_p_p, &b->made_graph)
TAKE_PLACE(tdm_run *, tdm_run_p_p, &b->made_run)
TAKE_PLACE(tdm_config *, tdm_config_p_p, &b->made_config)
TAKE_PLACE(tdm_model *, tdm_model_p_p, &b->made_model)
TAKE_PLACE(tdm_burnin *, tdm_burnin_p_p, &b->made_burnin)
TAKE_PLACE(tdm_comm *, tdm_comm_p_p, b->made_comm)
TAKE_PLACE(tdm_comm_request *, tdm_comm_request_p_p, &b->made_request)

/* ---- objects ---- */

TAKE_PLACE(tdm_run, tdm_run_p, b->run)
TAKE_PLACE(const tdm_run, c_tdm_run_p, b->run)
TAKE_PLACE(tdm_config, tdm_config_p, b->config)
TAKE_PLACE(const tdm_config, c_tdm_config_p, b->config)
TAKE_PLACE(tdm_model, tdm_model_p, b->model)
TAKE_PLACE(const tdm_model, c_tdm_model_p, b->model)
TAKE_PLACE(tdm_burnin, tdm_burnin_p, b->burnin)
TAKE_PLACE(const tdm_burnin, c_tdm_burnin_p, b->burnin)
TAKE_PLACE(tdm_comm, tdm_comm_p, b->comm)
TAKE_PLACE(const tdm_comm, c_tdm_comm_p, b->comm)

static tdm_graph *take_tdm_graph_p(bent *b, int i, const char *name) {
    const int at = pick(b, i, 3);
    (void)name;
    return at == 1 ? NULL : at == 2 ? b->graph : b->unfinished;
}

static const tdm_graph *take_c_tdm_graph_p(bent *b, int i, const char *name) {
    const int at = pick(b, i, 3);
    (void)name;
    return at == 1 ? NULL : at == 2 ? b->unfinished : b->graph;
}

static tdm_comm_request *take_tdm_comm_request_p(bent *b, int i, const char *name) {
    (void)name;
    if (pick(b, i, 2) == 1) return NULL;
    if (b->request == NULL) (void)tdm_comm_start_barrier(b->comm, &b->request);
    return b->request;
}

/* ---- structs that begin with their size, each on the heap, as long as it is ---- */

static void *take_sized(bent *b, int i, const void *good, uint32_t size) {
    const uint32_t sizes[] = {size, 0, 0, 3, 12, size - 1, size + 8, UINT32_MAX, 4};
    const int at = pick(b, i, (int)(sizeof(sizes) / sizeof(*sizes)));
    char *copy = at == 1 ? NULL : malloc(size);
    b->freed[i] = copy;
    if (copy == NULL) return NULL;
    memcpy(copy, good, size);
    memcpy(copy, &sizes[at], sizeof(uint32_t));
    return copy;
}

#define TAKE_SIZED(type, ident, ...)                              \
    static type *take_##ident(bent *b, int i, const char *name) { \
        const type good = __VA_ARGS__;                            \
        (void)name;                                               \
        return take_sized(b, i, &good, (uint32_t)sizeof(good));   \
    }
#define SIZED_ONLY(type) ((type){.size = sizeof(type)})
TAKE_SIZED(tdm_run_state, tdm_run_state_p, TDM_RUN_STATE_INIT)
TAKE_SIZED(tdm_pass, tdm_pass_p, TDM_PASS_INIT)
TAKE_SIZED(tdm_outputs, tdm_outputs_p, TDM_OUTPUTS_INIT)
TAKE_SIZED(tdm_tensor_info, tdm_tensor_info_p, TDM_TENSOR_INFO_INIT)
TAKE_SIZED(tdm_unseen_category, tdm_unseen_category_p, TDM_UNSEEN_CATEGORY_INIT)
TAKE_SIZED(tdm_target, tdm_target_p, TDM_TARGET_INIT)
TAKE_SIZED(tdm_scores, tdm_scores_p, TDM_SCORES_INIT)
TAKE_SIZED(tdm_model_info, tdm_model_info_p, TDM_MODEL_INFO_INIT)
TAKE_SIZED(tdm_input_info, tdm_input_info_p, TDM_INPUT_INFO_INIT)
TAKE_SIZED(tdm_checkpoint_difference, tdm_checkpoint_difference_p, SIZED_ONLY(tdm_checkpoint_difference))
TAKE_SIZED(tdm_burnin_total, tdm_burnin_total_p, TDM_BURNIN_TOTAL_INIT)
TAKE_SIZED(tdm_burnin_device, tdm_burnin_device_p, TDM_BURNIN_DEVICE_INIT)
TAKE_SIZED(tdm_scale_point, tdm_scale_point_p, SIZED_ONLY(tdm_scale_point))
TAKE_SIZED(tdm_launch_facts, tdm_launch_facts_p, TDM_LAUNCH_FACTS_INIT)
TAKE_SIZED(tdm_launch_facts, c_tdm_launch_facts_p, TDM_LAUNCH_FACTS_INIT)
TAKE_SIZED(tdm_cluster, c_tdm_cluster_p, {.size = sizeof(tdm_cluster), .devices_per_host = 1})
TAKE_SIZED(tdm_scale_work, c_tdm_scale_work_p, SIZED_ONLY(tdm_scale_work))
TAKE_SIZED(tdm_run_options, c_tdm_run_options_p, TDM_RUN_OPTIONS_INIT)
TAKE_SIZED(tdm_model_options, c_tdm_model_options_p, TDM_MODEL_OPTIONS_INIT)
TAKE_SIZED(tdm_burnin_options, c_tdm_burnin_options_p, TDM_BURNIN_OPTIONS_INIT)
TAKE_SIZED(tdm_hosts_options, c_tdm_hosts_options_p, TDM_HOSTS_OPTIONS_INIT)
TAKE_SIZED(tdm_plan_print_options, c_tdm_plan_print_options_p, TDM_PLAN_PRINT_OPTIONS_INIT)
TAKE_SIZED(tdm_plan_scale_options, c_tdm_plan_scale_options_p,
           {.size = sizeof(tdm_plan_scale_options), .hosts = 1, .forward = 1, .backward = 1, .update = 1})
TAKE_SIZED(tdm_data_use, c_tdm_data_use_p, SIZED_ONLY(tdm_data_use))
TAKE_SIZED(tdm_job, c_tdm_job_p, b->job)
TAKE_SIZED(tdm_job, tdm_job_p, b->job)

static int write_nowhere(void *user, const void *bytes, size_t count) {
    (void)user, (void)bytes, (void)count;
    return 0;
}
TAKE_SIZED(tdm_writer, c_tdm_writer_p, {sizeof(tdm_writer), write_nowhere, NULL})

static const tdm_host *take_c_tdm_host_p(bent *b, int i, const char *name) {
    const tdm_host *good = tdm_host_default();
    const int at = pick(b, i, 9);
    (void)name;
    return at == 0 ? good : at == 8 ? NULL : take_sized(b, i, good, (uint32_t)sizeof(*good));
}

/* ---- structs without a size ---- */

static const tdm_data_spec *take_c_tdm_data_spec_p(bent *b, int i, const char *name) {
    static const tdm_data_spec specs[] = {{.format = TDM_DATA_GLYPHS, .samples = 2}, {0}, {.format = 99}};
    const int at = pick(b, i, 3);
    (void)name;
    return at == 1 ? NULL : &specs[at];
}

static const tdm_attr *take_c_tdm_attr_p(bent *b, int i, const char *name) {
    static tdm_attr attrs[CALL_ITEMS];
    (void)name;
    for (int k = 0; k < CALL_ITEMS; k++) attrs[k] = (tdm_attr){"out", "2", {0}};
    return pick(b, i, 2) == 1 ? NULL : attrs;
}

static const tdm_input_array *take_c_tdm_input_array_p(bent *b, int i, const char *name) {
    static tdm_input_array arrays[CALL_ITEMS];
    (void)name;
    for (int k = 0; k < CALL_ITEMS; k++) arrays[k] = (tdm_input_array){b->zeros, TDM_INPUT_FLOATS};
    return pick(b, i, 2) == 1 ? NULL : arrays;
}

static tdm_span take_tdm_span(bent *b, int i, const char *name) {
    void *const at = b->scratch[i];
    const tdm_span spans[] = {{at, 1, TDM_DTYPE_I64},   {NULL, 1, TDM_DTYPE_I64}, {at, 2, TDM_DTYPE_I64},
                              {at, 1, TDM_DTYPE_COUNT}, {at, 0, TDM_DTYPE_F32},   {(char *)at + 1, 1, TDM_DTYPE_I64}};
    (void)name;
    return spans[pick(b, i, 6)];
}

static const tdm_span *take_c_tdm_span_p(bent *b, int i, const char *name) {
    static tdm_span spans[CALL_RANKS][CALL_ITEMS];
    (void)name;
    for (int k = 0; k < CALL_ITEMS; k++) spans[i][k] = (tdm_span){(int64_t *)b->scratch[i] + k, 1, TDM_DTYPE_I64};
    return pick(b, i, 2) == 1 ? NULL : spans[i];
}

static const tdm_transfer *take_c_tdm_transfer_p(bent *b, int i, const char *name) {
    static tdm_transfer transfers[CALL_RANKS][CALL_ITEMS];
    (void)name;
    for (int k = 0; k < CALL_ITEMS; k++)
        transfers[i][k] = (tdm_transfer){k % 2, 1 - i % 2, {(int64_t *)b->scratch[i] + k, 1, TDM_DTYPE_I64}};
    return pick(b, i, 2) == 1 ? NULL : transfers[i];
}

/* ---- callbacks ---- */

static tdm_status each_path(void *user, const char *path) {
    (void)user, (void)path;
    return TDM_OK;
}

static tdm_status each_thumbnail(void *user, int64_t index, const void *png, size_t bytes, const char *why) {
    (void)user, (void)index, (void)png, (void)bytes, (void)why;
    return TDM_OK;
}

static tdm_status (*take_function_each(bent *b, int i, const char *name))(void *, const char *) {
    (void)name;
    return pick(b, i, 2) == 1 ? NULL : each_path;
}

static tdm_data_thumbnail *take_tdm_data_thumbnail_p(bent *b, int i, const char *name) {
    (void)name;
    return pick(b, i, 2) == 1 ? NULL : each_thumbnail;
}

#endif
