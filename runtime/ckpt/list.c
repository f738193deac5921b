/* Checkpoints for people: the list of a directory, and the tensors of one; as aligned text or JSON. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/ckpt/folder.h"
#include "runtime/ckpt/tensor_file.h"

enum { MAX_COLUMNS = 8 };

/* ---- an aligned table; its cells are in the arena ---- */

typedef struct table {
    tdm_arena *arena;
    int columns, rows; /* rows includes the heading */
    int room;
    const char **cell; /* row by row */
    bool right[MAX_COLUMNS];
    tdm_status status; /* the first failure; later additions do nothing */
} table;

static void table_init(table *t, tdm_arena *arena, int columns, int rows) {
    *t = (table){.arena = arena, .columns = columns, .room = rows};
    t->status = tdm__arena_new(arena, &t->cell, (size_t)columns * (size_t)rows, sizeof(*t->cell));
}

/* Adds a row; `cells` has one text for each column. The texts are borrowed. */
static void table_row(table *t, const char *const *cells) {
    if (t->status != TDM_OK || t->rows == t->room) return;
    memcpy(&t->cell[t->rows * t->columns], cells, (size_t)t->columns * sizeof(*cells));
    t->rows++;
}

static const char *cell_number(table *t, int64_t value) {
    const char *text = NULL;
    if (t->status == TDM_OK) t->status = tdm__arena_printf(t->arena, &text, "%lld", (long long)value);
    return text;
}

static const char *cell_text(table *t, const char *value) {
    const size_t bytes = tdm_text_printable(NULL, 0, value, 0) + 1;
    char *text = NULL;
    if (t->status == TDM_OK) t->status = tdm__arena_new(t->arena, &text, bytes, 1);
    if (text != NULL) (void)tdm_text_printable(text, bytes, value, 0);
    return text;
}

static tdm_status table_print(const table *t, const char *indent, tdm_text *out) {
    int width[MAX_COLUMNS] = {0};
    TDM_TRY(t->status);
    for (int i = 0; i < t->rows * t->columns; i++) {
        int columns = tdm_text_columns(t->cell[i]);
        if (columns > width[i % t->columns]) width[i % t->columns] = columns;
    }
    for (int row = 0; row < t->rows; row++) {
        tdm__text_puts(out, indent);
        for (int c = 0; c < t->columns; c++) {
            const char *text = t->cell[row * t->columns + c];
            int pad = width[c] - tdm_text_columns(text);
            if (!t->right[c]) tdm__text_puts(out, text);
            if (t->right[c] || c + 1 < t->columns) tdm__text_printf(out, "%*s", pad, "");
            if (t->right[c]) tdm__text_puts(out, text);
            tdm__text_puts(out, c + 1 < t->columns ? "  " : "\n");
        }
    }
    return TDM_OK;
}

static const char *cell_size(table *t, uint64_t bytes) {
    char size[32];
    const char *text = NULL;
    if (t->status == TDM_OK) t->status = tdm__arena_text(t->arena, &text, tdm__print_bytes(size, bytes));
    return text;
}

static tdm_status finished(const tdm_text *out) {
    if (out->failed) TDM_FAIL(TDM_E_MEMORY, "checkpoint: out of memory for the text");
    return TDM_OK;
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

static tdm_status inspect(const tdm_host *host, tdm_arena *arena, const tdm_folder *dir, int64_t step, listed *out) {
    tdm_ckpt *ckpt;
    tdm__step_name(out->name, step);
    tdm_status status = tdm__ckpt_open(&ckpt, host, dir, out->name);
    if (status == TDM_E_MEMORY) return status;
    if (status != TDM_OK) {
        char manifest[64];
        snprintf(manifest, sizeof(manifest), "%s/" TDM_CKPT_MANIFEST, out->name);
        out->word = status == TDM_E_IO ? "unreadable" : tdm__file_is_there(dir, manifest) ? "damaged" : "incomplete";
        return tdm__arena_text(arena, &out->why, tdm_error_message());
    }
    out->complete = true;
    out->state = ckpt->state;
    out->tensors = ckpt->tensors[TDM_CKPT_MODEL]->count + ckpt->tensors[TDM_CKPT_OPTIMIZER]->count;
    for (int part = 0; part < TDM_CKPT_FILES; part++) out->bytes += ckpt->manifest.file[part].bytes;
    tdm__ckpt_close(ckpt);
    return TDM_OK;
}

static tdm_status list_text(tdm_arena *arena, const char *dir, const listed *list, int count, tdm_text *out) {
    static const char *const heading[] = {"CHECKPOINT", "STEP",    "EPOCH", "MODE",
                                          "REPLICAS",   "TENSORS", "SIZE",  "STATE"};
    table t;
    if (count == 0) {
        tdm__text_puts(out, "no checkpoints in ");
        tdm__text_shown(out, dir);
        tdm__text_puts(out, "\n");
        return TDM_OK;
    }
    table_init(&t, arena, 8, count + 1);
    t.right[1] = t.right[2] = t.right[4] = t.right[5] = t.right[6] = true;
    table_row(&t, heading);
    for (int i = 0; i < count; i++) {
        const listed *item = &list[i];
        const char *row[] = {item->name, "-", "-", "-", "-", "-", "-", item->word};
        if (item->complete) {
            row[1] = cell_number(&t, item->state.step);
            row[2] = cell_number(&t, item->state.epoch);
            row[3] = cell_text(&t, item->state.mode);
            row[4] = cell_number(&t, item->state.replicas);
            row[5] = cell_number(&t, item->tensors);
            row[6] = cell_size(&t, item->bytes);
            row[7] = "complete";
        }
        table_row(&t, row);
    }
    TDM_TRY(table_print(&t, "", out));
    for (int i = 0; i < count; i++) {
        if (!list[i].complete) tdm__text_printf(out, "%s: %s\n", list[i].name, list[i].why);
    }
    return TDM_OK;
}

static void list_json(const char *dir, const listed *list, int count, tdm_text *out) {
    tdm_json_out json = tdm__json_to(out, " ");
    tdm__put(&json, "{ dir:%s checkpoints:[\n", dir);
    for (const listed *item = list; item < list + count; item++) {
        tdm__put(&json, "{ name:%s", item->name);
        tdm__put_bool(&json, "complete", item->complete);
        if (item->complete) {
            tdm__put(&json, "tensors:%d bytes:%llu", item->tensors, (unsigned long long)item->bytes);
            tdm__state_print(&json, "state", &item->state);
        } else {
            tdm__put(&json, "why:%s", item->why);
        }
        tdm__put(&json, "}");
    }
    tdm__put(&json, "]}\n");
}

tdm_status tdm__ckpt_list(const tdm_host *host, const char *dir, bool json, tdm_text *out) {
    tdm_arena arena;
    tdm_status status;
    int64_t *steps;
    size_t count;
    listed *list;
    tdm_folder folder = {.fd = -1};
    if (!tdm__file_is_folder(NULL, dir))
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: expected a checkpoints or run directory, found none", dir);
    tdm__arena_init(&arena, host);
    TDM_TRY_DONE(tdm__steps_open(&folder, &arena, dir));
    TDM_TRY_DONE(tdm__steps_list(&arena, &folder, &steps, &count));
    TDM_TRY_DONE(tdm__arena_new(&arena, &list, count, sizeof(*list)));
    for (size_t i = 0; i < count; i++) TDM_TRY_DONE(inspect(host, &arena, &folder, steps[count - 1 - i], &list[i]));
    if (json)
        list_json(folder.path, list, (int)count, out);
    else
        TDM_TRY_DONE(list_text(&arena, folder.path, list, (int)count, out));
    status = finished(out);
done:
    tdm__folder_close(&folder);
    tdm__arena_deinit(&arena);
    return status;
}

/* ---- the tensors of one ---- */

static const char *cell_shape(table *t, const tdm_tensor *tensor) {
    tdm_text shape;
    const char *text = NULL;
    tdm__text_init(&shape, t->arena->host);
    tdm__tensor_describe(tensor, &shape);
    if (shape.failed && t->status == TDM_OK)
        t->status = tdm__fail(TDM_E_MEMORY, __FILE__, __LINE__, NULL, "checkpoint: out of memory for the text");
    if (!shape.failed) text = cell_text(t, shape.data);
    tdm__text_deinit(&shape);
    return text;
}

static const char *cell_name(table *t, const tdm_tensor *tensor) {
    char printable[TDM_ST_PRINTABLE];
    return cell_text(t, tdm__printable(printable, tensor->name));
}

static tdm_status show_tensors(const tdm_ckpt *ckpt, int part, tdm_arena *arena, tdm_text *out) {
    static const char *const heading[] = {"TENSOR", "DTYPE AND SHAPE", "BYTES", "XXH3-128"};
    const tdm_tensor_file *file = ckpt->tensors[part];
    const tdm_hash128 *hashes = ckpt->manifest.file[part].tensor_hash;
    table t;
    if (file == NULL) return TDM_OK;
    table_init(&t, arena, hashes != NULL ? 4 : 3, file->count + 1);
    t.right[2] = true;
    tdm__text_printf(out, "\n%s: %d tensors, %s\n", ckpt->has_state ? tdm__ckpt_file_names[part] : "tensors",
                     file->count, cell_size(&t, file->bytes));
    if (file->count == 0) return t.status;
    table_row(&t, heading);
    for (int i = 0; i < file->count; i++) {
        const tdm_tensor *tensor = &file->tensor[i];
        char digits[TDM_HASH_TEXT] = "";
        if (hashes != NULL) tdm__hash_print(digits, hashes[i]);
        const char *row[] = {cell_name(&t, tensor), cell_shape(&t, tensor), cell_number(&t, (int64_t)tensor->bytes),
                             cell_text(&t, digits)};
        table_row(&t, row);
    }
    return table_print(&t, "  ", out);
}

static void show_state(const tdm_ckpt_state *state, tdm_text *out) {
    char lr[32];
    tdm__print_float(lr, state->lr);
    tdm__text_printf(out, "  step %lld, then step %lld of epoch %lld; %lld samples seen; seed %lld\n",
                     (long long)state->step, (long long)state->step_in_epoch, (long long)state->epoch,
                     (long long)state->samples, (long long)state->seed);
    tdm__text_printf(out, "  %s, lr %s at step %lld of its schedule\n", state->optimizer, lr,
                     (long long)state->schedule_step);
    tdm__text_printf(out, "  saved by mode %s, %d replicas, %lld samples per device\n", state->mode, state->replicas,
                     (long long)state->per_device);
    tdm__text_printf(out, "  params_xxh3 %s\n", state->params_xxh3);
}

static void put_tensor(tdm_json_out *to, const tdm_tensor *tensor, const tdm_hash128 *hash) {
    tdm__put(to, "{ name:%s dtype:%s", tensor->name, tensor->dtype_name);
    tdm__put_integers(to, "shape", tensor->dim, tensor->ndim);
    tdm__put(to, "bytes:%zu", tensor->bytes);
    if (hash != NULL) {
        char digits[TDM_HASH_TEXT];
        tdm__hash_print(digits, *hash);
        tdm__put(to, "xxh3:%s", digits);
    }
    tdm__put(to, "}");
}

static void show_json(const tdm_ckpt *ckpt, tdm_text *out) {
    static const char *const keys[] = {"model", "optimizer"};
    tdm_json_out json = tdm__json_to(out, " ");
    tdm__put(&json, "{ path:%s", ckpt->path);
    if (ckpt->has_state) tdm__state_print(&json, "state", &ckpt->state);
    for (int part = 0; part < 2; part++) {
        const tdm_tensor_file *file = ckpt->tensors[part];
        const tdm_hash128 *hashes = ckpt->manifest.file[part].tensor_hash;
        if (file == NULL) continue;
        tdm__put(&json, "%s:[\n", keys[part]);
        for (int i = 0; i < file->count; i++) put_tensor(&json, &file->tensor[i], hashes != NULL ? &hashes[i] : NULL);
        tdm__put(&json, "]");
    }
    tdm__put(&json, "}\n");
}

tdm_status tdm__ckpt_show(const tdm_host *host, const char *path, bool json, tdm_text *out) {
    tdm_arena arena;
    tdm_ckpt *ckpt = NULL;
    tdm_status status;
    tdm__arena_init(&arena, host);
    TDM_TRY_DONE(tdm__ckpt_open_any(&ckpt, host, path));
    if (json) {
        show_json(ckpt, out);
    } else {
        tdm__text_shown(out, ckpt->path);
        tdm__text_puts(out, "\n");
        if (ckpt->has_state) show_state(&ckpt->state, out);
        for (int part = 0; part < 2; part++) TDM_TRY_DONE(show_tensors(ckpt, part, &arena, out));
    }
    status = finished(out);
done:
    tdm__ckpt_close(ckpt);
    tdm__arena_deinit(&arena);
    return status;
}
