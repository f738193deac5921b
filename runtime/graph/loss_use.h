/* What a loss needs in front of it, and which other loss fits where it does not: for checks and hints. */
#ifndef TDM_GRAPH_LOSS_USE_H
#define TDM_GRAPH_LOSS_USE_H

#include "runtime/graph/graph.h"

typedef struct tdm_loss_use {
    const char *loss;
    const char *needs;     /* the op that the model must end in; NULL: any */
    const char *contains;  /* the op whose work the loss does itself; NULL: none */
    const char *instead;   /* of a loss that needs an op: the loss that does the op's work itself */
    const char *of_values; /* of a loss over labels: the loss that takes a float for each class instead */
} tdm_loss_use;

/* Defined in ops/; ends with a NULL loss. */
extern const tdm_loss_use tdm_builtin_loss_uses[];

/* The row of a loss; one that says nothing if it has none. */
const tdm_loss_use *tdm__loss_use(const tdm_loss_def *loss);

/* The checks of a model's output by its loss: the op that gives it, its shape, and the settings that depend on it. */
tdm_status tdm__loss_take_output(const tdm_loss_def *loss, const tdm_loss_section *section, const tdm_graph *graph,
                                 tdm_value output, const tdm_origin *origin, int64_t *classes);

#endif
