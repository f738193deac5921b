/* Checks of data.train and data.eval where they are tables. */
#include <string.h>

#include "config/checks/checks.h"

/* Takes a key that data.eval leaves out from data.train; of two that are written, both must be the same. */
static void share(tdm_config *config, const char *key, void *eval, const void *train, size_t bytes, bool is_same) {
    const char *eval_key = tdm__fault_key(&config->faults, "data.eval", key);
    if (!tdm__check_is_written(config, eval_key))
        memcpy(eval, train, bytes);
    else if (!is_same)
        tdm__conflict(config, eval_key, tdm__fault_key(&config->faults, "data.train", key),
                      TDM_WORDS(config, "%s must be that of data.train, or be left out", eval_key));
}

static bool are_same_texts(const tdm_texts *a, const tdm_texts *b) {
    bool same = a->count == b->count;
    for (int i = 0; same && i < a->count; i++) same = strcmp(a->item[i], b->item[i]) == 0;
    return same;
}

/* Tables are read as the one trained on was. */
static void share_columns(tdm_config *config) {
    const tdm_data_spec *train = &config->settings.job.data.train;
    tdm_data_spec *eval = &config->settings.job.data.eval;
#define SHARE(key, is_same) share(config, #key, &eval->key, &train->key, sizeof(eval->key), (is_same))
    if (train->format != TDM_DATA_CSV || eval->format != TDM_DATA_CSV) return;
    SHARE(label, true); /* another file may have it elsewhere */
    SHARE(ignore, true);
    SHARE(categories, are_same_texts(&eval->categories, &train->categories));
    SHARE(missing, eval->missing == train->missing);
    SHARE(unseen, eval->unseen == train->unseen);
    SHARE(standardize, eval->standardize == train->standardize);
    SHARE(standardize_target, eval->standardize_target == train->standardize_target);
#undef SHARE
}

/* normalize knows channels, not columns: it would change the numbers of categories, too. */
static void check_categories(tdm_config *config) {
    const tdm_data_section *data = &config->settings.job.data;
    if (data->train.format == TDM_DATA_CSV && data->train.categories.count > 0 && data->transform.normalize.count > 0)
        tdm__conflict(
            config, "data.transform.normalize.mean", "data.train.categories",
            "normalize would change the numbers of categories; write `standardize: true` in data.train instead");
}

void tdm__check_tables(tdm_config *config) {
    share_columns(config);
    check_categories(config);
}
