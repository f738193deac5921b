/* What tandem hands over to a module: every module compiles module_host.c. */
#ifndef TDM_MODULE_HOST_H
#define TDM_MODULE_HOST_H

#include <tandem/sys/module.h>

TDM_BEGIN_DECLS

/* The table of calls; valid after init. */
const tdm_host_calls *tdm__module_host(void);
void tdm__module_init(const tdm_host_calls *calls); /* for tdm_module.init */
/* A variable that `tandem help env` lists; NULL if it is not set, or before init. */
const char *tdm__module_variable(const char *name);

/* Zeroed memory from the embedding program that begins on a line of 64 bytes; NULL: there is none. It remembers its
 * host, so that whoever ends it needs none. */
void *tdm__module_new(const tdm_host *host, size_t bytes);
void tdm__module_delete(void *pointer); /* NULL is fine */

#define TDM_MODULE_FAIL(code, ...) return tdm__module_host()->fail((code), __FILE__, __LINE__, NULL, __VA_ARGS__)
/* Passes a failed status up, with a frame. */
#define TDM_MODULE_TRY(expression)                                                                    \
    do {                                                                                              \
        tdm_status try_status_ = (expression);                                                        \
        if (try_status_ != TDM_OK) return tdm__module_host()->frame(try_status_, __FILE__, __LINE__); \
    } while (0)

TDM_END_DECLS
#endif
