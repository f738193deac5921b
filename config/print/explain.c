/* `tandem explain KEY`: prints the tables for people. */
#include <string.h>

#include "config/blocks/blocks.h"
#include "config/config_private.h"
#include "runtime/data/transforms/transforms.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/graph/graph.h"

typedef struct words {
    const char *type, *initial, *unit, *only, *needed, *keys, *parts, *kinds, *common, *form, *inputs, *pictures;
} words;

static const words language_words[] = {
    [TDM_ENGLISH] = {"type", "default", "unit", "only for", "none: the key is required", "keys", "sections",
                     "kinds of layers", "keys that every layer has",
                     "write a layer as `kind`, `kind: main argument` or `kind: {keys}`; (main) marks the main argument",
                     "inputs", "steps for pictures, before to_float"},
    [TDM_CHINESE] = {"类型", "默认值", "单位", "仅用于", "无，必须写出", "键", "小节", "层的种类", "各层共有的键",
                     "层的写法：`种类`、`种类: 主参数` 或 `种类: {键}`；(main) 表示主参数", "输入个数",
                     "图片的处理步骤，写在 to_float 之前"},
};

typedef struct help_page {
    tdm_text *out;
    bool chinese;
    const words *words;
} help_page;

static const char *help_of(const help_page *page, const tdm_field *row) {
    return page->chinese && row->help_zh != NULL ? row->help_zh : row->help;
}

/* Label and value in two aligned columns, in both languages. */
static void add_pair(const help_page *page, const char *label, const char *value) {
    const int columns = tdm_text_columns(label);
    tdm__text_printf(page->out, "  %s%*s%s\n", label, columns < 10 ? 10 - columns : 0, "", value);
}

static void add_item(const help_page *page, const char *key, const char *mark, const char *help) {
    const int columns = tdm_text_columns(key) + tdm_text_columns(mark);
    tdm__text_printf(page->out, "  %s%s%*s %s\n", key, mark, columns < 24 ? 24 - columns : 0, "", help);
}

/* Takes a text that was put together for the page. */
static void add_text(const help_page *page, tdm_text *text, const char *key, const char *mark) {
    const char *value = text->data == NULL ? "" : text->data;
    if (mark != NULL)
        add_item(page, key, mark, value);
    else
        add_pair(page, key, value);
    page->out->failed = page->out->failed || text->failed;
    tdm__text_deinit(text);
}

static void add_row(const help_page *page, const tdm_field *row, const char *mark) {
    tdm_text help;
    tdm__text_init(&help, page->out->host);
    tdm__row_help(row, page->chinese, &help);
    add_text(page, &help, row->key, mark);
}

/* The steps for pictures, each with its keys. */
static void add_picture_steps(const help_page *page) {
    tdm__text_printf(page->out, "\n%s\n", page->words->pictures);
    for (int i = 0; i < TDM_TRANSFORM_KINDS; i++) {
        const tdm_transform_def *def = tdm__transforms[i];
        add_item(page, def->name, "", page->chinese ? def->doc_zh : def->doc);
        for (const tdm_field *row = def->rows; row != NULL && row->key != NULL; row++)
            tdm__text_printf(page->out, "    %s: %s\n", row->key, help_of(page, row));
    }
}

static void add_owners(const help_page *page, const tdm_section *section, const tdm_field *row) {
    const unsigned types = section != NULL ? tdm__section_types(section, row) : 0;
    if (types == 0) return;
    tdm_text names;
    tdm__text_init(&names, page->out->host);
    tdm__section_print_types(section, types, &names);
    add_text(page, &names, page->words->only, NULL);
}

/* Each loss, where the row chooses one. */
static void add_losses(const help_page *page, const char *path, const tdm_field *row) {
    if (strcmp(path, "loss") != 0 || strcmp(row->key, "type") != 0) return;
    for (const tdm_loss_def *const *loss = tdm_builtin_losses; *loss != NULL; loss++)
        add_item(page, (*loss)->name, "", page->chinese ? (*loss)->doc_zh : (*loss)->doc);
}

static void explain_row(const help_page *page, const tdm_section *section, const char *path, const tdm_field *row) {
    tdm_text type;
    tdm__text_init(&type, page->out->host);
    tdm__field_describe(row, &type, page->chinese);
    tdm__text_printf(page->out, "%s%s%s\n  %s\n", path, path[0] != '\0' ? "." : "", row->key, help_of(page, row));
    add_text(page, &type, page->words->type, NULL);
    add_pair(page, page->words->initial, row->initial != NULL ? row->initial : page->words->needed);
    if (row->unit != NULL) add_pair(page, page->words->unit, row->unit);
    add_owners(page, section, row);
    add_losses(page, path, row);
    if (!tdm__lacks(row)) return;
    tdm__text_puts(page->out, "  ");
    tdm__lack_print(row, page->chinese, page->out);
    tdm__text_puts(page->out, "\n");
}

static void explain_section(const help_page *page, int index) {
    const tdm_section *section = &tdm__sections[index];
    const char *part;
    bool has_parts = false;
    tdm__text_printf(page->out, "%s%s%s\n", section->path, index > 0 ? "\n  " : "",
                     page->chinese ? section->help_zh : section->help);
    tdm__text_printf(page->out, "\n%s\n", page->words->keys);
    for (const tdm_field *row = section->rows; row->key != NULL; row++)
        add_row(page, row, (row->flags & TDM_FIELD_MAIN) != 0 ? " (main)" : "");
    if (strcmp(section->path, "data.transform") == 0) add_picture_steps(page);
    if (strcmp(section->path, "model") == 0) {
        add_item(page, "blocks", "",
                 page->chinese ? "带参数、可重复使用的层列表，见 `tandem explain blocks`"
                               : "lists of layers with parameters, to use by name: see `tandem explain blocks`");
        add_item(page, "layers", "",
                 page->chinese ? "各层的列表，见 `tandem explain layers`"
                               : "the list of layers, see `tandem explain layers`");
    }
    for (int i = 0; (i = tdm__section_part(section, i, &part)) > 0;) {
        if (!has_parts) tdm__text_printf(page->out, "\n%s\n", page->words->parts);
        has_parts = true;
        add_item(page, part, "", page->chinese ? tdm__sections[i].help_zh : tdm__sections[i].help);
    }
}

static void add_common_keys(const help_page *page) {
    tdm__text_printf(page->out, "\n%s\n", page->words->common);
    for (const tdm_field *row = tdm__layer_rows; row->key != NULL; row++)
        add_item(page, row->key, "", help_of(page, row));
}

static void explain_layers(const help_page *page) {
    tdm__text_printf(page->out, "model.layers\n  %s\n\n%s\n", page->words->form, page->words->kinds);
    for (int i = 0; tdm_builtin_ops[i] != NULL; i++)
        add_item(page, tdm_builtin_ops[i]->name, "",
                 page->chinese ? tdm_builtin_ops[i]->doc_zh : tdm_builtin_ops[i]->doc);
    add_item(page, "custom", "", page->chinese ? tdm__custom_help_zh : tdm__custom_help);
    add_common_keys(page);
}

static void explain_custom(const help_page *page) {
    tdm__text_printf(page->out, "custom\n  %s\n\n", page->chinese ? tdm__custom_help_zh : tdm__custom_help);
    add_item(page, "module", "",
             page->chinese ? "库文件名，不含目录；从 TANDEM_OP_PATH 中的目录载入"
                           : "file of the library, from a folder of TANDEM_OP_PATH");
    add_item(page, "op", "",
             page->chinese ? "其中的算子；其余键是该算子的属性" : "its op; the other keys are those of that op");
    add_common_keys(page);
}

static void explain_op(const help_page *page, const tdm_op_def *op) {
    tdm__text_printf(page->out, "%s\n  %s\n", op->name, page->chinese ? op->doc_zh : op->doc);
    if (op->max_inputs > 1)
        tdm__text_printf(page->out, "  %s %d-%d\n", page->words->inputs, op->min_inputs, op->max_inputs);
    for (const tdm_field *row = op->attrs; row != NULL && row->key != NULL; row++) {
        tdm__text_puts(page->out, "\n");
        explain_row(page, NULL, op->name, row);
    }
    add_common_keys(page);
}

/* ---- finding the key ---- */

static bool explain_path(const help_page *page, const char *key) {
    if (strncmp(key, "model.blocks", 12) == 0 || strcmp(key, "blocks") == 0 || strncmp(key, "block.", 6) == 0 ||
        strcmp(key, "block") == 0) {
        tdm__explain_blocks(page->chinese, page->out);
        return true;
    }
    if (strncmp(key, "model.layers", 12) == 0 || strcmp(key, "layers") == 0) {
        const char *dot = strrchr(key, '.');
        const tdm_op_def *op = dot != NULL ? tdm__op_find(dot + 1) : NULL;
        if (op != NULL)
            explain_op(page, op);
        else
            explain_layers(page);
        return true;
    }
    int section = tdm__section_find(key);
    if (section >= 0) {
        explain_section(page, section);
        return true;
    }
    int row;
    if (!tdm__table_find(key, strlen(key), &section, &row)) return false;
    explain_row(page, &tdm__sections[section], tdm__sections[section].path, &tdm__sections[section].rows[row]);
    return true;
}

/* "conv2d.stride" */
static bool explain_attr(const help_page *page, const char *key) {
    const char *dot = strchr(key, '.');
    char kind[64];
    if (dot == NULL || (size_t)(dot - key) >= sizeof(kind)) return false;
    memcpy(kind, key, (size_t)(dot - key));
    kind[dot - key] = '\0';
    const tdm_op_def *op = tdm__op_find(kind);
    const tdm_field *row = op != NULL ? tdm__field_find(op->attrs, dot + 1) : NULL;
    if (op != NULL && row == NULL) row = tdm__field_find(tdm__layer_rows, dot + 1);
    if (row == NULL) return false;
    explain_row(page, NULL, kind, row);
    return true;
}

/* The last part alone: `lr`, `every`, `ddp`. Explains every key that ends in it. */
static bool explain_last_part(const help_page *page, const char *key) {
    bool found = false;
    const char *part;
    for (int i = 0; i < TDM_SECTION_COUNT; i++) {
        int row = tdm__section_row(&tdm__sections[i], key);
        if (row >= 0) {
            if (found) tdm__text_puts(page->out, "\n");
            explain_row(page, &tdm__sections[i], tdm__sections[i].path, &tdm__sections[i].rows[row]);
            found = true;
        }
        for (int k = 0; i > 0 && (k = tdm__section_part(&tdm__sections[i], k, &part)) > 0;) {
            if (strcmp(part, key) != 0) continue;
            if (found) tdm__text_puts(page->out, "\n");
            explain_section(page, k);
            found = true;
        }
    }
    const tdm_field *of_layers = found ? NULL : tdm__field_find(tdm__layer_rows, key);
    if (of_layers != NULL) explain_row(page, NULL, "model.layers", of_layers);
    return found || of_layers != NULL;
}

static bool explain_fault(const help_page *page, const char *key) {
    for (int i = 0; i < TDM_FAULT_COUNT; i++) {
        if (strcmp(key, tdm__fault_number((tdm_fault_id)i)) != 0) continue;
        tdm__text_printf(page->out, "%s\n  %s\n", key, tdm__fault_meaning((tdm_fault_id)i));
        return true;
    }
    return false;
}

static const char *nearest_key(const char *key) {
    const char *names[512], *dot = strrchr(key, '.');
    int count = 0;
    for (int i = 0; i < TDM_SECTION_COUNT; i++) count += tdm__section_keys(i, names + count, 500 - count);
    for (int i = 0; tdm_builtin_ops[i] != NULL && count < 512; i++) names[count++] = tdm_builtin_ops[i]->name;
    return tdm_text_nearest(dot != NULL ? dot + 1 : key, names, count);
}

tdm_status tdm_config_explain(const char *key, tdm_language language, char **out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_explain: out is NULL");
    *out = NULL;
    TDM_EXTRA(TEXTS);
    if (key == NULL) key = "";
    tdm_text text;
    tdm__text_init(&text, tdm_host_default());
    bool chinese = language == TDM_CHINESE;
    help_page page = {&text, chinese, &language_words[chinese ? TDM_CHINESE : TDM_ENGLISH]};
    const tdm_op_def *op = tdm__op_find(key);
    if (strcmp(key, "custom") == 0) {
        explain_custom(&page);
    } else if (op != NULL) {
        explain_op(&page, op);
    } else if (!explain_path(&page, key) && !explain_attr(&page, key) && !explain_last_part(&page, key) &&
               !explain_fault(&page, key)) {
        const char *near = nearest_key(key);
        tdm__text_deinit(&text);
        if (near != NULL) TDM_FAIL(TDM_E_USAGE, "there is no key '%s'; did you mean '%s'?", key, near);
        TDM_FAIL(TDM_E_USAGE, "there is no key '%s'; `tandem explain` without a key lists the sections", key);
    }
    return tdm__text_take_public(&text, out);
}
