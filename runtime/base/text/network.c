#include "runtime/base/text/network.h"

#include <string.h>

#include "runtime/base/status.h"
#include "runtime/base/text/text.h"

static const char ending[] = ".onnx";

tdm_status tdm__network_refuse(const char *path, tdm_status status, const char *wanted) {
    if (!tdm__text_ends_in(path, ending)) return TDM_OK;
    TDM_FAIL(status, "%s is a network, not %s; `tandem init --onnx %s -o %.*s.yaml` makes a job of it", path, wanted,
             path, (int)(strlen(path) - strlen(ending)), path);
}
