/* Chooses the flat loops for this processor. */
#include "ops/flat/flat.h"

#include "runtime/base/isa.h"
#include "runtime/graph/graph.h"

static const tdm_flat_kernels *const kernels[] = TDM_ISA_KERNELS(&tdm__flat);

const tdm_flat_kernels *tdm_builtin_flat_ref(void) {
    return kernels[TDM_ISA_REF];
}

const tdm_flat_kernels *tdm_builtin_flat(void) {
    return kernels[tdm__isa()];
}
