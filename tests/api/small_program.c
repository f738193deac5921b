/* What a program gets from the small library (the preset `small`): it trains, saves, exports a model and asks it, in
 * little memory; whatever the library is without refuses in one sentence.
 *   small_program FOLDER */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <tandem/burnin.h>
#include <tandem/comm.h>
#include <tandem/data.h>
#include <tandem/scale.h>
#include <tandem/tandem.h>

enum { MOST_KIB = 16 * 1024 };
static int bad;

static void good(const char *what, tdm_status status) {
    if (status == TDM_OK) return;
    printf("small: %s: %s\n", what, tdm_error_message());
    bad = 1;
}

static void absent(const char *what, tdm_status status, const char *option) {
    char wanted[80];
    snprintf(wanted, sizeof(wanted), "configure it with -DTDM_WITH_%s=ON", option);
    if (status == TDM_E_UNSUPPORTED && strstr(tdm_error_message(), wanted) != NULL) return;
    printf("small: %s gives status %d, wanted %d and \"%s\": %s\n", what, status, TDM_E_UNSUPPORTED, wanted,
           tdm_error_message());
    bad = 1;
}

static const char job_text[] = "tandem: 1\n"
                               "name: small\n"
                               "seed: 1\n"
                               "model:\n"
                               "  input: [8]\n"
                               "  layers:\n"
                               "    - linear: {name: fc1, out: 32}\n"
                               "    - relu\n"
                               "    - linear: {name: fc2, out: 4}\n"
                               "data:\n"
                               "  train: {format: synthetic, samples: 512, classes: 4}\n"
                               "loss: {type: cross_entropy}\n"
                               "optimizer: {type: adam, lr: 0.01}\n"
                               "train: {epochs: 20, batch: {per_device: 32}}\n";

static int on_event(const tdm_event *event, void *user) {
    double *loss = (double *)user;
    if (event->kind == TDM_EVENT_STEP && event->step == 1) loss[0] = event->loss;
    if (event->kind == TDM_EVENT_STEP) loss[1] = event->loss;
    return 0;
}

static tdm_status parse(tdm_config **config, const char *text, const char *assignment) {
    tdm_status status = tdm_config_parse(config, NULL, text, strlen(text), "job", NULL);
    if (status == TDM_OK && assignment != NULL) status = tdm_config_override(*config, assignment);
    return status == TDM_OK ? tdm_config_check(*config) : status;
}

static void trains(const char *folder, const char *model) {
    char assignment[600], run_folder[512];
    double loss[2] = {0, 0};
    tdm_config *config = NULL;
    tdm_run *run = NULL;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.on_event = on_event;
    options.user = loss;
    snprintf(run_folder, sizeof(run_folder), "%s/run", folder);
    snprintf(assignment, sizeof(assignment), "run.dir=%s", run_folder);
    good("the job", parse(&config, job_text, assignment));
    if (bad) return;
    good("open", tdm_run_open(&run, tdm_config_job(config), tdm_config_graph(config), &options));
    if (run != NULL) good("train", tdm_run_train(run));
    tdm_run_close(run);
    tdm_config_free(config);
    good("export", tdm_model_export(NULL, run_folder, model, NULL));
    if (loss[1] < loss[0]) return;
    printf("small: the loss was %f and is %f\n", loss[0], loss[1]);
    bad = 1;
}

static void predicts(const char *path) {
    tdm_model *model = NULL;
    const float x[8] = {1};
    float y[4] = {0};
    good("the model", tdm_model_open(&model, path, NULL));
    if (model != NULL) good("predict", tdm_model_predict(model, 0, x, 1, y));
    tdm_model_close(model);
    if (y[0] != y[1]) return;
    printf("small: a model without an answer\n");
    bad = 1;
}

/* Of the whole process, in KiB; 0 if the system does not say. */
static long most_memory(void) {
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && kib == 0 && fgets(line, sizeof(line), file) != NULL) sscanf(line, "VmHWM: %ld", &kib);
    if (file != NULL) fclose(file);
    return kib;
}

static void refuses_files(const char *folder, const char *model) {
    char onnx[512], torch[512], weights[512];
    tdm_graph *graph;
    tdm_value value;
    snprintf(onnx, sizeof(onnx), "%s/model.onnx", folder);
    snprintf(torch, sizeof(torch), "%s/model.pt", folder);
    snprintf(weights, sizeof(weights), "%s/model.safetensors", folder);
    absent("tdm_graph_from_onnx", tdm_graph_from_onnx(&graph, &value, NULL, onnx), "ONNX");
    absent("tdm_model_export_onnx", tdm_model_export_onnx(NULL, model, onnx, NULL), "ONNX");
    absent("tdm_checkpoint_convert", tdm_checkpoint_convert(NULL, model, torch, NULL, NULL), "TORCH");
    absent("tdm_checkpoint_convert", tdm_checkpoint_convert(NULL, torch, weights, NULL, NULL), "TORCH");
}

static tdm_status never(void *user, const char *path) {
    (void)user, (void)path;
    return TDM_OK;
}

static void refuses_pictures(void) {
    static const char of_pictures[] = "data.transform=[{resize: 8}]";
    tdm_transform_step step;
    tdm_config *config = NULL;
    char *faults = NULL;
    absent("tdm_transform_init", tdm_transform_init(&step, TDM_TRANSFORM_RESIZE), "PICTURES");
    absent("tdm_data_pictures", tdm_data_pictures(NULL, ".", never, NULL), "PICTURES");
    absent("tdm_data_make", tdm_data_make(NULL, "image_folder", "never", 4, 1), "PICTURES");
    if (parse(&config, job_text, of_pictures) == TDM_OK || tdm_config_faults(config, 0, &faults) != TDM_OK ||
        strstr(faults, "configure it with -DTDM_WITH_PICTURES=ON") == NULL) {
        printf("small: %s: %s\n", of_pictures, faults != NULL ? faults : "no faults");
        bad = 1;
    }
    tdm_free(faults);
    tdm_config_free(config);
}

static void refuses_ranks(void) {
    tdm_launch_facts facts = TDM_LAUNCH_FACTS_INIT;
    tdm_config *config = NULL;
    tdm_run *run = NULL;
    tdm_comm *ranks[2];
    int fd;
    absent("tdm_comm_open_threads", tdm_comm_open_threads(ranks, 2, NULL, 1000), "RANKS");
    absent("tdm_launch_create", tdm_launch_create(&fd, 2), "RANKS");
    absent("tdm_launch_from_env", tdm_launch_from_env(&facts), "RANKS");
    good("a job for ranks", parse(&config, job_text, "parallel={mode: ddp, device_ids: [0, 1]}"));
    absent("tdm_run_open", tdm_run_open(&run, tdm_config_job(config), tdm_config_graph(config), NULL), "RANKS");
    tdm_config_free(config);
}

static void refuses_others(void) {
    tdm_burnin *burnin;
    tdm_link link;
    tdm_job job;
    char *text;
    tdm_graph *graph = NULL;
    good("tdm_graph_new", tdm_graph_new(&graph, NULL));
    good("tdm_job_init", tdm_job_init(&job));
    absent("tdm_link_parse", tdm_link_parse("1GB/s", &link), "SCALE");
    absent("tdm_burnin_open", tdm_burnin_open(&burnin, &job, graph, NULL), "BURNIN");
    absent("tdm_config_starter", tdm_config_starter("mnist", TDM_ENGLISH, &text), "TEXTS");
    absent("tdm_config_explain", tdm_config_explain("seed", TDM_ENGLISH, &text), "TEXTS");
    absent("tdm_config_schema", tdm_config_schema(TDM_ENGLISH, &text), "TEXTS");
    tdm_graph_free(graph);
}

int main(int argc, char **argv) {
    char model[512];
    if (argc != 2) return 2;
    snprintf(model, sizeof(model), "%s/model.tandem", argv[1]);
    trains(argv[1], model);
    predicts(model);
    const long kib = most_memory();
    if (kib <= 0 || kib >= MOST_KIB) {
        printf("small: took %ld KiB of memory, wanted less than %d\n", kib, MOST_KIB);
        bad = 1;
    }
    refuses_files(argv[1], model);
    refuses_pictures();
    refuses_ranks();
    refuses_others();
    if (!bad) printf("small: %ld KiB of memory\n", kib);
    return bad;
}
