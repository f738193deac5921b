/* The table of what losses need in front of them. */
#include "runtime/graph/loss_use.h"

const tdm_loss_use tdm_builtin_loss_uses[] = {
    {.loss = "cross_entropy", .contains = "log_softmax", .of_values = "soft_cross_entropy"},
    {.loss = "soft_cross_entropy", .contains = "log_softmax"},
    {.loss = "nll", .needs = "log_softmax", .instead = "cross_entropy"},
    {0},
};
