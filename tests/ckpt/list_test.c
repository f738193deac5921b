/* What people see of checkpoints: the list, one in detail, two compared, all verified. */
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tandem/checkpoint.h>
#include <tandem/tandem.h>

#include "tests/ckpt/ckpt_support.h"
#include "tests/ckpt/fault_ops.h"

static char run[256], dir[300], path[2][400];

static void save(const char *to, const support_parts *p) {
    fault_ops f;
    fault_ops_init(&f, 0, 0);
    CHECK_OK(tdm__ckpt_save(tdm_host_default(), &f.ops, NULL, to, &p->parts, 0));
}

static void begin(void) {
    test_folder_make(run);
    snprintf(dir, sizeof(dir), "%s/checkpoints", run);
    for (int64_t step = 9; step <= 10; step++) {
        support_parts p;
        support_parts_init(&p, step);
        save(dir, &p);
    }
    for (int i = 0; i < 2; i++) snprintf(path[i], sizeof(path[i]), "%s/step-%08d", dir, 9 + i);
}

static char *text_of(tdm_status (*print)(const tdm_host *, const char *, int, char **), const char *what, int json) {
    char *text = NULL;
    CHECK_OK(print(NULL, what, json, &text));
    return text;
}

static json_t *json_of(const char *text) {
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) fprintf(stderr, "line %d: %s in\n%s\n", error.line, error.text, text);
    CHECK(root != NULL);
    return root;
}

TEST(list) {
    char want[640];
    begin();
    char *text = text_of(tdm_checkpoint_list, dir, 0);
    CHECK_HAS(text, "CHECKPOINT     STEP  EPOCH  MODE  REPLICAS  TENSORS     SIZE  STATE\n"
                    "step-00000009     9      1  ddp          2        6  1.0 KiB  complete\n"
                    "step-00000010    10      1  ddp          2        6  1.0 KiB  complete\n");
    tdm_free(text);

    char file[512];
    snprintf(file, sizeof(file), "%s/model.safetensors", path[0]);
    REQUIRE(truncate(file, 100) == 0);
    text = text_of(tdm_checkpoint_list, run, 0);
    CHECK_HAS(text, "step-00000009     -      -  -            -        -        -  damaged\n");
    snprintf(want, sizeof(want), "\nstep-00000009: %s: expected ", file);
    CHECK_HAS(text, want);
    tdm_free(text);

    text = text_of(tdm_checkpoint_list, run, 1);
    json_t *root = json_of(text), *all = json_object_get(root, "checkpoints");
    CHECK_TEXT(json_string_value(json_object_get(root, "dir")), dir);
    CHECK_INT(json_array_size(all), 2);
    CHECK(json_is_false(json_object_get(json_array_get(all, 0), "complete")));
    CHECK_HAS(json_string_value(json_object_get(json_array_get(all, 0), "why")), "found 100");
    json_t *state = json_object_get(json_array_get(all, 1), "state");
    CHECK_INT(json_integer_value(json_object_get(state, "step")), 10);
    CHECK(json_real_value(json_object_get(state, "lr")) == 0.1 / 3);
    json_decref(root);
    tdm_free(text);

    char *none;
    snprintf(want, sizeof(want), "%s/step-00000011", dir);
    REQUIRE(mkdir(want, 0777) == 0);
    text = text_of(tdm_checkpoint_list, run, 0);
    CHECK_HAS(text, "step-00000011     -      -  -            -        -        -  incomplete\n");
    CHECK_HAS(text, "step-00000011: missing MANIFEST.json: the checkpoint is incomplete; remove its folder\n");
    tdm_free(text);
    CHECK_STATUS(tdm_checkpoint_verify(NULL, want, NULL), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "step-00000011: missing MANIFEST.json: ");
    CHECK_STATUS(tdm_checkpoint_list(NULL, file, 0, &none), TDM_E_CHECKPOINT);
    test_folder_remove(dir);
    REQUIRE(mkdir(dir, 0777) == 0);
    text = text_of(tdm_checkpoint_list, run, 0);
    CHECK_HAS(text, "no checkpoints in ");
    tdm_free(text);
    text = text_of(tdm_checkpoint_list, run, 1);
    root = json_of(text);
    CHECK_INT(json_array_size(json_object_get(root, "checkpoints")), 0);
    json_decref(root);
    tdm_free(text);
    test_folder_remove(run);
}

TEST(show) {
    char file[512], hash[TDM_HASH_TEXT];
    float weight[6];
    begin();
    char *text = text_of(tdm_checkpoint_show, run, 0);
    CHECK_HAS(text, path[1]);
    CHECK_HAS(text, "\n  step 10, then step 3 of epoch 1; 640 samples seen; seed -5\n");
    CHECK_HAS(text, "\n  adam, lr 0.03333333333333333 at step 10 of its schedule\n");
    CHECK_HAS(text, "\n  saved by mode ddp, 2 replicas, 32 samples per device\n");
    CHECK_HAS(text, "\nmodel.safetensors: 4 tensors, ");
    CHECK_HAS(text, "\n  TENSOR                  DTYPE AND SHAPE  BYTES  XXH3-128\n");
    for (int i = 0; i < 6; i++) weight[i] = 10.0f + (float)i * 0.25f;
    tdm__hash_print(hash, tdm__hash(weight, sizeof(weight)));
    snprintf(file, sizeof(file), "\n  fc.weight               F32 [2, 3]          24  %s\n", hash);
    CHECK_HAS(text, file);
    CHECK_HAS(text, "\n  bn.num_batches_tracked  I64 []               8  ");
    CHECK_HAS(text, "\noptimizer.safetensors: 2 tensors, ");
    tdm_free(text);

    text = text_of(tdm_checkpoint_show, path[0], 1);
    json_t *root = json_of(text), *model = json_object_get(root, "model");
    CHECK_INT(json_array_size(model), 4);
    CHECK_INT(json_array_size(json_object_get(root, "optimizer")), 2);
    CHECK_INT(json_integer_value(json_object_get(json_object_get(root, "state"), "step")), 9);
    CHECK_TEXT(json_string_value(json_object_get(json_array_get(model, 2), "name")), "fc.weight");
    CHECK_INT(json_array_size(json_object_get(json_array_get(model, 2), "shape")), 2);
    json_decref(root);
    tdm_free(text);

    snprintf(file, sizeof(file), "%s/model.safetensors", path[0]);
    text = text_of(tdm_checkpoint_show, file, 0);
    CHECK_HAS(text, "\ntensors: 4 tensors, ");
    CHECK(strstr(text, "XXH3") == NULL && strstr(text, "seed") == NULL);
    tdm_free(text);
    text = text_of(tdm_checkpoint_show, file, 1);
    root = json_of(text);
    CHECK(json_object_get(root, "state") == NULL && json_object_get(root, "optimizer") == NULL);
    json_decref(root);
    tdm_free(text);
    test_folder_remove(run);
}

static tdm_checkpoint_difference compare(const char *a, const char *b, double rtol, double atol) {
    tdm_checkpoint_difference d = {.size = sizeof(d)};
    CHECK_OK(tdm_checkpoint_compare(NULL, a, b, rtol, atol, &d));
    return d;
}

TEST(compared) {
    static const float nan = NAN;
    char other[300], file[512];
    support_parts p;
    begin();
    snprintf(other, sizeof(other), "%s/other", run);
    support_parts_init(&p, 10);
    p.moment[4] += 0.5f;
    p.weight[1] += 0.125f;
    save(other, &p);
    tdm_checkpoint_difference d = compare(run, path[1], 0, 0);
    CHECK(d.equal_bits && d.within);
    CHECK_INT(d.tensors, 6);
    CHECK_TEXT(d.first, "");

    d = compare(run, other, 0, 0);
    CHECK(!d.equal_bits && !d.within);
    CHECK_INT(d.differing, 2);
    CHECK_TEXT(d.first, "fc.weight");
    CHECK_TEXT(d.largest_name, "exp_avg.fc.weight");
    CHECK_INT(d.largest_index, 4);
    CHECK(d.largest == 0.5 && d.a == -11 && d.b == -10.5);
    CHECK_TEXT(d.largest_model_name, "fc.weight");
    CHECK(d.largest_model == 0.125);

    CHECK(compare(run, other, 0, 0.5).within && !compare(run, other, 0, 0.4999).within);
    CHECK(compare(run, other, 0.05, 0).within && !compare(run, other, 0.04, 0).within);

    /* A tensor that only one has, another shape, and numbers that are none. */
    support_parts_init(&p, 11);
    p.parts.model_count = 3;
    p.model[1].dim[0] = 1;
    p.model[1].bytes = 4;
    p.parts.optimizer_count = 0;
    save(other, &p);
    snprintf(file, sizeof(file), "%s/step-00000011/model.safetensors", other);
    support_patch(file, "fc.weight", &nan, sizeof(nan));
    d = compare(path[1], file, INFINITY, INFINITY);
    CHECK(!d.equal_bits && !d.within);
    CHECK_INT(d.only_in_a, 1); /* scale; a file has no optimizer */
    CHECK_INT(d.only_in_b, 0);
    CHECK_INT(d.tensors, 3);
    CHECK_TEXT(d.first, "fc.bias");
    CHECK_TEXT(d.largest_name, "fc.weight");
    CHECK(isinf(d.largest) && isnan(d.b) && d.largest_index == 0);

    d.size = 1;
    CHECK_STATUS(tdm_checkpoint_compare(NULL, run, run, 0, 0, &d), TDM_E_USAGE);
    d.size = sizeof(d);
    CHECK_STATUS(tdm_checkpoint_compare(NULL, run, run, -1, 0, &d), TDM_E_USAGE);
    test_folder_remove(run);
}

TEST(verified) {
    char *checked, file[512];
    begin();
    CHECK_OK(tdm_checkpoint_verify(NULL, run, &checked));
    CHECK_TEXT(checked, dir);
    tdm_free(checked);
    CHECK_OK(tdm_checkpoint_verify(NULL, path[0], NULL));
    snprintf(file, sizeof(file), "%s/optimizer.safetensors", path[0]);
    CHECK_OK(tdm_checkpoint_verify(NULL, file, &checked));
    CHECK_TEXT(checked, file);
    tdm_free(checked);
    support_patch(file, "exp_avg.fc.weight", &(float){-INFINITY}, sizeof(float));
    CHECK_STATUS(tdm_checkpoint_verify(NULL, file, &checked), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "tensor 'exp_avg.fc.weight' is not finite (element 0 is infinite or NaN)");
    support_write(file, "short", 5);
    CHECK_STATUS(tdm_checkpoint_verify(NULL, file, &checked), TDM_E_CHECKPOINT);
    CHECK(checked == NULL);
    CHECK_STATUS(tdm_checkpoint_verify(NULL, path[0], NULL), TDM_E_CHECKPOINT);
    CHECK_STATUS(tdm_checkpoint_verify(NULL, run, NULL), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "step-00000009/optimizer.safetensors: expected ");
    CHECK_OK(tdm_checkpoint_verify(NULL, path[1], NULL));
    test_folder_remove(run);
}

TEST_MAIN(RUN(list); RUN(show); RUN(compared); RUN(verified);)
