/* Weights in the layouts that kernels read, made once for all threads. Where a kernel has one, it no longer reads the
 * file's pages, so these are given back: the process holds each weight once. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/model/model.h"

static void free_pack(const tdm_model *model, tdm_model_pack *pack) {
    tdm__delete_pages(model->host, pack->data);
    tdm__delete(model->host, pack);
}

static tdm_status new_pack(const tdm_model *model, int graph_param, size_t bytes, tdm_model_pack **out) {
    tdm_model_pack *pack;
    TDM_TRY(tdm__new(model->host, &pack, 1, sizeof(*pack), "packed weights"));
    *pack = (tdm_model_pack){.graph_param = graph_param, .bytes = bytes};
    TDM_TRY_ELSE(tdm__new_pages(model->host, &pack->data, bytes, "packed weights"), tdm__delete(model->host, pack));
    *out = pack;
    return TDM_OK;
}

/* Keeps a pack, or frees it for one with the same bytes. */
static void *keep(tdm_model *model, tdm_model_pack *pack) {
    for (tdm_model_pack *p = model->packs; p != NULL; p = p->next) {
        if (p->graph_param != pack->graph_param || p->bytes != pack->bytes) continue;
        if (memcmp(p->data, pack->data, p->bytes) != 0) continue;
        free_pack(model, pack);
        return p->data;
    }
    pack->next = model->packs;
    model->packs = pack;
    model->packed_bytes += pack->bytes;
    return pack->data;
}

static tdm_status pack_node(tdm_model *model, tdm_replica *replica, int node, void **out) {
    const size_t bytes = tdm__exec_packed_bytes(replica, node);
    tdm_model_pack *pack = NULL;
    if (bytes == 0) return TDM_OK;
    const int index = replica->plan->params[replica->plan->nodes[node].param[0]].graph_param;
    TDM_TRY(new_pack(model, index, bytes, &pack));
    TDM_TRY_ELSE(tdm__exec_pack(replica, node, pack->data), free_pack(model, pack));
    *out = keep(model, pack);
    if (replica->plan->nodes[node].kernel->keeps_param) return TDM_OK;
    tdm__map_release(&model->map, model->weights.param[index],
                     (size_t)model->graph->params[index].count * sizeof(float));
    return TDM_OK;
}

static tdm_status pack_all(tdm_model *model, tdm_replica *replica, void ***out) {
    const int count = replica->plan->node_count;
    void **packed = NULL;
    TDM_TRY(tdm__new(model->host, &packed, (size_t)count, sizeof(*packed), "packed weights"));
    for (int i = 0; i < count; i++)
        TDM_TRY_ELSE(pack_node(model, replica, i, &packed[i]), tdm__delete(model->host, packed));
    *out = packed;
    return TDM_OK;
}

tdm_status tdm__model_pack(tdm_model *model, int piece, tdm_workspace *w) {
    tdm_status status = TDM_OK;
    pthread_mutex_lock(&model->lock);
    if (model->piece[piece].packed == NULL) status = pack_all(model, w->replica, &model->piece[piece].packed);
    w->replica->borrowed.packed = model->piece[piece].packed;
    pthread_mutex_unlock(&model->lock);
    return status;
}

void tdm__model_free_packs(tdm_model *model) {
    for (int i = 0; i < TDM_MODEL_PIECES; i++) tdm__delete(model->host, model->piece[i].packed);
    for (tdm_model_pack *p = model->packs, *next; p != NULL; p = next) {
        next = p->next;
        free_pack(model, p);
    }
}
