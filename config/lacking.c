/* Parts of the format for which this build has no module. `check` warns of them; `explain` and the JSON Schema mark
 * them. They are not refused: the machine where the job runs may have the module. */
#include <string.h>

#include "config/config_private.h"
#include "runtime/base/status.h"
#include "runtime/module/module.h"

#define BIT(value) (1u << (value))

#define LACK_BUILT_IN(key, name)
#define LACK_DEVICE_MODULE(key, name) {"parallel.ddp", "backend", BIT(TDM_BACKEND_##key), #name},
#define LACK_HOSTS_MODULE LACK_DEVICE_MODULE
#define TDM_BACKEND(key, name, source) LACK_##source(key, name)
static const tdm_lack lacks[] = {
    {"train", "precision", BIT(TDM_TF32), "cuda"},
    {"parallel", "device", BIT(TDM_DEVICE_CUDA), "cuda"},
#include <tandem/sys/backends.def>
};
#undef TDM_BACKEND
enum { LACK_COUNT = sizeof(lacks) / sizeof(lacks[0]) };

static bool is_absent(const tdm_lack *lack) {
    return tdm__module_absent(lack->module)[0] != '\0';
}

/* The next entry for this row after `last` (NULL: the first entry); NULL if there is none. Sections that share a row
 * have one entry each: only those of the first section are returned. */
static const tdm_lack *next_of(const tdm_field *row, const tdm_lack *last) {
    for (const tdm_lack *lack = last != NULL ? last + 1 : lacks; lack < lacks + LACK_COUNT; lack++) {
        const tdm_section *section = &tdm__sections[tdm__section_find(lack->section)];
        if (last != NULL && strcmp(lack->section, last->section) != 0) continue;
        if (row == &section->rows[tdm__section_row(section, lack->key)] && is_absent(lack)) return lack;
    }
    return NULL;
}

bool tdm__lacks(const tdm_field *row) {
    return next_of(row, NULL) != NULL;
}

static void print_values(const tdm_lack *lack, const tdm_field *row, tdm_text *out) {
    const char *comma = "";
    for (int i = 0; row->names[i] != NULL; i++) {
        if ((lack->values & BIT(i)) == 0) continue;
        tdm__text_printf(out, "%s%s", comma, row->names[i]);
        comma = ", ";
    }
}

void tdm__lack_print(const tdm_field *row, bool chinese, tdm_text *out) {
    const char *before = chinese ? "本构建不含：" : "not in this build: ";
    for (const tdm_lack *lack = next_of(row, NULL); lack != NULL; lack = next_of(row, lack)) {
        tdm__text_puts(out, before);
        print_values(lack, row, out);
        before = ", ";
    }
}

void tdm__row_help(const tdm_field *row, bool chinese, tdm_text *out) {
    tdm__text_puts(out, chinese && row->help_zh != NULL ? row->help_zh : row->help);
    if (!tdm__lacks(row)) return;
    tdm__text_puts(out, " (");
    tdm__lack_print(row, chinese, out);
    tdm__text_puts(out, ")");
}

/* Only mode ddp uses the keys of parallel.ddp. */
static bool is_written(const tdm_config *config, const tdm_lack *lack, int section, int row) {
    bool is_of_ddp = strcmp(lack->section, "parallel.ddp") == 0;
    if (is_of_ddp && config->settings.job.parallel.mode != TDM_MODE_DDP) return false;
    return config->position[section][row].text != NULL && !config->is_bad[section][row];
}

tdm_status tdm_config_lacking(const tdm_config *config, char **out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_lacking: out is NULL");
    *out = NULL;
    if (config == NULL || !config->is_good)
        TDM_FAIL(TDM_E_USAGE, "tdm_config_lacking: the config has not passed tdm_config_check");
    tdm_text text;
    tdm__text_init(&text, tdm_host_default());
    for (int i = 0; i < LACK_COUNT; i++) {
        const tdm_lack *lack = &lacks[i];
        int index = tdm__section_find(lack->section);
        const tdm_section *section = &tdm__sections[index];
        int row = tdm__section_row(section, lack->key);
        if (!is_absent(lack) || !is_written(config, lack, index, row)) continue;
        int value = tdm__field_enum(&section->rows[row], (const char *)&config->settings + section->offset);
        if ((lack->values & BIT(value)) == 0) continue;
        tdm__text_printf(&text, "%s%s.%s %s is not in this build: it has no module %s: %s", text.length > 0 ? "\n" : "",
                         section->path, lack->key, section->rows[row].names[value], lack->module,
                         tdm__module_absent(lack->module));
    }
    return tdm__text_take_public(&text, out);
}
