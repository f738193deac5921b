/* Starter files in an editor's hands, and what this build does not have: marked wherever it is told of. */
#include "runtime/module/module.h"
#include "tests/config/config_support.h"

static const char *const tasks[] = {"cifar", "mnist", "toy-mp", "resnet50-burnin"};
static const char *const marks[] = {"not in this build", "本构建不含"};
enum { TASKS = 4, ROOM = 16384 };

static tdm_status status_of(const char *text) {
    tdm_status status;
    tdm_config_free(checked(text, &status));
    return status;
}

/* Line `wanted` of `text`, or all of them with -1, as an editor uncomments it: the spaces stay, a mark and one space
 * go. False if that line is no comment. */
static bool uncomment(const char *text, int wanted, char out[ROOM]) {
    bool found = false;
    for (int line = 0; *text != '\0'; line++) {
        size_t length = strcspn(text, "\n") + 1, spaces = strspn(text, " ");
        if (text[spaces] == '#' && (wanted < 0 || line == wanted)) {
            size_t mark = spaces + (text[spaces + 1] == ' ' ? 2 : 1);
            out += snprintf(out, ROOM, "%.*s%.*s", (int)spaces, text, (int)(length - mark), text + mark);
            found = true;
        } else {
            out += snprintf(out, ROOM, "%.*s", (int)length, text);
        }
        text += length;
    }
    return found;
}

static void check_uncommented(const char *starter, tdm_status want) {
    static char text[2 * ROOM];
    int lines = 0, comments = 0;
    for (const char *at = starter; *at != '\0'; at++) lines += *at == '\n';
    for (int line = -1; line < lines; line++) {
        if (!uncomment(starter, line, text)) continue;
        comments++;
        if (status_of(text) != want) fprintf(stderr, "%s\n", text);
        CHECK_STATUS(status_of(text), want);
    }
    CHECK(comments >= 3); /* the two lines of the head, and all together */
}

/* `key: {...}  # or {...}` with the value behind the mark in place of the one in front of it. */
static int check_alternatives(const char *starter, const char * or, tdm_status want) {
    static char text[2 * ROOM];
    int count = 0;
    for (const char *at = strstr(starter, or); at != NULL; at = strstr(at + 1, or)) {
        const char *line = at, *end = strchr(at, '\n');
        while (line > starter && line[-1] != '\n') line--;
        const char *brace = memchr(line, '{', (size_t)(at - line));
        if (brace == NULL || at[strlen(or)] != '{') continue;
        const char *value = at + strlen(or);
        snprintf(text, sizeof(text), "%.*s%.*s%s", (int)(brace - starter), starter, (int)(end - value), value, end);
        CHECK_STATUS(status_of(text), want);
        count++;
    }
    return count;
}

TEST(starters_survive_an_editor) {
    int alternatives = 0;
    for (int i = 0; i < TASKS; i++) {
        for (int k = 0; k < 2; k++) {
            char *text = NULL;
            tdm_status want = TDM_OK;
            REQUIRE_OK(tdm_config_starter(tasks[i], k == 0 ? TDM_ENGLISH : TDM_CHINESE, &text));
            REQUIRE(strlen(text) < ROOM);
            check_uncommented(text, want);
            alternatives += check_alternatives(text, k == 0 ? "# or " : "# 或 ", want);
            tdm_free(text);
        }
    }
    CHECK_INT(alternatives, 12);
}

static bool line_has(const char *text, int line, const char *part) {
    for (; line > 1; line--) text = strchr(text, '\n') + 1;
    const char *found = strstr(text, part);
    return found != NULL && found < strchr(text, '\n');
}

TEST(starters_mark_what_is_not_here) {
    for (int i = 0; i < TASKS; i++) {
        for (int k = 0; k < 2; k++) {
            char *text = NULL;
            tdm_status status;
            REQUIRE_OK(tdm_config_starter(tasks[i], k == 0 ? TDM_ENGLISH : TDM_CHINESE, &text));
            tdm_config *config = checked(text, &status);
            CHECK_INT(tdm_config_fault_count(config), 0);
            for (int f = 0; f < tdm_config_fault_count(config); f++)
                CHECK(line_has(text, tdm_config_fault(config, f)->line, marks[k]));
            tdm_config_free(config);
            tdm_free(text);
        }
    }
}

/* What this build lacks: the explanation of the key says so, and the schema of editors. */
TEST(explain_and_schema_mark_what_is_not_here) {
    char words[256] = "", *schema = NULL, *section = NULL;
    for (const tdm_backend_def *each = tdm__backends; each->name != NULL; each++) {
        if (each->source == TDM_SOURCE_AUTO || each->source == TDM_SOURCE_BUILT_IN) continue;
        if (tdm__module_absent(each->name)[0] == '\0') continue;
        strcat(words, words[0] == '\0' ? "(not in this build: " : ", ");
        strcat(words, each->name);
    }
    const bool has_cuda = tdm__module_absent("cuda")[0] == '\0';
    REQUIRE_OK(tdm_config_schema(TDM_ENGLISH, &schema));
    CHECK_HAS(schema, words);
    REQUIRE_OK(tdm_config_explain("parallel.ddp", TDM_ENGLISH, &section));
    CHECK_HAS(section, words);
    CHECK((strstr(schema, "(not in this build: cuda)") == NULL) == has_cuda);
    CHECK((strstr(schema, "(not in this build: tf32)") == NULL) == has_cuda);
    tdm_free(section);
    tdm_free(schema);
}

TEST_MAIN(RUN(starters_survive_an_editor); RUN(starters_mark_what_is_not_here);
          RUN(explain_and_schema_mark_what_is_not_here);)
