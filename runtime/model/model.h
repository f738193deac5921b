/* A model that only predicts: what all threads share, and the workspaces that calls take from it. */
#ifndef TDM_MODEL_MODEL_H
#define TDM_MODEL_MODEL_H

#include <pthread.h>

#include <tandem/config.h>
#include <tandem/model.h>

#include "runtime/base/memory.h"
#include "runtime/model/map.h"
#include "runtime/ckpt/ckpt.h"
#include "runtime/data/classes.h"
#include "runtime/data/pictures/picture_input.h"
#include "runtime/data/transform.h"
#include "runtime/device/threads.h"
#include "runtime/exec/replica.h"
#include "runtime/module/module.h"

/* What one call needs for itself: memory for activations and kernels that are ready for one number of rows. */
typedef struct tdm_workspace {
    struct tdm_workspace *next; /* of the free ones */
    tdm_replica *replica;
    int64_t *position; /* [rows] */
    float *ready;      /* samples after the transform */
} tdm_workspace;

/* The threads beside the calling one of one call (tdm_model_options.threads). */
typedef struct tdm_model_threads {
    struct tdm_model_threads *next; /* of the free ones */
    tdm_threads *threads;
} tdm_model_threads;

/* Reading pictures is no call's work with a plan, so its memory is kept apart. */
typedef struct tdm_picture_desk {
    struct tdm_picture_desk *next; /* of the free ones */
    tdm_picture_input *input;
} tdm_picture_desk;

/* Rows go through the model in pieces of 2^0 to 2^(TDM_MODEL_PIECES - 1). Each size has a plan of its own, so one row
 * has the kernels and the memory of one row, and there are few. */
enum { TDM_MODEL_PIECES = 6 };
typedef struct tdm_piece {
    tdm_plan *plan; /* NULL until the size is used */
    void **packed;  /* [plan nodes]: weights as the kernels of this size read them; NULL until there is a workspace */
    tdm_workspace *free;
    size_t kept_bytes, call_bytes; /* of a workspace, and while it is in use: as tdm_kernel_fit's */
    int spare;                     /* workspaces that were dropped, whose kernels the host's limit still counts */
} tdm_piece;

/* A weight in the layout of some kernel; pieces that want the same bytes share it. */
typedef struct tdm_model_pack {
    struct tdm_model_pack *next;
    int graph_param;
    size_t bytes;
    void *data;
} tdm_model_pack;

struct tdm_model {
    const tdm_host *host;
    tdm_model_options options;
    tdm_zone zone;
    const char *path; /* for messages */
    tdm_map map;      /* of the file; bytes NULL: it is the caller's memory */
    tdm_tensor_file *file;

    tdm_config *config;
    tdm_job job;
    const tdm_graph *graph; /* the config's */
    tdm_classes classes;
    const tdm_features *features; /* of the table trained on; NULL: it was none */
    tdm_data_inputs inputs;
    tdm_transform transform;

    tdm_compute compute;
    tdm_weights weights;
    char *copies; /* of weights that do not lie in the file as kernels want them */
    size_t used_bytes, copied_bytes;

    pthread_mutex_t lock; /* of all below, and of nothing above, which does not change any more */
    bool has_lock;
    tdm_piece piece[TDM_MODEL_PIECES];
    tdm_model_pack *packs;
    _Atomic size_t packed_bytes; /* of them; read without the lock */
    tdm_picture_desk *desks;
    tdm_model_threads *threads;
    size_t calling, called; /* the call_bytes of all calls: now, and at most so far */
};

/* row.c: the file's tandem.features, once the graph is there. */
tdm_status tdm__model_read_features(tdm_model *model);
/* model_file.c: what the file says, as job, graph and classes. */
tdm_status tdm__model_read(tdm_model *model);
/* The configuration in the file was refused: the error becomes one of the file, with its path. */
tdm_status tdm__model_fault(const tdm_model *model, tdm_status status);
/* weights.c: finds the tensors of the graph in the file, and copies what has to be. Needs the plan of the first piece. */
tdm_status tdm__model_bind(tdm_model *model);
/* workspace.c: the plan for pieces of this size, made at first use. */
tdm_status tdm__model_plan(tdm_model *model, int piece, const tdm_plan **out);
/* pack.c: lends the workspace its piece's packs; the first workspace of a piece makes them. */
tdm_status tdm__model_pack(tdm_model *model, int piece, tdm_workspace *workspace);
void tdm__model_free_packs(tdm_model *model);
/* A free workspace for pieces of this size, or a new one. It is given back after the call, or dropped if that failed. */
tdm_status tdm__workspace_take(tdm_model *model, int piece, tdm_workspace **out);
void tdm__workspace_drop(tdm_model *model, int piece, tdm_workspace *workspace);
/* Threads for a call, or NULL in *out if it needs none beside its own. They are given back after it. */
tdm_status tdm__model_threads_take(tdm_model *model, tdm_model_threads **out);
void tdm__model_threads_give(tdm_model *model, tdm_model_threads *threads); /* NULL is fine */
void tdm__workspace_give(tdm_model *model, int piece, tdm_workspace *workspace);
void tdm__workspace_close(const tdm_model *model, tdm_workspace *workspace);

#endif
