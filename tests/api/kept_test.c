/* What a program keeps in its checkpoints, and checkpoints and models that never are files. */
#include <pthread.h>

#include <tandem/comm.h>
#include <tandem/model.h>

#include "tests/api/api.h"
#include "tests/api/misuse.h"

static tdm_graph *graph;
static tdm_job job;

/* A run after `steps` steps. Ends the program on failure. */
static tdm_run *open_run(int64_t steps) {
    tdm_run *run = NULL;
    if (tdm_run_open(&run, &job, graph, NULL) != TDM_OK || tdm_run_step(run, steps) != TDM_OK) {
        printf("%s\n", tdm_error_message());
        exit(1);
    }
    return run;
}

/* ---- properties ---- */

static const char awkward[] = "two lines\nof \"text\", and \xC3\xBC";

TEST(properties_are_set_and_removed) {
    tdm_run *run = open_run(0);
    CHECK(tdm_run_property_key(run, 0) == NULL && tdm_run_property(run, "site") == NULL);
    CHECK_OK(tdm_run_set_property(run, "site", "Ulm"));
    CHECK_OK(tdm_run_set_property(run, "device", "12"));
    CHECK_OK(tdm_run_set_property(run, "site", awkward));
    CHECK_TEXT(tdm_run_property(run, "site"), awkward);
    CHECK_OK(tdm_run_set_property(run, "site", tdm_run_property(run, "site"))); /* its own text */
    CHECK_TEXT(tdm_run_property(run, "site"), awkward);
    CHECK_TEXT(tdm_run_property_key(run, 0), "device");
    CHECK_TEXT(tdm_run_property_key(run, 1), "site");
    CHECK(tdm_run_property_key(run, 2) == NULL && tdm_run_property_key(run, -1) == NULL);
    CHECK_OK(tdm_run_set_property(run, "device", NULL));
    CHECK_OK(tdm_run_set_property(run, "device", NULL)); /* it has none: fine */
    CHECK(tdm_run_property(run, "device") == NULL);
    CHECK_TEXT(tdm_run_property_key(run, 0), "site");
    tdm_run_close(run);
}

TEST(properties_beyond_the_limits_are_refused) {
    static char key[TDM_PROPERTY_KEY + 2], text[TDM_PROPERTY_BYTES];
    tdm_run *run = open_run(0);
    MISUSE(tdm_run_set_property(NULL, "site", "Ulm"));
    MISUSE(tdm_run_set_property(run, NULL, "Ulm"));
    CHECK(tdm_run_property(NULL, "x") == NULL && tdm_run_property_key(NULL, 0) == NULL);
    MISUSE(tdm_run_set_property(run, "", "Ulm"));
    MISUSE(tdm_run_set_property(run, "format", "x"));
    MISUSE(tdm_run_set_property(run, "tandem.model", "x"));
    MISUSE(tdm_run_set_property(run, "\xFF", "x"));
    MISUSE(tdm_run_set_property(run, "site", "\xC3"));
    memset(key, 'k', TDM_PROPERTY_KEY + 1);
    MISUSE(tdm_run_set_property(run, key, "x"));
    CHECK_HAS(tdm_error_message(), "1 to 64 bytes");
    memset(text, 't', sizeof(text) - 1);
    MISUSE(tdm_run_set_property(run, "k", text));
    CHECK_HAS(tdm_error_message(), "65536");
    text[TDM_PROPERTY_BYTES - 3] = '\0';
    CHECK_OK(tdm_run_set_property(run, "k", text)); /* all of them */
    MISUSE(tdm_run_set_property(run, "l", ""));
    CHECK_OK(tdm_run_set_property(run, "k", "short"));
    for (int i = 0; i < TDM_PROPERTIES - 1; i++) {
        snprintf(key, sizeof(key), "key%d", i);
        CHECK_OK(tdm_run_set_property(run, key, ""));
    }
    MISUSE(tdm_run_set_property(run, "one more", ""));
    CHECK_HAS(tdm_error_message(), "64");
    CHECK_OK(tdm_run_set_property(run, "k", "another"));
    tdm_run_close(run);
}

static void check_properties_of(const char *path) {
    tdm_model *model = NULL;
    REQUIRE_OK(tdm_model_open(&model, path, NULL));
    CHECK_TEXT(tdm_model_property(model, "site"), awkward);
    CHECK_TEXT(tdm_model_property_key(model, 0), "device");
    CHECK(tdm_model_property(model, "tandem.model") == NULL && tdm_model_property(model, NULL) == NULL);
    CHECK(tdm_model_property_key(model, 2) == NULL && tdm_model_property_key(model, -1) == NULL);
    tdm_model_close(model);
}

TEST(checkpoints_and_models_keep_properties) {
    char folder[256], path[300], file[400], *text = NULL;
    test_folder_make(folder);
    tdm_run *run = open_run(2);
    CHECK_OK(tdm_run_set_property(run, "site", awkward));
    CHECK_OK(tdm_run_set_property(run, "device", "12"));
    CHECK_OK(tdm_run_save(run, folder));
    snprintf(path, sizeof(path), "%s/step-00000002", folder);
    CHECK_OK(tdm_checkpoint_verify(NULL, path, NULL));
    CHECK_OK(tdm_checkpoint_show(NULL, path, 0, &text));
    CHECK_HAS(text, "  device: 12\n");
    CHECK_HAS(text, "  site: two lines");
    tdm_free(text);
    CHECK_OK(tdm_checkpoint_show(NULL, path, 1, &text));
    CHECK_HAS(text, "\"site\": \"two lines\\nof \\\"text\\\"");
    tdm_free(text);
    CHECK_OK(tdm_run_set_property(run, "later", "gone after the load"));
    CHECK_OK(tdm_run_set_property(run, "site", NULL));
    CHECK_OK(tdm_run_load(run, path));
    CHECK_TEXT(tdm_run_property(run, "site"), awkward);
    CHECK(tdm_run_property(run, "later") == NULL);
    tdm_run_close(run);
    snprintf(file, sizeof(file), "%s/model.safetensors", path);
    check_properties_of(file);
    snprintf(file, sizeof(file), "%s/model.tandem", folder);
    CHECK_OK(tdm_model_export(NULL, path, file, NULL));
    check_properties_of(file);
    test_folder_remove(folder);
}

static int occurrences(const char *text, const char *of) {
    int count = 0;
    while ((text = strstr(text, of)) != NULL) text += strlen(of), count++;
    return count;
}

/* Files from elsewhere: what no run could have set is passed over. */
TEST(properties_beyond_the_limits_are_not_read) {
    static char header[200000], name[300];
    char folder[256], path[300], *text = NULL;
    size_t at = (size_t)sprintf(header, "{\"__metadata__\":{\"format\":\"pt\",\"tandem.own\":\"1\",\"\":\"2\"");
    memset(name, 'n', TDM_PROPERTY_KEY + 1);
    at += (size_t)sprintf(header + at, ",\"%s\":\"3\",\"large\":\"%0*d\"", name, TDM_PROPERTY_BYTES, 4);
    for (int i = 0; i < TDM_PROPERTIES + 6; i++) at += (size_t)sprintf(header + at, ",\"key%d\":\"good\"", i);
    at += (size_t)sprintf(header + at, "}}");
    test_folder_make(folder);
    snprintf(path, sizeof(path), "%s/other.safetensors", folder);
    FILE *file = fopen(path, "wb");
    REQUIRE(file != NULL);
    for (int i = 0; i < 8; i++) fputc((int)(at >> (8 * i) & 255), file);
    CHECK(fwrite(header, 1, at, file) == at && fclose(file) == 0);
    CHECK_OK(tdm_checkpoint_show(NULL, path, 1, &text));
    CHECK_INT(occurrences(text, "\"good\""), TDM_PROPERTIES);
    CHECK(strstr(text, "tandem.own") == NULL && strstr(text, "large") == NULL && strstr(text, "nnnn") == NULL);
    tdm_free(text);
    test_folder_remove(folder);
}

/* ---- to a buffer, to a writer ---- */

/* The whole file. Ends the program on failure. */
static tdm_buffer file_of(const char *path) {
    static char piece[4096];
    tdm_buffer buffer = TDM_BUFFER_INIT;
    FILE *file = fopen(path, "rb");
    for (size_t got; file != NULL && (got = fread(piece, 1, sizeof(piece), file)) > 0;)
        CHECK_OK(tdm_buffer_write(&buffer, piece, got));
    if (file == NULL || fclose(file) != 0) exit(1);
    return buffer;
}

static bool same_bytes(const tdm_buffer *a, const tdm_buffer *b) {
    return a->count == b->count && a->count > 0 && memcmp(a->bytes, b->bytes, a->count) == 0;
}

typedef struct taker {
    size_t taken, most; /* bytes */
    int refusal;        /* returned beyond `most` */
    int calls_after;
} taker;

static int take(void *user, const void *bytes, size_t count) {
    taker *t = user;
    (void)bytes;
    if (t->taken > t->most) t->calls_after++;
    t->taken += count;
    return t->taken > t->most ? t->refusal : 0;
}

typedef tdm_status (*to_file)(const tdm_host *host, const char *from, const char *to, char **report);
typedef tdm_status (*to_writer)(const tdm_host *host, const char *from, const tdm_writer *to, char **report);

static void export_both_ways(const char *from, const char *file, to_file one, to_writer other) {
    tdm_buffer buffer = TDM_BUFFER_INIT;
    tdm_writer writer = {sizeof(writer), tdm_buffer_write, &buffer}, wrong = TDM_WRITER_INIT;
    char *report = NULL, *again = NULL;
    REQUIRE_OK(one(NULL, from, file, &report));
    REQUIRE_OK(other(NULL, from, &writer, &again));
    CHECK_TEXT(report, again);
    tdm_buffer whole = file_of(file);
    CHECK(same_bytes(&whole, &buffer) && (uintptr_t)buffer.bytes % 64 == 0);
    tdm_free(report);
    tdm_free(again);
    MISUSE(other(NULL, from, NULL, &again));
    MISUSE(other(NULL, from, &wrong, &again));
    MISUSE(other(NULL, NULL, &writer, &again));
    REFUSED(other(NULL, "/no/such/run", &writer, &again), TDM_E_CHECKPOINT);
    CHECK(same_bytes(&whole, &buffer) && again == NULL);
    for (size_t most = 0; most < whole.count; most = most * 3 + 7) {
        taker t = {.most = most, .refusal = 77};
        const tdm_writer refuses = {sizeof(refuses), take, &t};
        REFUSED(other(NULL, from, &refuses, &again), TDM_E_IO);
        CHECK_HAS(tdm_error_message(), "the writer returned 77");
        CHECK(t.calls_after == 0 && again == NULL);
    }
    taker full = {.most = 0, .refusal = TDM_E_MEMORY};
    REFUSED(other(NULL, from, &(tdm_writer){sizeof(writer), take, &full}, NULL), TDM_E_MEMORY);
    tdm_buffer_free(&whole);
    tdm_buffer_free(&buffer);
}

/* Its bytes are those of an export of a checkpoint of the same step, in `file`. */
typedef tdm_status of_run(tdm_run *run, const tdm_writer *to, char **report);
static void export_open_run(tdm_run *run, const char *file, of_run *export) {
    tdm_buffer buffer = TDM_BUFFER_INIT;
    tdm_writer writer = {sizeof(writer), tdm_buffer_write, &buffer}, wrong = TDM_WRITER_INIT;
    char *report = NULL;
    CHECK_OK(export(run, &writer, &report));
    CHECK_HAS(report, "step 1");
    tdm_free(report);
    tdm_buffer whole = file_of(file);
    CHECK(same_bytes(&whole, &buffer));
    taker t = {.most = 100, .refusal = 77};
    const tdm_writer refuses = {sizeof(refuses), take, &t};
    REFUSED(export(run, &refuses, &report), TDM_E_IO);
    MISUSE(export(run, NULL, &report));
    MISUSE(export(run, &wrong, &report));
    MISUSE(export(NULL, &writer, NULL));
    CHECK(report == NULL);
    tdm_buffer_free(&whole);
    tdm_buffer_free(&buffer);
}

TEST(models_are_exported_to_writers) {
    char folder[256], path[300], file[400];
    test_folder_make(folder);
    tdm_run *run = open_run(1);
    CHECK_OK(tdm_run_set_property(run, "site", "Ulm"));
    CHECK_OK(tdm_run_save(run, folder));
    snprintf(path, sizeof(path), "%s/step-00000001", folder);
    snprintf(file, sizeof(file), "%s/model.tandem", folder);
    export_both_ways(path, file, tdm_model_export, tdm_model_export_to);
    export_open_run(run, file, tdm_run_export_to);
    snprintf(file, sizeof(file), "%s/model.onnx", folder);
    export_both_ways(path, file, tdm_model_export_onnx, tdm_model_export_onnx_to);
    export_open_run(run, file, tdm_run_export_onnx_to);
    CHECK_OK(tdm_run_step(run, 1));
    tdm_run_close(run);
    test_folder_remove(folder);
}

TEST(buffers_grow_and_are_used_again) {
    tdm_buffer buffer = TDM_BUFFER_INIT, wrong = {0, NULL, 0, 0};
    char bytes[5000];
    for (int i = 0; i < 5000; i++) bytes[i] = (char)i;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 5; i++) CHECK_INT(tdm_buffer_write(&buffer, bytes, sizeof(bytes)), TDM_OK);
        CHECK_INT(tdm_buffer_write(&buffer, NULL, 0), TDM_OK);
        CHECK(buffer.count == 25000 && memcmp((char *)buffer.bytes + 20000, bytes, sizeof(bytes)) == 0);
        REFUSED((tdm_status)tdm_buffer_write(&buffer, bytes, SIZE_MAX), TDM_E_MEMORY);
        tdm_buffer_free(&buffer);
        CHECK(buffer.bytes == NULL && buffer.count == 0);
    }
    tdm_buffer_free(NULL);
    MISUSE((tdm_status)tdm_buffer_write(NULL, bytes, 1));
    MISUSE((tdm_status)tdm_buffer_write(&wrong, bytes, 1));
    MISUSE((tdm_status)tdm_buffer_write(&buffer, NULL, 1));
}

/* ---- the optimizer's state ---- */

/* Adam after one step: exp_avg = (1 - beta1) g, exp_avg_sq = (1 - beta2) g * g. */
TEST(state_of_the_optimizer_has_torch_names) {
    float average[4 * 2 * 9], square[4 * 2 * 9], one[3];
    tdm_tensor_info info = TDM_TENSOR_INFO_INIT;
    tdm_run *run = open_run(0);
    const size_t bytes = sizeof(average);
    CHECK_INT(tdm_run_optimizer_count(run), 12); /* two states of conv, bn and fc: weight and bias */
    CHECK_OK(tdm_run_optimizer_tensor(run, 0, &info));
    CHECK_TEXT(info.name, "exp_avg.conv.weight");
    CHECK(info.ndim == 4 && info.dim[0] == 4 && info.bytes == bytes && !info.is_buffer && !info.is_int64);
    CHECK_OK(tdm_run_optimizer_tensor(run, 6, &info));
    CHECK_TEXT(info.name, "exp_avg_sq.conv.weight");
    CHECK_OK(tdm_run_read_optimizer(run, "exp_avg", "conv.weight", average, bytes));
    for (int i = 0; i < 72; i++) CHECK(average[i] == 0);
    CHECK_OK(tdm_run_step(run, 1));
    CHECK_OK(tdm_run_read_optimizer(run, "exp_avg", "conv.weight", average, bytes));
    CHECK_OK(tdm_run_read_optimizer(run, "exp_avg_sq", "conv.weight", square, bytes));
    double most = 0;
    for (int i = 0; i < 72; i++) {
        const double g = average[i] / 0.1, want = 0.001 * g * g;
        CHECK(fabs(square[i] - want) <= 1e-5 * want + 1e-30);
        most = fmax(most, fabs(g));
    }
    CHECK(most > 0);
    MISUSE(tdm_run_optimizer_tensor(NULL, 0, &info));
    MISUSE(tdm_run_optimizer_tensor(run, 0, NULL));
    MISUSE(tdm_run_optimizer_tensor(run, -1, &info));
    MISUSE(tdm_run_optimizer_tensor(run, 12, &info));
    MISUSE(tdm_run_read_optimizer(NULL, "exp_avg", "fc.bias", one, sizeof(one)));
    MISUSE(tdm_run_read_optimizer(run, "exp_avg", "fc.bias", NULL, sizeof(one)));
    MISUSE(tdm_run_read_optimizer(run, NULL, "fc.bias", one, sizeof(one)));
    MISUSE(tdm_run_read_optimizer(run, "exp_avg", NULL, one, sizeof(one)));
    MISUSE(tdm_run_read_optimizer(run, "exp_avg", "fc.bias", one, 4));
    MISUSE(tdm_run_read_optimizer(run, "exp_avg", "fc.bia", one, sizeof(one)));
    CHECK_HAS(tdm_error_message(), "no parameter 'fc.bia'");
    MISUSE(tdm_run_read_optimizer(run, "momentum_buffer", "fc.bias", one, sizeof(one)));
    CHECK_HAS(tdm_error_message(), "it keeps: exp_avg, exp_avg_sq");
    CHECK_OK(tdm_run_read_optimizer(run, "exp_avg", "fc.bias", one, sizeof(one)));
    tdm_run_close(run);
    CHECK_INT(tdm_run_optimizer_count(NULL), 0);
}

/* SGD has a momentum only where it is asked for. */
TEST(state_of_an_optimizer_without_any) {
    float one[3];
    tdm_run *run = NULL;
    tdm_job plain = job;
    plain.optimizer.type = TDM_SGD;
    REQUIRE_OK(tdm_run_open(&run, &plain, graph, NULL));
    CHECK_INT(tdm_run_optimizer_count(run), 0);
    MISUSE(tdm_run_read_optimizer(run, "momentum_buffer", "fc.bias", one, sizeof(one)));
    CHECK_HAS(tdm_error_message(), "it keeps: none");
    tdm_run_close(run);
    plain.optimizer.momentum = 0.9;
    REQUIRE_OK(tdm_run_open(&run, &plain, graph, NULL));
    CHECK_INT(tdm_run_optimizer_count(run), 6);
    CHECK_OK(tdm_run_read_optimizer(run, "momentum_buffer", "fc.bias", one, sizeof(one)));
    tdm_run_close(run);
}

/* ---- runs that never are files ---- */

static void hash_of(tdm_run *run, char hash[40]) {
    tdm_run_state state = TDM_RUN_STATE_INIT;
    CHECK_OK(tdm_run_get_state(run, &state));
    memcpy(hash, state.params_xxh3, sizeof(state.params_xxh3));
}

static void check_end(tdm_run *run, const char *want) {
    char hash[40];
    CHECK_OK(tdm_run_train(run));
    hash_of(run, hash);
    CHECK_TEXT(hash, want);
    tdm_run_close(run);
}

/* Saved in the middle and continued in another run: the end is the same, bit for bit. */
TEST(runs_go_on_from_memory) {
    char whole[40], at_three[40], now[40], folder[256], path[400];
    tdm_buffer buffer = TDM_BUFFER_INIT, again = TDM_BUFFER_INIT;
    api_train(&job, graph, whole);
    test_folder_make(folder);
    tdm_run *run = open_run(3);
    CHECK_OK(tdm_run_set_property(run, "site", "Ulm"));
    CHECK_OK(tdm_run_save_to(run, &(tdm_writer){sizeof(tdm_writer), tdm_buffer_write, &buffer}));
    CHECK_OK(tdm_run_save_to(run, &(tdm_writer){sizeof(tdm_writer), tdm_buffer_write, &again}));
    CHECK(same_bytes(&buffer, &again) && buffer.count % 512 == 0);
    CHECK_OK(tdm_run_save(run, folder));
    hash_of(run, at_three);
    check_end(run, whole);
    run = open_run(0);
    CHECK_OK(tdm_run_load_memory(run, buffer.bytes, buffer.count));
    CHECK_TEXT(tdm_run_property(run, "site"), "Ulm");
    hash_of(run, now);
    CHECK_TEXT(now, at_three);
    tdm_run_state state = TDM_RUN_STATE_INIT;
    CHECK_OK(tdm_run_get_state(run, &state));
    CHECK_INT(state.step, 3);
    check_end(run, whole);
    snprintf(path, sizeof(path), "%s/step-00000003/model.safetensors", folder);
    tdm_buffer weights = file_of(path);
    run = open_run(0);
    CHECK_OK(tdm_run_load_memory(run, weights.bytes, weights.count));
    CHECK_OK(tdm_run_get_state(run, &state));
    CHECK_INT(state.step, 0);
    CHECK_TEXT(state.params_xxh3, at_three);
    tdm_run_close(run);
    tdm_buffer_free(&weights);
    tdm_buffer_free(&again);
    tdm_buffer_free(&buffer);
    test_folder_remove(folder);
}

typedef struct member {
    tdm_comm *comm;
    tdm_job job;
    char whole[40], hash[40];
} member;

/* A rank: rank 0 alone has the bytes, and its failures are everybody's. */
static void *be_rank(void *argument) {
    member *m = argument;
    const bool is_root = tdm_comm_rank(m->comm) == 0;
    tdm_buffer buffer = TDM_BUFFER_INIT;
    const tdm_writer writer = {sizeof(writer), tdm_buffer_write, &buffer};
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_run *run = NULL;
    options.comm = m->comm;
    CHECK_OK(tdm_run_open(&run, &m->job, graph, &options));
    if (run == NULL) return NULL;
    CHECK_OK(tdm_run_step(run, 2));
    REFUSED(tdm_run_save_to(run, is_root ? NULL : &writer), TDM_E_USAGE);
    CHECK_OK(tdm_run_save_to(run, is_root ? &writer : NULL));
    CHECK_OK(tdm_run_train(run));
    hash_of(run, m->whole);
    REFUSED(tdm_run_load_memory(run, is_root ? "no archive" : NULL, 10), TDM_E_CHECKPOINT);
    CHECK_OK(tdm_run_load_memory(run, buffer.bytes, buffer.count));
    CHECK_OK(tdm_run_train(run));
    hash_of(run, m->hash);
    tdm_run_close(run);
    tdm_buffer_free(&buffer);
    return NULL;
}

TEST(ranks_save_and_load_together) {
    tdm_comm *comm[2] = {NULL, NULL};
    member m[2];
    pthread_t other;
    REQUIRE_OK(tdm_comm_open_threads(comm, 2, NULL, 60000));
    for (int i = 0; i < 2; i++) {
        m[i] = (member){.comm = comm[i], .job = job};
        m[i].job.parallel.mode = TDM_MODE_DDP;
    }
    REQUIRE(pthread_create(&other, NULL, be_rank, &m[1]) == 0);
    be_rank(&m[0]);
    pthread_join(other, NULL);
    for (int i = 0; i < 2; i++) {
        CHECK_TEXT(m[i].hash, m[0].whole);
        tdm_comm_close(comm[i]);
    }
}

/* What tar makes of it is what tdm_run_save writes, and what tar makes of that is read. */
TEST(archives_are_tar) {
    char folder[256], command[1200], path[400];
    tdm_run *run = open_run(2), *back = open_run(0);
    test_folder_make(folder);
    snprintf(path, sizeof(path), "%s/a.tar", folder);
    FILE *file = fopen(path, "wb");
    tdm_buffer buffer = TDM_BUFFER_INIT;
    CHECK_OK(tdm_run_save_to(run, &(tdm_writer){sizeof(tdm_writer), tdm_buffer_write, &buffer}));
    REQUIRE(file != NULL && fwrite(buffer.bytes, 1, buffer.count, file) == buffer.count && fclose(file) == 0);
    snprintf(path, sizeof(path), "%s/saved", folder);
    CHECK_OK(tdm_run_save(run, path));
    snprintf(command, sizeof(command),
             "cd %s && tar xf a.tar && diff -r step-00000002 saved/step-00000002 && tar cf b.tar -C saved "
             "step-00000002",
             folder);
    CHECK_INT(system(command), 0);
    snprintf(path, sizeof(path), "%s/b.tar", folder);
    tdm_buffer theirs = file_of(path);
    CHECK_OK(tdm_run_load_memory(back, theirs.bytes, theirs.count));
    char hash[40], want[40];
    hash_of(back, hash);
    hash_of(run, want);
    CHECK_TEXT(hash, want);
    tdm_run_close(run);
    tdm_run_close(back);
    tdm_buffer_free(&buffer);
    tdm_buffer_free(&theirs);
    test_folder_remove(folder);
}

/* Bytes changed here and there, and other lengths. */
TEST(damaged_archives_are_refused) {
    tdm_buffer buffer = TDM_BUFFER_INIT;
    char before[40], after[40];
    tdm_run *run = open_run(1);
    hash_of(run, before);
    CHECK_OK(tdm_run_save_to(run, &(tdm_writer){sizeof(tdm_writer), tdm_buffer_write, &buffer}));
    unsigned char *bytes = buffer.bytes;
    for (size_t at = 0; at < buffer.count; at += at < 600 ? 1 : 97) {
        if (at % 512 == 155) continue; /* the last byte of a header's sum is free */
        bytes[at] ^= 0x55;
        REFUSED(tdm_run_load_memory(run, bytes, buffer.count), TDM_E_CHECKPOINT);
        bytes[at] ^= 0x55;
    }
    hash_of(run, after);
    CHECK_TEXT(after, before);
    for (size_t count = 0; count < buffer.count; count += count < 1200 ? 37 : 4099)
        REFUSED(tdm_run_load_memory(run, bytes, count), TDM_E_CHECKPOINT);
    REFUSED(tdm_run_load_memory(run, bytes, buffer.count - 1024), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "cut short");
    MISUSE(tdm_run_load_memory(NULL, bytes, buffer.count));
    MISUSE(tdm_run_load_memory(run, NULL, 0));
    MISUSE(tdm_run_save_to(NULL, &(tdm_writer){sizeof(tdm_writer), tdm_buffer_write, &buffer}));
    MISUSE(tdm_run_save_to(run, NULL));
    for (size_t most = 0; most < buffer.count; most = most * 3 + 7) {
        taker t = {.most = most, .refusal = 77};
        REFUSED(tdm_run_save_to(run, &(tdm_writer){sizeof(tdm_writer), take, &t}), TDM_E_IO);
        CHECK_INT(t.calls_after, 0);
    }
    tdm_buffer_free(&buffer);
    tdm_run_close(run);
}

/* A field of a header is replaced, and the header's sum is right again. */
static void forge(unsigned char *block, size_t at, const char *field, size_t count) {
    unsigned sum = 0;
    memcpy(block + at, field, count);
    memset(block + 148, ' ', 8);
    for (int i = 0; i < 512; i++) sum += block[i];
    snprintf((char *)block + 148, 8, "%06o", sum);
}

TEST(forged_archives_are_refused) {
    static const struct {
        size_t at;
        const char *field;
        size_t count;
        const char *why;
    } forged[] = {
        {0, "../00000001/model.safetensors", 30, "is not step-<step>/<file>"},
        {0, "/etc/passwd", 12, "is not step-<step>/<file>"},
        {0, "step-00000001/other", 20, "is not step-<step>/<file>"},
        {0, "step-00000001/optimizer.safetensors", 36, "twice"},
        {0, "step-00000002/model.safetensors", 32, "or is of another"},
        {345, "x", 1, "is not step-<step>/<file>"},
        {156, "2", 1, "no plain file"},
        {156, "5", 1, "no plain file"},
        {124, "77777777777", 12, "cut short"},
        {124, "00000000001", 12, "only zeros fill it up"},
        {124, "-0000000001", 12, "wrong sum or size"},
        {124, "\x80\0\0\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 12, "cut short"},
        {124, "\x80\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 12, "wrong sum or size"},
    };
    tdm_buffer buffer = TDM_BUFFER_INIT;
    tdm_run *run = open_run(1);
    CHECK_OK(tdm_run_save_to(run, &(tdm_writer){sizeof(tdm_writer), tdm_buffer_write, &buffer}));
    unsigned char *block = buffer.bytes, before[512];
    memcpy(before, block, sizeof(before));
    for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
        forge(block, forged[i].at, forged[i].field, forged[i].count);
        REFUSED(tdm_run_load_memory(run, block, buffer.count), TDM_E_CHECKPOINT);
        CHECK_HAS(tdm_error_message(), forged[i].why);
        memcpy(block, before, sizeof(before));
    }
    forge(block, 0, "step-00000001/ema.safetensors\0\0", 32); /* so that the model is missing */
    REFUSED(tdm_run_load_memory(run, block, buffer.count), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "model.safetensors: the archive does not have it");
    memcpy(block, before, sizeof(before));
    CHECK_OK(tdm_run_load_memory(run, block, buffer.count));
    REQUIRE(tdm_buffer_write(&buffer, before, sizeof(before)) == TDM_OK);
    REFUSED(tdm_run_load_memory(run, buffer.bytes, buffer.count), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "something follows");
    tdm_buffer_free(&buffer);
    tdm_run_close(run);
}

TEST_MAIN(graph = api_graph(NULL); api_job(&job); RUN(properties_are_set_and_removed);
          RUN(properties_beyond_the_limits_are_refused); RUN(checkpoints_and_models_keep_properties);
          RUN(properties_beyond_the_limits_are_not_read); RUN(models_are_exported_to_writers);
          RUN(buffers_grow_and_are_used_again); RUN(state_of_the_optimizer_has_torch_names);
          RUN(state_of_an_optimizer_without_any); RUN(runs_go_on_from_memory); RUN(ranks_save_and_load_together);
          RUN(archives_are_tar); RUN(damaged_archives_are_refused); RUN(forged_archives_are_refused);
          tdm_graph_free(graph);)
