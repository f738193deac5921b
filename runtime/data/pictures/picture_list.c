/* Listing a folder of pictures, see picture_list.h. */
#include "runtime/data/pictures/picture_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/status.h"
#include "runtime/base/system/beneath.h"

enum { DEPTH_MAX = 32, NAMES_ROOM = 1 << 20 };

bool tdm__is_picture_name(const char *name) {
    static const char *const endings[] = {".jpg", ".jpeg", ".png"};
    const char *point = strrchr(name, '.');
    for (size_t i = 0; point != NULL && i < sizeof(endings) / sizeof(endings[0]); i++) {
        if (strcasecmp(point, endings[i]) == 0) return true;
    }
    return false;
}

static tdm_status add_text(tdm_text *text, size_t **at, size_t *room, int64_t index, const tdm_host *host,
                           const char *added) {
    TDM_TRY(tdm__grow(host, at, room, (size_t)index + 1, sizeof(**at), "list of pictures"));
    (*at)[index] = text->length;
    tdm__text_add(text, added, strlen(added) + 1);
    if (text->failed) TDM_FAIL(TDM_E_MEMORY, "out of memory for the list of pictures");
    return TDM_OK;
}

tdm_status tdm__picture_list_add(tdm_picture_list *list, const char *path, int64_t label) {
    const size_t index = (size_t)list->count;
    TDM_TRY(add_text(&list->text, &list->path_at, &list->path_room, list->count, list->host, path));
    if (label != TDM_PICTURE_UNLABELLED) {
        TDM_TRY(tdm__grow(list->host, &list->label_at, &list->label_room, index + 1, sizeof(*list->label_at),
                          "list of pictures"));
        list->label_at[index] = (size_t)label;
    }
    list->count++;
    return TDM_OK;
}

/* ---- one folder ---- */

typedef enum entry_kind { ENTRY_FILE, ENTRY_FOLDER, ENTRY_OTHER } entry_kind;

static tdm_status folder_fail(const tdm_picture_list *list, const char *path, int error) {
    const char *slash = path[0] != '\0' ? "/" : "";
    if (error == EXDEV || error == ELOOP)
        TDM_FAIL(
            TDM_E_DATA,
            "image_folder '%s%s%s' is a link that leads out of the folder or to nothing; copy the pictures into it",
            list->root.path, slash, path);
    errno = error;
    TDM_FAIL(error == ENOMEM ? TDM_E_MEMORY : TDM_E_DATA, "image_folder '%s%s%s' cannot be listed: %m", list->root.path,
             slash, path);
}

static tdm_status open_folder(const tdm_picture_list *list, const char *path, DIR **out) {
    const int fd = tdm__open_beneath(list->root.fd, path[0] != '\0' ? path : ".", O_DIRECTORY);
    *out = fd < 0 ? NULL : fdopendir(fd);
    if (*out != NULL) return TDM_OK;
    const int error = errno;
    if (fd >= 0) close(fd);
    return folder_fail(list, path, error);
}

/* `is_link`: what the entry itself is; `kind`: what it leads to. */
static entry_kind kind_of(const tdm_picture_list *list, DIR *dir, const struct dirent *entry, const char *path,
                          bool *is_link) {
    struct stat found;
    unsigned char type = entry->d_type;
    if (type == DT_UNKNOWN && fstatat(dirfd(dir), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0)
        type = (unsigned char)IFTODT(found.st_mode);
    *is_link = type == DT_LNK;
    if (*is_link) {
        const int fd = tdm__open_beneath(list->root.fd, path, O_DIRECTORY);
        if (fd < 0) return errno == ENOTDIR ? ENTRY_FILE : ENTRY_OTHER;
        close(fd);
        return ENTRY_FOLDER;
    }
    return type == DT_DIR ? ENTRY_FOLDER : type == DT_REG ? ENTRY_FILE : ENTRY_OTHER;
}

/* What a listing of a folder does with each entry. `path`: from the root. */
typedef tdm_status entry_call(tdm_picture_list *list, void *user, const char *path, const char *name, entry_kind kind,
                              bool is_link);

static tdm_status each_entry(tdm_picture_list *list, const char *folder, entry_call *call, void *user) {
    tdm_status status = TDM_OK;
    tdm_text path;
    DIR *dir;
    TDM_TRY(open_folder(list, folder, &dir));
    tdm__text_init(&path, list->host);
    for (;;) {
        bool is_link;
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL && errno != 0) status = folder_fail(list, folder, errno);
        if (entry == NULL) break;
        if (entry->d_name[0] == '.') continue;
        path.length = 0;
        tdm__text_puts(&path, folder);
        if (folder[0] != '\0') tdm__text_puts(&path, "/");
        tdm__text_puts(&path, entry->d_name);
        if (path.failed) {
            status = tdm__fail(TDM_E_MEMORY, __FILE__, __LINE__, NULL, "out of memory for the list of pictures");
            break;
        }
        const entry_kind kind = kind_of(list, dir, entry, path.data, &is_link);
        TDM_TRY_DONE(call(list, user, path.data, entry->d_name, kind, is_link));
    }
done:
    tdm__text_deinit(&path);
    closedir(dir);
    return status;
}

/* Counts what is left out, and keeps the first name. */
static void note(int64_t *count, char first[64], const char *name) {
    if ((*count)++ == 0) snprintf(first, 64, "%.63s", name);
}

/* A link that leads out, or to nothing, is listed if it is named as a picture: reading it then says what is wrong. */
static tdm_status add_file(tdm_picture_list *list, const char *path, const char *name, entry_kind kind, bool is_link,
                           int64_t label) {
    if (tdm__is_picture_name(name) && (kind == ENTRY_FILE || is_link)) return tdm__picture_list_add(list, path, label);
    note(&list->others, list->other, name);
    return TDM_OK;
}

/* ---- a class ---- */

typedef struct class_walk {
    int64_t label;
    tdm_text folders; /* to be listed, one behind the other */
} class_walk;

static tdm_status class_entry(tdm_picture_list *list, void *user, const char *path, const char *name, entry_kind kind,
                              bool is_link) {
    class_walk *walk = user;
    int depth = 0;
    if (kind != ENTRY_FOLDER) return add_file(list, path, name, kind, is_link, walk->label);
    if (is_link)
        TDM_FAIL(TDM_E_DATA, "image_folder '%s/%s' is a link to a folder; only a class itself may be one%s",
                 list->root.path, path, walk->label == TDM_PICTURE_UNLABELLED ? ", so name that folder, too" : "");
    for (const char *at = path; *at != '\0'; at++) depth += *at == '/';
    if (depth > DEPTH_MAX)
        TDM_FAIL(TDM_E_DATA, "image_folder '%s/%s' is more than %d folders deep", list->root.path, path, DEPTH_MAX);
    tdm__text_add(&walk->folders, path, strlen(path) + 1);
    if (walk->folders.failed) TDM_FAIL(TDM_E_MEMORY, "out of memory for the list of pictures");
    return TDM_OK;
}

/* By folder, then by name. */
static int by_path(const void *a, const void *b, void *text) {
    const char *x = (const char *)text + *(const size_t *)a, *y = (const char *)text + *(const size_t *)b;
    const char *x_name = strrchr(x, '/'), *y_name = strrchr(y, '/');
    const size_t x_folder = x_name != NULL ? (size_t)(x_name - x) : 0,
                 y_folder = y_name != NULL ? (size_t)(y_name - y) : 0;
    const int order = memcmp(x, y, x_folder < y_folder ? x_folder : y_folder);
    if (order != 0) return order;
    if (x_folder != y_folder) return x_folder < y_folder ? -1 : 1;
    return strcmp(x + x_folder, y + y_folder);
}

static void sort_from(tdm_picture_list *list, int64_t first) {
    if (first == list->count) return;
    qsort_r(list->path_at + first, (size_t)(list->count - first), sizeof(*list->path_at), by_path, list->text.data);
}

/* Lists the pictures in and below a folder, sorted. */
static tdm_status list_below(tdm_picture_list *list, const char *folder, int64_t label) {
    const int64_t first = list->count;
    class_walk walk = {.label = label};
    tdm_text path;
    tdm_status status = TDM_OK;
    tdm__text_init(&walk.folders, list->host);
    tdm__text_init(&path, list->host);
    tdm__text_add(&walk.folders, folder, strlen(folder) + 1);
    for (size_t at = 0; status == TDM_OK && at < walk.folders.length; at += path.length + 1) {
        path.length = 0; /* a copy: the list of folders may move */
        tdm__text_puts(&path, walk.folders.data + at);
        if (path.failed)
            status = tdm__fail(TDM_E_MEMORY, __FILE__, __LINE__, NULL, "out of memory for the list of pictures");
        else
            status = each_entry(list, path.data, class_entry, &walk);
    }
    if (status == TDM_OK && walk.folders.failed)
        status = tdm__fail(TDM_E_MEMORY, __FILE__, __LINE__, NULL, "out of memory for the list of pictures");
    tdm__text_deinit(&walk.folders);
    tdm__text_deinit(&path);
    TDM_TRY(status);
    sort_from(list, first); /* labels need no sorting: all are the same */
    return TDM_OK;
}

static tdm_status list_class(tdm_picture_list *list, size_t name_at) {
    const int64_t first = list->count;
    const char *name = list->labels.data + name_at;
    TDM_TRY(list_below(list, name, (int64_t)name_at));
    if (list->count == first)
        TDM_FAIL(TDM_E_DATA,
                 "image_folder '%s': the class '%s' has no pictures (.jpg, .jpeg or .png); remove the folder",
                 list->root.path, name);
    return TDM_OK;
}

/* ---- the root ---- */

static tdm_status root_folder(tdm_picture_list *list, void *user, const char *path, const char *name, entry_kind kind,
                              bool is_link) {
    size_t bad;
    (void)user, (void)path;
    if (kind != ENTRY_FOLDER && tdm__is_picture_name(name)) {
        note(&list->beside, list->beside_name, name);
        return TDM_OK;
    }
    if (kind == ENTRY_OTHER && is_link) return folder_fail(list, path, EXDEV);
    if (kind != ENTRY_FOLDER) return TDM_OK;
    if (!tdm__text_is_utf8(name, strlen(name), &bad))
        TDM_FAIL(TDM_E_DATA, "image_folder '%s': the name of the class '%s' is not UTF-8; rename the folder",
                 list->root.path, name);
    TDM_TRY(add_text(&list->labels, &list->class_at, &list->class_room, list->class_count, list->host, name));
    list->class_count++;
    return TDM_OK;
}

static tdm_status flat_file(tdm_picture_list *list, void *user, const char *path, const char *name, entry_kind kind,
                            bool is_link) {
    (void)user;
    return kind == ENTRY_FOLDER ? TDM_OK : add_file(list, path, name, kind, is_link, TDM_PICTURE_UNLABELLED);
}

static int by_text(const void *a, const void *b, void *text) {
    return strcmp((const char *)text + *(const size_t *)a, (const char *)text + *(const size_t *)b);
}

static int by_letters(const void *a, const void *b, void *text) {
    return strcasecmp((const char *)text + *(const size_t *)a, (const char *)text + *(const size_t *)b);
}

static tdm_status check_cases(const tdm_picture_list *list) {
    const char *text = list->labels.data;
    for (int64_t i = 1; i < list->class_count; i++) {
        const char *a = text + list->class_at[i - 1], *b = text + list->class_at[i];
        if (strcasecmp(a, b) == 0)
            TDM_FAIL(TDM_E_DATA,
                     "image_folder '%s': the classes '%s' and '%s' differ only by case; merge or rename them",
                     list->root.path, a, b);
    }
    return TDM_OK;
}

static tdm_status list_classes(tdm_picture_list *list) {
    const size_t count = (size_t)list->class_count;
    qsort_r(list->class_at, count, sizeof(*list->class_at), by_letters, list->labels.data);
    TDM_TRY(check_cases(list));
    qsort_r(list->class_at, count, sizeof(*list->class_at), by_text, list->labels.data);
    for (int64_t i = 0; i < list->class_count; i++) TDM_TRY(list_class(list, list->class_at[i]));
    return TDM_OK;
}

void tdm__picture_list_begin(tdm_picture_list *list, const tdm_host *host) {
    *list = (tdm_picture_list){.host = host, .root = {.fd = -1}};
    tdm__text_init(&list->text, host);
    tdm__text_init(&list->labels, host);
    tdm__text_init(&list->folder, host);
}

tdm_status tdm__picture_list_open_root(tdm_picture_list *list, const char *folder) {
    list->root = (tdm_folder){.fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .path = folder};
    if (list->root.fd < 0) TDM_FAIL(TDM_E_DATA, "image_folder '%s' cannot be opened: %m", folder);
    return TDM_OK;
}

tdm_status tdm__picture_list_open(tdm_picture_list *list, const tdm_host *host, const char *folder) {
    tdm__picture_list_begin(list, host);
    TDM_TRY(tdm__picture_list_open_root(list, folder));
    TDM_TRY(each_entry(list, "", root_folder, NULL));
    if (list->class_count > 0) return list_classes(list);
    TDM_TRY(each_entry(list, "", flat_file, NULL));
    if (list->count == 0)
        TDM_FAIL(TDM_E_DATA, "image_folder '%s' has neither class folders nor pictures (.jpg, .jpeg or .png)%s%s%s",
                 folder, list->others > 0 ? "; it has '" : "", list->other, list->others > 0 ? "', for example" : "");
    sort_from(list, 0);
    return TDM_OK;
}

tdm_status tdm__picture_list_open_all(tdm_picture_list *list, const tdm_host *host, const char *folder) {
    tdm__picture_list_begin(list, host);
    TDM_TRY(tdm__picture_list_open_root(list, folder));
    TDM_TRY(list_below(list, "", TDM_PICTURE_UNLABELLED));
    if (list->count == 0) TDM_FAIL(TDM_E_DATA, "'%s' holds no pictures (.jpg, .jpeg or .png)", folder);
    return TDM_OK;
}

void tdm__picture_list_close(tdm_picture_list *list) {
    if (list->host == NULL) return;
    if (list->root.fd >= 0) close(list->root.fd);
    tdm__text_deinit(&list->text);
    tdm__text_deinit(&list->labels);
    tdm__text_deinit(&list->folder);
    tdm__delete(list->host, list->path_at);
    tdm__delete(list->host, list->label_at);
    tdm__delete(list->host, list->class_at);
    *list = (tdm_picture_list){.host = NULL};
}
