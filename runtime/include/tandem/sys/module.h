/* tandem/sys/module.h - a module: kernels, a device or a communicator in a shared library of its own.
 *
 * It exports one constant, `tdm_module_v1`. It is opened on demand, asked by `probe` whether it can work here, and
 * never closed. It links nothing of tandem: what it needs comes through tdm_host_calls. */
#ifndef TANDEM_SYS_MODULE_H
#define TANDEM_SYS_MODULE_H

#include <tandem/sys/optim.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TDM_MODULE_ABI 6u
#define TDM_MODULE_SYMBOL "tdm_module_v1"

struct tdm_device_ops;
struct tdm_comm_ops;

typedef struct tdm_module {
    uint32_t abi;     /* TDM_MODULE_ABI */
    uint32_t size;    /* sizeof(tdm_module) of the module's build; shorter ones lack the last members */
    const char *name; /* "dnnl" */
    /* 1: usable here, and `text` says with what ("oneDNN 2.6.3, AVX-512"); 0: not, and `text` says why in a sentence.
     */
    int (*probe)(char *text, size_t bytes);
    /* Hands over the call table; it outlives the module. Idempotent, any thread. */
    void (*init)(const tdm_host_calls *calls);
    const tdm_kernel *const *kernels; /* NULL-terminated, best first; NULL: none */
    const struct tdm_device_ops *device;
    const struct tdm_comm_ops *comm;
    const tdm_loss_kernel *const *losses;  /* NULL-terminated; NULL: none */
    const tdm_optim_kernel *const *optims; /* likewise */
} tdm_module;

#ifdef __cplusplus
}
#endif
#endif
