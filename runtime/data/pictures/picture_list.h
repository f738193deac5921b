/* The picture files of a data set: which there are, in which order, and their labels. */
#ifndef TDM_DATA_PICTURES_PICTURE_LIST_H
#define TDM_DATA_PICTURES_PICTURE_LIST_H

#include "runtime/base/system/file.h"
#include "runtime/base/text/text.h"
#include "runtime/data/formats.h"

typedef struct tdm_picture_list {
    const tdm_host *host;
    tdm_folder root;  /* what the paths are relative to */
    tdm_text folder;  /* the root of a table without a folder */
    tdm_text text;    /* the paths, each with its NUL */
    size_t *path_at;  /* where in `text` each path begins */
    tdm_text labels;  /* the names of the class folders, or all labels of a table */
    size_t *label_at; /* where in `labels` the label of each picture begins; NULL: they have none */
    size_t path_room, label_room;
    int64_t count;
    int64_t others; /* files of other kinds, which are left out */
    char other[64]; /* the name of one of them */
    int64_t beside; /* pictures beside the folders of the classes, which are left out, too */
    char beside_name[64];
    size_t *class_at; /* where in `labels` the name of each class folder begins, sorted by name */
    size_t class_room;
    int64_t class_count; /* 0: a flat folder, or a table */
} tdm_picture_list;

static inline const char *tdm__picture_path(const tdm_picture_list *list, int64_t index) {
    return list->text.data + list->path_at[index];
}

/* Lists `folder`: its sub-folders are the classes, sorted, and the pictures in and below each are its samples, sorted
 * by folder, then by name, as torchvision's ImageFolder does. Without sub-folders the pictures of the folder itself are
 * listed, without labels. Files and folders whose names begin with a point are left out. A symbolic link is followed
 * if it stays in the folder; below a class only links to files are. TDM_E_DATA names what is wrong: a class without
 * pictures, two classes that differ only by case, a name that is not UTF-8.
 * After a failure, too, the list is to be closed. */
tdm_status tdm__picture_list_open(tdm_picture_list *list, const tdm_host *host, const char *folder);
/* Lists all pictures in and below a folder, without labels; its sub-folders are no classes. */
tdm_status tdm__picture_list_open_all(tdm_picture_list *list, const tdm_host *host, const char *folder);
/* Lists the pictures that a CSV table names: path, label. Paths are in `folder`, or, if that is NULL, in the folder of
 * the table; they are relative to it, or absolute. A first row "path,label", or without a picture's name, is left out.
 */
tdm_status tdm__picture_table_open(tdm_picture_list *list, const tdm_host *host, const char *file, const char *folder);
/* All zero is fine. */
void tdm__picture_list_close(tdm_picture_list *list);

/* Does the name end as a picture that can be read: .jpg, .jpeg, .png in any case? */
bool tdm__is_picture_name(const char *name);
/* For both: an empty list; its root opened; a path added, with its label at `label` in list->labels. */
enum { TDM_PICTURE_UNLABELLED = -1 };
void tdm__picture_list_begin(tdm_picture_list *list, const tdm_host *host);
tdm_status tdm__picture_list_open_root(tdm_picture_list *list, const char *folder);
tdm_status tdm__picture_list_add(tdm_picture_list *list, const char *path, int64_t label);

#endif
