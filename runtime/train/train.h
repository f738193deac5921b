/* Small parts of training: initial weights and hashes. */
#ifndef TDM_TRAIN_TRAIN_H
#define TDM_TRAIN_TRAIN_H

#include "runtime/exec/mode.h"

/* Initial weights of torch.nn's modules after torch.manual_seed(seed), drawn in order of construction into the
 * replica's parameters and buffers. */
tdm_status tdm__weights_init(tdm_replica *replica, int64_t seed, tdm_rng_profile profile);
/* Parameters and buffers from a tensor file, by name; extra tensors in the file are an error that names one. */
struct tdm_tensor_file;
tdm_status tdm__weights_load(tdm_replica *replica, const struct tdm_tensor_file *file);
/* XXH3-128 over the bytes of all parameters in name order. */
tdm_status tdm__params_hash(tdm_replica *replica, tdm_hash128 *out);

#endif
