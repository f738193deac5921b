/* The calls of <tandem/config.h>: overrides, paths, replacements, what comes back, misuse, and memory that runs out. */
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/graph/graph.h"
#include "tests/config/config_support.h"
#include "tests/support/tdm_failing_host.h"

static const char net[] =
    "tandem: 1\nname: net\nmodel:\n  input: [3, 8, 8]\n  layers:\n"
    "    - conv2d: {out: 4, kernel: 3, padding: 1, name: features.0}\n    - relu\n    - maxpool2d: 2\n"
    "    - flatten\n    - linear: 10\n"
    "data: {train: {format: idx, images: data/a.gz, labels: ./data/b.gz}}\n"
    "loss: cross_entropy\noptimizer: {type: adam, lr: 1e-3}\n"
    "train: {epochs: 3, batch: {per_device: 8}}\n"
    "parallel: {mode: dp, device_ids: [1, 0]}\nrun: {dir: out}\n";

static tdm_config *open_net(const char *const *overrides) {
    tdm_config *config = NULL;
    CHECK_OK(tdm_config_parse(&config, NULL, net, strlen(net), "file.yaml", "/there"));
    for (; overrides != NULL && *overrides != NULL; overrides++) CHECK_OK(tdm_config_override(config, *overrides));
    return config;
}

#define CHECK_GET(config, key, want)                        \
    do {                                                    \
        char *value_ = NULL;                                \
        CHECK_OK(tdm_config_get((config), (key), &value_)); \
        CHECK_TEXT(value_, (want));                         \
        tdm_free(value_);                                   \
    } while (0)

TEST(job_and_graph) {
    tdm_config *config = open_net(NULL);
    CHECK(tdm_config_job(config) == NULL && tdm_config_graph(config) == NULL);
    REQUIRE_OK(tdm_config_check(config));
    const tdm_job *job = tdm_config_job(config);
    REQUIRE(job != NULL);
    CHECK_TEXT(job->data.train.images, "/there/data/a.gz");
    CHECK_TEXT(job->data.train.labels, "/there/data/b.gz");
    CHECK_TEXT(job->data.train.origin.file, "file.yaml");
    CHECK_INT(job->data.train.origin.line, 11);
    CHECK_INT(job->data.eval.format, TDM_DATA_NONE);
    CHECK_INT(job->parallel.dp.output_device, 1); /* the first of device_ids */
    CHECK(job->optimizer.weight_decay == 0.0);
    CHECK_TEXT(job->run.dir, "/there/out");
    const tdm_graph *graph = tdm_config_graph(config);
    REQUIRE(graph != NULL);
    CHECK_INT(graph->node_count, 5);
    CHECK_TEXT(graph->params[0].name, "features.0.weight");
    CHECK_TEXT(graph->params[2].name, "4.weight");
    CHECK_INT(graph->nodes[0].origin.line, 6);
    CHECK_INT(tdm_graph_param_count(graph), 4 * 27 + 4 + 640 + 10);
    CHECK_TEXT(tdm_config_source(config), net);
    tdm_config_free(config);
}

/* What PyTorch's OneCycleLR takes: any momentum for sgd, and any for adam where it is not cycled. */
TEST(cycled_momentum) {
    const char *const good[][3] = {
        {"optimizer={type: sgd, lr: 0.1}", "schedule={type: onecycle, base_momentum: 0, max_momentum: 1.25}", NULL},
        {"schedule={type: onecycle, base_momentum: 0, max_momentum: 0.99}", NULL},
        {"schedule={type: onecycle, max_momentum: 1, cycle_momentum: false}", NULL},
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        tdm_config *config = open_net(good[i]);
        CHECK_OK(tdm_config_check(config));
        tdm_config_free(config);
    }
}

/* Different files, and ranges that do not meet, are different samples: one may be split without the other. */
TEST(holdouts_of_different_data) {
#define DATA(train, eval) SMALL "data: {train: {" train "}, eval: {" eval "}}\n"
    CHECK_GOOD(DATA("format: cifar10, files: [a.bin], holdout: 0.1", "format: cifar10, files: [b.bin]"));
    CHECK_GOOD(DATA("format: cifar10, files: [a, b], holdout: 0.1", "format: cifar10, files: [a]"));
    CHECK_GOOD(DATA("format: cifar10, path: there, holdout: 0.1", "format: cifar10, path: there, split: test"));
    CHECK_GOOD(
        DATA("format: image_folder, path: p, file: a.csv, holdout: 0.1", "format: image_folder, path: p, file: b.csv"));
    CHECK_GOOD(DATA("format: csv, path: a, range: [0, 9], holdout: 0.1", "format: csv, path: a, range: [9, 20]"));
    CHECK_ONE_FAULT(DATA("format: cifar10, files: [a, b], holdout: 0.1", "format: cifar10, files: [a, b]"), "C015",
                    "split the same samples");
    CHECK_ONE_FAULT(DATA("format: csv, path: a, range: [0, 9], holdout: 0.1", "format: csv, path: a, range: [8, 20]"),
                    "C015", "split the same samples");
    CHECK_ONE_FAULT(
        DATA("format: image_folder, path: p, file: a.csv, holdout: 0.1", "format: image_folder, path: p, file: a.csv"),
        "C015", "split the same samples");
#undef DATA
}

TEST(overrides) {
    const char *const list[] = {"optimizer.lr=0.5",
                                "model.layers[0].out=6",
                                "model.layers[0].conv2d.stride=[2, 2]",
                                "model.layers[4].bias=false",
                                "model.layers[1].id=r",
                                "loss.label_smoothing=0.25",
                                "train.steps=7",
                                "train.batch={global: 6}",
                                "data.train.images=rel/x",
                                "data.transform=[to_float]",
                                "eval.every=3 steps",
                                "seed=1",
                                "seed=2",
                                NULL};
    tdm_config *config = open_net(list);
    REQUIRE_OK(tdm_config_check(config));
    char cwd[4096], want[4200], *text;
    REQUIRE(getcwd(cwd, sizeof(cwd)) != NULL);
    snprintf(want, sizeof(want), "%s/rel/x", cwd);
    CHECK_GET(config, "optimizer.lr", "0.5");
    CHECK_GET(config, "model.layers[0].out", "6");
    CHECK_GET(config, "model.layers[0].stride", "[2, 2]");
    CHECK_GET(config, "model.layers[4].out", "10");
    CHECK_GET(config, "model.layers[4].bias", "false");
    CHECK_GET(config, "model.layers[4].name", "4");
    CHECK_GET(config, "model.layers[1].id", "r");
    CHECK_GET(config, "loss.type", "cross_entropy");
    CHECK_GET(config, "loss.label_smoothing", "0.25");
    CHECK_GET(config, "train.epochs", "null"); /* what the command line says takes its place */
    CHECK_GET(config, "train.steps", "7");
    CHECK_GET(config, "train.batch.per_device", "null");
    CHECK_GET(config, "data.train.images", want); /* relative to the working directory */
    CHECK_GET(config, "data.train.labels", "/there/data/b.gz");
    CHECK_GET(config, "seed", "2");
    REQUIRE_OK(tdm_config_print(config, TDM_CONFIG_ORIGINS, &text));
    CHECK_HAS(text, "# command line");
    CHECK_HAS(text, "# file.yaml:2");
    tdm_free(text);
    /* More overrides are applied at the next check, over those before. */
    CHECK_OK(tdm_config_override(config, "optimizer={type: sgd, momentum: 0.9}"));
    CHECK(tdm_config_job(config) == NULL);
    REQUIRE_OK(tdm_config_check(config));
    CHECK_GET(config, "optimizer.momentum", "0.9");
    CHECK_GET(config, "seed", "2");
    CHECK_OK(tdm_config_override_text(config, "run.dir", "a: #b"));
    REQUIRE_OK(tdm_config_check(config));
    snprintf(want, sizeof(want), "%s/a: #b", cwd);
    CHECK_GET(config, "run.dir", want);
    tdm_config_free(config);
}

TEST(overrides_of_short_forms) {
    const char *const list[] = {"data.transform=[to_float, {normalize: {mean: [0.5], std: [1]}}]",
                                "data.transform[1].normalize.std=[2]",
                                "schedule.warmup_steps=3",
                                "train.batch.global=64",
                                "checkpoint=null",
                                "data.eval={format: glyphs}",
                                "model.layers[2]=avgpool2d",
                                "model.layers[2].kernel=4",
                                NULL};
    tdm_config *config = open_net(list);
    tdm_status status = tdm_config_check(config);
    if (status != TDM_OK) {
        char *faults = NULL;
        CHECK_OK(tdm_config_faults(config, 0, &faults));
        CHECK_TEXT(faults, "");
        tdm_free(faults);
    } else {
        CHECK_GET(config, "data.transform.normalize.std", "[2]");
        CHECK_GET(config, "schedule.warmup_steps", "3");
        CHECK_GET(config, "model.layers[2].kernel", "[4, 4]");
    }
    tdm_config_free(config);
}

TEST(wrong_overrides) {
    static const char *const malformed[] = {"optimizer.lr", "=3",    "a..b=1",  "a[x]=1",      "[0]=1",
                                            "a[1=1",        "a b=1", "lr=[1",   "lr=*x",       "lr={a: 1",
                                            ".a=1",         "a.=1",  "lr=\x80", "name=a: b: c"};
    tdm_config *config = open_net(NULL);
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
        CHECK_STATUS(tdm_config_override(config, malformed[i]), TDM_E_USAGE);
    REQUIRE_OK(tdm_config_check(config)); /* none was kept */
    tdm_config_free(config);
    static const struct {
        const char *assignment, *id, *part;
    } faulty[] = {
        {"optimizer.lrr=3", "C006", "did you mean `lr`?"},
        {"lr=3", "C006", "belongs under `optimizer`"},
        {"model.layers[9].out=3", "C017", "there is no item 9"},
        {"model.layers.out=3", "C017", "there is no key 'out'"},
        {"train.epochs.x=3", "C017", "there is no key 'x'"},
        {"optimizer[0]=3", "C017", "there is no item 0"},
        {"model.layers[0].kernel=99", "C014", ""},
        {"model.layers[1].slope=99", "C006", "unknown key 'slope' in layer relu"},
        {"parallel.device_ids=[0, 0]", "C015", "got 0 twice"},
        {"optimizer.lr=", "C007", "got null"},
        {"train.batch=5", "C007", "bare number 5"},
        {"train.epochs=null", "C009", "either epochs or steps"},
    };
    for (size_t i = 0; i < sizeof(faulty) / sizeof(faulty[0]); i++) {
        const char *const list[] = {faulty[i].assignment, NULL};
        config = open_net(list);
        CHECK_STATUS(tdm_config_check(config), TDM_E_CONFIG);
        char *faults = NULL;
        CHECK_OK(tdm_config_faults(config, 0, &faults));
        if (tdm_config_fault_count(config) != 1) fprintf(stderr, "%s:\n%s\n", faulty[i].assignment, faults);
        CHECK_INT(tdm_config_fault_count(config), 1);
        CHECK_TEXT(tdm_config_fault(config, 0)->id, faulty[i].id);
        CHECK_INT(tdm_config_fault(config, 0)->line, strcmp(faulty[i].id, "C014") == 0 ? 6 : 0);
        CHECK_HAS(faults, faulty[i].part);
        if (strcmp(faulty[i].id, "C014") != 0) CHECK_HAS(faults, "command line: error[");
        tdm_free(faults);
        tdm_config_free(config);
    }
}

/* What a program has found is a fault of the key that the message begins with. */
TEST(added_fault) {
    const char *const list[] = {"train.steps=4", NULL};
    const struct {
        const char *message, *key, *shown;
    } cases[] = {
        {"train.steps is 4", "train.steps", "command line: error[C015]: train.steps is 4\ntrain.steps=4\n"},
        {"optimizer: no", "optimizer", ": error[C015]: optimizer: no\n"},
        {"it is wrong", "", ": error[C015]: it is wrong\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tdm_config *config = open_net(list);
        char *faults = NULL;
        CHECK_STATUS(tdm_config_add_fault(config, "x"), TDM_E_USAGE); /* not checked yet */
        REQUIRE_OK(tdm_config_check(config));
        CHECK_OK(tdm_config_add_fault(config, cases[i].message));
        CHECK_INT(tdm_config_fault_count(config), 1);
        CHECK_TEXT(tdm_config_fault(config, 0)->key, cases[i].key);
        CHECK_OK(tdm_config_faults(config, 0, &faults));
        CHECK_HAS(faults, cases[i].shown);
        CHECK(tdm_config_job(config) == NULL);
        tdm_free(faults);
        REQUIRE_OK(tdm_config_check(config)); /* a check begins anew */
        CHECK_INT(tdm_config_fault_count(config), 0);
        tdm_config_free(config);
    }
}

/* The form of a fault, to the letter. */
TEST(fault_text) {
    static const char text[] =
        "tandem: 1\nmodel: {input: 4, layers: [{linear: 3}]}\nname: 名字 # x\noptimizer: {lrr: 3}\n"
        "train: {steps: 1, batch: {global: 2}}\n";
    char *faults = faults_of(text);
    CHECK_TEXT(faults, "file.yaml:4:13: error[C006]: unknown key 'lrr' in optimizer\n"
                       "optimizer: {lrr: 3}\n"
                       "            ^\n"
                       "  hint: did you mean `lr`?\n");
    tdm_free(faults);
    /* The caret stands under its character on a terminal, where 名 is two columns wide. */
    faults = faults_of(SMALL "x-注: {}\noptimizer: {lr: 名}\nname: {名字: 1}\n");
    CHECK_HAS(faults, "\noptimizer: {lr: 名}\n                ^\n");
    tdm_free(faults);
    faults = faults_of(SMALL "data: {train: {format: npy, x: 名, z: 1}}\n");
    CHECK_HAS(faults, "file.yaml:4:35: error");
    CHECK_HAS(faults, "\n                                   ^\n");
    tdm_free(faults);
    faults = faults_of(SMALL "optimizer: { }      \nlog: {every: 3 parsecs}\n");
    CHECK_HAS(faults, "got '3 parsecs'");
    tdm_free(faults);
}

TEST(replacements) {
    setenv("TANDEM_TEST_FOLDER", "/from/env", 1);
    setenv("TANDEM_TEST_LR", "0.125", 1);
    setenv("HOME", "/home/me", 1);
    static const char text[] =
        SMALL "name: n${env:TANDEM_TEST_LR}\noptimizer: {lr: \"${env:TANDEM_TEST_LR}\"}\n"
              "data: {train: {format: npy, x: \"${env:TANDEM_TEST_FOLDER}/${name}.npy\", y: ~/y.npy}}\n";
    tdm_status status;
    tdm_config *config = checked(text, &status);
    REQUIRE_OK(status);
    CHECK_GET(config, "name", "n0.125");
    CHECK_GET(config, "optimizer.lr", "0.125");
    CHECK_GET(config, "data.train.x", "/from/env/n0.125.npy");
    CHECK_GET(config, "data.train.y", "/home/me/y.npy");
    char *first = NULL, *second = NULL;
    CHECK_OK(tdm_config_get(config, "run.dir", &first));
    CHECK(strncmp(first, "/there/runs/n0.125/2", 20) == 0);
    CHECK_OK(tdm_config_check(config)); /* start_time is of the config, not of the check */
    CHECK_OK(tdm_config_get(config, "run.dir", &second));
    CHECK_TEXT(second, first);
    tdm_free(first);
    tdm_free(second);
    tdm_config_free(config);
    setenv("TANDEM_TEST_OUT", "5", 1);
    CHECK_GOOD("tandem: 1\nmodel: {input: 4, layers: [{linear: \"${env:TANDEM_TEST_OUT}\"}]}\n"
               "train: {steps: 2, batch: {per_device: 2}}\n");
    setenv("TANDEM_TEST_FOLDER", "${name}", 1);
    CHECK_ONE_FAULT(SMALL "run: {dir: \"${env:TANDEM_TEST_FOLDER}\"}\n", "C011", "contains '${'");
}

TEST(files) {
    char folder[] = "config-test-XXXXXX", path[64], want[4300], cwd[4096];
    REQUIRE(getcwd(cwd, sizeof(cwd)) != NULL);
    REQUIRE(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/a.yaml", folder);
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    fputs(SMALL "run: {dir: ../out}\n", file);
    fclose(file);
    tdm_config *config;
    REQUIRE_OK(tdm_config_open(&config, NULL, path));
    REQUIRE_OK(tdm_config_check(config));
    snprintf(want, sizeof(want), "%s/%s/../out", cwd, folder); /* a relative folder is made absolute */
    CHECK_GET(config, "run.dir", want);
    tdm_config_free(config);
    CHECK_STATUS(tdm_config_open(&config, NULL, folder), TDM_E_CONFIG);
    CHECK(config == NULL);
    unlink(path);
    CHECK_STATUS(tdm_config_open(&config, NULL, path), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "No such file");
    rmdir(folder);
    CHECK_STATUS(tdm_config_open(&config, NULL, "/dev/zero"), TDM_OK);
    CHECK_STATUS(tdm_config_check(config), TDM_E_CONFIG);
    CHECK_TEXT(tdm_config_fault(config, 0)->id, "C003");
    tdm_config_free(config);
}

TEST(starters) {
    static const char *const tasks[] = {"cifar", "mnist", "toy-mp", "resnet50-burnin"};
    for (int i = 0; i < 4; i++) {
        char *english = NULL, *chinese = NULL;
        REQUIRE_OK(tdm_config_starter(tasks[i], TDM_ENGLISH, &english));
        REQUIRE_OK(tdm_config_starter(tasks[i], TDM_CHINESE, &chinese));
        CHECK(strcmp(english, chinese) != 0);
        CHECK_HAS(chinese, "运行");
        const char *const both[] = {english, chinese};
        for (int k = 0; k < 2; k++) {
            tdm_status status;
            tdm_config *config = checked(both[k], &status);
            CHECK_STATUS(status, TDM_OK);
            if (i == 2) CHECK_INT(tdm_graph_param_count(tdm_config_graph(config)), 165);
            tdm_config_free(config);
        }
        tdm_free(english);
        tdm_free(chinese);
    }
    char *text;
    CHECK_STATUS(tdm_config_starter("cifr", TDM_ENGLISH, &text), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "did you mean cifar?");
}

TEST(misuse) {
    tdm_config *config = NULL;
    char *text;
    CHECK_STATUS(tdm_config_open(NULL, NULL, "x"), TDM_E_USAGE);
    CHECK_STATUS(tdm_config_open(&config, NULL, NULL), TDM_E_USAGE);
    CHECK_STATUS(tdm_config_parse(&config, NULL, NULL, 3, NULL, NULL), TDM_E_USAGE);
    CHECK_STATUS(tdm_config_check(NULL), TDM_E_USAGE);
    CHECK_STATUS(tdm_config_override(NULL, "a=b"), TDM_E_USAGE);
    CHECK_STATUS(tdm_job_init(NULL), TDM_E_USAGE);
    CHECK_STATUS(tdm_config_explain("lr", TDM_ENGLISH, NULL), TDM_E_USAGE);
    tdm_config_free(NULL);
    config = open_net(NULL);
    CHECK_STATUS(tdm_config_print(config, TDM_CONFIG_RESOLVED, &text), TDM_E_USAGE);
    CHECK_STATUS(tdm_config_faults(config, 0, &text), TDM_E_USAGE);
    REQUIRE_OK(tdm_config_check(config));
    CHECK(tdm_config_fault(config, 0) == NULL && tdm_config_fault(config, -1) == NULL);
    static const char *const keys[] = {
        "optimizer",       "optimizer.x",  "x", "model.layers[9].out", "model.layers[0].x",
        "model.layers[0]", "model.layers", ""};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        CHECK_STATUS(tdm_config_get(config, keys[i], &text), TDM_E_USAGE);
    tdm_config_free(config);
}

/* Whichever allocation fails: nothing leaks, and there is no wrong verdict about the file. */
static tdm_status work(const tdm_host *host, const char *text) {
    tdm_config *config;
    tdm_status status = tdm_config_parse(&config, host, text, strlen(text), "file.yaml", "/there");
    if (status == TDM_OK) status = tdm_config_override(config, "optimizer={type: sgd, lr: 2, weight_decay: 1}");
    if (status == TDM_OK) status = tdm_config_override(config, "model.layers[0].out=5");
    if (status == TDM_OK) status = tdm_config_check(config);
    for (int form = TDM_CONFIG_RESOLVED; form <= TDM_CONFIG_JSON && status == TDM_OK; form++) {
        char *out = NULL;
        status = tdm_config_print(config, (tdm_config_form)form, &out);
        tdm_free(out);
    }
    tdm_config_free(config);
    return status;
}

static void sweep(const char *text, tdm_status want) {
    for (long k = 1; k < 5000; k++) {
        tdm_failing_host failing;
        tdm_failing_host_init(&failing, k);
        tdm_status status = work(&failing.host, text);
        CHECK_INT(failing.live, 0);
        if (!failing.failed) {
            CHECK_INT(status, want);
            return;
        }
        /* A file with faults may be refused for them: what ran short may have been a word of a message. */
        CHECK(status == TDM_E_MEMORY || (want == TDM_E_CONFIG && status == want));
    }
    CHECK(false);
}

TEST(memory_runs_out) {
    sweep(net, TDM_OK);
    sweep(
        "tandem: 1\nname: ${env:HOME}\nmodel: {input: [3, x], layers: [{linear: {in: 3, ot: 3}}, rlu, [a], {add: 3}]}\n"
        "train: 5\ndata: {transform: [to_flot], train: {format: cifar10}}\nzz: 1\n",
        TDM_E_CONFIG);
}

TEST_MAIN(RUN(job_and_graph); RUN(cycled_momentum); RUN(holdouts_of_different_data); RUN(overrides);
          RUN(overrides_of_short_forms); RUN(wrong_overrides); RUN(added_fault); RUN(fault_text); RUN(replacements);
          RUN(files); RUN(starters); RUN(misuse); RUN(memory_runs_out);)
