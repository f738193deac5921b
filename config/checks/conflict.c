/* Faults that quote two settings, see checks.h. */
#include "config/checks/checks.h"

bool tdm__check_is_written(const tdm_config *config, const char *key) {
    return tdm__config_position(config, key).text != NULL;
}

const char *tdm__check_quote(tdm_config *config, const char *key) {
    tdm_position at = tdm__config_position(config, key);
    if (at.text == NULL) return TDM_WORDS(config, "%s has its default", key);
    /* The line may hold a value that an override has replaced. */
    if (at.text->order == 0 && config->override_count > 0)
        return TDM_WORDS(config, "%s has %s", tdm__position_words(&config->faults, at), key);
    return TDM_WORDS(config, "%s says `%s`", tdm__position_words(&config->faults, at),
                     tdm__position_line(&config->faults, at));
}

void tdm__conflict(tdm_config *config, const char *key, const char *other, const char *message) {
    if (tdm__config_is_bad(config, key) || tdm__config_is_bad(config, other)) return;
    bool points_to_key = tdm__check_is_written(config, key);
    TDM_FAULT(config, CONFLICT, tdm__config_position(config, points_to_key ? key : other), key,
              tdm__check_quote(config, points_to_key ? other : key), "%s", message);
}
