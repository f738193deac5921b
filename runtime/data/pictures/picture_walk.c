/* The pictures below a path, for programs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <tandem/data.h>

#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/base/system/beneath.h"
#include "runtime/data/pictures/picture_list.h"

/* Programs read the picture by its path, which would follow any link. */
static bool leads_out(const tdm_picture_list *list, int64_t index) {
    const int fd = tdm__open_beneath(list->root.fd, tdm__picture_path(list, index), 0);
    if (fd < 0) return errno == EXDEV || errno == ELOOP;
    close(fd);
    return false;
}

static tdm_status call_each(const tdm_picture_list *list, tdm_status (*each)(void *user, const char *path),
                            void *user) {
    tdm_status status = TDM_OK;
    const char *root = list->root.path;
    size_t length = strlen(root);
    int64_t refused = 0, first = 0;
    tdm_text path;
    tdm__text_init(&path, list->host);
    while (length > 0 && root[length - 1] == '/') length--;
    for (int64_t i = 0; i < list->count && status == TDM_OK; i++) {
        if (leads_out(list, i)) {
            if (refused++ == 0) first = i;
            continue;
        }
        path.length = 0;
        tdm__text_printf(&path, "%.*s/%s", (int)length, root, tdm__picture_path(list, i));
        status = path.failed
                     ? tdm__fail(TDM_E_MEMORY, __FILE__, __LINE__, NULL, "out of memory for the list of pictures")
                     : each(user, path.data);
    }
    tdm__text_deinit(&path);
    if (status != TDM_OK || refused == 0) return status;
    char more[64] = "";
    if (refused > 1) snprintf(more, sizeof(more), ", as are %lld more", (long long)(refused - 1));
    TDM_FAIL(TDM_E_DATA, "picture '%.*s/%s': a link that leads out of the folder%s", (int)length, root,
             tdm__picture_path(list, first), more);
}

tdm_status tdm_data_pictures(const tdm_host *host, const char *path, tdm_status (*each)(void *user, const char *path),
                             void *user) {
    tdm_picture_list list;
    if (path == NULL || each == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_data_pictures: path or each is NULL");
    TDM_EXTRA(PICTURES);
    TDM_TRY(tdm__host_take(&host));
    if (!tdm__file_is_folder(NULL, path)) return each(user, path);
    tdm_status status = tdm__picture_list_open_all(&list, host, path);
    if (status == TDM_OK) status = call_each(&list, each, user);
    tdm__picture_list_close(&list);
    return status;
}
