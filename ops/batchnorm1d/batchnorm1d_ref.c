/* batchnorm1d: reference kernel, also the one that runs on the CPU for features that are no multiple of 8. */
#include "ops/batchnorm2d/batchnorm2d.h"

TDM_BATCHNORM2D_REF(batchnorm1d);
