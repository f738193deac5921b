/* The error record: what is kept, what is cut, and that each thread has its own. */
#include "runtime/base/status.h"

#include <pthread.h>

#include "runtime/base/text/text.h"
#include "tests/support/tdm_test.h"

static tdm_status fail_plainly(void) {
    TDM_FAIL(TDM_E_DATA, "sample %d: wants %s", 7, "a label");
}

static tdm_status pass_on(void) {
    TDM_TRY(fail_plainly());
    return TDM_OK;
}

static tdm_status pass_on_with_cleanup(int *cleaned) {
    tdm_status status = TDM_OK;
    TDM_TRY_DONE(pass_on());
done:
    *cleaned = 1;
    return status;
}

static tdm_status wrap(void) {
    if (fail_plainly() != TDM_OK) TDM_FAIL(TDM_E_CONFIG, "while reading: %s", tdm_error_message());
    return TDM_OK;
}

static tdm_status fail_at(const tdm_origin *origin) {
    TDM_FAIL_AT(origin, TDM_E_CONFIG, "bad value");
}

static tdm_status fail_long(const char *text) {
    TDM_FAIL(TDM_E_IO, "%s", text);
}

static void *read_other_thread(void *argument) {
    const char **message = argument;
    *message = strcmp(tdm_error_message(), "") == 0 && tdm_error_last()->status == TDM_OK ? "empty" : "shared";
    (void)fail_long("from the other thread");
    return NULL;
}

TEST(first_state) {
    CHECK_INT(tdm_error_last()->status, TDM_OK);
    CHECK_TEXT(tdm_error_message(), "");
}

TEST(names) {
    CHECK_TEXT(tdm_status_name(TDM_OK), "OK");
    CHECK_TEXT(tdm_status_name(TDM_E_CONFIG), "E_CONFIG");
    CHECK_TEXT(tdm_status_text(TDM_E_CONFIG), "bad configuration");
    CHECK_TEXT(tdm_status_name((tdm_status)74), "unknown");
    CHECK_TEXT(tdm_status_text((tdm_status)-1), "unknown");
    CHECK_INT(TDM_E_STOPPED, 75);
}

TEST(fail_and_frames) {
    int cleaned = 0;
    CHECK_INT(pass_on_with_cleanup(&cleaned), TDM_E_DATA);
    const tdm_error *error = tdm_error_last();
    CHECK_INT(cleaned, 1);
    CHECK_INT(error->status, TDM_E_DATA);
    CHECK_TEXT(error->message, "sample 7: wants a label");
    CHECK_INT(error->frame_count, 3);
    CHECK_HAS(error->frame[0].file, "status_test.c");
    CHECK(error->frame[0].line < error->frame[1].line);
    CHECK_TEXT(error->file, "");
    CHECK_INT(error->line, 0);
}

TEST(wrapping_own_message) {
    CHECK_INT(wrap(), TDM_E_CONFIG);
    CHECK_TEXT(tdm_error_message(), "while reading: sample 7: wants a label");
    CHECK_INT(tdm_error_last()->frame_count, 1);
}

TEST(origin) {
    tdm_origin origin = {"train.yaml", 12, 5};
    CHECK_INT(fail_at(&origin), TDM_E_CONFIG);
    CHECK_TEXT(tdm_error_last()->file, "train.yaml");
    CHECK_INT(tdm_error_last()->line, 12);
    CHECK_INT(tdm_error_last()->column, 5);
    tdm_origin nowhere = {NULL, 0, 0};
    CHECK_INT(fail_at(&nowhere), TDM_E_CONFIG);
    CHECK_TEXT(tdm_error_last()->file, "");
}

/* A key is said once: by the place of an override, or by the message that begins with it. */
TEST(key_of_an_override) {
    const struct {
        const char *key, *place;
    } cases[] = {{"command line: optimizer.lr", "command line: optimizer.lr"},
                 {"command line: bad", "command line"},
                 {"command line: ba", "command line: ba"},
                 {"command line: ", "command line: "},
                 {"bad", "bad"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tdm_origin origin = {cases[i].key, 0, 0};
        CHECK_INT(fail_at(&origin), TDM_E_CONFIG);
        CHECK_TEXT(tdm_error_last()->file, cases[i].place);
        CHECK_TEXT(tdm_error_message(), "bad value");
        origin.line = 3; /* a file of that name */
        CHECK_INT(fail_at(&origin), TDM_E_CONFIG);
        CHECK_TEXT(tdm_error_last()->file, cases[i].key);
    }
}

TEST(one_line_and_whole_characters) {
    CHECK_INT(fail_long("two\nlines\r\n"), TDM_E_IO);
    CHECK_TEXT(tdm_error_message(), "two lines  ");
    char text[4096];
    memset(text, 'x', sizeof(text));
    memcpy(text + 2046, "\xE4\xB8\xAD", 3); /* a character that the end of the record cuts */
    text[4095] = '\0';
    CHECK_INT(fail_long(text), TDM_E_IO);
    CHECK_INT(strlen(tdm_error_message()), 2046);
    CHECK(tdm__text_is_utf8(tdm_error_message(), 2046, NULL));
    memcpy(text + 2044, "\xE4\xB8\xAD", 3); /* one that just fits */
    CHECK_INT(fail_long(text), TDM_E_IO);
    CHECK_INT(strlen(tdm_error_message()), 2047);
    CHECK(tdm__text_is_utf8(tdm_error_message(), 2047, NULL));
}

TEST(many_frames) {
    (void)fail_plainly();
    for (int i = 0; i < 100; i++) CHECK_INT(tdm__frame(TDM_E_DATA, "f.c", i), TDM_E_DATA);
    CHECK_INT(tdm_error_last()->frame_count, TDM_ERROR_FRAMES);
}

TEST(save_and_restore) {
    tdm_error saved;
    (void)fail_plainly();
    tdm__error_save(&saved);
    (void)fail_long("something else");
    CHECK_INT(tdm__error_restore(&saved, "replica 1 (cpu:1): "), TDM_E_DATA);
    CHECK_TEXT(tdm_error_message(), "replica 1 (cpu:1): sample 7: wants a label");
    CHECK_INT(tdm__error_restore(&saved, NULL), TDM_E_DATA);
    CHECK_TEXT(tdm_error_message(), "sample 7: wants a label");
    memset(saved.message, 'y', sizeof(saved.message) - 1);
    CHECK_INT(tdm__error_restore(&saved, "rank 3: "), TDM_E_DATA);
    CHECK_INT(strlen(tdm_error_message()), sizeof(saved.message) - 1);
    CHECK_HAS(tdm_error_message(), "rank 3: yyy");
}

TEST(threads_are_apart) {
    pthread_t thread;
    const char *seen = NULL;
    (void)fail_plainly();
    REQUIRE(pthread_create(&thread, NULL, read_other_thread, &seen) == 0);
    pthread_join(thread, NULL);
    CHECK_TEXT(seen, "empty");
    CHECK_TEXT(tdm_error_message(), "sample 7: wants a label");
}

TEST(a_place_is_given_once) {
    tdm_origin first = {"job.yaml", 3, 7}, second = {"job.yaml", 9, 1}, none = {0};
    CHECK_STATUS(tdm__fail(TDM_E_DATA, "file.c", 1, NULL, "no such file"), TDM_E_DATA);
    CHECK_STATUS(tdm__error_at(TDM_E_DATA, &none), TDM_E_DATA);
    CHECK_TEXT(tdm_error_last()->file, "");
    CHECK_STATUS(tdm__error_at(TDM_E_DATA, &first), TDM_E_DATA);
    CHECK_STATUS(tdm__error_at(TDM_E_DATA, &second), TDM_E_DATA); /* the inner place is the nearer one */
    CHECK_TEXT(tdm_error_last()->file, "job.yaml");
    CHECK_INT(tdm_error_last()->line, 3);
    CHECK_INT(tdm_error_last()->column, 7);
    CHECK_TEXT(tdm_error_message(), "no such file");
    CHECK_OK(tdm__error_at(TDM_OK, &second)); /* nothing failed: the record is left alone */
    CHECK_INT(tdm_error_last()->line, 3);
}

TEST_MAIN(RUN(first_state); RUN(names); RUN(fail_and_frames); RUN(wrapping_own_message); RUN(origin);
          RUN(key_of_an_override); RUN(one_line_and_whole_characters); RUN(many_frames); RUN(save_and_restore);
          RUN(threads_are_apart); RUN(a_place_is_given_once);)
