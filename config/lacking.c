/* What the format has and this build does not: one table for `check`, which refuses it, and for `explain` and the JSON
 * Schema, which mark it. */
#include <string.h>

#include "config/room.h"

#define BIT(value) (1u << (value))

static const tdm_lack lacks[] = {
    {"model", "builtin", 0, NULL, NULL, "write the layers out"},
    {"data.train", "format", BIT(TDM_DATA_IMAGE_FOLDER), NULL, NULL,
     "this build has idx, cifar10, npy, synthetic and glyphs"},
    {"data.eval", "format", BIT(TDM_DATA_IMAGE_FOLDER), NULL, NULL,
     "this build has idx, cifar10, npy, synthetic and glyphs"},
    {"parallel", "stages", 0, "above 1 (model parallel inside a replica)", "大于 1（副本内的模型并行）",
     "write stages: 1"},
    {"parallel.ddp", "backend", BIT(TDM_BACKEND_GLOO) | BIT(TDM_BACKEND_MPI), NULL, NULL,
     "this build has nccl, shm and local; auto takes what fits"},
    {"log", "tensorboard", BIT(true), NULL, NULL, "metrics.jsonl holds the same numbers"},
};
enum { LACK_COUNT = sizeof(lacks) / sizeof(lacks[0]) };

const tdm_lack *tdm__lack_of(const tdm_field *row) {
    for (int i = 0; i < LACK_COUNT; i++) {
        const tdm_section *section = &tdm__sections[tdm__section_find(lacks[i].section)];
        if (row == &section->rows[tdm__section_row(section, lacks[i].key)]) return &lacks[i];
    }
    return NULL;
}

void tdm__lack_print(const tdm_lack *lack, const tdm_field *row, bool chinese, tdm_text *out) {
    const char *what = chinese ? lack->what_zh : lack->what;
    if (what != NULL || lack->values == 0) {
        tdm__text_puts(out, what != NULL ? what : chinese ? "任何值" : "any value");
        return;
    }
    if (row->kind == TDM_FIELD_BOOL) tdm__text_puts(out, "true");
    bool is_first = true;
    for (int i = 0; row->kind == TDM_FIELD_ENUM && row->names[i] != NULL; i++) {
        if ((lack->values & BIT(i)) == 0) continue;
        tdm__text_printf(out, "%s%s", is_first ? "" : ", ", row->names[i]);
        is_first = false;
    }
}

static bool asks_for(const tdm_lack *lack, const tdm_field *row, const void *object, const char *printed) {
    const void *value = (const char *)object + row->offset;
    if (lack->values == 0) return strcmp(printed, row->initial) != 0;
    int index = row->kind == TDM_FIELD_BOOL ? *(const bool *)value : *(const int *)value;
    return (lack->values & BIT(index)) != 0;
}

static void check_row(tdm_config *config, int section_index, int row_index, const tdm_lack *lack) {
    const tdm_section *section = &tdm__sections[section_index];
    const tdm_field *row = &section->rows[row_index];
    const void *object = tdm__section_object(section, &config->settings);
    tdm_text printed;
    tdm__text_init(&printed, config->host);
    tdm__field_print(row, object, &printed);
    if (printed.failed) {
        config->faults.status = TDM_E_MEMORY;
    } else if (asks_for(lack, row, object, printed.data)) {
        const char *what = lack->what != NULL ? lack->what : row->kind == TDM_FIELD_BOOL ? "" : printed.data;
        const char *key = tdm__fault_key(&config->faults, section->path, row->key);
        tdm__fault_add(&config->faults, TDM_FAULT_UNSUPPORTED, config->place[section_index][row_index], key, lack->hint,
                       "%s%s%s is not in this build", key, what[0] != '\0' ? " " : "", what);
    }
    tdm__text_deinit(&printed);
}

/* A backend is asked for only by the mode that has one. */
void tdm__check_lacking(tdm_config *config) {
    for (int i = 0; i < LACK_COUNT; i++) {
        int section = tdm__section_find(lacks[i].section);
        int row = tdm__section_row(&tdm__sections[section], lacks[i].key);
        bool is_of_ddp = strcmp(lacks[i].section, "parallel.ddp") == 0;
        if (config->place[section][row].text == NULL || config->is_bad[section][row]) continue;
        if (is_of_ddp && config->settings.job.parallel.mode != TDM_MODE_DDP) continue;
        check_row(config, section, row, &lacks[i]);
    }
}
