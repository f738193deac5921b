/* `tandem init --onnx`: the network of an ONNX file in place of the small one that init writes. */
#ifndef TDM_CONFIG_STARTER_NET_H
#define TDM_CONFIG_STARTER_NET_H

#include <tandem/config.h>

#include "config/print/starter_parts.h"
#include "runtime/graph/graph.h"

typedef struct tdm_starter_net {
    tdm_graph *graph;
    char *path; /* whole */
    int head;   /* the last layer with parameters; -1: its outputs cannot be chosen */
} tdm_starter_net;

tdm_status tdm__starter_net_open(tdm_starter_net *out, const tdm_host *host, const char *path);
void tdm__starter_net_close(tdm_starter_net *net);
int64_t tdm__starter_net_outputs(const tdm_starter_net *net);
/* Do samples of this shape go in, and can so many numbers come out? TDM_E_DATA says why not; 0 outputs: as many as the
 * file has. */
tdm_status tdm__starter_net_check(const tdm_starter_net *net, int ndim, const int64_t *dim, int64_t outputs);
/* The section model. */
tdm_status tdm__starter_put_net(const tdm_starter *s, int64_t outputs);
/* The loss over labels that the network's last layer wants; NULL: any will do, or there is no network. */
const char *tdm__starter_net_loss(const tdm_starter_net *net);

/* The starters of starter_*.c with such a network; net NULL: the small one. */
tdm_status tdm__starter_images(const tdm_host *host, const char *folder, const tdm_starter_net *net,
                               tdm_language language, char **out);
tdm_status tdm__starter_table(const tdm_host *host, const char *path, const char *target, const tdm_starter_net *net,
                              tdm_language language, char **out);
tdm_status tdm__starter_series(const tdm_host *host, const char *data, const char *labels, const tdm_starter_net *net,
                               tdm_language language, char **out);

#endif
