/* The call table of Gloo's transport. */
#ifndef TDM_BACKENDS_GLOO_TRANSPORT_H
#define TDM_BACKENDS_GLOO_TRANSPORT_H

#include <tandem/sys/transport.h>

#ifdef __cplusplus
extern "C"
#else
extern
#endif
    const tdm_transport_ops tdm__gloo_ops;

#endif
