/* Finding sections and rows of the table. */
#include "config/table.h"

int tdm__section_find(const char *path) {
    for (int i = 0; i < TDM_SECTION_COUNT; i++) {
        if (tdm__text_same(tdm__sections[i].path, path)) return i;
    }
    return -1;
}

int tdm__section_row(const tdm_section *section, const char *key) {
    const tdm_field *row = tdm__field_find(section->rows, key);
    return row != NULL ? (int)(row - section->rows) : -1;
}

bool tdm__table_find(const char *key, size_t length, int *section, int *row) {
    for (*section = 0; *section < TDM_SECTION_COUNT; ++*section) {
        const char *path = tdm__sections[*section].path;
        size_t prefix = strlen(path);
        if (prefix > 0 && (prefix >= length || memcmp(path, key, prefix) != 0 || key[prefix] != '.')) continue;
        prefix += prefix > 0;
        const tdm_field *rows = tdm__sections[*section].rows;
        for (*row = 0; rows[*row].key != NULL; ++*row) {
            if (strlen(rows[*row].key) == length - prefix && memcmp(rows[*row].key, key + prefix, length - prefix) == 0)
                return true;
        }
    }
    return false;
}

int tdm__section_part(const tdm_section *section, int last, const char **key) {
    const size_t prefix = strlen(section->path);
    for (int i = last + 1; i < TDM_SECTION_COUNT; i++) {
        const char *path = tdm__sections[i].path;
        if (prefix > 0 && (strncmp(path, section->path, prefix) != 0 || path[prefix] != '.')) continue;
        *key = path + prefix + (prefix > 0);
        if (strchr(*key, '.') == NULL) return i;
    }
    return 0;
}

int tdm__section_keys(int section, const char *keys[], int room) {
    const char *part;
    int count = 0;
    for (const tdm_field *row = tdm__sections[section].rows; row->key != NULL && count < room; row++)
        keys[count++] = row->key;
    for (int i = 0; count < room && (i = tdm__section_part(&tdm__sections[section], i, &part)) > 0;)
        keys[count++] = part;
    if (strcmp(tdm__sections[section].path, "model") == 0 && count + 1 < room) {
        keys[count++] = "blocks";
        keys[count++] = "layers";
    }
    return count;
}

const tdm_field *tdm__section_type_row(const tdm_section *section) {
    return tdm__field_find(section->rows, section->type_key);
}

unsigned tdm__section_types(const tdm_section *section, const tdm_field *row) {
    unsigned types = 0;
    if (section->has == NULL) return row->types;
    const char *const *names = tdm__section_type_row(section)->names;
    for (int i = 0; names[i] != NULL; i++) types |= (unsigned)section->has(i, row->key) << i;
    return types;
}

void tdm__section_print_types(const tdm_section *section, unsigned types, tdm_text *out) {
    const char *const *names = tdm__section_type_row(section)->names, *comma = "";
    for (int i = 0; names[i] != NULL; i++) {
        if ((types >> i & 1) == 0) continue;
        tdm__text_printf(out, "%s%s", comma, names[i]);
        comma = ", ";
    }
}

int tdm__section_type(const tdm_section *section, const tdm_settings *settings) {
    return tdm__field_enum(tdm__section_type_row(section), (const char *)settings + section->offset);
}

bool tdm__section_has(const tdm_section *section, const tdm_field *row, const tdm_settings *settings) {
    unsigned types = tdm__section_types(section, row);
    return types == 0 || (types >> tdm__section_type(section, settings) & 1) != 0;
}

void *tdm__section_object(const tdm_section *section, tdm_settings *settings) {
    const tdm_section_list *list = tdm__section_list(section);
    char *object = (char *)settings + section->offset;
    if (list == NULL || *tdm__list_count(list, settings) == 0) return object;
    return object + (size_t)(*tdm__list_count(list, settings) - 1) * list->item_bytes;
}
