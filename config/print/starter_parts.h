/* What all files written by `tandem init` share. */
#ifndef TDM_CONFIG_STARTER_PARTS_H
#define TDM_CONFIG_STARTER_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/status.h>

#include "runtime/base/text/text.h"

struct tdm_starter_net;
typedef struct tdm_starter {
    tdm_text *out;
    bool chinese;
    const struct tdm_starter_net *net; /* of an ONNX file (starter_net.h); NULL: the small network of the starter */
    const char *class_loss;            /* the loss over labels that the network wants; NULL: any will do */
    int64_t train, batch, epochs;      /* samples to train on, of a batch; epochs */
} tdm_starter;

typedef struct tdm_starter_limits {
    int64_t samples, least_epochs, most_epochs; /* epochs until the model has seen so many samples */
    int64_t batch;
} tdm_starter_limits;

/* A fifth of the samples is held out; the rest decides batch, an even number, and epochs. */
void tdm__starter_choose(tdm_starter *s, int64_t samples, const tdm_starter_limits *limits);
int64_t tdm__starter_clamp(int64_t value, int64_t least, int64_t most);
/* A comment of the file, in its language. */
void tdm__starter_note(const tdm_starter *s, int indent, const char *en, const char *zh);
/* The sections train and parallel. */
void tdm__starter_put_training(const tdm_starter *s);
/* Loss, optimizer and schedule for numbers, not pictures, slower for a network that is trained already; and the same
 * two sections. */
void tdm__starter_put_learning(const tdm_starter *s, bool has_classes);
/* The section log: the curves of the report get some 100 points. */
void tdm__starter_put_log(const tdm_starter *s);
/* Refuses paths that the YAML cannot hold. what: "file" or "folder". */
tdm_status tdm__starter_check_path(const char *path, const char *what);

#endif
