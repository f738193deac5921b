/* Ten thousand calls of public functions, made from the headers (make_calls.awk): every parameter bad while the others
 * are good, then anything in any order. No crash, no hang, no leak; a failure has a status and a message of its own. */
#include <unistd.h>

#include "tests/api/api.h"
#include "tests/api/calls_values.h"
#include "tests/support/tdm_test.h"

typedef struct callee {
    const char *name;
    void (*call)(bent *b);
    int parameters;
} callee;

#include "api_calls.h" /* made at build time */

enum { CALLS = 10000, CALLEES = sizeof(callees) / sizeof(*callees) };

static const char yaml[] = "tandem: 1\nname: calls\nmodel: {input: 4, layers: [{linear: 3}]}\nloss: cross_entropy\n"
                           "data: {train: {format: synthetic, samples: 8}}\n"
                           "optimizer: {type: sgd, lr: 0.1}\ntrain: {steps: 2, batch: {per_device: 2}}\n";

static void must(tdm_status status) {
    if (status == TDM_OK) return;
    fprintf(stderr, "calls: %s\n", tdm_error_message());
    exit(1);
}

static void *memory(size_t bytes) {
    void *zeros = calloc(1, bytes);
    if (zeros == NULL) exit(1);
    return zeros;
}

/* ---- objects that the calls use ---- */

static void open_unfinished(bent *b) {
    tdm_value value;
    tdm_graph_free(b->unfinished);
    must(tdm_graph_new(&b->unfinished, NULL));
    must(tdm_graph_input(b->unfinished, 1, (const int64_t[]){4}, &value));
}

static void open_comm(bent *b) {
    tdm_comm_close(b->comm);
    must(tdm_comm_open_threads(&b->comm, 1, NULL, 1000));
}

static void open_config(bent *b) {
    tdm_config_free(b->config);
    must(tdm_config_parse(&b->config, NULL, yaml, sizeof(yaml) - 1, "calls.yaml", NULL));
    must(tdm_config_check(b->config));
}

static void open_run(bent *b) {
    tdm_run_close(b->run);
    must(tdm_run_open(&b->run, &b->job, b->graph, NULL));
}

static void open_model(bent *b) {
    tdm_buffer saved = TDM_BUFFER_INIT;
    const tdm_writer to = {sizeof(to), tdm_buffer_write, &saved};
    must(tdm_run_save(b->run, "saved"));
    must(tdm_model_export_to(NULL, "saved/step-00000000", &to, NULL));
    tdm_buffer_free(&saved);
    must(tdm_model_open(&b->model, "saved/step-00000000/model.safetensors", NULL));
}

static void open_objects(bent *b) {
    const char *words[] = {"x", "", "", "\xff\xfe\x01", "%s%n", "../no/such", "fc.bias", "npy"};
    api_job(&b->job);
    b->job.train.steps = 2;
    b->job.data.workers = 0;
    b->job.burnin.iterations = 1;
    b->job.burnin.max_samples = 2;
    b->graph = api_graph(NULL);
    for (int i = 0; i < 8; i++) {
        char *word = memory(CALL_BYTES + 1);
        strcpy(word, words[i]);
        if (i == 2) memset(word, 'y', 5000);
        b->word[i] = word;
    }
    for (int i = 0; i < CALL_PARAMETERS; i++) b->scratch[i] = memory(CALL_BYTES), b->good[i] = memory(CALL_BYTES);
    b->zeros = memory(CALL_BYTES);
    open_config(b);
    open_run(b);
    must(tdm_burnin_open(&b->burnin, &b->job, b->graph, NULL));
    open_model(b);
    open_unfinished(b);
    open_comm(b);
}

static void close_objects(bent *b) {
    tdm_comm_close(b->comm);
    tdm_model_close(b->model);
    tdm_burnin_close(b->burnin);
    tdm_run_close(b->run);
    tdm_config_free(b->config);
    tdm_graph_free(b->unfinished);
    tdm_graph_free(b->graph);
    for (int i = 0; i < 8; i++) free((void *)(uintptr_t)b->word[i]);
    for (int i = 0; i < CALL_PARAMETERS; i++) free(b->scratch[i]), free(b->good[i]);
    free((void *)(uintptr_t)b->zeros);
}

/* ---- a call ---- */

static bool has(const char *name, const char *part) {
    return strstr(name, part) != NULL;
}

/* What ends an object gets NULL only: the objects are used by the next calls. */
static bool ends_object(const char *name) {
    return has(name, "_close") || has(name, "_free");
}

static bool is_done(tdm_run *run) {
    tdm_run_state state = TDM_RUN_STATE_INIT;
    return tdm_run_get_state(run, &state) != TDM_OK || state.step > 0;
}

static void forget_made(bent *b) {
    if (b->made_request != NULL) (void)tdm_comm_wait(b->made_request, NULL);
    if (has(b->function, "tdm_comm_wait")) b->request = NULL;
    for (int i = 0; i < CALL_RANKS; i++) tdm_comm_close(b->made_comm[i]);
    tdm_run_close(b->made_run);
    tdm_model_close(b->made_model);
    tdm_burnin_close(b->made_burnin);
    tdm_config_free(b->made_config);
    tdm_graph_free(b->made_graph);
    tdm_free(b->text);
    tdm_buffer_free(&b->buffer);
    if (has(b->function, "tdm_launch") && b->status == TDM_OK && b->numbers[0] > 2) close(b->numbers[0]);
    for (int i = 0; i < CALL_PARAMETERS; i++) free(b->freed[i]), b->freed[i] = NULL;
    if (has(b->function, "tdm_graph_")) open_unfinished(b);
    if (has(b->function, "tdm_config_")) open_config(b);
    if (has(b->function, "tdm_run_") && is_done(b->run)) open_run(b);
    if (has(b->function, "tdm_comm_") && b->status != TDM_OK) b->request = NULL, open_comm(b);
}

static int succeeded, refused; /* calls that return a status */

static void check_status(const bent *b) {
    succeeded += b->returns_status && b->status == TDM_OK;
    refused += b->status != TDM_OK;
    if (b->status == TDM_OK) return;
    if (b->status == TDM_E_INTERNAL || strlen(tdm_error_message()) < 10 || strchr(tdm_error_message(), '\n') != NULL ||
        tdm_error_last()->status != b->status) {
        tdm_test_failures++;
        fprintf(stderr, "%s: %s: '%s'\n", b->function, tdm_status_name(b->status), tdm_error_message());
    }
}

static void make(bent *b, const callee *f) {
    b->made_run = NULL, b->made_model = NULL, b->made_burnin = NULL, b->made_config = NULL, b->made_graph = NULL;
    memset(b->made_comm, 0, sizeof(b->made_comm));
    b->made_request = NULL, b->text = NULL, b->memory = NULL;
    memset(b->numbers, 0, sizeof(b->numbers));
    b->buffer = (tdm_buffer)TDM_BUFFER_INIT;
    b->returns_status = false;
    b->status = TDM_OK;
    b->function = f->name;
    for (int i = 0; i < CALL_PARAMETERS && ends_object(f->name); i++) b->choice[i] = 1;
    if (getenv("TDM_SHOW_CALLS") != NULL) {
        fprintf(stderr, "%s", f->name);
        for (int i = 0; i < f->parameters; i++) fprintf(stderr, " %d", b->choice[i]);
        fprintf(stderr, "\n");
    }
    f->call(b);
    check_status(b);
    forget_made(b);
}

/* ---- ten thousand of them ---- */

static bent world;

/* How many values a parameter has is known after a call. */
static int one_by_one(bent *b) {
    int made = 0;
    for (int f = 0; f < CALLEES; f++) {
        for (int i = 0; i < callees[f].parameters; i++) {
            int count = 2;
            for (int c = 1; c < count; c++) {
                memset(b->choice, 0, sizeof(b->choice));
                b->choice[i] = c;
                make(b, &callees[f]);
                count = b->choices[i];
                made++;
            }
        }
        for (int c = 0; c < 2; c++) { /* all good, all bad */
            for (int i = 0; i < CALL_PARAMETERS; i++) b->choice[i] = c;
            make(b, &callees[f]);
            made++;
        }
    }
    return made;
}

static unsigned next(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

TEST(ten_thousand_calls) {
    unsigned state = 20261127;
    int made = one_by_one(&world);
    for (; made < CALLS; made++) {
        const callee *f = &callees[next(&state) % CALLEES];
        for (int i = 0; i < CALL_PARAMETERS; i++)
            world.choice[i] = next(&state) % 2 == 0 ? 0 : (int)(next(&state) % 72);
        make(&world, f);
    }
    CHECK(made >= CALLS);
    CHECK(succeeded > CALLS / 6 && refused > CALLS / 10); /* or the good values are bad, or the bad ones good */
    if (getenv("TDM_SHOW_CALLS") != NULL) fprintf(stderr, "%d calls: %d good, %d refused\n", made, succeeded, refused);
}

TEST_MAIN(char folder[256]; test_folder_make(folder); if (chdir(folder) != 0) return 1; open_objects(&world);
          RUN(ten_thousand_calls); close_objects(&world); if (chdir("/") != 0) return 1; test_folder_remove(folder);)
