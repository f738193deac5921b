/* Checkpoints for people: the list of a directory, and the tensors of one; as aligned text or JSON. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/ckpt/folder.h"
#include "runtime/ckpt/tensor_file.h"

/* ---- an aligned table ---- */

enum { MAX_COLUMNS = 8 };

typedef struct table {
    int columns;
    bool right[MAX_COLUMNS];
    tdm_text cells; /* row by row, each with its NUL; the first row is the heading */
} table;

static void table_init(table *t, const tdm_host *host, const char *const *heading, int columns) {
    *t = (table){.columns = columns};
    tdm__text_init(&t->cells, host);
    for (int i = 0; i < columns; i++) tdm__text_add(&t->cells, heading[i], strlen(heading[i]) + 1);
}

/* Adds a cell; what comes from a file is made printable. */
static void add_cell(table *t, const char *text) {
    tdm__text_shown(&t->cells, text);
    tdm__text_add(&t->cells, "", 1);
}

static void add_number(table *t, int64_t value) {
    tdm__text_printf(&t->cells, "%lld", (long long)value);
    tdm__text_add(&t->cells, "", 1);
}

static void table_print(table *t, const char *indent, tdm_text *out) {
    const char *end = t->cells.data + t->cells.length;
    int width[MAX_COLUMNS] = {0}, i = 0;
    out->failed = out->failed || t->cells.failed;
    for (const char *cell = t->cells.data; !out->failed && cell < end; cell += strlen(cell) + 1, i++) {
        int columns = tdm_text_columns(cell);
        if (columns > width[i % t->columns]) width[i % t->columns] = columns;
    }
    i = 0;
    for (const char *cell = t->cells.data; !out->failed && cell < end; cell += strlen(cell) + 1, i++) {
        int column = i % t->columns, pad = width[column] - tdm_text_columns(cell);
        bool is_last = column + 1 == t->columns;
        if (column == 0) tdm__text_puts(out, indent);
        if (t->right[column]) tdm__text_printf(out, "%*s", pad, "");
        tdm__text_puts(out, cell);
        if (!t->right[column] && !is_last) tdm__text_printf(out, "%*s", pad, "");
        tdm__text_puts(out, is_last ? "\n" : "  ");
    }
    tdm__text_deinit(&t->cells);
}

/* ---- the list of a directory ---- */

/* One checkpoint of the list. */
typedef struct listed {
    char name[32];
    bool complete;
    tdm_ckpt_state state;
    int tensors;
    uint64_t bytes;
    const char *word, *why; /* if it is not complete: in one word, and the message */
} listed;

static tdm_status inspect(const tdm_host *host, tdm_zone *zone, const tdm_folder *dir, int64_t step, listed *out) {
    tdm_ckpt *ckpt;
    tdm__step_name(out->name, step);
    tdm_status status = tdm__ckpt_open(&ckpt, host, dir, out->name);
    if (status == TDM_E_MEMORY) return status;
    if (status != TDM_OK) {
        char manifest[64];
        snprintf(manifest, sizeof(manifest), "%s/" TDM_CKPT_MANIFEST, out->name);
        out->word = status == TDM_E_IO ? "unreadable" : tdm__file_is_there(dir, manifest) ? "damaged" : "incomplete";
        return tdm__zone_text(zone, &out->why, tdm_error_message());
    }
    out->complete = true;
    out->state = ckpt->state;
    for (int part = 0; part < TDM_CKPT_TENSORS; part++)
        out->tensors += ckpt->tensors[part] != NULL ? ckpt->tensors[part]->count : 0;
    for (int part = 0; part < TDM_CKPT_FILES; part++) out->bytes += ckpt->manifest.file[part].bytes;
    tdm__ckpt_close(ckpt);
    return TDM_OK;
}

static void list_text(const tdm_host *host, const char *dir, const listed *list, int count, tdm_text *out) {
    static const char *const heading[] = {"CHECKPOINT", "STEP",    "EPOCH", "MODE",
                                          "REPLICAS",   "TENSORS", "SIZE",  "STATE"};
    table t;
    char size[32];
    if (count == 0) {
        tdm__text_puts(out, "no checkpoints in ");
        tdm__text_shown(out, dir);
        tdm__text_puts(out, "\n");
        return;
    }
    table_init(&t, host, heading, 8);
    t.right[1] = t.right[2] = t.right[4] = t.right[5] = t.right[6] = true;
    for (int i = 0; i < count; i++) {
        const listed *item = &list[i];
        add_cell(&t, item->name);
        for (int column = 1; !item->complete && column < 7; column++) add_cell(&t, "-");
        if (item->complete) {
            add_number(&t, item->state.step);
            add_number(&t, item->state.epoch);
            add_cell(&t, item->state.mode);
            add_number(&t, item->state.replicas);
            add_number(&t, item->tensors);
            add_cell(&t, tdm__print_bytes(size, item->bytes));
        }
        add_cell(&t, item->complete ? "complete" : item->word);
    }
    table_print(&t, "", out);
    for (int i = 0; i < count; i++) {
        if (!list[i].complete) tdm__text_printf(out, "%s: %s\n", list[i].name, list[i].why);
    }
}

static void list_json(const char *dir, const listed *list, int count, tdm_text *out) {
    tdm_json_out json = tdm__json_out(out, " ");
    tdm__json_put(&json, "{ dir:%s checkpoints:[\n", dir);
    for (const listed *item = list; item < list + count; item++) {
        tdm__json_put(&json, "{ name:%s", item->name);
        tdm__json_put_bool(&json, "complete", item->complete);
        if (item->complete) {
            tdm__json_put(&json, "tensors:%d bytes:%llu", item->tensors, (unsigned long long)item->bytes);
            tdm__state_print(&json, "state", &item->state);
        } else {
            tdm__json_put(&json, "why:%s", item->why);
        }
        tdm__json_put(&json, "}");
    }
    tdm__json_put(&json, "]}\n");
}

tdm_status tdm__ckpt_list(const tdm_host *host, const char *dir, bool json, tdm_text *out) {
    tdm_zone zone;
    tdm_status status;
    int64_t *steps;
    size_t count;
    listed *list;
    tdm_folder folder = {.fd = -1};
    if (!tdm__file_is_folder(NULL, dir))
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: expected a checkpoints or run directory, found none", dir);
    tdm__zone_init(&zone, host);
    TDM_TRY_DONE(tdm__steps_open(&folder, &zone, dir));
    TDM_TRY_DONE(tdm__steps_list(&zone, &folder, &steps, &count));
    TDM_TRY_DONE(tdm__zone_new(&zone, &list, count, sizeof(*list)));
    for (size_t i = 0; i < count; i++) TDM_TRY_DONE(inspect(host, &zone, &folder, steps[count - 1 - i], &list[i]));
    if (json)
        list_json(folder.path, list, (int)count, out);
    else
        list_text(host, folder.path, list, (int)count, out);
done:
    tdm__folder_close(&folder);
    tdm__zone_deinit(&zone);
    return status;
}

/* ---- the tensors of one ---- */

static void show_tensors(const tdm_ckpt *ckpt, int part, tdm_text *out) {
    static const char *const heading[] = {"TENSOR", "DTYPE AND SHAPE", "BYTES", "XXH3-128"};
    const tdm_tensor_file *file = ckpt->tensors[part];
    const tdm_hash128 *hashes = ckpt->manifest.file[part].tensor_hash;
    char text[TDM_ST_PRINTABLE];
    table t;
    if (file == NULL) return;
    tdm__text_printf(out, "\n%s: %d tensors, %s\n", ckpt->has_state ? tdm__ckpt_file_names[part] : "tensors",
                     file->count, tdm__print_bytes(text, file->bytes));
    if (file->count == 0) return;
    table_init(&t, ckpt->host, heading, hashes != NULL ? 4 : 3);
    t.right[2] = true;
    for (int i = 0; i < file->count; i++) {
        const tdm_tensor *tensor = &file->tensor[i];
        add_cell(&t, tdm__printable(text, tensor->name));
        tdm__tensor_describe(tensor, &t.cells);
        tdm__text_add(&t.cells, "", 1);
        add_number(&t, (int64_t)tensor->bytes);
        if (hashes == NULL) continue;
        tdm__hash_print(text, hashes[i]);
        add_cell(&t, text);
    }
    table_print(&t, "  ", out);
}

static void show_state(const tdm_ckpt_state *state, tdm_text *out) {
    char lr[32];
    tdm__print_float(lr, state->lr);
    tdm__text_printf(out, "  step %lld, then step %lld of epoch %lld; %lld samples seen; seed %lld\n",
                     (long long)state->step, (long long)state->step_in_epoch, (long long)state->epoch,
                     (long long)state->samples, (long long)state->seed);
    tdm__text_printf(out, "  %s, lr %s at step %lld of its schedule\n", state->optimizer, lr,
                     (long long)state->schedule_step);
    tdm__text_printf(out, "  saved by mode %s, %lld replicas, %lld samples per device\n", state->mode,
                     (long long)state->replicas, (long long)state->per_device);
    tdm__text_printf(out, "  params_xxh3 %s\n", state->params_xxh3);
}

/* Texts of the program's own; a long one is shortened. */
static void show_properties(const tdm_ckpt *ckpt, tdm_text *out) {
    int count;
    const tdm_property *property = tdm__tensor_file_properties(ckpt->tensors[TDM_CKPT_MODEL], &count);
    char text[TDM_ST_PRINTABLE];
    for (int i = 0; i < count; i++) {
        tdm__text_printf(out, "  %s: ", tdm__printable(text, property[i].key));
        tdm__text_printf(out, "%s\n", tdm__printable(text, property[i].text));
    }
}

static void put_properties(tdm_json_out *to, const tdm_ckpt *ckpt) {
    int count;
    const tdm_property *property = tdm__tensor_file_properties(ckpt->tensors[TDM_CKPT_MODEL], &count);
    if (count == 0) return;
    tdm__json_put(to, "properties:{\n");
    for (int i = 0; i < count; i++) {
        tdm__json_put_key(to, property[i].key);
        tdm__text_json_string(to->text, property[i].text);
    }
    tdm__json_put(to, "}");
}

static void put_tensor(tdm_json_out *to, const tdm_tensor *tensor, const tdm_hash128 *hash) {
    tdm__json_put(to, "{ name:%s dtype:%s", tensor->name, tensor->dtype_name);
    tdm__json_put_integers(to, "shape", tensor->dim, tensor->ndim);
    tdm__json_put(to, "bytes:%zu", tensor->bytes);
    if (hash != NULL) {
        char digits[TDM_HASH_TEXT];
        tdm__hash_print(digits, *hash);
        tdm__json_put(to, "xxh3:%s", digits);
    }
    tdm__json_put(to, "}");
}

static void show_json(const tdm_ckpt *ckpt, tdm_text *out) {
    static const char *const keys[TDM_CKPT_TENSORS] = {"model", "optimizer", "ema", "compression"};
    tdm_json_out json = tdm__json_out(out, " ");
    tdm__json_put(&json, "{ path:%s", ckpt->path);
    if (ckpt->has_state) tdm__state_print(&json, "state", &ckpt->state);
    put_properties(&json, ckpt);
    for (int part = 0; part < TDM_CKPT_TENSORS; part++) {
        const tdm_tensor_file *file = ckpt->tensors[part];
        const tdm_hash128 *hashes = ckpt->manifest.file[part].tensor_hash;
        if (file == NULL) continue;
        tdm__json_put(&json, "%s:[\n", keys[part]);
        for (int i = 0; i < file->count; i++) put_tensor(&json, &file->tensor[i], hashes != NULL ? &hashes[i] : NULL);
        tdm__json_put(&json, "]");
    }
    tdm__json_put(&json, "}\n");
}

tdm_status tdm__ckpt_show(const tdm_host *host, const char *path, bool json, tdm_text *out) {
    tdm_ckpt *ckpt = NULL;
    TDM_TRY(tdm__ckpt_open_any(&ckpt, host, path));
    if (json) {
        show_json(ckpt, out);
    } else {
        tdm__text_shown(out, ckpt->path);
        tdm__text_puts(out, "\n");
        if (ckpt->has_state) show_state(&ckpt->state, out);
        show_properties(ckpt, out);
        for (int part = 0; part < TDM_CKPT_TENSORS; part++) show_tensors(ckpt, part, out);
    }
    tdm__ckpt_close(ckpt);
    return TDM_OK;
}
