/* A test program is a list of TEST(name) { ... } and one TEST_MAIN(...). A failed check prints where and what, and the
 * program goes on with the next test; its exit status is 1 if any failed. SKIP_TEST leaves a test that cannot be made
 * here and says why; SKIP_PROGRAM ends the program with 77, as does a program of which all tests were skipped. */
#ifndef TDM_TEST_H
#define TDM_TEST_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tandem/status.h>

extern int tdm_test_failures, tdm_test_found, tdm_test_skipped;

/* The step of a loop over settings that differ only in numbers. Sanitizers find a fault of memory with a few of them,
 * so with sanitizers it is every n-th. */
#ifdef TDM_SANITIZED
#define TDM_EVERY(n) (n)
#else
#define TDM_EVERY(n) 1
#endif

#define TEST(name) static void test_##name(void)

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            tdm_test_failures++;                                                    \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
        }                                                                           \
    } while (0)
/* Leaves the test: for what later lines cannot do without. */
#define REQUIRE(condition)                                                          \
    do {                                                                            \
        if (!(condition)) {                                                         \
            tdm_test_failures++;                                                    \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
            return;                                                                 \
        }                                                                           \
    } while (0)
#define CHECK_INT(got, want)                                                                            \
    do {                                                                                                \
        long long got_ = (long long)(got), want_ = (long long)(want);                                   \
        if (got_ != want_) {                                                                            \
            tdm_test_failures++;                                                                        \
            fprintf(stderr, "%s:%d: %s is %lld, wanted %lld\n", __FILE__, __LINE__, #got, got_, want_); \
        }                                                                                               \
    } while (0)
#define CHECK_TEXT(got, want)                                                                                       \
    do {                                                                                                            \
        const char *got_ = (got), *want_ = (want);                                                                  \
        if (got_ == NULL || strcmp(got_, want_) != 0) {                                                             \
            tdm_test_failures++;                                                                                    \
            fprintf(stderr, "%s:%d: %s is\n  %s\nwanted\n  %s\n", __FILE__, __LINE__, #got, got_ ? got_ : "(null)", \
                    want_);                                                                                         \
        }                                                                                                           \
    } while (0)
#define CHECK_HAS(text, part)                                                                                   \
    do {                                                                                                        \
        const char *text_ = (text), *part_ = (part);                                                            \
        if (text_ == NULL || strstr(text_, part_) == NULL) {                                                    \
            tdm_test_failures++;                                                                                \
            fprintf(stderr, "%s:%d: '%s' not in\n  %s\n", __FILE__, __LINE__, part_, text_ ? text_ : "(null)"); \
        }                                                                                                       \
    } while (0)
#define CHECK_NEAR(got, want, tolerance)                                                                       \
    do {                                                                                                       \
        double got_ = (got), want_ = (want), tolerance_ = (tolerance);                                         \
        if (!(fabs(got_ - want_) <= tolerance_)) {                                                             \
            tdm_test_failures++;                                                                               \
            fprintf(stderr, "%s:%d: %s is %.9g, wanted %.9g +- %.3g\n", __FILE__, __LINE__, #got, got_, want_, \
                    tolerance_);                                                                               \
        }                                                                                                      \
    } while (0)
#define CHECK_OK(expression)                                                                                  \
    do {                                                                                                      \
        tdm_status status_ = (expression);                                                                    \
        if (status_ != TDM_OK) {                                                                              \
            tdm_test_failures++;                                                                              \
            fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #expression, tdm_status_name(status_), \
                    tdm_error_message());                                                                     \
        }                                                                                                     \
    } while (0)
#define REQUIRE_OK(expression)                                                                                \
    do {                                                                                                      \
        tdm_status status_ = (expression);                                                                    \
        if (status_ != TDM_OK) {                                                                              \
            tdm_test_failures++;                                                                              \
            fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #expression, tdm_status_name(status_), \
                    tdm_error_message());                                                                     \
            return;                                                                                           \
        }                                                                                                     \
    } while (0)
#define CHECK_STATUS(expression, want)                                                            \
    do {                                                                                          \
        tdm_status status_ = (expression);                                                        \
        if (status_ != (want)) {                                                                  \
            tdm_test_failures++;                                                                  \
            fprintf(stderr, "%s:%d: %s is %s (%s), wanted %s\n", __FILE__, __LINE__, #expression, \
                    tdm_status_name(status_), tdm_error_message(), tdm_status_name(want));        \
        }                                                                                         \
    } while (0)

#define SKIP_TEST(reason)                   \
    do {                                    \
        tdm_test_skipped++;                 \
        printf("skipped (%s): ", (reason)); \
        return;                             \
    } while (0)
#define SKIP_PROGRAM(reason)               \
    do {                                   \
        printf("skipped: %s\n", (reason)); \
        exit(77);                          \
    } while (0)

/* RUN(name) in the order written; an argument of the program runs only the test of that name, and is an error where
 * there is none. So is a second argument, unless the program has read it and set argc to 2. */
#define RUN(name)                                                                         \
    do {                                                                                  \
        if (argc > 2) {                                                                   \
            fprintf(stderr, "%s: one test at a time: what is '%s'?\n", argv[0], argv[2]); \
            return 2;                                                                     \
        }                                                                                 \
        if (argc < 2 || strcmp(argv[1], #name) == 0) {                                    \
            const int failures_ = tdm_test_failures, skipped_ = tdm_test_skipped;         \
            tdm_test_found++;                                                             \
            test_##name();                                                                \
            printf("%s%s\n",                                                              \
                   tdm_test_failures != failures_ ? "FAILED "                             \
                   : tdm_test_skipped == skipped_ ? "ok     "                             \
                                                  : "",                                   \
                   #name);                                                                \
        }                                                                                 \
    } while (0)
#define TEST_MAIN(...)                                                              \
    int tdm_test_failures, tdm_test_found, tdm_test_skipped;                        \
    int main(int argc, char **argv) {                                               \
        __VA_ARGS__                                                                 \
        if (argc > 1 && tdm_test_found == 0) {                                      \
            fprintf(stderr, "%s: no test is called '%s'\n", argv[0], argv[1]);      \
            return 2;                                                               \
        }                                                                           \
        if (tdm_test_failures != 0) return 1;                                       \
        return tdm_test_skipped > 0 && tdm_test_skipped == tdm_test_found ? 77 : 0; \
    }

#endif
