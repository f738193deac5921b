/* Files that hold a network alone: where a job or a model is wanted, they are told apart by their name. */
#ifndef TDM_BASE_NETWORK_H
#define TDM_BASE_NETWORK_H

#include <tandem/status.h>

/* Fails with `status` if the path is that of an ONNX file, and says what makes a job of it. wanted: "a job". */
tdm_status tdm__network_refuse(const char *path, tdm_status status, const char *wanted);

#endif
