/* Extras: what a build may leave out of the library. The list is TDM_EXTRAS in CMakeLists.txt. */
#ifndef TDM_BASE_EXTRA_H
#define TDM_BASE_EXTRA_H

#include "extras.h" /* generated: TDM_WITH_ONNX is 1 or 0, TDM_EXTRA_ONNX is "ONNX files" */
#include "runtime/base/status.h"

/* Stands in the functions through which an extra is entered. A build without it refuses there, and the compiler and the
 * linker leave out what only those call. */
#define TDM_EXTRA(extra)                                                                                    \
    do {                                                                                                    \
        if (!TDM_WITH_##extra)                                                                              \
            TDM_FAIL(TDM_E_UNSUPPORTED, TDM_EXTRA_##extra TDM_EXTRA_IS_ABSENT "; " TDM_EXTRA_HINT(#extra)); \
    } while (0)
#define TDM_EXTRA_IS_ABSENT ": this build of tandem is without"
#define TDM_EXTRA_HINT(extra) "configure it with -DTDM_WITH_" extra "=ON"

#endif
