/* Blocks: lists of layers with parameters, which model.layers uses by name.
 *
 *   blocks:
 *     basic:
 *       params: {out, stride: 1, downsample: false}   # without a value: each use must give it
 *       layers:
 *         - conv2d: {name: conv1, out: $out, kernel: 3, stride: $stride, padding: 1}
 *         ...
 *   layers:
 *     - block: {use: basic, name: layer1, out: 64, repeat: 2, first: {stride: 2}}
 *
 * Before layers are read, each use is replaced by the block's layers: names and ids get the prefix "layer1.0.", `input`
 * is the input of the block, and $out is replaced by its value. A layer whose `when` is false passes its input on, as
 * torch.nn.Identity does. A block uses only blocks above it, so nothing is ever inside itself. */
#ifndef TDM_CONFIG_BLOCKS_BLOCKS_H
#define TDM_CONFIG_BLOCKS_BLOCKS_H

#include "config/config_private.h"

enum { TDM_BLOCKS_MAX = 64, TDM_BLOCK_PARAMS_MAX = 32, TDM_BLOCK_NAME_MAX = 200 };

typedef struct tdm_block {
    const char *name;
    tdm_position at;
    const tdm_yaml_node *layers; /* NULL after a fault */
    int param_count;
    const tdm_yaml_node *param[TDM_BLOCK_PARAMS_MAX]; /* its key is the name; its value the default, null: none */
    bool is_used;
} tdm_block;

/* Reads model.blocks, *out with *count blocks. After a fault config->has_block_fault. */
tdm_status tdm__blocks_read(tdm_config *config, tdm_block **out, int *count);
/* The parameter that the text `$out` or `${out}` names: its index; -1 if the text is not one. */
int tdm__block_param(const tdm_block *block, const tdm_yaml_node *node);
/* Fills config->expanded from model.layers, which is a list. config->has_block_fault: a use of a block has a fault. */
tdm_status tdm__layers_expand(tdm_config *config);
/* The page of `tandem explain blocks`. */
void tdm__explain_blocks(bool chinese, tdm_text *out);
/* Faults that follow belong to this item; NULL: to none. */
void tdm__expanded_enter(tdm_config *config, const tdm_expanded *expanded);

#endif
