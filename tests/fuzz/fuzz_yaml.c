/* libFuzzer: the configuration. Byte 0 chooses how many of the first lines are overrides; the rest is the file.
 * Whatever is accepted must print to something that is accepted and prints the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tandem/tandem.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static char *resolved_of(const char *text, size_t count) {
    tdm_config *config = NULL;
    char *out = NULL;
    if (tdm_config_parse(&config, NULL, text, count, "file.yaml", "/there") != TDM_OK) return NULL;
    if (tdm_config_check(config) == TDM_OK && tdm_config_print(config, TDM_CONFIG_RESOLVED, &out) != TDM_OK) abort();
    tdm_config_free(config);
    return out;
}

static void check_again(const tdm_config *config) {
    char *once = NULL;
    if (tdm_config_print(config, TDM_CONFIG_RESOLVED, &once) != TDM_OK) abort();
    char *twice = resolved_of(once, strlen(once));
    if (twice == NULL || strcmp(once, twice) != 0) abort();
    tdm_free(once);
    tdm_free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    if (count < 1) return 0;
    int overrides = bytes[0] & 3;
    const char *text = (const char *)bytes + 1;
    count--;
    char *line[3];
    for (int i = 0; i < overrides; i++) {
        const char *end = count > 0 ? memchr(text, '\n', count) : NULL;
        size_t length = end != NULL ? (size_t)(end - text) : count;
        line[i] = strndup(text, length);
        size_t used = end != NULL ? length + 1 : length;
        text += used;
        count -= used;
    }
    tdm_config *config = NULL;
    if (tdm_config_parse(&config, NULL, text, count, "file.yaml", "/there") != TDM_OK) abort();
    for (int i = 0; i < overrides; i++) {
        (void)tdm_config_override(config, line[i]); /* what is malformed is not kept */
        free(line[i]);
    }
    tdm_status status = tdm_config_check(config);
    if ((status == TDM_OK) != (tdm_config_fault_count(config) == 0)) abort();
    char *faults = NULL;
    if (tdm_config_faults(config, (int)(bytes[0] & 4), &faults) != TDM_OK) abort();
    tdm_free(faults);
    if (status == TDM_OK) check_again(config);
    tdm_config_free(config);
    return 0;
}
