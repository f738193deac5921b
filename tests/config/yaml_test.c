/* Reading YAML: places, what the format leaves out, broken text in words, and files meant to harm. */
#include "config/yaml.h"
#include "tests/config/config_support.h"

/* ---- a text of n bytes made of a repeated part ---- */

static char *repeat(const char *head, const char *part, int count, const char *tail) {
    size_t part_length = strlen(part), head_length = strlen(head);
    char *text = malloc(head_length + part_length * (size_t)count + strlen(tail) + 1);
    if (text == NULL) return NULL;
    memcpy(text, head, head_length);
    for (int i = 0; i < count; i++) memcpy(text + head_length + part_length * (size_t)i, part, part_length);
    strcpy(text + head_length + part_length * (size_t)count, tail);
    return text;
}

static void check_one_fault_and_free(char *text, const char *number, const char *part) {
    REQUIRE(text != NULL);
    CHECK_ONE_FAULT(text, number, part);
    free(text);
}

TEST(places_count_characters) {
    tdm_zone zone;
    tdm_fault_list faults;
    tdm_yaml_node *root;
    const char *bytes = "名字: 任务\nlist: [\xE4\xB8\x80, b]  # x\nmap:\n  key: v\n";
    tdm_yaml_text text = {.name = "f", .bytes = bytes, .count = strlen(bytes)};
    tdm__zone_init(&zone, tdm_host_default());
    tdm__faults_init(&faults, &zone);
    CHECK_OK(tdm__yaml_parse(&root, &text, &zone, &faults));
    REQUIRE(root != NULL);
    CHECK_INT(root->count, 3);
    CHECK_TEXT(root->first->key, "名字");
    CHECK_INT(root->first->at.line, 1);
    CHECK_INT(root->first->at.column, 5);
    const tdm_yaml_node *second = tdm__yaml_find(root, "list")->first->next;
    CHECK_TEXT(second->text, "b");
    CHECK_INT(second->at.line, 2);
    CHECK_INT(second->at.column, 11);
    const tdm_yaml_node *key = tdm__yaml_find(tdm__yaml_find(root, "map"), "key");
    REQUIRE(key != NULL);
    CHECK_INT(key->key_at.line, 4);
    CHECK_INT(key->key_at.column, 3);
    CHECK_INT(key->at.column, 8);
    tdm__zone_deinit(&zone);
}

TEST(scalars_are_text) {
    CHECK_GOOD("tandem: 1\nname: no\n" SMALL_MODEL "train: {steps: 1_000, batch: {per_device: 2}}\n");
    CHECK_GOOD("tandem: 1\nname: \"null\"\n" SMALL_MODEL
               "train: {steps: 2, batch: {per_device: 2}}\noptimizer: {lr: 1e-3}\n");
    CHECK_ONE_FAULT(SMALL "name: null\n", "C007", "got null");
    CHECK_ONE_FAULT(SMALL "deterministic: on\n", "C007", "write true");
    CHECK_ONE_FAULT(SMALL "optimizer: {lr: .nan}\n", "C007", "got '.nan'");
    CHECK_ONE_FAULT(SMALL "seed: 010\n", "C007", "leading zeros");
}

TEST(encodings) {
    CHECK_GOOD("\xEF\xBB\xBF" SMALL);
    CHECK_ONE_FAULT("tandem: 1\nname: \xC4\xE3\xBA\xC3\n", "C001",
                    "file.yaml:2:7: error[C001]: the byte 0xC4 at offset 16");
    CHECK_ONE_FAULT("tandem: 1\nname: \xC4\xE3\xBA\xC3\n", "C001", "save the file as UTF-8");
    CHECK_ONE_FAULT("\xFF\xFEt\x01", "C001", "UTF-16");
    CHECK_ONE_FAULT("tandem: 1\nname: \x01z\n", "C001", "0x01");
    tdm_config *config;
    char *faults = NULL;
    REQUIRE_OK(tdm_config_parse(&config, NULL, "t\0a\0n\0", 6, "file.yaml", NULL));
    CHECK_STATUS(tdm_config_check(config), TDM_E_CONFIG);
    CHECK_OK(tdm_config_faults(config, 0, &faults));
    CHECK_HAS(faults, "0x00 at offset 1");
    tdm_free(faults);
    tdm_config_free(config);
}

TEST(broken_text_in_words) {
    CHECK_ONE_FAULT("tandem: 1\nmodel:\n\tinput: 3\n", "C002", "file.yaml:3:1: error[C002]: a tab");
    CHECK_ONE_FAULT("tandem: 1\nname: @x\n", "C002", "quote the value");
    CHECK_ONE_FAULT("tandem: 1\ntrain: {steps: 1\n", "C002",
                    "file.yaml:2:8: error[C002]: the '{' opened here is not closed");
    CHECK_ONE_FAULT("tandem: 1\nmodel: {input: [3, 4}\n", "C002", "the '[' opened here is not closed");
    CHECK_ONE_FAULT("tandem: 1\nname: \"x\n", "C002", "file.yaml:2:7: error[C002]: the quote opened here");
    CHECK_ONE_FAULT("tandem: 1\nname: a: b\n", "C002", "a ':' where no key is allowed");
    CHECK_ONE_FAULT("tandem: 1\n  name: b\n", "C002", "file.yaml:2:");
    CHECK_ONE_FAULT("tandem: 1\ntrain:\n    steps: 1\n  batch: 2\n", "C002",
                    "file.yaml:4:3: error[C002]: this line does not fit");
    CHECK_ONE_FAULT("tandem: 1\nname\nseed: 1\n", "C002", "file.yaml:2:1: error[C002]: this line has no ':'");
    CHECK_ONE_FAULT("tandem: 1\nseed：1\nname: x\n", "C002", "full-width '：'; write the plain ':'");
    CHECK_ONE_FAULT(SMALL "optimizer: {lr：1}\n", "C006", "column 15 holds the full-width '：'");
    CHECK_ONE_FAULT("", "C008", "the file is empty");
    CHECK_ONE_FAULT("# nothing\n", "C008", "the file is empty");
    CHECK_ONE_FAULT("just words\n", "C007", "the file must be a mapping of keys, got 'just words'");
    CHECK_ONE_FAULT("[1, 2]\n", "C007", "got a list");
}

TEST(left_out_of_the_format) {
    CHECK_ONE_FAULT("tandem: 1\nx-a: &a 3\nseed: *a\nname: b\n" SMALL_MODEL
                    "train: {steps: 2, batch: {per_device: 2}}\n",
                    "C004", "aliases are not part");
    CHECK_ONE_FAULT(SMALL "x-a: &a {lr: 1}\noptimizer:\n  <<: *a\n", "C004", "merge keys");
    CHECK_ONE_FAULT(SMALL "name: !!python/object:os.system x\n", "C004", "tag");
    CHECK_ONE_FAULT(SMALL "---\ntandem: 1\n", "C004", "a second document");
    CHECK_ONE_FAULT(SMALL "? [a, b]\n: 1\n", "C004", "a key must be a plain word");
    CHECK_ONE_FAULT(SMALL "seed: 1\nname: z\nseed: 2\n", "C005", "on lines 4 and 6");
    CHECK_GOOD("--- # one document\n" SMALL "name: !!str 5\nseed: !!int 3\n...\n");
    CHECK_GOOD(SMALL "x-mine: {anything: [1, {2: 3}]}\noptimizer: {x-note: really, lr: 0}\n");
}

TEST(limits) {
    check_one_fault_and_free(repeat("tandem: 1\nx: ", "[", 33, ""), "C003", "nested deeper than 32");
    check_one_fault_and_free(repeat("tandem: 1\nx: ", "[", 100000, ""), "C003", "nested deeper than 32");
    check_one_fault_and_free(repeat("tandem: 1\nx: ", "{a: ", 30000, ""), "C003", "nested deeper than 32");
    check_one_fault_and_free(repeat("tandem: 1\nx: [", "1,", 8200, "1]"), "C003", "more than 8,192");
    check_one_fault_and_free(repeat("tandem: 1\nname: ", "a", 65537, "\n"), "C003", "longer than 64 KiB");
    check_one_fault_and_free(repeat("tandem: 1\n#", "a", 1 << 20, "\n"), "C003", "larger than 128 KiB");
    check_one_fault_and_free(repeat("", "%TAG !a! tag:b,1:\n", 7000, ""), "C004", "a %TAG line");
    check_one_fault_and_free(repeat("tandem: 1\n...\r", "%TAG !a! tag:b,1:\r", 7000, ""), "C004", "a %TAG line");
    check_one_fault_and_free(repeat(SMALL "x-a:\n", " ", 120000, "\ty: 1\n"), "C002", "a tab");
    check_one_fault_and_free(repeat(SMALL "name: sixty-four-letters-of-a-name-that-a-file-repeats-many-times-over\n"
                                          "run: {dir: \"",
                                    "${name}", 5000, "\"}\n"),
                             "C003", "after all ${...} are replaced");
    char *text = repeat(SMALL "#", "a", (128 << 10) - 200, "\n"); /* just below: the comment says nothing */
    REQUIRE(text != NULL);
    CHECK_GOOD(text);
    free(text);
}

/* Nine lists of nine aliases each: a billion laughs. */
TEST(alias_bomb) {
    char text[2048] = "tandem: 1\na0: &a0 [x,x,x,x,x,x,x,x,x]\n";
    for (int i = 1; i < 9; i++) {
        char line[160];
        snprintf(line, sizeof(line), "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i, i - 1, i - 1,
                 i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
        strcat(text, line);
    }
    char *faults = faults_of(text);
    CHECK_HAS(faults, "aliases are not part of this format");
    CHECK_HAS(faults, "more faults");
    tdm_free(faults);
}

/* Five thousand unknown keys, and as many times the same one: every one is a fault, few are told. */
TEST(many_faults) {
    size_t room = 4000 * 14 + 200;
    char *text = malloc(room);
    REQUIRE(text != NULL);
    size_t used = (size_t)snprintf(text, room, "%s", SMALL);
    for (int i = 0; i < 4000; i++) used += (size_t)snprintf(text + used, room - used, "kkk%d: 1\n", i);
    char *faults = faults_of(text);
    CHECK_HAS(faults, "unknown key 'kkk19'");
    CHECK_HAS(faults, "... and 3980 more faults");
    tdm_free(faults);
    used = (size_t)snprintf(text, room, "%s", SMALL);
    for (int i = 0; i < 4000; i++) used += (size_t)snprintf(text + used, room - used, "seed: 1\n");
    faults = faults_of(text);
    CHECK_HAS(faults, "is written twice");
    CHECK_HAS(faults, "... and at least 3979 more faults");
    tdm_free(faults);
    free(text);
}

/* Every prefix of a good file, and every single byte of it replaced: refused or accepted, never worse. */
TEST(damaged_bytes) {
    static const char good[] =
        "tandem: 1\nname: \"a${start_time}\"\nmodel:\n  input: [3, 8, 8]\n  layers:\n"
        "    - conv2d: {out: 4, kernel: 3, id: s}\n    - relu: {id: r}\n    - add: {input: [s, r]}\n"
        "    - flatten\n    - linear: 3\n"
        "data: {train: {format: glyphs}, transform: [to_float]}\n"
        "train: {epochs: 1, batch: {global: 4}}\n";
    static const char bytes[] = "\0\t\n:[]{}\"'*&!#-,?|>%@\x80\xFF";
    char text[sizeof(good)];
    CHECK_GOOD(good);
    for (size_t i = 0; i < sizeof(good) - 1; i++) {
        tdm_config *config = NULL;
        REQUIRE_OK(tdm_config_parse(&config, NULL, good, i, "file.yaml", NULL));
        tdm_status status = tdm_config_check(config);
        CHECK(status == TDM_OK || (status == TDM_E_CONFIG && tdm_config_fault_count(config) > 0));
        tdm_config_free(config);
        for (size_t k = 0; k < sizeof(bytes) - 1; k++) {
            memcpy(text, good, sizeof(good));
            text[i] = bytes[k];
            REQUIRE_OK(tdm_config_parse(&config, NULL, text, sizeof(good) - 1, "file.yaml", NULL));
            status = tdm_config_check(config);
            CHECK(status == TDM_OK || (status == TDM_E_CONFIG && tdm_config_fault_count(config) > 0));
            tdm_config_free(config);
        }
    }
}

TEST_MAIN(RUN(places_count_characters); RUN(scalars_are_text); RUN(encodings); RUN(broken_text_in_words);
          RUN(left_out_of_the_format); RUN(limits); RUN(alias_bomb); RUN(many_faults); RUN(damaged_bytes);)
