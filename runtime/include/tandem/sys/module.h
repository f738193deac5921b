/* tandem/sys/module.h - a module: a shared library with kernels, a device, a communicator, a transport, a decoder of
 * pictures, or layers.
 *
 * A module exports one constant, `tdm_module_v1`. It is opened on demand and never closed; `probe` says whether it
 * works on this machine. It does not link tandem: it gets what it needs through tdm_host_calls. */
#ifndef TANDEM_SYS_MODULE_H
#define TANDEM_SYS_MODULE_H

#include <tandem/sys/device.h>
#include <tandem/sys/optim.h>

TDM_BEGIN_DECLS

/* Raise it when a struct or the numbers of an enum in tandem/sys/ or tandem/comm.h change: a module of another number
 * is refused. */
#define TDM_MODULE_ABI 32u
#define TDM_MODULE_SYMBOL "tdm_module_v1"

struct tdm_device_ops;
struct tdm_comm_ops;
struct tdm_transport_ops;
struct tdm_image_ops;

typedef struct tdm_module {
    uint32_t abi;     /* TDM_MODULE_ABI */
    const char *name; /* "dnnl" */
    /* Returns 1 if the module works on this machine and puts what it uses into `text` ("oneDNN 2.6.3, AVX-512"); else
     * 0, with the reason as a sentence. */
    int (*probe)(char *text, size_t bytes);
    /* Hands over the call table, which outlives the module. Called before anything else, possibly more than once with
     * the same table. Any thread. */
    void (*init)(const tdm_host_calls *calls);
    const tdm_kernel *const *kernels;          /* NULL-terminated, best first; NULL: none */
    const struct tdm_device_ops *device;       /* NULL: none */
    const struct tdm_comm_ops *comm;           /* NULL: none */
    const tdm_loss_kernel *const *losses;      /* NULL-terminated; NULL: none */
    const tdm_optim_kernel *const *optims;     /* NULL-terminated; NULL: none */
    const struct tdm_image_ops *image;         /* pictures; NULL: none */
    const struct tdm_transport_ops *transport; /* messages between hosts; NULL: none */
    /* Called first in each thread that shares the work of kernels on the CPU (tdm_host_calls.share); NULL: they share
     * none. */
    void (*thread_begin)(void);
    /* Optional: nothing more is prepared for now, so memory that only preparing needs may go. Any thread. */
    void (*rest)(void);
    /* Layers of its own, NULL-terminated; NULL: none. Each has a kernel for the CPU in `kernels`, with forward and
     * backward. Graphs use them after tdm_graph_use or tdm_graph_use_file (tandem/graph.h), and YAML files as
     * `custom: {module: libmine.so, op: swish}`; then probe and init may be NULL. See runtime/docs/own-ops.md. */
    const tdm_op_def *const *ops;
    size_t process_bytes; /* at most what libraries of others take for all kernels together, once in a process */
} tdm_module;

TDM_END_DECLS
#endif
