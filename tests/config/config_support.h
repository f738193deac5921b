/* What the tests of the configuration room share. */
#ifndef CONFIG_SUPPORT_H
#define CONFIG_SUPPORT_H

#include <tandem/tandem.h>

#include "tests/support/tdm_test.h"

/* A job that is as short as it can be. */
#define SMALL_MODEL "model: {input: 4, layers: [{linear: 3}]}\n"
#define SMALL "tandem: 1\n" SMALL_MODEL "train: {steps: 2, batch: {per_device: 2}}\n"

/* Parsed and checked; NULL, with the test failed, if it cannot even be parsed. `file.yaml` in `/there`. */
static inline tdm_config *checked(const char *text, tdm_status *status) {
    tdm_config *config = NULL;
    *status = tdm_config_parse(&config, NULL, text, strlen(text), "file.yaml", "/there");
    if (*status == TDM_OK) *status = tdm_config_check(config);
    return config;
}

/* All faults of a text, to be freed with tdm_free; the empty text if there are none. */
static inline char *faults_of(const char *text) {
    tdm_status status;
    char *out = NULL;
    tdm_config *config = checked(text, &status);
    if (tdm_config_faults(config, 0, &out) != TDM_OK) out = NULL;
    tdm_config_free(config);
    return out;
}

/* The text has exactly one fault, it has this number, and the whole of what is told holds `part`. */
#define CHECK_ONE_FAULT(text, number, part)                                                               \
    do {                                                                                                  \
        tdm_status found_;                                                                                \
        char *faults_ = NULL;                                                                             \
        tdm_config *config_ = checked((text), &found_);                                                   \
        CHECK(found_ != TDM_OK);                                                                          \
        CHECK_OK(tdm_config_faults(config_, 0, &faults_));                                                \
        if (tdm_config_fault_count(config_) == 1) CHECK_TEXT(tdm_config_fault(config_, 0)->id, (number)); \
        if (tdm_config_fault_count(config_) != 1) fprintf(stderr, "%s\n", faults_);                       \
        CHECK_INT(tdm_config_fault_count(config_), 1);                                                    \
        CHECK_HAS(faults_, (part));                                                                       \
        tdm_free(faults_);                                                                                \
        tdm_config_free(config_);                                                                         \
    } while (0)

#define CHECK_GOOD(text)                 \
    do {                                 \
        char *faults_ = faults_of(text); \
        CHECK_TEXT(faults_, "");         \
        tdm_free(faults_);               \
    } while (0)

/* A whole file; NULL if it cannot be read. Freed with free. */
static inline char *read_text(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    size_t room = 1 << 16, used;
    char *text = malloc(room + 1);
    used = text != NULL ? fread(text, 1, room, file) : 0;
    fclose(file);
    if (text != NULL) text[used] = '\0';
    return text;
}

#endif
