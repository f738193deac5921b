/* A table of pictures: a CSV file with a path and a label in each row. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/data/read/csv_cells.h"
#include "runtime/data/pictures/picture_list.h"

/* Does the path, taken as text, lead above where it begins? */
static bool leads_out(const char *path) {
    int depth = 0;
    for (const char *at = path; *at != '\0' && depth >= 0;) {
        const size_t length = strcspn(at, "/");
        if (length == 2 && strncmp(at, "..", 2) == 0)
            depth--;
        else if (length > 0 && !(length == 1 && *at == '.'))
            depth++;
        at += length + strspn(at + length, "/");
    }
    return depth < 0;
}

/* An absolute path becomes relative to the root, in which it must be. */
static tdm_status make_relative(const tdm_picture_list *list, const tdm_csv *csv, char path[TDM_CSV_CELL_MAX]) {
    char root[PATH_MAX];
    const char *rest = path;
    if (path[0] == '/') {
        if (realpath(list->root.path, root) == NULL) root[0] = '\0';
        const size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
        rest = root[0] != '\0' && strncmp(path, root, length) == 0 && path[length] == '/' ? path + length : NULL;
        if (rest != NULL) rest += strspn(rest, "/");
    }
    if (rest == NULL || leads_out(rest))
        TDM_FAIL_CELL(csv, "'%s' leads out of '%s'; write as `path` a folder that holds all pictures of the table",
                      path, list->root.path);
    memmove(path, rest, strlen(rest) + 1);
    return TDM_OK;
}

/* Reads a row of two cells; path "" at the end. */
static tdm_status read_row(const tdm_picture_list *list, tdm_csv *csv, char path[TDM_CSV_CELL_MAX]) {
    bool more;
    path[0] = '\0';
    TDM_TRY(tdm__csv_next(csv, &more));
    if (!more) return TDM_OK;
    if (csv->ends_row || csv->length == 0) TDM_FAIL_CELL(csv, "expected two columns, path and label");
    memcpy(path, csv->cell, csv->length + 1);
    TDM_TRY(make_relative(list, csv, path));
    TDM_TRY(tdm__csv_next(csv, &more));
    if (!csv->ends_row || csv->length == 0) TDM_FAIL_CELL(csv, "expected two columns, path and label");
    return TDM_OK;
}

static tdm_status read_rows(tdm_picture_list *list, tdm_csv *csv) {
    char path[TDM_CSV_CELL_MAX];
    for (;;) {
        TDM_TRY(read_row(list, csv, path));
        if (path[0] == '\0') return TDM_OK;
        if (csv->row == 0 && !tdm__is_picture_name(path)) continue; /* names of the columns */
        TDM_TRY(tdm__csv_check_utf8(csv, "label"));
        const int64_t label = (int64_t)list->labels.length;
        tdm__text_add(&list->labels, csv->cell, csv->length + 1);
        if (list->labels.failed) TDM_FAIL(TDM_E_MEMORY, "out of memory for the list of pictures");
        TDM_TRY(tdm__picture_list_add(list, path, label));
    }
}

static tdm_status open_beside(tdm_picture_list *list, const char *file, const char *folder) {
    const char *slash = strrchr(file, '/');
    if (folder != NULL) return tdm__picture_list_open_root(list, folder);
    const size_t length = slash == NULL ? 0 : slash == file ? 1 : (size_t)(slash - file);
    tdm__text_add(&list->folder, length > 0 ? file : ".", length > 0 ? length : 1);
    if (list->folder.failed) TDM_FAIL(TDM_E_MEMORY, "out of memory for the list of pictures");
    return tdm__picture_list_open_root(list, list->folder.data);
}

tdm_status tdm__picture_table_open(tdm_picture_list *list, const tdm_host *host, const char *file, const char *folder) {
    char *text;
    size_t bytes;
    tdm_csv *csv;
    tdm__picture_list_begin(list, host);
    TDM_TRY(open_beside(list, file, folder));
    TDM_TRY(tdm__csv_load(host, "image_folder", file, &text, &bytes));
    tdm_status status = tdm__new(host, &csv, 1, sizeof(*csv), "table of pictures");
    if (status == TDM_OK) {
        tdm__csv_begin(csv, "image_folder", file, text, bytes);
        status = read_rows(list, csv);
        tdm__delete(host, csv);
    }
    tdm__delete(host, text);
    TDM_TRY(status);
    if (list->count == 0) TDM_FAIL(TDM_E_DATA, "image_folder '%s': the table has no rows", file);
    return TDM_OK;
}
