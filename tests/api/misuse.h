/* Calls that must be refused, with a message of their own. */
#ifndef TDM_TEST_MISUSE_H
#define TDM_TEST_MISUSE_H

#include <tandem/config.h>

#include "tests/support/tdm_test.h"

/* The record is marked first, so that the message must be this call's. */
#define REFUSED(expression, want)                                                             \
    do {                                                                                      \
        static const char mark_[] = "'no such thing'";                                        \
        char *ignored_ = NULL;                                                                \
        (void)tdm_config_explain("no such thing", TDM_ENGLISH, &ignored_);                    \
        CHECK_HAS(tdm_error_message(), mark_);                                                \
        CHECK_STATUS(expression, want);                                                       \
        CHECK(strstr(tdm_error_message(), mark_) == NULL);                                    \
        CHECK(strlen(tdm_error_message()) > 10 && strchr(tdm_error_message(), '\n') == NULL); \
        CHECK_INT(tdm_error_last()->status, want);                                            \
    } while (0)
#define MISUSE(expression) REFUSED(expression, TDM_E_USAGE)

#endif
