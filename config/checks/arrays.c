/* Checks of data.train and data.eval where samples come in arrays: one file, or one for each of the model's inputs; and
 * of what else gives samples to a model with several inputs. */
#include <string.h>

#include "config/checks/checks.h"

/* Is there a file for the input? */
static bool has_file(const tdm_texts *files, const char *name) {
    for (int i = 0; i < files->count; i += 2)
        if (strcmp(files->item[i], name) == 0) return true;
    return false;
}

/* A file for each input of the model, and no other. */
static void check_names(tdm_config *config, const tdm_texts *files, const char *key) {
    const tdm_shapes *inputs = &config->settings.model.inputs;
    const tdm_position at = tdm__config_position(config, key);
    if (config->inputs_are_bad) return;
    if (inputs->count == 0) {
        TDM_FAULT(config, CONFLICT, at, key, "write `x: FILE`, or model.inputs in place of model.input",
                  "%s: the model has no inputs with names", key);
        return;
    }
    for (int i = 0; i < files->count; i += 2) {
        if (tdm__inputs_find(config, files->item[i]) < 0)
            TDM_FAULT(config, REFERENCE, at, key, TDM_WORDS(config, "the inputs are %s", tdm__inputs_list(config)),
                      "%s: the model has no input '%s'", key, files->item[i]);
    }
    const char *missing = "";
    for (int k = 0; k < inputs->count; k++) {
        const char *const name = inputs->item[k].name;
        if (!has_file(files, name))
            missing = TDM_WORDS(config, "%s%s%s", missing, missing[0] != '\0' ? ", " : "", name);
    }
    if (missing[0] != '\0')
        TDM_FAULT(config, REFERENCE, at, key, "each of model.inputs needs a file", "%s: there is no file for %s", key,
                  missing);
}

static void check_npy(tdm_config *config, tdm_data_spec *spec, const char *section) {
    const char *x_key = tdm__fault_key(&config->faults, section, "x");
    const char *inputs_key = tdm__fault_key(&config->faults, section, "inputs");
    const tdm_position x_at = tdm__config_position(config, x_key), inputs_at = tdm__config_position(config, inputs_key);
    if (tdm__config_is_bad(config, x_key) || tdm__config_is_bad(config, inputs_key)) return;
    if (spec->x == NULL && spec->inputs.count == 0) {
        TDM_FAULT(config, EXCLUSIVE, config->section_at[tdm__section_find(section)], x_key,
                  "write `x: FILE`, or `inputs` with a file for each of model.inputs",
                  "%s: format npy needs the key `x` or `inputs`", section);
    } else if (spec->x != NULL && spec->inputs.count > 0 && x_at.text->order == inputs_at.text->order) {
        TDM_FAULT(config, EXCLUSIVE, inputs_at, inputs_key, "keep one of the two",
                  "%s must have either x or inputs, got both", section);
    } else if (spec->x != NULL && spec->inputs.count > 0) { /* an override wins */
        if (x_at.text->order > inputs_at.text->order)
            spec->inputs.count = 0;
        else
            spec->x = NULL;
    }
    if (spec->x == NULL && spec->inputs.count > 0) check_names(config, &spec->inputs, inputs_key);
}

/* Formats whose samples have the one shape of a picture. */
static bool is_of_pictures(int format) {
    return format == TDM_DATA_IDX || format == TDM_DATA_CIFAR10 || format == TDM_DATA_IMAGE_FOLDER ||
           format == TDM_DATA_GLYPHS;
}

void tdm__check_arrays(tdm_config *config, tdm_data_spec *spec, const char *section) {
    const char *format_key = tdm__fault_key(&config->faults, section, "format");
    if (spec->format == TDM_DATA_NPY) check_npy(config, spec, section);
    if (config->settings.model.inputs.count < 2 || config->inputs_are_bad || !is_of_pictures(spec->format)) return;
    tdm__conflict(config, format_key, "model.inputs",
                  TDM_WORDS(config,
                            "%s gives one picture a sample, and the model has several inputs: %s; save each as an "
                            "array, and write format: npy with `inputs`",
                            format_key, tdm__inputs_list(config)));
}
