/* The pictures below a path, for programs. */
#include <string.h>

#include <tandem/data.h>

#include "runtime/base/status.h"
#include "runtime/data/pictures/picture_list.h"

static tdm_status call_each(const tdm_picture_list *list, tdm_status (*each)(void *user, const char *path),
                            void *user) {
    tdm_status status = TDM_OK;
    const char *root = list->root.path;
    size_t length = strlen(root);
    tdm_text path;
    tdm__text_init(&path, list->host);
    while (length > 0 && root[length - 1] == '/') length--;
    for (int64_t i = 0; i < list->count && status == TDM_OK; i++) {
        path.length = 0;
        tdm__text_printf(&path, "%.*s/%s", (int)length, root, tdm__picture_path(list, i));
        status = path.failed
                     ? tdm__fail(TDM_E_MEMORY, __FILE__, __LINE__, NULL, "out of memory for the list of pictures")
                     : each(user, path.data);
    }
    tdm__text_deinit(&path);
    return status;
}

tdm_status tdm_data_pictures(const tdm_host *host, const char *path, tdm_status (*each)(void *user, const char *path),
                             void *user) {
    tdm_picture_list list;
    if (path == NULL || each == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_data_pictures: path or each is NULL");
    TDM_TRY(tdm__host_take(&host));
    if (!tdm__file_is_folder(NULL, path)) return each(user, path);
    tdm_status status = tdm__picture_list_open_all(&list, host, path);
    if (status == TDM_OK) status = call_each(&list, each, user);
    tdm__picture_list_close(&list);
    return status;
}
