/* Damage at rest: every bit and every length of every file of a checkpoint; and manifests and states that lie. */
#include <fcntl.h>
#include <unistd.h>

#include "tests/ckpt/ckpt_support.h"
#include "tests/ckpt/fault_ops.h"

static const char *const names[] = {"model.safetensors", "optimizer.safetensors", "state.json", "config.resolved.yaml",
                                    "MANIFEST.json"};
static char dir[256];

static const char *in_step(int step, const char *name) {
    static char path[512];
    snprintf(path, sizeof(path), "%s/step-%08d%s%s", dir, step, name[0] != '\0' ? "/" : "", name);
    return path;
}

static void begin(void) {
    test_folder_make(dir);
    for (int64_t step = 1; step <= 2; step++) {
        fault_ops f;
        support_parts p;
        fault_ops_init(&f, 0, 0);
        support_parts_init(&p, step);
        CHECK_OK(tdm__ckpt_save(tdm_host_default(), &f.ops, NULL, dir, &p.parts, 0));
    }
}

static int64_t newest(const tdm_host *host) {
    tdm_ckpt *ckpt;
    if (tdm__ckpt_open_newest(&ckpt, host, NULL, dir) != TDM_OK || ckpt == NULL) return -1;
    int64_t step = tdm__ckpt_state(ckpt)->step;
    if (!support_holds(ckpt, step)) step = -2;
    tdm__ckpt_close(ckpt);
    return step;
}

/* Falls back to step 1, with a warning that names the file (MANIFEST.json may blame the file that it lies about). */
static void check_fallback(const char *name) {
    support_host host;
    support_host_init(&host);
    CHECK_INT(newest(&host.host), 1);
    CHECK_HAS(host.log, "1 step-00000002 is skipped: ");
    CHECK_HAS(host.log, name);
    CHECK_INT(host.live, 0);
}

TEST(every_bit) {
    begin();
    for (int i = 0; i < 5; i++) {
        size_t size;
        char *bytes = support_read(in_step(2, names[i]), &size);
        int fd = open(in_step(2, names[i]), O_RDWR);
        REQUIRE(bytes != NULL && fd >= 0);
        for (size_t at = 0; at < size; at++) {
            for (int bit = 0; bit < 8; bit++) {
                char flipped = (char)(bytes[at] ^ (char)(1 << bit));
                REQUIRE(pwrite(fd, &flipped, 1, (off_t)at) == 1);
                tdm_status status = tdm__ckpt_verify(tdm_host_default(), NULL, in_step(2, ""));
                if (status != TDM_E_CHECKPOINT) {
                    fprintf(stderr, "%s: bit %d of byte %zu\n", names[i], bit, at);
                    CHECK_INT(status, TDM_E_CHECKPOINT);
                }
            }
            if (at % 16 == 0) check_fallback(names[i]);
            REQUIRE(pwrite(fd, &bytes[at], 1, (off_t)at) == 1);
        }
        CHECK_OK(tdm__ckpt_verify(tdm_host_default(), NULL, in_step(2, "")));
        close(fd);
        free(bytes);
    }
    CHECK_INT(newest(tdm_host_default()), 2);
    test_folder_remove(dir);
}

TEST(every_length) {
    begin();
    for (int i = 0; i < 5; i++) {
        size_t size;
        char *bytes = support_read(in_step(2, names[i]), &size);
        REQUIRE(bytes != NULL);
        for (size_t length = 0; length <= size + 16; length++) {
            char longer[16] = "\n              ";
            if (length == size) continue;
            support_write(in_step(2, names[i]), bytes, length < size ? length : size);
            if (length > size) {
                int fd = open(in_step(2, names[i]), O_WRONLY | O_APPEND);
                REQUIRE(fd >= 0 && write(fd, longer, length - size) == (ssize_t)(length - size));
                close(fd);
            }
            CHECK_STATUS(tdm__ckpt_verify(tdm_host_default(), NULL, in_step(2, "")), TDM_E_CHECKPOINT);
            if (length % 32 == 0) check_fallback(names[i]);
        }
        unlink(in_step(2, names[i]));
        check_fallback(names[i]);
        support_write(in_step(2, names[i]), bytes, size);
        free(bytes);
    }
    CHECK_INT(newest(tdm_host_default()), 2);
    test_folder_remove(dir);
}

/* The message names the file and the first damaged tensor in it. */
TEST(the_tensor_is_named) {
    static const char *const tensors[] = {"bn.num_batches_tracked", "fc.bias", "fc.weight", "scale"};
    begin();
    for (int i = 0; i < 4; i++) {
        tdm_tensor_file *file;
        char want[512], byte;
        REQUIRE_OK(tdm__tensor_file_open(&file, tdm_host_default(), NULL, in_step(2, names[0])));
        off_t at = (off_t)tdm__tensor_file_find(file, tensors[i])->file_offset + 1;
        tdm__tensor_file_close(file);
        int fd = open(in_step(2, names[0]), O_RDWR);
        REQUIRE(fd >= 0 && pread(fd, &byte, 1, at) == 1);
        byte = (char)(byte ^ 4);
        REQUIRE(pwrite(fd, &byte, 1, at) == 1);
        CHECK_STATUS(tdm__ckpt_verify(tdm_host_default(), NULL, in_step(2, "")), TDM_E_CHECKPOINT);
        snprintf(want, sizeof(want), "step-00000002/model.safetensors: tensor '%s' is damaged", tensors[i]);
        CHECK_HAS(tdm_error_message(), want);
        byte = (char)(byte ^ 4);
        REQUIRE(pwrite(fd, &byte, 1, at) == 1);
        close(fd);
    }
    CHECK_OK(tdm__ckpt_verify(tdm_host_default(), NULL, in_step(2, "")));

    /* None left: that is said, with the reason of the newest. */
    tdm_ckpt *ckpt;
    CHECK(truncate(in_step(2, names[1]), 7) == 0 && unlink(in_step(1, names[4])) == 0);
    CHECK_STATUS(tdm__ckpt_open_newest(&ckpt, tdm_host_default(), NULL, dir), TDM_E_CHECKPOINT);
    CHECK(ckpt == NULL);
    CHECK_HAS(tdm_error_message(), "none of its 2 checkpoints is usable; the newest: ");
    CHECK_HAS(tdm_error_message(), "optimizer.safetensors: expected ");
    CHECK_HAS(tdm_error_message(), " bytes by its manifest, found 7");
    test_folder_remove(dir);
}

/* Not taken for a folder without checkpoints, from which a run begins anew. */
TEST(a_renamed_checkpoint_is_told) {
    static const char *const now[] = {"step-2", "step-000000002", "step-00000002.bak",
                                      "step-",  "step--0000002",  "step-9223372036854775807"};
    tdm_ckpt *ckpt;
    support_host host;
    char was[512], is[512];
    support_host_init(&host);
    begin();
    test_folder_remove(in_step(1, ""));
    snprintf(was, sizeof(was), "%s/step-00000002", dir);
    for (size_t i = 0; i < sizeof(now) / sizeof(now[0]); i++) {
        snprintf(is, sizeof(is), "%s/%s", dir, now[i]);
        REQUIRE(rename(was, is) == 0);
        CHECK_STATUS(tdm__ckpt_open_newest(&ckpt, tdm_host_default(), NULL, dir), TDM_E_CHECKPOINT);
        CHECK(ckpt == NULL);
        CHECK_HAS(tdm_error_message(), now[i]);
        REQUIRE(mkdir(was, 0700) == 0);
        CHECK_STATUS(tdm__ckpt_open_newest(&ckpt, &host.host, NULL, dir), TDM_E_CHECKPOINT);
        CHECK_HAS(host.log, now[i]);
        REQUIRE(rmdir(was) == 0 && rename(is, was) == 0);
    }
    CHECK_OK(tdm__ckpt_open_newest(&ckpt, tdm_host_default(), NULL, dir));
    CHECK(ckpt != NULL);
    tdm__ckpt_close(ckpt);
    test_folder_remove(dir);
}

/* Writes a manifest with the first `from` replaced, and its own hash right again. */
static void forge(const char *text, const char *from, const char *to) {
    enum { DIGITS_AT = 13, GUARDED_AT = 48 };
    char digits[TDM_HASH_TEXT], *forged = calloc(1, strlen(text) + strlen(to) + 1);
    const char *at = strstr(text, from);
    if (at == NULL) abort();
    memcpy(forged, text, (size_t)(at - text));
    strcat(forged, to);
    strcat(forged, at + strlen(from));
    tdm__hash_print(digits, tdm__hash(forged + GUARDED_AT, strlen(forged) - GUARDED_AT));
    memcpy(forged + DIGITS_AT, digits, 32);
    support_write(in_step(2, "MANIFEST.json"), forged, strlen(forged));
    free(forged);
}

TEST(manifests_that_lie) {
    static const struct {
        const char *from, *to, *why;
    } cases[] = {
        {"\"version\": 1", "\"version\": 2", "reads version 1, the checkpoint has version 2 and needs a newer tandem"},
        {"\"version\": 1", "\"version\": 1.0", "whole number"},
        {"tandem.checkpoint", "other", "expected format 'tandem.checkpoint', found 'other'"},
        {"\"format\"", "\"Format\"", "expected key 'format'"},
        {"\"state.json\"", "\"../../state.json\"", "file '../../state.json' does not belong in a checkpoint"},
        {"\"state.json\"", "\"config.resolved.yaml\"", "config.resolved.yaml: expected"},
        {"\"config.resolved.yaml\"", "\"state.json\"", "file 'state.json' is listed twice"},
        {"\"fc.bias\": \"", "\"fc.bias\": \"0", "longer than 32 bytes"},
        {"\"fc.bias\": \"", "\"fc.bias\": \"ABCDEF01234567890123456789abcdef\", \"x\": \"", "lower-case hex"},
        {"\"fc.bias\"", "\"fc.bios\"", "tensor 'fc.bios' is in the manifest, but not in the file"},
        {"\"fc.bias\"", "\"fc.weight\"", "listed twice"},
        {"\"bytes\": ", "\"bytes\": 1", "bytes by its manifest, found"},
        {"\"bytes\"", "\"size\"", "expected key 'bytes', found 'size'"},
        {"\"files\": {", "\"files\": {}, \"more\": {", "does not list model.safetensors"},
        {"\n  }\n}\n", "\n  },\n  \"more\": 1\n}\n", "expected nothing after 'files'"},
        {"\n  }\n}\n", "\n  }\n}\n{}", "expected the end"},
        {"\n  }\n}\n", "", "the text ends"},
    };
    begin();
    size_t size;
    char *good = support_read(in_step(2, "MANIFEST.json"), &size);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        support_host host;
        tdm_ckpt *ckpt;
        support_host_init(&host);
        forge(good, cases[i].from, cases[i].to);
        CHECK_STATUS(tdm__ckpt_open(&ckpt, &host.host, NULL, in_step(2, "")), TDM_E_CHECKPOINT);
        CHECK(ckpt == NULL);
        CHECK_HAS(tdm_error_message(), cases[i].why);
        CHECK_INT(host.live, 0);
    }
    free(good);
    test_folder_remove(dir);
}

TEST(states_that_lie) {
    static const char good[] =
        "{\"version\":1,\"step\":3,\"epoch\":0,\"step_in_epoch\":3,\"samples\":192,\"seed\":-1,\"lr\":1e-3,"
        "\"schedule_step\":3,\"mode\":\"dp\",\"replicas\":2,\"per_device\":32,\"optimizer\":\"sgd\","
        "\"params_xxh3\":\"00\"}";
    static const struct {
        const char *from, *to, *why;
    } cases[] = {
        {"\"version\":1", "\"version\":2", "expected version 1, found 2: written by a newer tandem?"},
        {"\"version\":1,", "", "key 'version' is missing"},
        {"\"step\":3", "\"step\":-3", "'step' is negative"},
        {"\"step\":3", "\"step\":3.0", "whole number"},
        {"\"step\":3", "\"step\":\"3\"", "whole number"},
        {"\"step\":3,", "", "key 'step' is missing"},
        {"\"step\":3", "\"step\":3,\"step\":3", "key 'step' appears twice"},
        {"\"epoch\":0", "\"age\":0", "unknown key 'age'"},
        {"\"lr\":1e-3", "\"lr\":null", "expected a digit"},
        {"\"replicas\":2", "\"replicas\":2147483648", "'replicas' is too large"},
        {"\"mode\":\"dp\"", "\"mode\":\"parallel\"", "longer than 7 bytes"},
        {"\"step\":3", "\"step\":3,\"eval_due\":true", "whole number"},
        {"\"params_xxh3\":\"00\"}", "\"params_xxh3\":\"00\"", "the text ends"},
    };
    tdm_ckpt_state state;
    CHECK_OK(tdm__state_read(&state, good, strlen(good), "s"));
    CHECK_INT(state.seed, -1);
    CHECK(state.lr == 1e-3);
    CHECK_TEXT(state.mode, "dp");
    CHECK_INT(state.eval_due, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        const char *at = strstr(good, cases[i].from);
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good, cases[i].to, at + strlen(cases[i].from));
        CHECK_STATUS(tdm__state_read(&state, text, strlen(text), "s"), TDM_E_CHECKPOINT);
        CHECK_HAS(tdm_error_message(), cases[i].why);
    }
}

TEST_MAIN(RUN(every_bit); RUN(every_length); RUN(the_tensor_is_named); RUN(a_renamed_checkpoint_is_told);
          RUN(manifests_that_lie); RUN(states_that_lie);)
