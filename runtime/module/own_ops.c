/* Modules with layers of the program's own. A file that a YAML names is loaded from folders that the environment names,
 * and from no others: whoever writes a YAML file must not be able to run code by it. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <tandem/graph.h>

#include "runtime/base/status.h"
#include "runtime/base/system/env.h"
#include "runtime/base/system/library.h"
#include "runtime/graph/graph.h"
#include "runtime/module/module.h"

enum { ROOM = 16 << 20 }; /* bytes of address space of a library with ops */

/* `from`: where it comes from, for messages. */
static tdm_status take(const tdm_module *module, const char *from) {
    char why[256] = "";
    if (module->abi != TDM_MODULE_ABI)
        TDM_FAIL(TDM_E_UNSUPPORTED,
                 "%s has module interface %u, this tandem has %u; build it with this tandem's headers", from,
                 module->abi, TDM_MODULE_ABI);
    if (module->name == NULL) TDM_FAIL(TDM_E_UNSUPPORTED, "%s: the module has no name", from);
    if (module->ops == NULL) TDM_FAIL(TDM_E_UNSUPPORTED, "%s: the module %s has no ops", from, module->name);
    for (const tdm_op_def *const *op = module->ops; *op != NULL; op++)
        if ((*op)->name == NULL)
            TDM_FAIL(TDM_E_UNSUPPORTED, "%s: an op of the module %s has no name", from, module->name);
    if (module->init != NULL) module->init(&tdm__host_calls);
    if (module->probe != NULL && !module->probe(why, sizeof(why)))
        TDM_FAIL(TDM_E_UNSUPPORTED, "%s does not work on this machine: %s", from, why);
    return TDM_OK;
}

static tdm_status open_file(const tdm_module **out, const char *path) {
    char why[512] = "";
    void *library = NULL;
    TDM_TRY(tdm__library_open(&library, path, ROOM, why, sizeof(why)));
    if (library == NULL) /* the loader's reason begins with the path, mostly */
        TDM_FAIL(TDM_E_UNSUPPORTED, "%s cannot be loaded: %s", path,
                 strncmp(why, path, strlen(path)) == 0 ? why + strlen(path) + strspn(why + strlen(path), ": ") : why);
    const tdm_module *module = dlsym(library, TDM_MODULE_SYMBOL);
    if (module == NULL)
        TDM_FAIL(TDM_E_UNSUPPORTED, "%s has no symbol " TDM_MODULE_SYMBOL ", so it is not a module of tandem", path);
    TDM_TRY(take(module, path));
    *out = module;
    return TDM_OK;
}

tdm_status tdm__own_ops_open(const tdm_module **out, const char *file) {
    const char *folders = tdm__env(TDM_ENV_OP_PATH), *variable = tdm__env_name(TDM_ENV_OP_PATH);
    if (!tdm__graph_is_file_name(file))
        TDM_FAIL(TDM_E_CONFIG,
                 "a module is the name of a file without its folder, of letters, digits, '.', '_', '+' and '-', got "
                 "'%.200s'; %s names the folders",
                 file, variable);
    if (folders == NULL || folders[0] == '\0')
        TDM_FAIL(TDM_E_CONFIG,
                 "%.200s is code that runs in this process, so it is loaded only from folders that you name in %s, "
                 "which is not set; set it if you trust the file",
                 file, variable);
    for (const char *folder = folders; *folder != '\0';) {
        char path[PATH_MAX];
        struct stat about;
        const size_t length = strcspn(folder, ":");
        const int bytes = snprintf(path, sizeof(path), "%.*s/%s", (int)length, folder, file);
        if (folder[0] == '/' && bytes > 0 && (size_t)bytes < sizeof(path) && stat(path, &about) == 0 &&
            S_ISREG(about.st_mode))
            return open_file(out, path);
        folder += length + (folder[length] == ':');
    }
    TDM_FAIL(TDM_E_CONFIG, "%.200s is in none of the folders of %s, each of which begins with '/': %.300s", file,
             variable, folders);
}

tdm_status tdm_graph_use(tdm_graph *graph, const tdm_module *module) {
    if (graph == NULL || module == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_graph_use: a pointer is NULL");
    TDM_TRY(take(module, "tdm_graph_use"));
    return tdm__graph_add_module(graph, module, NULL);
}

tdm_status tdm_graph_use_file(tdm_graph *graph, const char *path) {
    const tdm_module *module = NULL;
    if (graph == NULL || path == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_graph_use_file: a pointer is NULL");
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        TDM_TRY(tdm__own_ops_open(&module, path));
    else
        TDM_TRY(open_file(&module, path));
    return tdm__graph_add_module(graph, module, slash != NULL ? slash + 1 : path);
}
